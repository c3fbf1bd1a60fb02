package catalog

import "strings"

// aliases resolves each at build, after combos (CFG-4). An alias may not point at another one (OBJ-13).
func (b *builder) aliases() {
	pick := func(in *Input) []Entry[AliasInput] { return in.Aliases }
	all := items(b, "alias", pick, func(a AliasInput) string { return a.Alias })
	names := map[string]bool{}
	for _, it := range all {
		names[it.id] = true
	}
	for _, it := range all {
		a := &it.Object
		if message := badComboName(a.Alias); message != "" {
			it.fault("alias", "%s", message)
		}
		route := b.aliasRoute(it, names)
		if !b.settle(it.owner(), it.faults) {
			continue
		}
		b.s.Aliases[a.Alias] = a.Model
		if route == nil {
			continue // its combo is not active
		}
		if b.s.routes[a.Alias] != nil {
			b.warn("the alias %q is hidden by the combo of that name", a.Alias)
			continue
		}
		b.s.routes[a.Alias] = route
	}
}

func (b *builder) aliasRoute(it *item[AliasInput], names map[string]bool) *Route {
	a := &it.Object
	if c := b.s.combos[a.Model]; c != nil {
		if !c.Active {
			b.warn("the alias %q points at the combo %q, which is not active", a.Alias, a.Model)
		}
		return b.s.routes[a.Model]
	}
	if names[a.Model] {
		it.fault("model", "alias_chain: %q is itself an alias; point at what it points at", a.Model)
		return nil
	}
	p, model := b.targetModel(a.Model)
	switch {
	case p == nil && !strings.Contains(a.Model, "/"):
		it.fault("model", "there is no combo %q, and a model is written as provider/model%s", a.Model, didYouMean(a.Model, b.comboNames()))
	case p == nil:
		it.fault("model", "%s", b.unknownTarget(a.Model))
	case model == "*":
		it.fault("model", "must name one model")
	case !p.HasModel(model) && !p.connectionLists(model):
		it.fault("model", "provider %s has no model %q%s", p.ID, model, didYouMean(model, p.wildcard()))
	default:
		return direct(p, model, a.Model, p.ID+"/"+model == a.Model)
	}
	return nil
}
