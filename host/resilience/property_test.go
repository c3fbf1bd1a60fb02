package resilience_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// node is one process: a book, its ladder, and what it journaled.
type node struct {
	book    *account.Book
	gate    *cooldown.Gate // keeps the records
	ladder  *resilience.Ladder
	journal []store.Event
}

func newNode() *node {
	b := account.NewBook(nil)
	g := cooldown.New(b)
	return &node{book: b, gate: g, ladder: resilience.NewLadder(terminal.New(b), g)}
}

func (n *node) states() map[string]account.State { return maps.Collect(n.book.All()) }

// history draws what happens to three connections of two providers.
type history struct {
	*node
	t       *rapid.T
	now     time.Duration
	targets []catalog.Target
	tickets []resilience.Ticket
	whose   []string
}

func newHistory(t *rapid.T) *history {
	h := &history{node: newNode(), t: t}
	for i := range 3 {
		tt := target(fmt.Sprint("c", i))
		tt.Provider = &catalog.Provider{ID: fmt.Sprint("p", i%2), Category: []catalog.Category{catalog.APIKey, catalog.OAuth}[i%2], Connections: []*catalog.Connection{tt.Connection}}
		h.targets = append(h.targets, tt)
	}
	return h
}

func (h *history) moment() resilience.Moment { return at(h.now) }

func (h *history) outcome() resilience.Outcome {
	if rapid.IntRange(0, 4).Draw(h.t, "ok") == 0 {
		return resilience.Outcome{OK: true}
	}
	reason := rapid.SampledFrom(wire.Reasons()).Draw(h.t, "reason")
	o := resilience.Outcome{Verdict: wire.Verdict{
		Reason: reason,
		Scope:  rapid.SampledFrom([]wire.Scope{wire.ScopeRequest, wire.ScopeModel, wire.ScopeConnection, wire.ScopeConnection, wire.ScopeProvider}).Draw(h.t, "scope"),
	}}
	switch rapid.IntRange(0, 5).Draw(h.t, "kind") {
	case 0:
		o.Verdict.Hinted, o.Verdict.RetryAfter = true, rapid.SampledFrom([]time.Duration{-1, 0, time.Second, time.Minute, 24 * time.Hour, 1000 * time.Hour}).Draw(h.t, "hint")
	case 1:
		o.Verdict.Cooldown = rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 6 * time.Hour}).Draw(h.t, "cooldown")
		o.Verdict.Exact = rapid.Bool().Draw(h.t, "exact")
	case 2:
		o.Verdict.Terminal = true
	case 3:
		o.OwnDeadline = rapid.Bool().Draw(h.t, "own")
	case 4:
		o.Ignore = rapid.Bool().Draw(h.t, "ignore")
	}
	return o
}

func (h *history) admit() {
	tt := rapid.SampledFrom(h.targets).Draw(h.t, "target")
	tt.Model = rapid.SampledFrom([]string{"m1", "m2", ""}).Draw(h.t, "model")
	if tk, refusal := h.ladder.Admit(h.moment(), tt); refusal == nil {
		h.tickets, h.whose = append(h.tickets, tk), append(h.whose, tt.Connection.ID)
	}
}

// settle ends a random open ticket and returns whose it was and what ended it.
func (h *history) settle() (string, resilience.Outcome, []store.Event) {
	if len(h.tickets) == 0 {
		h.t.Skip()
	}
	i := rapid.IntRange(0, len(h.tickets)-1).Draw(h.t, "which")
	o := h.outcome()
	es := h.ladder.Settle(h.moment(), h.tickets[i], o)
	id := h.whose[i]
	h.tickets, h.whose = append(h.tickets[:i:i], h.tickets[i+1:]...), append(h.whose[:i:i], h.whose[i+1:]...)
	h.journal = append(h.journal, es...)
	return id, o, es
}

func (h *history) pass() {
	h.now += rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 10 * time.Second, 10 * time.Minute, time.Hour}).Draw(h.t, "wait")
}

