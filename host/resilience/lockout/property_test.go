package lockout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// watched counts the probes that a gate has out, by connection.
type watched struct {
	resilience.Gate
	out  map[string]int
	most int
}

func (w *watched) Admit(at resilience.Moment, t catalog.Target) (resilience.Permit, *resilience.Refusal) {
	p, refusal := w.Gate.Admit(at, t)
	if p.Probe {
		w.out[t.Connection.ID]++
		w.most = max(w.most, w.out[t.Connection.ID])
	}
	return p, refusal
}

func (w *watched) Cancel(at resilience.Moment, t catalog.Target, p resilience.Permit) {
	if p.Probe {
		w.out[t.Connection.ID]--
	}
	w.Gate.Cancel(at, t, p)
}

func (w *watched) Settle(at resilience.Moment, t catalog.Target, p resilience.Permit, o resilience.Outcome) []store.Event {
	if p.Probe {
		w.out[t.Connection.ID]--
	}
	return w.Gate.Settle(at, t, p, o)
}

// node is one process with the gates about connections.
type node struct {
	book    *account.Book
	cooling *watched
	locks   *lockout.Gate
	ladder  *resilience.Ladder
}

func newNode() *node {
	n := &node{book: account.NewBook(nil)}
	n.cooling = &watched{Gate: cooldown.New(n.book), out: map[string]int{}}
	n.locks = lockout.New(n.book, nil)
	n.ladder = resilience.NewLadder(terminal.New(n.book), n.cooling, n.locks)
	return n
}

// history draws what happens to three models on three connections, one of which never cools.
type history struct {
	*node
	t       *rapid.T
	now     time.Duration
	tickets []resilience.Ticket
	targets []catalog.Target
	journal []store.Event
}

var models = []string{"m1", "M1", "m2", "spark-3"}

func (h *history) every() (all []catalog.Target) {
	p := &catalog.Provider{ID: "codex", Category: catalog.APIKey}
	for i := range 3 {
		c := &catalog.Connection{ID: fmt.Sprint("c", i), Provider: p.ID, DisableCooling: i == 2, CredentialRevision: 1}
		for _, m := range models {
			all = append(all, catalog.Target{Provider: p, Connection: c, Model: m})
		}
	}
	return all
}

func (h *history) outcome(t catalog.Target) resilience.Outcome {
	if rapid.IntRange(0, 3).Draw(h.t, "ok") == 0 {
		return resilience.Outcome{OK: true}
	}
	status := rapid.SampledFrom([]int{0, 403, 404, 429, 500, 503, 529}).Draw(h.t, "status")
	o := resilience.Outcome{
		Verdict: wire.Verdict{
			Reason: rapid.SampledFrom([]wire.Reason{wire.RateLimitExceeded, wire.QuotaExhausted, wire.Overloaded, wire.RequestRejected, wire.ServerError, wire.ModelNotFound}).Draw(h.t, "reason"),
			Scope:  rapid.SampledFrom([]wire.Scope{wire.ScopeRequest, wire.ScopeModel, wire.ScopeModel, wire.ScopeConnection, wire.ScopeProvider}).Draw(h.t, "scope"),
		},
		Cause: resilience.Cause{Status: status},
	}
	switch rapid.IntRange(0, 5).Draw(h.t, "kind") {
	case 0, 1:
		o.Verdict.Hinted, o.Verdict.RetryAfter = true, rapid.SampledFrom([]time.Duration{-1, 0, time.Second, time.Hour, 1000 * time.Hour}).Draw(h.t, "hint")
	case 2:
		o.Verdict.Cooldown, o.Verdict.Exact = rapid.SampledFrom([]time.Duration{time.Second, 6 * time.Hour, 9000 * time.Hour}).Draw(h.t, "cooldown"), rapid.Bool().Draw(h.t, "exact")
	case 3:
		o.Ignore = rapid.Bool().Draw(h.t, "ignore")
	}
	if rapid.Bool().Draw(h.t, "narrow") {
		o.Verdict = lockout.Narrow(at(h.now), t, o.Verdict, lockout.Reply{Status: status})
	}
	return o
}

func (h *history) admit() {
	t := rapid.SampledFrom(h.every()).Draw(h.t, "target")
	peeked := h.ladder.Peek(at(h.now), t)
	tk, refusal := h.ladder.Admit(at(h.now), t)
	if (peeked == nil) != (refusal == nil) {
		h.t.Fatalf("peek says %+v, admit %+v", peeked, refusal)
	}
	if refusal == nil {
		h.tickets, h.targets = append(h.tickets, tk), append(h.targets, t)
	}
}

func (h *history) take() (resilience.Ticket, catalog.Target) {
	i := rapid.IntRange(0, len(h.tickets)-1).Draw(h.t, "which")
	tk, t := h.tickets[i], h.targets[i]
	h.tickets, h.targets = append(h.tickets[:i:i], h.tickets[i+1:]...), append(h.targets[:i:i], h.targets[i+1:]...)
	return tk, t
}

func (h *history) settle() {
	if len(h.tickets) == 0 {
		return
	}
	tk, t := h.take()
	if rapid.IntRange(0, 7).Draw(h.t, "cancel") == 0 {
		h.ladder.Cancel(at(h.now), tk)
		return
	}
	before, o := map[string]*resilience.Refusal{}, h.outcome(t)
	for _, x := range h.every() {
		before[x.Connection.ID+x.Model] = h.ladder.Peek(at(h.now), x)
	}
	es := h.ladder.Settle(at(h.now), tk, o)
	h.journal = append(h.journal, es...)
	if o.Ignore && len(es) > 0 {
		h.t.Fatalf("an ignored outcome changed something")
	}
	for _, x := range h.every() {
		h.check(t, x, o, before[x.Connection.ID+x.Model], h.ladder.Peek(at(h.now), x))
	}
}

