package manage

import (
	"errors"
	"net/http"
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// Provider is an entry of the catalogue as the API shows it (OBJ-2). The operator's own headers are not shown: they may
// hold a credential.
type Provider struct {
	ID                string                  `json:"id"`
	Name              string                  `json:"name"`
	Category          string                  `json:"category"`
	Auth              string                  `json:"auth"`
	BaseURL           *string                 `json:"baseUrl"`
	KeyEnv            []string                `json:"keyEnv"`
	Dialects          map[string]wire.Dialect `json:"dialects"`
	Models            []providerModel         `json:"models"`
	PassthroughModels bool                    `json:"passthroughModels"`
	PerModelQuota     bool                    `json:"perModelQuota"`
	AssistantPrefill  *bool                   `json:"assistantPrefill"` // null: not said (STM-43)
	Docs              *string                 `json:"docs"`
	Plugin            *string                 `json:"plugin"`
	Executor          *string                 `json:"executor"`
	AllowPrivate      bool                    `json:"allowPrivate"`
	HeaderNames       []string                `json:"headerNames"`
	Connections       usableCounts            `json:"connections"`
	meta
}

type providerModel struct {
	ID              string   `json:"id"`
	Name            *string  `json:"name"`
	ContextWindow   *int     `json:"contextWindow"`
	MaxOutput       *int     `json:"maxOutput"`
	InputModalities []string `json:"inputModalities"`
	Reasoning       bool     `json:"reasoning"`
}

type usableCounts struct {
	Total  int `json:"total"`
	Usable int `json:"usable"`
}

type providerList struct {
	Providers []Provider `json:"providers"`
	Total     int        `json:"total"`
}

func (s *Server) showProvider(c *call, p *catalog.Provider) Provider {
	n, _ := s.counts(p, c.now)
	v := Provider{
		ID: p.ID, Name: p.Name, Category: string(p.Category), Auth: string(p.Auth), BaseURL: orNull(p.BaseURL),
		KeyEnv: listOf(p.KeyEnv), Dialects: p.Dialects, Models: []providerModel{}, PassthroughModels: p.Passthrough,
		PerModelQuota: p.PerModel, AssistantPrefill: p.Prefill, Docs: orNull(p.Docs), Plugin: orNull(p.Plugin), Executor: orNull(p.Executor),
		AllowPrivate: p.AllowPrivate, HeaderNames: sortedKeys(p.Headers), Connections: usableCounts{n.Total, n.Usable},
		meta: shownMeta(p.Meta),
	}
	if v.Dialects == nil {
		v.Dialects = map[string]wire.Dialect{}
	}
	for _, m := range p.Models {
		v.Models = append(v.Models, providerModel{
			ID: m.ID, Name: orNull(m.Name), ContextWindow: orNone(m.ContextWindow), MaxOutput: orNone(m.MaxOutput),
			InputModalities: listOf(m.InputModalities), Reasoning: m.Reasoning,
		})
	}
	return v
}

func orNone(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func listProviders(s *Server, c *call) (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	a := providerList{Providers: []Provider{}, Total: len(c.catalog.Providers)}
	for _, one := range cut(c.catalog.Providers, p) {
		a.Providers = append(a.Providers, s.showProvider(c, one))
	}
	return a, nil
}

func getProvider(s *Server, c *call) (any, error) {
	p := c.catalog.Provider(c.id)
	if p == nil {
		return nil, notFound("provider", c.id)
	}
	return s.showProvider(c, p), nil
}

func createProvider(s *Server, c *call) (any, error) {
	n, err := c.body()
	if err != nil {
		return nil, err
	}
	var in catalog.ProviderInput
	if err := merge(n, &in); err != nil {
		return nil, err
	}
	if in.ID == "" {
		return nil, invalid(Detail{"id", "is required"})
	}
	if p := c.catalog.Provider(in.ID); p != nil && p.ManagedBy != catalog.ByPlugin {
		return nil, problem(http.StatusConflict, "There is an entry for the provider %q already; replace it with PUT.", in.ID)
	}
	return s.saveProvider(c, in, isNew())
}

// replaceProvider makes the operator's entry of that id, or replaces it whole. Over a provider that a plugin describes it
// changes only the fields that it gives.
func replaceProvider(s *Server, c *call) (any, error) {
	n, err := c.body()
	if err != nil {
		return nil, err
	}
	var in catalog.ProviderInput
	if err := merge(without(n, shownOnly...), &in); err != nil {
		return nil, err
	}
	if in.ID == "" {
		in.ID = c.id
	}
	if in.ID != c.id {
		return nil, invalid(Detail{"id", "cannot be changed; make another provider"})
	}
	old, err := s.storedProvider(c)
	if p, _ := errors.AsType[*Problem](err); p != nil && (p.Status == http.StatusNotFound || p.Code == "managed_by_plugin") {
		expect, err := c.absent("provider", c.id)
		if err != nil {
			return nil, err
		}
		return s.saveProvider(c, in, expect)
	}
	if err != nil {
		return nil, err
	}
	expect, err := c.fresh("provider", c.id, old.Meta.Revision)
	if err != nil {
		return nil, err
	}
	return s.saveProvider(c, in, expect)
}

// storedProvider finds the operator's entry, which may be one that the catalogue leaves out.
func (s *Server) storedProvider(c *call) (*catalog.Entry[catalog.ProviderInput], error) {
	stored, err := s.stored(c)
	if err != nil {
		return nil, err
	}
	var present *catalog.Meta
	if one := c.catalog.Provider(c.id); one != nil {
		present = &one.Meta
	}
	is := func(in *catalog.ProviderInput) bool { return in.ID == c.id }
	return storedObject(stored.Providers, is, "provider", c.id, present)
}

func (s *Server) saveProvider(c *call, in catalog.ProviderInput, expect *uint64) (any, error) {
	var ch change
	ch.put.Providers = []catalog.Entry[catalog.ProviderInput]{{Object: in, Saving: true}}
	ch.expect = expect
	if err := s.apply(c, ch); err != nil {
		return nil, err
	}
	p := s.ports.Catalog().Provider(in.ID)
	if p == nil {
		return nil, notFound("provider", in.ID)
	}
	return s.showProvider(c, p), nil
}

// deleteProvider removes the operator's entry. One that nothing else describes must have no connections (OBJ-2).
func deleteProvider(s *Server, c *call) (any, error) {
	old, err := s.storedProvider(c)
	if err != nil {
		return nil, err
	}
	if p := c.catalog.Provider(c.id); p != nil && p.Plugin == "" && len(p.All) > 0 {
		ids := make([]string, len(p.All))
		for i, one := range p.All {
			ids[i] = one.ID
		}
		slices.Sort(ids)
		return nil, inUse("provider", p.ID, "it has connections, such as "+ids[0])
	}
	if err := s.remove(c, catalog.DocProvider, "provider", c.id, old.Meta.Revision); err != nil {
		return nil, err
	}
	return okAnswer{true}, nil
}
