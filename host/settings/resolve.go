package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/document"
)

// Stored is a sparse set of settings by path, each a JSON value: what the store keeps, and what the file gives.
type Stored map[string]json.RawMessage

// Source says where a value came from (OV-25).
type Source string

// The sources, each beating the ones before it (OV-20, OBJ-16).
const (
	FromDefault Source = "default"
	FromEnv     Source = "env"
	FromStored  Source = "stored"
	FromFile    Source = "file"
)

// Sources is the source of each row, by its name.
type Sources map[string]Source

// Lookup reads a variable of the environment.
type Lookup func(name string) (value string, set bool)

// Resolve makes the values in force: default, environment, stored, file, the later wins. It never fails: a bad variable
// or stored value is left out with a warning that names it (OV-12, OV-13, OV-14, OV-22), a stored number out of bounds is
// moved to the bound. file comes from Read, so it is valid.
func Resolve(env Lookup, stored, file Stored) (*Values, Sources, []string) {
	v, sources := &Values{}, Sources{}
	var warnings []string
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	table := Table()
	for i := range table {
		r := &table[i]
		x, source := r.Default, FromDefault
		switch {
		case r.Follows != "":
			x = find(table, r.Follows).get(v)
		case r.derive != nil:
			x = r.derive(v)
		}
		if fromEnv, ok := r.environment(env, warn); ok {
			x, source = fromEnv, FromEnv
		}
		if kept, ok := r.stored(stored, warn); ok {
			x, source = kept, FromStored
		}
		if owned, ok := r.stored(file, warn); ok {
			x, source = owned, FromFile
		}
		r.set(v, r.within(v, x, source, warn))
		sources[r.Name()] = source
	}
	v.MaxCooldown = v.ModelLockout.Max
	for path := range stored {
		if find(table, path) == nil {
			warn("the stored setting %s is not known to this version and is ignored", path)
		}
	}
	slices.Sort(warnings)
	return v, sources, slices.Compact(warnings)
}

// within moves a number to the bounds that earlier rows give: a budget below the wait that it pays for, a degradation
// threshold above the one that opens.
func (r *Row) within(v *Values, x any, source Source, warn func(string, ...any)) any {
	if r.low == nil && r.high == nil {
		return x
	}
	was := number(x)
	now := was
	if r.low != nil {
		now = max(now, r.low(v))
	}
	if r.high != nil {
		now = min(now, r.high(v))
	}
	if now != was && source != FromDefault && r.above != "" { // the others are lowered and raised without a word (BRK-5, LOCK-10)
		warn("%s is %d, which does not fit the other settings; %d is used", r.Name(), was, now)
	}
	return now
}

// find returns the row of that path or variable, or nil.
func find(table []Row, name string) *Row {
	for i := range table {
		if table[i].Name() == name {
			return &table[i]
		}
	}
	return nil
}

// environment returns the value of the first variable of the row that is set and good.
func (r *Row) environment(env Lookup, warn func(string, ...any)) (any, bool) {
	for _, name := range r.Env {
		text, used, ok := variable(env, name, warn)
		if !ok {
			continue
		}
		if x, good := r.parseEnv(text); good {
			return x, true
		}
		warn("%s is %q, which is not %s; it is ignored", used, text, r.allowed())
	}
	return nil, false
}

// variable reads a variable of the environment. A name that begins with WEIR_ is also read as OMNIROUTE_, and WEIR_ wins
// with a warning when both are set and differ (OV-12). An empty variable counts as absent. used is the name that was found.
func variable(env Lookup, name string, warn func(format string, args ...any)) (text, used string, ok bool) {
	text, _ = env(name)
	old, isOurs := strings.CutPrefix(name, "WEIR_")
	if !isOurs {
		return text, name, text != ""
	}
	old = "OMNIROUTE_" + old
	oldText, _ := env(old)
	switch {
	case text == "":
		return oldText, old, oldText != ""
	case oldText != "" && oldText != text:
		warn("%s and %s are set and differ; %s is used", name, old, name)
	}
	return text, name, true
}

// stored returns the row's value from a sparse set.
func (r *Row) stored(from Stored, warn func(string, ...any)) (any, bool) {
	raw, ok := from[r.Path]
	if !ok || r.Path == "" || r.readOnly {
		return nil, false
	}
	n, faults := document.ParseJSON("", raw)
	if len(faults) > 0 || n.Kind == document.Null {
		return nil, false
	}
	x, faults := r.parse(n, "")
	if len(faults) == 0 {
		return x, true
	}
	if x, ok := r.clamp(n); ok {
		warn("the stored setting %s is out of bounds; %v is used", r.Path, x)
		return x, true
	}
	warn("the stored setting %s is not %s; it is ignored", r.Path, r.allowed())
	return nil, false
}

// allowed says in words what the row takes.
func (r *Row) allowed() string {
	if r.as != nil {
		return r.as.allowed(r)
	}
	switch r.Default.(type) {
	case bool:
		return "true or false"
	case int:
		return fmt.Sprintf("a whole number from %d to %d", r.Min, r.Max)
	case string:
		if len(r.Words) == 0 {
			return fmt.Sprintf("a text of %d to %d characters", r.Min, r.Max)
		}
		return "one of " + strings.Join(r.Words, ", ")
	}
	return fmt.Sprintf("a list of texts of %d to %d characters", r.Min, r.Max)
}
