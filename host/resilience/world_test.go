package resilience_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/gatetest"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// busy are settings under which a short history reaches every state.
var busy = func() *catalog.Snapshot {
	v := gatetest.Defaults()
	v.ProviderBreaker.APIKey.FailureThreshold, v.ProviderBreaker.APIKey.DegradationThreshold = 3, 2
	v.ProviderBreaker.OAuth.FailureThreshold, v.ProviderBreaker.OAuth.DegradationThreshold = 2, 1
	v.ProviderCooldown.Enabled, v.ProviderCooldown.MinRetry, v.ProviderCooldown.MaxRetry = true, 5*time.Second, 5*time.Minute
	v.ProviderCooldown.APIKey.Threshold, v.ProviderCooldown.OAuth.Threshold = 2, 3
	v.ModelLockout.Enabled = true
	return &catalog.Snapshot{Settings: v}
}()

// longestProbe is how long a probe of the breaker may hold its allowance under busy (BRK-32).
const longestProbe = 10 * time.Minute

// node is one process: all gates in the order of the host, and what it journaled.
type node struct {
	clock    *time.Duration
	book     *account.Book
	breakers *breaker.Gate
	windows  *window.Gate
	lockouts *lockout.Gate
	spies    []*spy
	ladder   *resilience.Ladder
	journal  []store.Event
}

func newNode(t failer, clock *time.Duration) *node {
	n := &node{clock: clock, book: account.NewBook(nil)}
	n.breakers = breaker.New(func() time.Time { return gatetest.Start.Add(*clock) })
	n.windows = window.New(n.breakers.IsOpen)
	n.lockouts = lockout.New(n.book, n.breakers.IsOpen)
	var gates []resilience.Gate
	for _, g := range []resilience.Gate{n.breakers, n.windows, terminal.New(n.book), cooldown.New(n.book), n.lockouts} {
		s := &spy{Gate: g, t: t, probes: map[string][]probe{}}
		n.spies = append(n.spies, s)
		gates = append(gates, s)
	}
	n.ladder = resilience.NewLadder(gates...)
	return n
}

func (n *node) states() map[string]account.State { return maps.Collect(n.book.All()) }

type failer interface{ Fatalf(string, ...any) }

// spy stands before a gate and counts what it gave out: every permit is settled or cancelled once (OV-3), and of two
// probes that are out at once the older one has lost its allowance (BRK-27, COOL-24).
type spy struct {
	resilience.Gate
	t      failer
	out    int
	probes map[string][]probe
	epoch  int // of the breakers, as the history counts it
	last   resilience.Permit
}

type probe struct {
	generation uint64
	at         time.Time
	epoch      int
}

// subject is what one probe at a time may test.
func (s *spy) subject(t catalog.Target) string {
	if s.Name() == breaker.Name {
		return t.Provider.ID
	}
	return t.Connection.ID
}

func (s *spy) Admit(at resilience.Moment, t catalog.Target) (resilience.Permit, *resilience.Refusal) {
	peeked := s.Gate.Peek(at, t)
	p, refusal := s.Gate.Admit(at, t)
	if (peeked == nil) != (refusal == nil) {
		s.t.Fatalf("%s: peek says %+v, admit %+v", s.Name(), peeked, refusal)
	}
	if refusal != nil {
		return p, refusal
	}
	s.out++
	s.last = p
	if p.Probe {
		who := s.subject(t)
		for _, other := range s.probes[who] {
			if s.Name() != breaker.Name || other.epoch == s.epoch && at.Now.Sub(other.at) < longestProbe {
				s.t.Fatalf("%s: two probes of %s at once", s.Name(), who)
			}
		}
		s.probes[who] = append(s.probes[who], probe{p.Generation, at.Now, s.epoch})
	}
	return p, nil
}

func (s *spy) Cancel(at resilience.Moment, t catalog.Target, p resilience.Permit) {
	s.end(t, p)
	s.Gate.Cancel(at, t, p)
}

