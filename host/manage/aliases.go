package manage

import (
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
	if err := s.aliasOwned(c, in.Alias); err != nil {
		return nil, err
	}
	var ch change
	ch.put.Aliases = []catalog.Entry[catalog.AliasInput]{{Object: in, Saving: true}}
	if err := s.apply(c, ch); err != nil {
		return nil, err
	}
	return aliasList{s.ports.Catalog().Aliases}, nil
}

// aliasOwned refuses an alias that is in force and not in the store: the file owns it.
func (s *Server) aliasOwned(c *call, alias string) error {
	if _, exists := c.catalog.Aliases[alias]; !exists {
		return nil
	}
	stored, err := s.stored(c)
	if err != nil {
		return err
	}
	for _, e := range stored.Aliases {
		if e.Object.Alias == alias {
			return nil
		}
	}
	return owned("alias", alias, catalog.Meta{ManagedBy: catalog.ByFile})
}

func deleteAlias(s *Server, c *call) (any, error) {
	alias := c.r.URL.Query().Get("alias")
	if strings.TrimSpace(alias) == "" {
		return nil, invalid(Detail{"alias", "is required"})
	}
	if _, exists := c.catalog.Aliases[alias]; !exists {
		return nil, notFound("alias", alias)
	}
	if err := s.aliasOwned(c, alias); err != nil {
		return nil, err
	}
	if err := s.remove(c, catalog.DocAlias, "alias", alias, 0); err != nil {
		return nil, err
	}
	return okAnswer{true}, nil
}
