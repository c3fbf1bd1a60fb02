package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Priority is the strategy that tries targets in configured order (STR-10).
const Priority = "priority"

// defaultDepth is how deep references of a combo nest when it does not say (CMB-3).
const defaultDepth = 3

// StrategyNames lists the names that a combo may give (STR-30).
func StrategyNames() []string {
	return []string{
		"priority", "weighted", "round-robin", "context-relay", "fill-first", "p2c", "random", "least-used", "cost-optimized",
		"reset-aware", "reset-window", "headroom", "quota-weighted", "strict-random", "auto", "lkgp", "context-optimized",
		"cache-optimized", "fusion", "pipeline",
	}
}

// implemented lists the strategies that this version has. The others are refused when a combo is saved, and taken for priority
// with a warning where they stand already (STR-6).
var implemented = []string{
	Priority, "weighted", "round-robin", "fill-first", "p2c", "random", "least-used", "strict-random", "lkgp",
}

// ImplementedStrategies lists the names of STR-30 that this version has.
func ImplementedStrategies() []string { return slices.Clone(implemented) }

// combos reads all of them first, since one may refer to another, then expands each.
func (b *builder) combos() {
	pick := func(in *Input) []Entry[ComboInput] { return in.Combos }
	all := items(b, "combo", pick, func(c ComboInput) string { return c.Name })
	all = slices.DeleteFunc(all, func(it *item[ComboInput]) bool {
		c := b.combo(it)
		if it.owner().lenient && len(it.faults) > 0 {
			return !b.settle(it.owner(), it.faults)
		}
		b.s.combos[it.id] = c
		return false
	})
	for _, it := range all {
		b.checkReferences(it)
	}
	for _, it := range all {
		c := b.s.combos[it.id]
		x := &expansion{b: b, limit: depthOf(c)}
		route := x.route(c)
		if x.tooDeep && !it.owner().lenient {
			it.fault("targets", "references nest deeper than %d; raise config.maxComboDepth (1 to 10) or flatten them", x.limit)
		}
		if b.settle(it.owner(), it.faults) {
			b.addCombo(c, route)
		}
	}
	slices.SortFunc(b.s.Combos, func(x, y *Combo) int { return cmp.Compare(x.Name, y.Name) })
}

func (b *builder) addCombo(c *Combo, route *Route) {
	b.s.Combos = append(b.s.Combos, c)
	if !c.Active {
		return
	}
	b.s.routes[c.Name] = route
	for _, note := range route.Notes {
		b.warn("combo %q: %s", c.Name, note)
	}
}

func depthOf(c *Combo) int {
	if c.Config.MaxDepth != nil {
		return *c.Config.MaxDepth
	}
	return defaultDepth
}

func (b *builder) combo(it *item[ComboInput]) *Combo {
	o := &it.Object
	c := &Combo{Name: o.Name, Strategy: orText(o.Strategy, Priority), Active: true, Meta: it.Meta}
	set(&c.Active, o.IsActive)
	if message := badComboName(o.Name); message != "" {
		it.fault("name", "%s", message)
	}
	b.strategy(it, c)
	field, targets := "targets", o.Targets
	if o.Targets == nil {
		field, targets = "models", o.Models
	} else if o.Models != nil {
		it.fault("models", "and targets are one field under two names; give one of them")
	}
	if len(targets) == 0 {
		it.fault("targets", "must name at least one target")
	}
	for i := range targets {
		c.Targets = append(c.Targets, comboTarget(it, fmt.Sprintf("%s[%d]", field, i), &targets[i]))
	}
	c.Config = comboConfig(it, &o.Config)
	return c
}

// badComboName says what is wrong with a name (CMB-8).
func badComboName(name string) string {
	switch {
	case name == "" || utf8.RuneCountInString(name) > 128:
		return "must have 1 to 128 characters"
	case strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name:
		return "must not hold control characters, nor begin or end with a blank"
	}
	return ""
}

// strategy checks the name: unknown ones are refused when written and taken for priority when stored (CMB-1, STR-6).
func (b *builder) strategy(it *item[ComboInput], c *Combo) {
	switch known := StrategyNames(); {
	case slices.Contains(implemented, c.Strategy):
		return
	case slices.Contains(known, c.Strategy) && it.Saving:
		it.fault("strategy", "%q is a strategy that this version does not have yet; it has %s", c.Strategy, strings.Join(implemented, ", "))
	case slices.Contains(known, c.Strategy):
		b.warn("combo %q: strategy %s is not implemented yet and is treated as priority", c.Name, c.Strategy)
	case it.owner().lenient:
		b.warn("combo %q: strategy %q is not known and is treated as priority", c.Name, c.Strategy)
	default:
		it.fault("strategy", "%q is not a strategy%s", c.Strategy, didYouMean(c.Strategy, known))
	}
}

