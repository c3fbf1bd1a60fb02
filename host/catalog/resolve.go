package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/document"
)

// The kinds of a Route.
const (
	KindDirect = "direct"
	KindCombo  = "combo"
)

// UnknownModel is the error of a name that resolves to nothing (CFG-4).
type UnknownModel struct {
	Name    string
	Nearest []string // at most three, nearest first
}

func (e *UnknownModel) Error() string {
	if len(e.Nearest) == 0 {
		return fmt.Sprintf("model %q is not known here; GET /v1/models lists what is", e.Name)
	}
	return fmt.Sprintf("model %q is not known here; the nearest names are %s", e.Name, strings.Join(e.Nearest, ", "))
}

// AmbiguousModel is the error of a bare name that several providers list (CFG-4).
type AmbiguousModel struct {
	Name      string
	Providers []string // ids, sorted
}

func (e *AmbiguousModel) Error() string {
	return fmt.Sprintf("model %q is listed by %s; write %s/%s", e.Name, strings.Join(e.Providers, ", "), e.Providers[0], e.Name)
}

// Resolve finds what a model name means, in the order of CFG-4: combo, alias, provider/model, a bare name that exactly
// one configured provider lists. The error is *UnknownModel or *AmbiguousModel. The Route is shared: read only.
func (s *Snapshot) Resolve(model string) (*Route, error) {
	if r, ok := s.routes[model]; ok {
		return r, nil
	}
	if id, rest, ok := strings.Cut(model, "/"); ok && rest != "" {
		if p, known := s.providers[id]; known {
			if !p.HasModel(rest) && !p.connectionLists(rest) {
				return nil, s.unknown(model)
			}
			return direct(p, rest, model, id == p.ID), nil
		}
	}
	switch listed := s.bare[model]; len(listed) {
	case 0:
		return nil, s.unknown(model)
	case 1:
		return direct(listed[0], model, "", false), nil
	default:
		ids := make([]string, len(listed))
		for i, p := range listed {
			ids[i] = p.ID
		}
		return nil, &AmbiguousModel{Name: model, Providers: ids}
	}
}

// direct makes the route of one unpinned target (OV-9) in one allocation when written is already its canonical name.
func direct(p *Provider, model, written string, canonical bool) *Route {
	name := written
	if !canonical {
		name = p.ID + "/" + model
	}
	r := &struct {
		Route
		target [1]RouteTarget
	}{
		Route:  Route{Kind: KindDirect, Name: name, Strategy: Priority},
		target: [1]RouteTarget{{Key: name, Provider: p, Model: model, Weight: 1}},
	}
	r.Targets = r.target[:]
	return &r.Route
}

// unknown makes the error with the three nearest names. A bare name is also held against the models without their provider.
// Strangers may ask for anything, so the work is bounded by Nearest.
func (s *Snapshot) unknown(model string) error {
	nearest := document.Nearest(model, s.names, 3)
	if !strings.Contains(model, "/") {
		for _, bare := range document.Nearest(model, slices.Sorted(maps.Keys(s.bare)), 3) {
			for _, p := range s.bare[bare] {
				if full := p.ID + "/" + bare; !slices.Contains(nearest, full) {
					nearest = append(nearest, full)
				}
			}
		}
	}
	return &UnknownModel{Name: model, Nearest: nearest[:min(len(nearest), 3)]}
}

// connectionLists says whether an account names the model although its provider does not.
func (p *Provider) connectionLists(model string) bool {
	for _, c := range p.Connections {
		if slices.Contains(c.Models, model) {
			return true
		}
	}
	return false
}

// Serves says whether the account may be used for a model: its list, when it has one, names it, and its exclusions do
// not. Entries may hold *.
func (c *Connection) Serves(model string) bool {
	if len(c.Models) > 0 && !matchesAny(c.Models, model) {
		return false
	}
	return !matchesAny(c.ExcludedModels, model)
}

// Provider returns the provider of that id or alias, or nil.
func (s *Snapshot) Provider(id string) *Provider { return s.providers[id] }

// Connection returns the connection of that id, active or not, or nil.
func (s *Snapshot) Connection(id string) *Connection { return s.connections[id] }

// Combo returns the combo of that name, active or not, or nil.
func (s *Snapshot) Combo(name string) *Combo { return s.combos[name] }

// ModelNames lists what k may ask for, in a stable order (INF-51): the models of configured providers as provider/model,
// then aliases, then combos. k may be nil: everything.
func (s *Snapshot) ModelNames(k *Key) []string {
	out := make([]string, 0, len(s.names))
	for _, name := range s.names {
		if k == nil || k.AllowsModel(name) && s.reachable(k, name) {
			out = append(out, name)
		}
	}
	return out
}

// reachable says whether k may use a connection of some target of the name.
func (s *Snapshot) reachable(k *Key, name string) bool {
	if len(k.AllowedConnections) == 0 {
		return true
	}
	r, err := s.Resolve(name)
	if err != nil {
		return false
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		for _, c := range t.Provider.Connections {
			if k.AllowsConnection(c.ID) && c.Serves(t.Model) && t.Permits(c) {
				return true
			}
		}
	}
	return false
}

// Permits says whether the target may go to c: its pin and its list allow it.
func (t *RouteTarget) Permits(c *Connection) bool {
	if t.Connection != nil && t.Connection.ID != c.ID {
		return false
	}
	return len(t.Allowed) == 0 || slices.Contains(t.Allowed, c.ID)
}

// index fills what Resolve and ModelNames read, after providers, combos and aliases are in place.
func (s *Snapshot) index() {
	s.bare = map[string][]*Provider{}
	for _, p := range s.Providers {
		listed := p.listed()
		for _, id := range listed {
			s.names = append(s.names, p.ID+"/"+id)
			s.bare[id] = append(s.bare[id], p)
		}
	}
	for _, alias := range slices.Sorted(maps.Keys(s.Aliases)) {
		if s.routes[alias] != nil {
			s.names = append(s.names, alias)
		}
	}
	for _, c := range s.Combos {
		if c.Active {
			s.names = append(s.names, c.Name)
		}
	}
	seen := make(map[string]bool, len(s.names))
	s.names = slices.DeleteFunc(s.names, func(name string) bool {
		was := seen[name]
		seen[name] = true
		return was
	})
}

// listed returns the model ids that the provider or one of its accounts names and some active account serves, in the order
// of the provider's list, further ones sorted. A provider without an active connection is not configured: nothing.
func (p *Provider) listed() []string {
	var out []string
	served := func(model string) bool {
		return slices.ContainsFunc(p.Connections, func(c *Connection) bool { return c.Serves(model) })
	}
	for i := range p.Models {
		if served(p.Models[i].ID) {
			out = append(out, p.Models[i].ID)
		}
	}
	more := map[string]bool{}
	for _, c := range p.Connections {
		for _, m := range c.Models {
			if !strings.Contains(m, "*") && !slices.Contains(out, m) && served(m) {
				more[m] = true
			}
		}
	}
	return append(out, slices.Sorted(maps.Keys(more))...)
}
