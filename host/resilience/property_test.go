package resilience_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// TestProperties plays random histories on all gates. Whatever happens:
//
//   - every permit is settled or cancelled once (OV-3), and there are never two probes of one provider (BRK-27) or
//     connection (COOL-24) that both hold the allowance: the spies of world_test.go watch it;
//   - time writes nothing, and alone heals no terminal state (COOL-50); a breaker or cooldown ends by it (BRK-25);
//   - what a verdict changes is never wider than its scope (CLS-15): see scope;
//   - an answer of an earlier generation changes no breaker (BRK-15, BRK-31);
//   - many failures at once are one step (COOL-16, BRK-13);
//   - no end moves earlier while its cooldown runs (COOL-17, COOL-18), a level rises by one at most (COOL-11), and a
//     terminal state is not overwritten (COOL-51): see record;
//   - a snapshot at any point and the events after it give the state of never having stopped (OBJ-22, OV-5): see replayed.
func TestProperties(t *testing.T) {
	histories(t)
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(rt)
		steps := rapid.IntRange(1, 30).Draw(rt, "steps")
		cut := rapid.IntRange(0, steps).Draw(rt, "cut")
		var snapshot map[string][]byte
		from := 0
		for i := range steps + 1 {
			if i == cut {
				snapshot, from = h.snapshot(), len(h.journal)
			}
			h.step()
			for _, s := range h.spies {
				if s.out != len(h.tickets) {
					rt.Fatalf("%s: %d permits out for %d tickets", s.Name(), s.out, len(h.tickets))
				}
			}
		}
		h.replayed(snapshot, from)
	})
}

// setChecks makes n the number of histories, unless the command line says another.
func setChecks(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f == nil {
		t.Fatal("rapid has no flag for its number of checks any more")
	}
	if before := f.Value.String(); before == f.DefValue {
		if raceDetector || testing.Short() {
			n /= 5 // make test plays them all without the detector
		}
		if err := f.Value.Set(fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(before) })
	}
}

func (h *history) step() {
	switch rapid.IntRange(0, 11).Draw(h.t, "step") {
	case 0, 1, 2:
		h.admit()
	case 3, 4, 5, 6:
		if h.admit() || len(h.tickets) > 0 {
			h.settle(rapid.IntRange(0, len(h.tickets)-1).Draw(h.t, "which"), h.outcome())
		}
	case 7:
		h.burst()
	case 8, 9:
		h.wait()
	case 10:
		if len(h.tickets) > 0 {
			h.ladder.Cancel(h.moment(), h.drop(rapid.IntRange(0, len(h.tickets)-1).Draw(h.t, "cancel")).Ticket)
		}
	case 11:
		h.person()
	}
}

// view is everything that is known, so that what changed can be told.
type view struct {
	records  map[string]account.State
	breakers map[string]breaker.Status
	windows  map[string]window.Entry
	locks    map[string]lockout.Lock
}

