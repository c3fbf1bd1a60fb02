package manage

import (
	"fmt"
	"strings"

	"github.com/weirgate/weir/host/catalog"
)

type aliasList struct {
	Aliases map[string]string `json:"aliases"`
}

func listAliases(_ *Server, c *call) (any, error) {
	a := aliasList{Aliases: c.catalog.Aliases}
	if a.Aliases == nil {
		a.Aliases = map[string]string{}
	}
	return a, nil
}

// putAlias makes an alias or points it elsewhere (OBJ-13).
func putAlias(s *Server, c *call) (any, error) {
	var in catalog.AliasInput
	if err := c.read(&in); err != nil {
		return nil, err
	}
	var missing []Detail
	if in.Alias == "" {
		missing = append(missing, Detail{"alias", "is required"})
	}
	if in.Model == "" {
		missing = append(missing, Detail{"model", "is required"})
	}
	if len(missing) > 0 {
		return nil, invalid(missing...)
	}
	if _, is := c.catalog.Aliases[in.Model]; is && c.catalog.Combo(in.Model) == nil {
		p := invalid(Detail{"model", "is itself an alias; point at what it points at"})
		return nil, p.coded("alias_chain")
	}
	for alias, model := range c.catalog.Aliases {
		if model == in.Alias && alias != in.Alias && c.catalog.Combo(in.Alias) == nil { // it would be left out
			return nil, invalid(Detail{"alias", fmt.Sprintf("is what the alias %q points at; point that one elsewhere first", alias)}).
				coded("alias_chain")
		}
	}
	if _, err := s.aliasOwned(c, in.Alias); err != nil {
		return nil, err
	}
	var ch change
	ch.put.Aliases = []catalog.Entry[catalog.AliasInput]{{Object: in, Saving: true}}
	if err := s.apply(c, ch); err != nil {
		return nil, err
	}
	return aliasList{s.ports.Catalog().Aliases}, nil
}

// aliasOwned returns the stored alias, nil when there is none. It refuses one that is in force and not in the store: the file
// owns it.
func (s *Server) aliasOwned(c *call, alias string) (*catalog.Entry[catalog.AliasInput], error) {
	stored, err := s.stored(c)
	if err != nil {
		return nil, err
	}
	for i := range stored.Aliases {
		if stored.Aliases[i].Object.Alias == alias {
			return &stored.Aliases[i], nil
		}
	}
	if _, exists := c.catalog.Aliases[alias]; exists {
		return nil, owned("alias", alias, catalog.Meta{ManagedBy: catalog.ByFile})
	}
	return nil, nil
}

// deleteAlias also removes an alias that the catalogue leaves out for a fault.
func deleteAlias(s *Server, c *call) (any, error) {
	alias := c.r.URL.Query().Get("alias")
	if strings.TrimSpace(alias) == "" {
		return nil, invalid(Detail{"alias", "is required"})
	}
	entry, err := s.aliasOwned(c, alias)
	switch {
	case err != nil:
		return nil, err
	case entry == nil:
		return nil, notFound("alias", alias)
	}
	if err := s.remove(c, catalog.DocAlias, "alias", alias, entry.Meta.Revision); err != nil {
		return nil, err
	}
	return okAnswer{true}, nil
}
