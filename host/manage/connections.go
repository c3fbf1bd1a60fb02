package manage

import (
	"encoding/hex"
	"io"
	"maps"
	"net/http"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
)

func listConnections(s *Server, c *call) (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	wanted := c.r.URL.Query().Get("provider")
	if known := c.catalog.Provider(wanted); known != nil {
		wanted = known.ID // an alias
	}
	var all []*catalog.Connection
	for _, provider := range c.catalog.Providers {
		if wanted == "" || provider.ID == wanted {
			all = append(all, provider.All...)
		}
	}
	shown := make([]Connection, 0, min(p.limit, len(all)))
	for _, one := range cut(all, p) {
		shown = append(shown, s.showConnection(one, c.now))
	}
	return connectionList{shown, len(all)}, nil
}

func (s *Server) connection(c *call) (*catalog.Connection, error) {
	if one := c.catalog.Connection(c.id); one != nil {
		return one, nil
	}
	return nil, notFound("connection", c.id)
}

func getConnection(s *Server, c *call) (any, error) {
	one, err := s.connection(c)
	if err != nil {
		return nil, err
	}
	shown := s.showConnection(one, c.now)
	if c.r.URL.Query().Get("explain") == "true" {
		return explainConnection(c, one, shown)
	}
	return connectionAnswer{shown}, nil
}

func createConnection(s *Server, c *call) (any, error) {
	n, err := c.body()
	if err != nil {
		return nil, err
	}
	var in catalog.ConnectionInput
	if faults := n.Decode(&in); len(faults) > 0 {
		return nil, faulty(faults)
	}
	if in.Provider == "" {
		return nil, invalid(Detail{"provider", "is required"})
	}
	if in.ID == "" {
		if in.ID, err = s.newID("c-"); err != nil {
			return nil, err
		}
	} else if c.catalog.Connection(in.ID) != nil {
		return nil, problem(http.StatusConflict, "There is a connection %q already; change it with PATCH, or choose another id.", in.ID)
	}
	return s.saveConnection(c, catalog.Entry[catalog.ConnectionInput]{Object: in}, isNew())
}

// newID makes an id that is easy to type; a collision is refused by the write.
func (s *Server) newID(prefix string) (string, error) {
	var b [4]byte
	if _, err := io.ReadFull(s.ports.Random, b[:]); err != nil {
		return "", err
	}
	return prefix + hex.EncodeToString(b[:]), nil
}

// saveConnection writes in and answers the object as it is now.
func (s *Server) saveConnection(c *call, e catalog.Entry[catalog.ConnectionInput], expect *uint64) (any, error) {
	e.Saving = true
	in := &e.Object
	var ch change
	ch.put.Connections = []catalog.Entry[catalog.ConnectionInput]{e}
	ch.expect = expect
	if err := s.apply(c, ch); err != nil {
		return nil, err
	}
	one := s.ports.Catalog().Connection(in.ID)
	if one == nil {
		return nil, notFound("connection", in.ID) // deleted by somebody else in the meantime
	}
	return connectionAnswer{s.showConnection(one, c.now)}, nil
}

// replaceConnection takes all fields but credentials, which stay when absent; rateLimitProtection is not its business
// (OBJ-9, API-72).
func replaceConnection(s *Server, c *call) (any, error) {
	return s.changeConnection(c, func(n *document.Node, in *catalog.ConnectionInput) error {
		old := *in
		*in = catalog.ConnectionInput{
			ID: old.ID, Provider: old.Provider, APIKey: old.APIKey, AccessToken: old.AccessToken, RefreshToken: old.RefreshToken,
			Secrets: old.Secrets, ProviderSpecificData: old.ProviderSpecificData,
		}
		n = without(n, append([]string{"rateLimitProtection", "health", "credentials", "providerDataKeys", "discoveredModels",
			"quota", "lastTested"}, shownOnly...)...)
		if err := merge(n, in); err != nil {
			return err
		}
		in.RateLimitProtection = old.RateLimitProtection
		in.Secrets = mergeSecrets(old.Secrets, in.Secrets, n)
		return nil
	})
}

