package resilience_test

import (
	"bytes"
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
	"github.com/weirgate/weir/host/resilience/lockout"
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
			n /= 10 // make test plays them all without the detector
		}
		if err := f.Value.Set(fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(before) })
	}
}

func (h *history) step() {
	switch rapid.IntRange(0, 13).Draw(h.t, "step") {
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
	case 12, 13:
		h.outage()
	}
}

// outage lets a provider time out until its breaker opens, which cools no connection (COOL-33), and leaves attempts from
// before it under way; often also some from when it may be probed.
func (h *history) outage() {
	tt := rapid.SampledFrom(h.targets).Draw(h.t, "outage")
	h.take(h.moment(), tt)
	o := resilience.Outcome{
		OwnDeadline: true, Fault: resilience.FaultOwnDeadline, Cause: resilience.Cause{Status: 504},
		Verdict: wire.Verdict{Reason: wire.Timeout, Scope: wire.ScopeProvider, Fallback: true},
	}
	for range 3 {
		if h.take(h.moment(), tt) {
			h.note(h.ladder.Settle(h.moment(), h.drop(len(h.tickets)-1).Ticket, o))
		}
		h.now += 5 * time.Second
	}
	if h.chance(2, "half-open") {
		h.now += time.Minute
		h.take(h.moment(), tt)
		h.take(h.moment(), tt)
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
	before := h.snapshot()
	h.now += rapid.SampledFrom(waits).Draw(h.t, "wait")
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
	for name, b := range h.snapshot() { // COOL-2, BRK-25: nor does reading
		if !bytes.Equal(before[name], b) {
			h.t.Fatalf("%s: time or reading wrote something: %s", name, cmp.Diff(string(before[name]), string(b)))
		}
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