func (s *spy) Settle(at resilience.Moment, t catalog.Target, p resilience.Permit, o resilience.Outcome) []store.Event {
	s.end(t, p)
	return s.Gate.Settle(at, t, p, o)
}

func (s *spy) end(t catalog.Target, p resilience.Permit) {
	if s.out--; s.out < 0 {
		s.t.Fatalf("%s: a permit ended twice", s.Name())
	}
	if !p.Probe {
		return
	}
	who := s.subject(t)
	for i, other := range s.probes[who] {
		if other.generation == p.Generation {
			s.probes[who] = append(s.probes[who][:i:i], s.probes[who][i+1:]...)
			return
		}
	}
	s.t.Fatalf("%s: a probe of %s ended that was not out", s.Name(), who)
}

// ticket is an attempt under way.
type ticket struct {
	resilience.Ticket
	target   catalog.Target
	moment   resilience.Moment // what kind of request it is of
	openings int               // of the provider's breaker, when it was admitted
	probe    bool              // of the breaker
	tests    bool              // probe of the cooldown
}

// history draws what happens to four connections of three providers.
type history struct {
	*node
	t        *rapid.T
	now      time.Duration
	targets  []catalog.Target
	tickets  []ticket
	openings map[string]int // how often each breaker opened or was closed again
	opened   map[string]int64
}

func newHistory(t *rapid.T) *history {
	h := &history{t: t, openings: map[string]int{}, opened: map[string]int64{}}
	h.node = newNode(t, &h.now)
	providers := map[string]*catalog.Provider{}
	for i, p := range []string{"p0", "p0", "p1", "p2"} {
		if providers[p] == nil {
			category := map[string]catalog.Category{"p0": catalog.APIKey, "p1": catalog.OAuth, "p2": catalog.Local}[p]
			providers[p] = &catalog.Provider{ID: p, Category: category, PerModel: p == "p1"}
		}
		tt := target(fmt.Sprint("c", i))
		tt.Provider = providers[p]
		tt.Connection.Provider = p
		tt.Provider.Connections = append(tt.Provider.Connections, tt.Connection)
		h.targets = append(h.targets, tt)
	}
	return h
}

func (h *history) moment() resilience.Moment {
	return resilience.Moment{Now: gatetest.Start.Add(h.now), Catalog: busy}
}

func (h *history) later(d time.Duration) resilience.Moment {
	at := h.moment()
	at.Now = at.Now.Add(d)
	return at
}

func (h *history) chance(n int, what string) bool { return rapid.IntRange(1, n).Draw(h.t, what) == 1 }

var (
	scopes   = []wire.Scope{wire.ScopeRequest, wire.ScopeModel, wire.ScopeConnection, wire.ScopeConnection, wire.ScopeProvider, wire.ScopeProvider, wire.ScopeProvider}
	statuses = []int{400, 401, 402, 403, 404, 408, 429, 500, 502, 503, 503, 503, 504, 529}
	lengths  = []time.Duration{-1, 0, time.Second, time.Minute, 24 * time.Hour, 1000 * time.Hour}
	waits    = []time.Duration{0, time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 35 * time.Second, 10 * time.Minute, time.Hour}
	models   = []string{"m1", "m2", ""}
)