// patchConnection takes any subset of the fields; null clears (OBJ-9).
func patchConnection(s *Server, c *call) (any, error) {
	return s.changeConnection(c, func(n *document.Node, in *catalog.ConnectionInput) error {
		old := in.Secrets
		if err := merge(n, in); err != nil {
			return err
		}
		in.Secrets = mergeSecrets(old, in.Secrets, n)
		return nil
	})
}

// mergeSecrets lays named secrets over the old ones: nobody can send back what is never shown. An empty text removes one.
func mergeSecrets(old, given map[string]string, n *document.Node) map[string]string {
	member := n.Member("secrets")
	if member == nil || member.Kind == document.Null {
		return given
	}
	all := maps.Clone(old)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, given)
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

func (s *Server) changeConnection(c *call, edit func(*document.Node, *catalog.ConnectionInput) error) (any, error) {
	entry, err := s.storedConnection(c)
	if err != nil {
		return nil, err
	}
	n, err := c.body()
	if err != nil {
		return nil, err
	}
	expect, err := c.fresh("connection", c.id, entry.Meta.Revision)
	if err != nil {
		return nil, err
	}
	in := &entry.Object
	before := *in
	if err := edit(n, in); err != nil {
		return nil, err
	}
	if in.ID != before.ID {
		return nil, invalid(Detail{"id", "cannot be changed; make another connection"})
	}
	if in.Provider != before.Provider {
		return nil, invalid(Detail{"provider", "cannot be changed; make another connection"})
	}
	if !in.SameCredentials(&before) {
		entry.CredentialRevision++
	}
	return s.saveConnection(c, *entry, expect)
}

func (s *Server) storedConnection(c *call) (*catalog.Entry[catalog.ConnectionInput], error) {
	stored, err := s.stored(c)
	if err != nil {
		return nil, err
	}
	var present *catalog.Meta
	if one := c.catalog.Connection(c.id); one != nil {
		present = &one.Meta
	}
	is := func(in *catalog.ConnectionInput) bool { return in.ID == c.id }
	return storedObject(stored.Connections, is, "connection", c.id, present)
}

// deleteConnection removes an account with its state (OBJ-7).
func deleteConnection(s *Server, c *call) (any, error) {
	entry, err := s.storedConnection(c)
	if err != nil {
		return nil, err
	}
	for _, combo := range c.catalog.Combos {
		for _, t := range combo.Targets {
			if t.Connection == c.id {
				return nil, inUse("connection", c.id, "the combo "+combo.Name+" pins it")
			}
		}
	}
	if err := s.remove(c, catalog.DocConnection, "connection", c.id, entry.Meta.Revision); err != nil {
		return nil, err
	}
	s.ports.States.Forget(c.id)
	return okAnswer{true}, nil
}

type resetAnswer struct {
	Connection Connection `json:"connection"`
	Was        string     `json:"was"`
}

// resetConnection is the operator's reset (OBJ-10, COOL-50). It is state, so that it works whoever owns the object.
func resetConnection(s *Server, c *call) (any, error) {
	one, err := s.connection(c)
	if err != nil {
		return nil, err
	}
	was := s.ports.States.Reset(one.ID)
	return resetAnswer{s.showConnection(one, c.now), was}, nil
}

// TestResult is what the test of a connection found (OBJ-11, API-73).
type TestResult struct {
	OK      bool   `json:"ok"`
	Status  int    `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Models  int    `json:"models,omitempty"` // how many models the provider listed
}

func testConnection(s *Server, c *call) (any, error) {
	one, err := s.connection(c)
	if err != nil {
		return nil, err
	}
	return s.ports.Test(c.ctx(), one.ID)
}