// TestProperties: whatever happens to a connection, time alone heals no terminal state (COOL-50), no end moves earlier
// while its cooldown runs (COOL-17, COOL-18) except by a success, a level rises by one at most with each event (COOL-11)
// and not while a cooldown runs (COOL-16), and a terminal state is not overwritten by a transient one (COOL-51).
func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) { h.t = t; h.admit() },
			"settle": func(t *rapid.T) {
				h.t = t
				before := h.states()
				id, o, es := h.settle()
				check(t, h, before[id], id, o, es)
			},
			"wait": func(t *rapid.T) {
				h.t = t
				before := h.states()
				h.pass()
				if diff := cmp.Diff(before, h.states()); diff != "" {
					t.Fatalf("time wrote something: %s", diff)
				}
				for _, tt := range h.targets {
					if s, _ := h.book.State(tt.Connection.ID); s.TestStatus.Terminal() && h.ladder.Peek(at(h.now+24*365*time.Hour), tt) == nil {
						t.Fatalf("%s: %s healed by time", tt.Connection.ID, s.TestStatus)
					}
				}
			},
		})
	})
}

func check(t *rapid.T, h *history, before account.State, id string, o resilience.Outcome, es []store.Event) {
	after, _ := h.book.State(id)
	now := h.moment().Now.UnixMilli()
	switch {
	case len(es) > 1:
		t.Fatalf("%d events for one outcome of one connection", len(es))
	case len(es) == 0 && !cmp.Equal(before, after):
		t.Fatalf("changed without an event: %s", cmp.Diff(before, after))
	case len(es) == 1 && after.Revision != before.Revision+1:
		t.Fatalf("revision %d after %d", after.Revision, before.Revision)
	case o.Ignore && len(es) > 0:
		t.Fatal("an ignored outcome changed something")
	case !o.OK && after.Level > before.Level+1:
		t.Fatalf("level %d after %d", after.Level, before.Level)
	case !o.OK && before.Cooling(now) && !after.TestStatus.Terminal() && (after.Until < before.Until || after.Level > before.Level):
		t.Fatalf("%s at %v: end %d after %d, level %d after %d", id, o.Verdict, after.Until, before.Until, after.Level, before.Level)
	case before.TestStatus.Terminal() && !after.TestStatus.Terminal():
		t.Fatalf("%s turned %s", before.TestStatus, after.TestStatus)
	case after.TestStatus.Terminal() && after.Until != 0:
		t.Fatal("a cooldown beside a terminal state")
	case after.Until > now+30*24*time.Hour.Milliseconds():
		t.Fatalf("an end %v ahead", time.Duration(after.Until-now)*time.Millisecond)
	}
}

// TestReplay: a snapshot at any point and the events after it give the state of never having stopped, also when some
// events come twice, out of order or once more from before the snapshot (OBJ-22, OV-5).
func TestReplay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(rt)
		steps := rapid.IntRange(1, 40).Draw(rt, "steps")
		cut := rapid.IntRange(0, steps).Draw(rt, "cut")
		var snapshot []byte
		from := 0
		for i := range steps + 1 {
			if i == cut {
				var err error
				if snapshot, err = h.gate.Snapshot(); err != nil {
					rt.Fatal(err)
				}
				from = len(h.journal)
			}
			h.admit()
			h.pass()
			if len(h.tickets) > 0 {
				h.settle()
			}
			id := fmt.Sprint("c", i%3)
			switch rapid.IntRange(0, 19).Draw(rt, "person") {
			case 0:
				_, es := h.book.Reset(h.moment(), id)
				h.journal = append(h.journal, es...)
			case 1:
				h.journal = append(h.journal, h.book.Forget(h.moment(), id)...)
			}
		}
		again := newNode()
		if err := again.gate.Restore(snapshot); err != nil {
			rt.Fatal(err)
		}
		events := h.journal[rapid.IntRange(0, from).Draw(rt, "overlap"):]
		events = append(rapid.Permutation(events).Draw(rt, "order"), events...)
		for _, e := range events {
			if err := again.ladder.Apply(e); err != nil {
				rt.Fatal(err)
			}
		}
		if diff := cmp.Diff(h.states(), again.states()); diff != "" {
			rt.Fatalf("replayed (-never stopped +replayed):\n%s", diff)
		}
		for _, tt := range h.targets {
			for _, later := range []time.Duration{0, time.Second, time.Hour} {
				if diff := cmp.Diff(h.ladder.Peek(at(h.now+later), tt), again.ladder.Peek(at(h.now+later), tt)); diff != "" {
					rt.Fatalf("refusals differ: %s", diff)
				}
			}
		}
	})
}