// check compares what x met before and after an outcome of t.
func (h *history) check(t, x catalog.Target, o resilience.Outcome, before, after *resilience.Refusal) {
	now := at(h.now).Now
	switch {
	case after != nil && (!after.RetryAt.After(now) || after.RetryAt.Sub(now) > 30*24*time.Hour):
		h.t.Fatalf("%s %s is refused until %v, at %v", x.Connection.ID, x.Model, after.RetryAt, now)
	case before == nil && after != nil && o.OK:
		h.t.Fatalf("a success took %s out", x.Model)
	case before == nil && after != nil && x.Connection.ID != t.Connection.ID && o.Verdict.Scope != wire.ScopeProvider:
		h.t.Fatalf("an outcome of %s took %s out", t.Connection.ID, x.Connection.ID)
	case before == nil && after != nil && o.Verdict.Scope == wire.ScopeRequest:
		h.t.Fatal("a verdict about the request took something out")
	case before == nil && after != nil && o.Verdict.Scope == wire.ScopeModel && x.Provider.Family(x.Model) != t.Provider.Family(t.Model):
		h.t.Fatalf("a verdict about %s took %s out (LOCK-5)", t.Model, x.Model)
	case before != nil && after != nil && before.Gate == after.Gate && !o.OK && after.RetryAt.Before(before.RetryAt):
		h.t.Fatalf("a failure moved an end from %v to %v (COOL-17, LOCK-24)", before.RetryAt, after.RetryAt)
	}
	if h.ladder.Peek(at(h.now+31*24*time.Hour), x) != nil {
		h.t.Fatal("an end that has passed blocks (LOCK-27, COOL-2)")
	}
}

func (h *history) pass() {
	h.now += rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, time.Minute, 10 * time.Minute, time.Hour}).Draw(h.t, "wait")
}

// TestHistories: whatever happens, nothing is out for longer than 30 days or after its end (LOCK-22, LOCK-27, COOL-2,
// COOL-12), a failure moves no end earlier (LOCK-24, COOL-17), a scope is never wider than its verdict (LOCK-5), at most one
// probe of a connection is under way (COOL-24), and a snapshot with the events after it is as good as never having stopped
// (LOCK-30).
func TestHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{node: newNode(), t: rt}
		steps := rapid.IntRange(1, 40).Draw(rt, "steps")
		cut := rapid.IntRange(0, steps).Draw(rt, "cut")
		var snapshots [][]byte
		from := 0
		for i := range steps + 1 {
			if i == cut {
				snapshots, from = h.snapshots(), len(h.journal)
			}
			h.admit()
			h.pass()
			h.settle()
			switch rapid.IntRange(0, 19).Draw(rt, "person") {
			case 0:
				_, es := h.locks.ClearConnection(at(h.now), "c0")
				h.journal = append(h.journal, es...)
			case 1:
				_, es := h.locks.Clear(at(h.now), h.every()[0].Provider, "", "m2")
				h.journal = append(h.journal, es...)
			case 2:
				_, es := h.book.Clear(at(h.now), "c1")
				h.journal = append(h.journal, es...)
			}
			if h.cooling.most > 1 {
				rt.Fatal("two probes of one connection at once")
			}
		}
		for len(h.tickets) > 0 { // what is out decides who may probe
			tk, _ := h.take()
			h.ladder.Cancel(at(h.now), tk)
		}
		for id, n := range h.cooling.out {
			if n != 0 || h.book.Probing(id) {
				rt.Fatalf("%d probes of %s are still out", n, id)
			}
		}
		again := newNode()
		for i, g := range again.ladder.Gates() {
			if err := g.Restore(snapshots[i]); snapshots[i] != nil && err != nil {
				rt.Fatal(err)
			}
		}
		for _, e := range h.journal[rapid.IntRange(0, from).Draw(rt, "overlap"):] {
			if err := again.ladder.Apply(e); err != nil {
				rt.Fatal(err)
			}
		}
		for _, later := range []time.Duration{0, time.Minute, time.Hour, 24 * time.Hour} {
			if diff := cmp.Diff(h.locks.List(at(h.now+later).Now), again.locks.List(at(h.now+later).Now)); diff != "" {
				rt.Fatalf("lockouts (-never stopped +replayed):\n%s", diff)
			}
			for _, x := range h.every() {
				if diff := cmp.Diff(h.ladder.Peek(at(h.now+later), x), again.ladder.Peek(at(h.now+later), x)); diff != "" {
					rt.Fatalf("refusals differ: %s", diff)
				}
			}
		}
	})
}

func (h *history) snapshots() [][]byte {
	var out [][]byte
	for _, g := range h.ladder.Gates() {
		b, err := g.Snapshot()
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// TestFlood: 64 failures of requests that were under way step the count once, and the lock is as long as the first said.
func TestFlood(t *testing.T) {
	r := newRig()
	target := r.target("a", "m")
	p, _ := r.gate.Admit(at(0), target)
	n := 0
	for range 64 {
		n += len(r.gate.Settle(at(0), target, p, resilience.Outcome{Verdict: wire.Verdict{Reason: wire.Overloaded, Scope: wire.ScopeModel}}))
	}
	if l := r.gate.List(start); n != 1 || len(l) != 1 || l[0].FailureCount != 1 || l[0].Remaining != 3*time.Second {
		t.Errorf("%d events, %+v (LOCK-24)", n, l)
	}
}