func (h *history) view() view {
	v := view{records: h.states(), breakers: map[string]breaker.Status{}, windows: map[string]window.Entry{}, locks: map[string]lockout.Lock{}}
	at := h.moment()
	for _, s := range h.breakers.All(at) {
		s.RetryAfterMs = 0 // who probes is not part of it
		v.breakers[s.Name] = s
	}
	for _, e := range h.windows.Entries(at) {
		v.windows[e.Provider+":"+e.ConnectionID] = e
	}
	for _, l := range h.lockouts.List(at.Now) {
		v.locks[l.Connection+"/"+l.Scope+"/"+l.Model] = l
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
		l, ok := after.locks[id]
		if !ok {
			l = before.locks[id]
		}
		return scope != wire.ScopeRequest && l.Connection == connection && l.Model == model
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

// burst lets many attempts at one target fail at the same moment.
func (h *history) burst() {
	tt := rapid.SampledFrom(h.targets).Draw(h.t, "burst")
	tt.Model = "m1"
	first := len(h.tickets)
	for range rapid.SampledFrom([]int{2, 3, 64}).Draw(h.t, "many") {
		h.take(h.moment(), tt)
	}
	burst := h.tickets[first:]
	h.tickets = h.tickets[:first:first]
	o := h.outcome()
	id, p := tt.Connection.ID, tt.Provider.ID
	level, count := h.states()[id].Level, h.breakers.Status(h.moment(), p).FailureCount
	fresh := len(h.journal) == 0 // no count of an older lock is remembered
	locks := map[string]int{}
	for _, l := range h.lockouts.On(id, h.moment().Now) {
		locks[l.Scope+l.Model] = l.FailureCount
	}
	for _, tk := range burst {
		h.note(h.ladder.Settle(h.moment(), tk.Ticket, o))
	}
	if o.OK {
		return
	}
	if now := h.states()[id].Level; now > level+1 {
		h.t.Fatalf("%d failures at once (%+v): level %d after %d", len(burst), o, now, level)
	}
	if now := h.breakers.Status(h.moment(), p).FailureCount; now > count+1 {
		h.t.Fatalf("%d failures at once (%+v): the breaker counts %d after %d", len(burst), o, now, count)
	}
	for _, l := range h.lockouts.On(id, h.moment().Now) {
		if was, known := locks[l.Scope+l.Model]; known && l.FailureCount > was+1 || fresh && l.FailureCount > 1 {
			h.t.Fatalf("%d failures at once (%+v): %+v after %d", len(burst), o, l, was)
		}
	}
}

// wait lets time pass, which writes nothing.
func (h *history) wait() {
	records, snapshot := h.states(), h.snapshot()
	h.now += rapid.SampledFrom(waits).Draw(h.t, "wait")
	if diff := cmp.Diff(records, h.states()); diff != "" {
		h.t.Fatalf("time wrote something: %s", diff)
	}
	year := h.later(365 * 24 * time.Hour)
	for _, tt := range h.targets {
		refusal := h.ladder.Peek(year, tt)
		if s, _ := h.book.State(tt.Connection.ID); s.TestStatus.Terminal() {
			if refusal == nil {
				h.t.Fatalf("%s: %s healed by time", tt.Connection.ID, s.TestStatus)
			}
		} else if refusal != nil {
			h.t.Fatalf("%s: still refused after a year: %+v", tt.Connection.ID, refusal)
		}
	}
	if diff := cmp.Diff(snapshot[breaker.Name], h.snapshot()[breaker.Name]); diff != "" { // BRK-25: reading writes nothing
		h.t.Fatalf("reading wrote something: %s", diff)
	}
}

func (n *node) snapshot() map[string][]byte {
	out := map[string][]byte{}
	for _, s := range n.spies {
		b, err := s.Snapshot()
		if err != nil {
			s.t.Fatalf("%v", err)
		}
		out[s.Name()] = b
	}
	return out
}

// replayed starts another process from the snapshot and the events after it, some of them twice, out of order or once
// more from before the snapshot, and compares it with the one that never stopped.
func (h *history) replayed(snapshot map[string][]byte, from int) {
	for len(h.tickets) > 0 {
		h.ladder.Cancel(h.moment(), h.drop(0).Ticket) // a new process has nothing under way
	}
	h.now += 5 * time.Second
	h.note(h.breakers.Pending(h.moment())) // BRK-41
	again := newNode(h.t, &h.now)
	for _, s := range again.spies {
		if err := s.Restore(snapshot[s.Name()]); err != nil && snapshot[s.Name()] != nil {
			h.t.Fatalf("%s: %v", s.Name(), err)
		}
	}
	events := h.journal[rapid.IntRange(0, from).Draw(h.t, "overlap"):]
	if len(events) > 0 {
		i := rapid.IntRange(0, len(events)-1).Draw(h.t, "turn")
		events = append(append(append([]store.Event{}, events[i:]...), events[:i]...), events...)
	}
	for _, e := range events {
		if err := again.ladder.Apply(e); err != nil {
			h.t.Fatalf("%v", err)
		}
	}
	if diff := cmp.Diff(h.states(), again.states()); diff != "" {
		h.t.Fatalf("records (-never stopped +replayed):\n%s", diff)
	}
	if diff := cmp.Diff(h.breakers.All(h.moment()), again.breakers.All(h.moment())); diff != "" {
		h.t.Fatalf("breakers (-never stopped +replayed):\n%s", diff)
	}
	anyOrder := cmpopts.SortSlices(func(x, y lockout.Lock) int { // two locks that end together have none
		return strings.Compare(fmt.Sprint(x.Connection, x.Model, *x.Cause), fmt.Sprint(y.Connection, y.Model, *y.Cause))
	})
	if diff := cmp.Diff(h.lockouts.List(h.moment().Now), again.lockouts.List(h.moment().Now), anyOrder); diff != "" {
		h.t.Fatalf("lockouts (-never stopped +replayed):\n%s", diff)
	}
	for _, tt := range h.targets {
		for _, model := range models {
			tt.Model = model
			for _, later := range []time.Duration{0, time.Minute, time.Hour} {
				h.samePeek(again, h.later(later), tt)
			}
		}
	}
}

func (h *history) samePeek(again *node, at resilience.Moment, tt catalog.Target) {
	x, y := h.ladder.Peek(at, tt), again.ladder.Peek(at, tt)
	if x != nil && y != nil && x.Gate == lockout.Name && x.Gate == y.Gate && x.RetryAt.Equal(y.RetryAt) {
		return // of two locks that end together either may be named
	}
	if diff := cmp.Diff(x, y); diff != "" {
		h.t.Fatalf("refusals of %s %s differ: %s", tt.Connection.ID, tt.Model, diff)
	}
}