func comboTarget(it *item[ComboInput], at string, o *TargetInput) ComboTarget {
	t := ComboTarget{Model: o.Model, Weight: 1, Prompt: o.Prompt, Connection: cmp.Or(o.ConnectionID, o.Connection), Allowed: slices.Clone(o.Allowed)}
	set(&t.Weight, o.Weight)
	if t.Weight < 0 {
		it.fault(at+".weight", "must be 0 or more")
	}
	if o.ConnectionID != "" && o.Connection != "" && o.ConnectionID != o.Connection {
		it.fault(at+".connection", "and connectionId are one field under two names; give one of them")
	}
	switch o.Kind {
	case "combo-ref":
		t.ComboRef = o.ComboName
		if o.ComboName == "" || o.Model != "" {
			it.fault(at, "a combo-ref has a comboName and no model")
		}
	case "", "model":
		if o.Model == "" {
			it.fault(at+".model", "is missing; write provider/model")
		}
		if o.ComboName != "" {
			it.fault(at+".comboName", "needs kind: combo-ref")
		}
	default:
		it.fault(at+".kind", "must be model or combo-ref")
	}
	return t
}

func comboConfig(it *item[ComboInput], o *ComboConfigInput) ComboConfig {
	whole := func(field string, v *int, low, high int) *int {
		if v != nil && (*v < low || *v > high) {
			it.fault("config."+field, "must be %d to %d", low, high)
		}
		return v
	}
	span := func(field string, v *Millis, high int64) *time.Duration {
		if v == nil {
			return nil
		}
		if *v < 0 || int64(*v) > high {
			it.fault("config."+field, "must be 0 to %s", time.Duration(high)*time.Millisecond)
		}
		d := v.Duration()
		return &d
	}
	const most = 1<<31 - 1
	return ComboConfig{
		MaxRetries:          whole("maxRetries", o.MaxRetries, 0, 10),
		RetryDelay:          span("retryDelayMs", o.RetryDelay, 60_000),
		FallbackDelay:       span("fallbackDelayMs", o.FallbackDelay, 60_000),
		TargetTimeout:       span("targetTimeoutMs", o.TargetTimeout, most),
		ComboTimeout:        span("comboTimeoutMs", o.ComboTimeout, most),
		FirstContentTimeout: span("firstContentTimeoutMs", o.FirstContentTimeout, 600_000),
		StallTimeout:        span("stallTimeoutMs", o.StallTimeout, 600_000),
		StreamRecovery:      oneOf(it, "streamRecovery", o.StreamRecovery, "must be off, hold or continue", "off", "hold", "continue"),
		EncryptedState:      oneOf(it, "encryptedState", o.EncryptedState, "must be strip or refuse", "strip", "refuse"),
		FallbackOnFilter:    o.FallbackOnFilter,
		FallbackOnOverflow:  o.FallbackOnOverflow,
		MaxDepth:            whole("maxComboDepth", o.MaxDepth, 1, 10),
		CooldownWait:        o.CooldownWait,
		MaxSetRetries:       whole("maxSetRetries", o.MaxSetRetries, 0, 10),
		SetRetryDelay:       span("setRetryDelayMs", o.SetRetryDelay, 60_000),
		Hedging:             o.Hedging,
		HedgeDelay:          span("hedgeDelayMs", o.HedgeDelay, 60_000),
		PredictiveTTFT:      span("predictiveTtftMs", o.PredictiveTTFT, 300_000),
		StickyWeighted:      whole("stickyWeightedLimit", o.StickyWeighted, 1, 1000),
		StickyRoundRobin:    whole("stickyRoundRobinLimit", o.StickyRoundRobin, 1, 1000),
		Context:             contextRequirements(it, o.Context),
	}
}

// oneOf checks an option that is one of a few words (STM-64, SCN-16).
func oneOf(it *item[ComboInput], field string, word *string, wrong string, words ...string) string {
	if word == nil {
		return ""
	}
	if !slices.Contains(words, *word) {
		it.fault("config."+field, "%s", wrong)
	}
	return *word
}

