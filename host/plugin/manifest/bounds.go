package manifest

import "github.com/weirgate/weir/sdk/wire"

// How many things a manifest may list. What a megabyte can hold would take the host seconds, at the load and, for patterns, at
// each request.
const (
	maxKinds     = 16
	maxHooks     = 32
	maxMatches   = 256
	maxGlobs     = 4096 // of all matches and plans
	maxGlob      = 256  // bytes of one
	maxHeaders   = 64
	maxGrants    = 256 // hosts, secrets and providers that are asked for, of each
	maxProviders = 1000
	maxAliases   = 64
	maxKeyEnv    = 16
	maxModels    = 10_000 // of all providers
	maxPlans     = 1000
	maxPrices    = 10_000
	maxTiers     = 16  // of one price
	maxProblems  = 100 // further ones are not reported
)

// bounds says whether the manifest lists no more than it may. The other checks walk over the lists, so they come after it.
func (c *checker) bounds(m *Manifest) bool {
	ok := true
	most := func(field string, n, most int) {
		if n > most {
			c.bad(field, "lists %d, at most %d are allowed", n, most)
			ok = false
		}
	}
	most("kinds", len(m.Kinds), maxKinds)
	most("hooks", len(m.Hooks), maxHooks)
	most("matches", len(m.Matches), maxMatches)
	most("plans", len(m.Plans), maxPlans)
	most("prices", len(m.Prices), maxPrices)
	for i := range m.Prices[:min(len(m.Prices), maxPrices)] {
		most(index("prices", i)+".tiers", len(m.Prices[i].Tiers), maxTiers)
	}
	most("examples", len(m.Examples), MaxExamples)
	most("needs.headers", len(m.Needs.Headers), maxHeaders)
	most("needs.request_fields", len(m.Needs.RequestFields), maxFields)
	if p := m.Permissions.HTTP; p != nil {
		most("permissions.http.hosts", len(p.Hosts), maxGrants)
	}
	most("permissions.secrets", len(m.Permissions.Secrets), maxGrants)
	if p := m.Permissions.Providers; p != nil {
		most("permissions.providers.ids", len(p.IDs), maxGrants)
	}
	most("providers", len(m.Providers), maxProviders)
	models := 0
	for i := range m.Providers[:min(len(m.Providers), maxProviders)] {
		p := &m.Providers[i]
		models += len(p.Models)
		most(index("providers", i)+".aliases", len(p.Aliases), maxAliases)
		most(index("providers", i)+".key_env", len(p.KeyEnv), maxKeyEnv)
	}
	if models > maxModels {
		c.bad("providers", "list %d models, at most %d are allowed", models, maxModels)
		ok = false
	}
	if n := patterns(m); n > maxGlobs {
		c.bad("matches", "lists %d patterns with those of plans, at most %d are allowed", n, maxGlobs)
		ok = false
	}
	return ok
}

func patterns(m *Manifest) (n int) {
	count := func(x *wire.Match) { n += len(x.Providers) + len(x.Models) + len(x.Endpoints) + len(x.Auth) }
	for i := range m.Matches {
		count(&m.Matches[i])
	}
	for i := range m.Plans {
		count(&m.Plans[i].Match)
	}
	return n
}