func (h *history) outcome() resilience.Outcome {
	if h.chance(5, "ok") {
		return resilience.Outcome{OK: true}
	}
	o := resilience.Outcome{
		Verdict: wire.Verdict{
			Reason: rapid.SampledFrom(wire.Reasons()).Draw(h.t, "reason"), Scope: rapid.SampledFrom(scopes).Draw(h.t, "scope"), Fallback: h.chance(2, "fallback"),
		},
		Cause: resilience.Cause{Status: rapid.SampledFrom(statuses).Draw(h.t, "status"), RequestID: "r"},
		Fault: resilience.FaultAnswer,
	}
	switch rapid.IntRange(0, 9).Draw(h.t, "kind") {
	case 0:
		o.Verdict.Hinted, o.Verdict.RetryAfter = true, rapid.SampledFrom(lengths).Draw(h.t, "hint")
	case 1:
		o.Verdict.Cooldown, o.Verdict.Exact = rapid.SampledFrom(lengths).Draw(h.t, "cooldown"), h.chance(2, "exact")
	case 2:
		o.Verdict.Terminal = true
	case 3:
		o.Fault = resilience.Fault(rapid.IntRange(0, 8).Draw(h.t, "fault"))
		o.OwnDeadline = o.Fault == resilience.FaultOwnDeadline
	case 4:
		o.Ignore = h.chance(2, "ignore")
	case 5:
		o.SiblingNext, o.Local, o.Verdict.SkipBreaker = h.chance(2, "sibling"), h.chance(3, "local"), h.chance(3, "skip")
	case 6:
		o.Verdict.RequestScoped = h.chance(2, "request-scoped")
	}
	return o
}

func (h *history) admit() bool {
	tt := rapid.SampledFrom(h.targets).Draw(h.t, "target")
	tt.Model = rapid.SampledFrom(models).Draw(h.t, "model")
	at := h.moment()
	at.Combo = h.chance(2, "combo")
	at.Pinned = at.Combo && h.chance(2, "pinned")
	return h.take(at, tt)
}

func (h *history) take(at resilience.Moment, tt catalog.Target) bool {
	h.spies[0].epoch = h.openings[tt.Provider.ID]
	tk, refusal := h.ladder.Admit(at, tt)
	if refusal != nil {
		if refusal.Wait == resilience.WaitTransient && refusal.RetryAt.IsZero() {
			h.t.Fatalf("%s: to be waited for, but until when? %+v", refusal.Gate, refusal)
		}
		return false
	}
	h.tickets = append(h.tickets, ticket{
		Ticket: tk, target: tt, moment: at, openings: h.openings[tt.Provider.ID], probe: h.spies[0].last.Probe, tests: h.spies[3].last.Probe,
	})
	return true
}

// drop takes ticket i off the list.
func (h *history) drop(i int) ticket {
	tk := h.tickets[i]
	h.tickets = append(h.tickets[:i:i], h.tickets[i+1:]...)
	return tk
}

// note journals events and follows how breakers open and close.
func (h *history) note(es []store.Event) {
	h.journal = append(h.journal, es...)
	for _, e := range es {
		if e.Kind != breaker.KindChanged {
			continue
		}
		var s breaker.State
		if err := json.Unmarshal(e.Data, &s); err != nil {
			h.t.Fatalf("event %s: %v", e.Data, err)
		}
		if s.OpenedAt != h.opened[e.Key] {
			h.opened[e.Key] = s.OpenedAt
			h.openings[e.Key]++
		}
	}
}

// person does what an operator or the host does now and then.
func (h *history) person() {
	tt := rapid.SampledFrom(h.targets).Draw(h.t, "whom")
	at, id, p := h.moment(), tt.Connection.ID, tt.Provider.ID
	switch rapid.IntRange(0, 7).Draw(h.t, "person") {
	case 0:
		_, es := h.book.Reset(at, id)
		h.note(es)
	case 1:
		h.note(h.book.Forget(at, id))
	case 2:
		if s := h.breakers.Status(at, p); s.State != breaker.Closed || s.FailureCount > 0 {
			h.openings[p]++ // what is under way is of an earlier generation
			h.opened[p] = 0
		}
		_, es := h.breakers.Reset(at, p)
		h.note(es)
	case 3:
		h.note(h.book.Passed(at, id))
		h.note(h.breakers.Passed(at, p))
	case 4:
		_, es := h.lockouts.ClearConnection(at, id)
		h.note(es)
		h.windows.Clear(at, p)
	default:
		h.note(h.breakers.Pending(at))
		h.windows.Sweep(at)
		h.lockouts.Sweep(at.Now)
	}
}

// histories is how many random histories a property is tried on: 10,000 unless -rapid.checks says otherwise.
func histories(t *testing.T) {
	t.Helper()
	setChecks(t, 10_000)
}
