package resilience_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// view is everything that is known, so that what changed can be told.
type view struct {
	records  map[string]account.State
	breakers map[string]breaker.Status
	windows  map[string]window.Entry
	locks    map[string][]string // by connection, scope and model; a model has several keys of one scope
}

func (h *history) view() view {
	v := view{records: h.states(), breakers: map[string]breaker.Status{}, windows: map[string]window.Entry{}, locks: map[string][]string{}}
	at := h.moment()
	for _, s := range h.breakers.All(at) {
		s.RetryAfterMs = 0 // who probes is not part of it
		v.breakers[s.Name] = s
	}
	for _, e := range h.windows.Entries(at) {
		v.windows[e.Provider+":"+e.ConnectionID] = e
	}
	for _, l := range h.lockouts.List(at.Now) {
		id, cause := l.Connection+"/"+l.Scope+"/"+l.Model, *l.Cause
		l.Cause = nil
		v.locks[id] = append(v.locks[id], fmt.Sprintf("%+v %+v", l, cause))
	}
	for _, same := range v.locks {
		slices.Sort(same)
	}
	return v
}

// settle ends ticket i and checks what that changed.
func (h *history) settle(i int, o resilience.Outcome) {
	before := h.view()
	tk := h.drop(i)
	at := h.moment()
	at.Combo, at.Pinned = tk.moment.Combo, tk.moment.Pinned
	es := h.ladder.Settle(at, tk.Ticket, o)
	late := !tk.probe && tk.openings != h.openings[tk.target.Provider.ID]
	h.note(es)
	after := h.view()
	if es := h.ladder.Settle(at, tk.Ticket, o); es != nil { // OV-3
		h.t.Fatalf("settled twice: %v", es)
	}
	p := tk.target.Provider.ID
	if diff := cmp.Diff(before.breakers[p], after.breakers[p]); late && diff != "" {
		h.t.Fatalf("%s: a late answer (%+v) changed the breaker: %s", p, o, diff)
	}
	h.scope(tk, o, before, after)
	id := tk.target.Connection.ID
	h.record(id, before.records[id], after.records[id], o, es)
}

// scope checks CLS-15: whatever is not of the verdict's scope is as before.
func (h *history) scope(tk ticket, o resilience.Outcome, before, after view) {
	provider, connection, model := tk.target.Provider.ID, tk.target.Connection.ID, tk.target.Model
	v := o.Verdict
	scope := v.Scope
	switch {
	case o.OK:
		scope = wire.ScopeProvider // it may lift what there is of the provider and of this connection
	case o.Ignore, v.RequestScoped, scope == wire.ScopeNone:
		scope = wire.ScopeRequest
	}
	ofProvider := scope == wire.ScopeProvider
	unchanged(h.t, "breaker", o, before.breakers, after.breakers, func(id string) bool { return ofProvider && id == provider })
	unchanged(h.t, "provider cooldown", o, before.windows, after.windows, func(id string) bool {
		return ofProvider && id == provider+":" || (ofProvider || scope == wire.ScopeConnection) && id == provider+":"+connection
	})
	whole := ofProvider && !o.OK && v.Cooldown > 0 // RUL-8
	unchanged(h.t, "record", o, before.records, after.records, func(id string) bool {
		switch {
		case whole:
			return h.ownerOf(id) == provider
		case scope == wire.ScopeRequest && tk.tests:
			return id == connection // the next test is later
		}
		return scope != wire.ScopeRequest && id == connection
	})
	if x, y := before.records[connection], after.records[connection]; scope == wire.ScopeRequest || scope == wire.ScopeModel && v.Reason != wire.RequestRejected {
		if x.TestStatus != y.TestStatus || x.Until != y.Until || y.Level > x.Level {
			h.t.Fatalf("scope %s (%+v) changed %s from %+v to %+v", scope, o, connection, x, y)
		}
	}
	unchanged(h.t, "lockout", o, before.locks, after.locks, func(id string) bool {
		return scope != wire.ScopeRequest && strings.HasPrefix(id, connection+"/") && strings.HasSuffix(id, "/"+model)
	})
}

// unchanged reports every difference that is not expected.
func unchanged[T any](t *rapid.T, what string, o resilience.Outcome, before, after map[string]T, expected func(id string) bool) {
	for id, x := range before {
		if y, ok := after[id]; (!ok || !cmp.Equal(x, y)) && !expected(id) {
			t.Fatalf("%s of %s changed by %+v:\n%s", what, id, o, cmp.Diff(x, y))
		}
	}
	for id, y := range after {
		if _, ok := before[id]; !ok && !expected(id) {
			t.Fatalf("%s of %s appeared by %+v: %+v", what, id, o, y)
		}
	}
}

func (h *history) ownerOf(connection string) string {
	for _, tt := range h.targets {
		if tt.Connection.ID == connection {
			return tt.Provider.ID
		}
	}
	return ""
}

// record checks one connection's record.
func (h *history) record(id string, before, after account.State, o resilience.Outcome, es []store.Event) {
	now := h.moment().Now.UnixMilli()
	written := false
	for _, e := range es {
		written = written || e.Key == id && e.Kind != breaker.KindChanged && e.Kind != breaker.KindCounted
	}
	switch {
	case !written && !cmp.Equal(before, after):
		h.t.Fatalf("changed without an event: %s", cmp.Diff(before, after))
	case before.Revision > 0 && after.Revision > before.Revision+1: // 0: none, or forgotten
		h.t.Fatalf("revision %d after %d", after.Revision, before.Revision)
	case !o.OK && after.Level > before.Level+1:
		h.t.Fatalf("level %d after %d", after.Level, before.Level)
	case !o.OK && before.Cooling(now) && !after.TestStatus.Terminal() && (after.Until < before.Until || after.Level > before.Level):
		h.t.Fatalf("%s at %v: end %d after %d, level %d after %d", id, o.Verdict, after.Until, before.Until, after.Level, before.Level)
	case before.TestStatus.Terminal() && !after.TestStatus.Terminal():
		h.t.Fatalf("%s turned %s", before.TestStatus, after.TestStatus)
	case after.TestStatus.Terminal() && after.Until != 0:
		h.t.Fatalf("a cooldown beside a terminal state")
	case after.Until > now+30*24*time.Hour.Milliseconds():
		h.t.Fatalf("an end %v ahead", time.Duration(after.Until-now)*time.Millisecond)
	}
}
