package catalog

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// expansion turns one combo into its flat list of targets (CMB-3, CMB-4).
type expansion struct {
	b       *builder
	limit   int      // how deep references may nest
	path    []string // names of the combos that are being expanded
	tooDeep bool
	notes   []string
	targets []RouteTarget
	seen    map[string]bool // exact entries
	keys    map[string]int  // how many entries wanted this execution key
}

// maxTargets bounds what nested references can multiply to.
const maxTargets = 10_000

func (x *expansion) route(c *Combo) *Route {
	x.seen, x.keys = map[string]bool{}, map[string]int{}
	x.combo(c, 1)
	strategy := c.Strategy
	if !slices.Contains(implemented, strategy) {
		strategy = Priority // STR-6; there is a warning already
	}
	r := &Route{Kind: KindCombo, Name: c.Name, Strategy: strategy, Config: c.Config, Targets: x.targets, Notes: x.notes}
	r.Mark = mark(r)
	return r
}

// mark sums up what of a route its strategy's memory is about, so that a change of it begins with an empty one (STR-2).
func mark(r *Route) uint64 {
	h := fnv.New64a()
	config, err := json.Marshal(r.Config)
	if err != nil { // plain numbers and texts always encode
		config = nil
	}
	fmt.Fprintf(h, "%s %s\n", r.Strategy, config)
	for i := range r.Targets {
		t := &r.Targets[i]
		fmt.Fprintf(h, "%q %v %q\n", t.Key, t.Weight, t.Allowed)
	}
	return h.Sum64()
}

func (x *expansion) note(format string, args ...any) {
	x.notes = append(x.notes, fmt.Sprintf(format, args...))
}

// combo expands the targets of c; weight is what the references to it multiplied to.
func (x *expansion) combo(c *Combo, weight float64) {
	x.path = append(x.path, c.Name)
	defer func() { x.path = x.path[:len(x.path)-1] }()
	for i := range c.Targets {
		t := &c.Targets[i]
		switch {
		case len(x.targets) >= maxTargets:
			x.note("has more than %d targets; the rest is left out", maxTargets)
			return
		case t.ComboRef != "":
			x.reference(t, weight)
		case t.Model != "":
			x.model(t, weight*t.Weight)
		}
	}
}

func (x *expansion) reference(t *ComboTarget, weight float64) {
	c := x.b.s.combos[t.ComboRef]
	switch {
	case c == nil:
		return
	case slices.Contains(x.path, c.Name):
		x.note("the reference to %s makes a cycle (%s > %s) and is cut", c.Name, strings.Join(x.path, " > "), c.Name)
	case len(x.path) > x.limit:
		x.tooDeep = true
		x.note("the reference to %s nests deeper than %d and is skipped", c.Name, x.limit)
	case !c.Active:
		x.note("the combo %s is not active and is skipped", c.Name)
	default:
		x.combo(c, weight*t.Weight)
	}
}

func (x *expansion) model(t *ComboTarget, weight float64) {
	p, model := x.b.targetModel(t.Model)
	if p == nil {
		return
	}
	models := []string{model}
	if model == "*" {
		models = p.wildcard()
	}
	for _, m := range models {
		x.add(RouteTarget{
			Provider: p, Model: m, Connection: x.b.s.connections[t.Connection], Allowed: t.Allowed, Weight: weight, Prompt: t.Prompt,
		})
	}
}

// add appends a target with a key of its own and drops it when the same one is there already.
func (x *expansion) add(t RouteTarget) {
	key := t.Provider.ID + "/" + t.Model
	if t.Connection != nil {
		key += "@" + t.Connection.ID
	}
	exact := fmt.Sprintf("%s\x00%q\x00%s", key, t.Allowed, t.Prompt)
	if x.seen[exact] {
		return
	}
	x.seen[exact] = true
	x.keys[key]++
	if n := x.keys[key]; n > 1 {
		key = fmt.Sprintf("%s#%d", key, n)
	}
	t.Key = key
	x.targets = append(x.targets, t)
}