// contextRequirements checks what a combo wants of its models' windows (CMB-5).
func contextRequirements(it *item[ComboInput], o *ContextInput) (c ContextRequirements) {
	if o == nil {
		return c
	}
	set(&c.MinWindow, o.MinWindow)
	set(&c.PreferLarge, o.PreferLarge)
	if c.MinWindow < 0 || c.MinWindow > 10_000_000 {
		it.fault("config.contextRequirements.minContextWindow", "must be 0 to 10000000")
	}
	switch o.Mode {
	case "strict":
		c.Strict = true
	case "", "lenient":
	default:
		it.fault("config.contextRequirements.contextFilterMode", "must be lenient or strict")
	}
	return c
}

// checkReferences looks at what the targets of one combo name. What is wrong in a combo that was stored earlier drops only
// that target: its provider or account may be gone by now.
func (b *builder) checkReferences(it *item[ComboInput]) {
	c := b.s.combos[it.id]
	field := "targets"
	if it.Object.Targets == nil {
		field = "models"
	}
	kept := c.Targets[:0:0]
	for i := range c.Targets {
		t := &c.Targets[i]
		at, message := b.badReference(t)
		switch {
		case message == "":
			kept = append(kept, *t)
		case it.owner().lenient || b.namesDropped(t):
			b.warn("combo %q: %s %s; the target is left out", c.Name, strings.TrimSuffix(fmt.Sprintf("%s[%d].%s", field, i, at), "."), message)
		default:
			it.fault(strings.TrimSuffix(fmt.Sprintf("%s[%d].%s", field, i, at), "."), "%s", message)
		}
	}
	c.Targets = kept
}

// namesDropped says whether a target names an object that has a fault of its own.
func (b *builder) namesDropped(t *ComboTarget) bool {
	id, _, _ := strings.Cut(t.Model, "/")
	return b.dropped["connection/"+t.Connection] || b.dropped["combo/"+t.ComboRef] || b.dropped["provider/"+id]
}

func (b *builder) badReference(t *ComboTarget) (field, message string) {
	if t.ComboRef != "" {
		if _, ok := b.s.combos[t.ComboRef]; !ok {
			return "comboName", fmt.Sprintf("there is no combo %q%s", t.ComboRef, didYouMean(t.ComboRef, b.comboNames()))
		}
		return "", ""
	}
	if t.Model == "" {
		return "", "" // said already
	}
	p, model := b.targetModel(t.Model)
	switch {
	case p == nil && b.s.combos[t.Model] != nil:
		return "model", fmt.Sprintf("%q is a combo; write {kind: combo-ref, comboName: %s}", t.Model, t.Model)
	case p == nil:
		return "model", b.unknownTarget(t.Model)
	case model == "*" && len(p.wildcard()) == 0:
		return "model", fmt.Sprintf("%q names no model, since provider %s lists none; name the models", t.Model, p.ID)
	case model != "*" && !p.HasModel(model) && !p.connectionLists(model):
		return "model", fmt.Sprintf("provider %s has no model %q%s", p.ID, model, didYouMean(model, p.wildcard()))
	}
	for _, id := range append(slices.Clone(t.Allowed), t.Connection) {
		c := b.s.connections[id]
		switch {
		case id == "":
		case c == nil:
			return "connection", fmt.Sprintf("there is no connection %q%s", id, didYouMean(id, b.connectionIDs()))
		case c.Provider != p.ID:
			return "connection", fmt.Sprintf("connection %q belongs to provider %s, not to %s", id, c.Provider, p.ID)
		}
	}
	return "", ""
}

func (b *builder) targetModel(text string) (*Provider, string) {
	id, model, ok := strings.Cut(text, "/")
	if !ok || model == "" {
		return nil, ""
	}
	return b.s.providers[id], model
}

func (b *builder) unknownTarget(text string) string {
	id, _, ok := strings.Cut(text, "/")
	if !ok {
		return fmt.Sprintf("%q is not of the form provider/model", text)
	}
	var ids []string
	for known := range b.s.providers {
		ids = append(ids, known)
	}
	return fmt.Sprintf("%q names the provider %q, which does not exist%s", text, id, didYouMean(id, ids))
}

func (b *builder) comboNames() []string {
	var out []string
	for name := range b.s.combos {
		out = append(out, name)
	}
	return out
}

// wildcard lists the models that provider/* stands for.
func (p *Provider) wildcard() []string {
	var out []string
	for i := range p.Models {
		out = append(out, p.Models[i].ID)
	}
	for _, c := range p.Connections {
		for _, m := range c.Models {
			if !strings.Contains(m, "*") && !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}
