package catalog

import (
	"maps"
	"slices"
	"strings"
)

// QuotaFamily is a group of models of one connection that share one quota at the upstream.
type QuotaFamily struct {
	Name   string
	Models []string // ids; * stands for any text
}

// Family names the quota family of a model (LOCK-1). A model without one is a family of its own, and its id is returned.
// Codex has two families, whether or not its plugin says so: spark, and codex for everything else.
func (p *Provider) Family(model string) string {
	for i := range p.Families {
		if matchesAny(p.Families[i].Models, model) {
			return p.Families[i].Name
		}
	}
	if p.ID == "codex" {
		if strings.Contains(model, "spark") {
			return "spark"
		}
		return "codex"
	}
	return model
}

// PerModelQuota says whether t's provider counts its quota per model (LOCK-12). The connection's own word wins. That a
// provider passes any model name through, or is an operator's own, is not enough: most do and are, and one failure of theirs
// is more often the account's or the provider's (COOL-57).
func (t Target) PerModelQuota() bool {
	switch t.Connection.Data["passthroughModels"] {
	case "true":
		return true
	case "false":
		return false
	}
	switch t.Provider.ID {
	case "codex", "gemini", "github":
		return true
	}
	return t.Provider.PerModel || generic(t.Provider.ID)
}

// families puts what a plugin declares in the order of the names, so that a model of two families is always of the same.
func families(declared map[string][]string) []QuotaFamily {
	var out []QuotaFamily
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		out = append(out, QuotaFamily{Name: name, Models: slices.Clone(declared[name])})
	}
	return out
}
