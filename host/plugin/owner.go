package plugin

import (
	"slices"
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// owners says which plugin each provider belongs to: the one that described it first, built-in before third-party, and a
// built-in one also while a plugin of its name hides it (ABI-2.2, "Whose keys go where"). Ids and aliases are keys.
type owners map[string]*version

// claim adds what v describes and nobody owned before.
func (o owners) claim(v *version) {
	for _, p := range v.manifest.Providers {
		for _, id := range append([]string{p.ID}, p.Aliases...) {
			if _, taken := o[id]; !taken {
				o[id] = v
			}
		}
	}
}

// may says whether v may describe or execute the provider.
func (o owners) may(v *version, id string) bool {
	owner, taken := o[id]
	return !taken || owner == v || v.origin == OriginBuiltin || slices.Contains(v.granted.Providers, id)
}

// check refuses a version that describes a provider of another plugin, or names one in order to execute it.
func (o owners) check(v *version) *Fault {
	m := v.manifest
	named := map[string]string{} // provider: where it is named
	for _, p := range m.Providers {
		for _, id := range append([]string{p.ID}, p.Aliases...) {
			named[id] = "describes"
		}
	}
	execute := func(ms wire.Match) {
		for _, id := range ms.Providers {
			if id = strings.ToLower(id); !strings.Contains(id, "*") && named[id] == "" {
				named[id] = "executes"
			}
		}
	}
	for _, row := range m.Plans {
		execute(row.Match)
	}
	if m.Is(wire.KindExecutor) && len(m.Kinds) == 1 { // else matches may mean the rules alone, which need no grant
		for _, ms := range m.Matches {
			execute(ms)
		}
	}
	for id, does := range named {
		if !o.may(v, id) {
			return fault(StepPermissions, CodeProviderTaken,
				"%s the provider %s, which belongs to the plugin %s; take it out, or ask for permissions.providers and have it granted",
				does, id, o[id].name)
		}
	}
	return nil
}
