package lockout

import (
	"fmt"
	"strings"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

// Shape says what a lockout takes out (LOCK-1).
type Shape string

// The shapes. A family is locked as a whole; the other two are one model, told apart by what locked it.
const (
	Family   Shape = "family"
	NotFound Shape = "not_found"
	Exact    Shape = "exact"
)

// longestName bounds the names of models that are locked: they come from clients.
const longestName = 256

// id is what a lockout is about within a connection.
type id struct {
	shape Shape
	name  string // of the family, or of the model; trimmed and in lower case for Exact
}

// key is the lockout's key in the journal (LOCK-1).
func (e *entry) key() string {
	prefix := e.Provider + ":" + e.Connection + ":"
	if e.Shape == Family {
		return prefix + e.Model
	}
	return prefix + string(e.Shape) + ":" + e.Model
}

func exact(model string) id { return id{Exact, strings.ToLower(strings.TrimSpace(model))} }

// idOf picks the shape by the failing status, unless the verdict names one model itself (LOCK-2, LOCK-3).
func idOf(t catalog.Target, v wire.Verdict, status int) id {
	if v.Exact || v.Reason == wire.RequestRejected || t.Provider.ID == "antigravity" {
		return exact(t.Model)
	}
	switch status {
	case 429, 403, 402:
		return id{Family, t.Provider.Family(t.Model)}
	case 404:
		return id{NotFound, t.Model}
	}
	return exact(t.Model)
}

// keysOf are the ids any of which takes the model out (LOCK-4).
func keysOf(p *catalog.Provider, model string) [3]id {
	return [...]id{{Family, p.Family(model)}, {NotFound, model}, exact(model)}
}

// each yields the entries of a connection that take t out, by the model or by the name that an alias gave it (LOCK-6). With
// no entries on the connection it costs nothing.
func each(entries map[id]*entry, at resilience.Moment, t catalog.Target, yield func(*entry)) {
	if len(entries) == 0 {
		return
	}
	for _, k := range keysOf(t.Provider, t.Model) {
		if e := entries[k]; e != nil {
			yield(e)
		}
	}
	name := alias(at, t)
	if name == "" || exact(name) == exact(t.Model) {
		return
	}
	if e := entries[exact(name)]; e != nil {
		yield(e)
	}
}

// alias is the name under which the client asked for t, when an alias led there and not to a combo (LOCK-6).
func alias(at resilience.Moment, t catalog.Target) string {
	if t.Requested == "" || t.Requested == t.Model || at.Combo || at.Catalog == nil {
		return ""
	}
	leads, is := at.Catalog.Aliases[t.Requested]
	if !is || at.Catalog.Combo(leads) != nil {
		return ""
	}
	return t.Requested
}

// lockable says whether a model's name can be locked (LOCK-18).
func lockable(model string) bool { return model != "" && len(model) <= longestName }

// valid refuses what no gate of ours wrote.
func (e *entry) valid() error {
	switch e.Shape {
	case Family, NotFound, Exact:
	default:
		return fmt.Errorf("lockout of %s on %s: shape %q is not family, not_found or exact", e.Model, e.Connection, e.Shape)
	}
	if e.Provider == "" || e.Connection == "" || e.Model == "" {
		return fmt.Errorf("lockout without provider, connection or model")
	}
	return nil
}
