// Package breaker owns the provider circuit breaker: a machine for each provider that stops sending to a service that keeps
// failing, and lets one probe at a time find out when it is back (BRK-1 to BRK-45). It is not for accounts, keys or models.
package breaker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/store"
)

// Name is the gate's name in refusals, snapshots and explanations (CMB-52).
const Name = "circuit_open"

// The kinds of events that carry a breaker's state (OBJ-22).
const (
	KindChanged = "breaker.changed"
	KindCounted = "breaker.counted"
)

// Gate keeps one breaker for each canonical provider id (BRK-1). Safe for concurrent use; make it with New.
type Gate struct {
	clock   func() time.Time
	cells   resilience.Cells[cell]
	repeats Repeats
	room    sync.Mutex    // held while breakers are added or dropped
	floor   atomic.Uint64 // no breaker that was dropped had a higher revision
	life    atomic.Uint64 // the generation of a breaker that is made now: above all of those that were dropped
}

// cell is one breaker. The state behind the pointer is never written into.
type cell struct {
	mu    sync.Mutex // held while the breaker changes
	state atomic.Pointer[State]

	probe   uint64 // guarded by mu: the generation of the probe that is out; 0: none
	until   int64  // guarded by mu: when its allowance is given back
	wrote   int64  // guarded by mu: when the last event was returned
	pending bool   // guarded by mu: counts changed since
	gone    bool   // guarded by mu: dropped, make another
}

var (
	_ resilience.Gate    = (*Gate)(nil)
	_ resilience.Starter = (*Gate)(nil)
)

// New returns the gate without any breaker. The clock is asked only when stored state is read, whose times may be ahead of
// it (BRK-40); nil is time.Now.
func New(clock func() time.Time) *Gate {
	if clock == nil {
		clock = time.Now
	}
	return &Gate{clock: clock}
}

// Name returns circuit_open.
func (g *Gate) Name() string { return Name }

// Admit lets everything pass while the breaker is closed or degraded, nothing while it is open, and one probe at a time
// while it is half-open (BRK-2, BRK-27).
func (g *Gate) Admit(at resilience.Moment, t catalog.Target) (resilience.Permit, *resilience.Refusal) {
	c := g.cells.Get(t.Provider.ID)
	if c == nil {
		return resilience.Permit{Generation: g.life.Load()}, nil
	}
	s := c.state.Load()
	switch {
	case s == nil:
		return resilience.Permit{Generation: g.life.Load()}, nil
	case s.Phase != Open:
		return resilience.Permit{Generation: s.Generation}, nil
	}
	return c.admit(at, t)
}

// admit decides about a breaker that was open a moment ago.
func (c *cell) admit(at resilience.Moment, t catalog.Target) (resilience.Permit, *resilience.Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pr := profileOf(at, t.Provider)
	stored := *c.state.Load()
	if refusal := c.refuse(at, &pr, stored); refusal != nil {
		return resilience.Permit{}, refusal
	}
	if stored.Phase != Open {
		return resilience.Permit{Generation: stored.Generation}, nil
	}
	stored.Generation++
	c.state.Store(&stored)
	c.probe, c.until = stored.Generation, at.Now.UnixMilli()+pr.probe.Milliseconds()
	return resilience.Permit{Generation: stored.Generation, Probe: true}, nil
}

// refuse says why an attempt may not go to a breaker in the stored state. It is called with mu held.
func (c *cell) refuse(at resilience.Moment, pr *profile, stored State) *resilience.Refusal {
	now := at.Now.UnixMilli()
	retry := int64(0)
	switch s := stored.at(pr, now); s.Phase {
	case Closed, Degraded:
		return nil
	case Open:
		retry = s.end(pr)
	case HalfOpen:
		if !c.probing(now) {
			return nil
		}
		retry = c.until
	}
	return &resilience.Refusal{
		Gate: Name, Reason: stored.Reason, Wait: resilience.WaitTransient, Cause: stored.Cause,
		Since: moment(stored.OpenedAt), RetryAt: moment(retry),
	}
}

// probing says whether a probe holds the allowance at now (BRK-32). It is called with mu held.
func (c *cell) probing(now int64) bool { return c.probe != 0 && now < c.until }

// Peek is the refusal that Admit would give.
func (g *Gate) Peek(at resilience.Moment, t catalog.Target) *resilience.Refusal {
	c := g.cells.Get(t.Provider.ID)
	if c == nil {
		return nil
	}
	if s := c.state.Load(); s == nil || s.Phase != Open {
		return nil
	}
	pr := profileOf(at, t.Provider)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refuse(at, &pr, *c.state.Load())
}

// Cancel gives back the allowance of a probe that never left.
func (g *Gate) Cancel(_ resilience.Moment, t catalog.Target, p resilience.Permit) { g.giveBack(t, p) }

func (g *Gate) giveBack(t catalog.Target, p resilience.Permit) {
	if !p.Probe {
		return
	}
	if c := g.cells.Get(t.Provider.ID); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.probe == p.Generation {
			c.probe = 0
		}
	}
}

// Settle learns from an outcome, once (BRK-16). An answer of an earlier generation changes nothing (BRK-15, BRK-31); a
// probe that says nothing about the provider gives its allowance back (BRK-32).
func (g *Gate) Settle(at resilience.Moment, t catalog.Target, p resilience.Permit, o resilience.Outcome) []store.Event {
	if o.OK && !o.Ignore {
		return g.success(at, t, p)
	}
	pr := profileOf(at, t.Provider)
	counted, alone := pr.counts(at, o, p.Probe)
	if !counted {
		g.giveBack(t, p)
		return nil
	}
	f := failure{now: at.Now.UnixMilli(), kind: KindOf(o), alone: alone, probe: p.Probe, reason: o.Verdict.Reason, cause: o.Cause}
	if f.cause.At == 0 {
		f.cause.At = f.now
	}
	if f.cause.Plugin == "" && f.cause.Rule == "" {
		f.cause.Plugin, f.cause.Rule = o.Verdict.Plugin, o.Verdict.Rule
	}
	return g.change(at, t.Provider.ID, func(s State) State {
		s.Category, s.Indirect = t.Provider.Category, !direct(t.Provider)
		if s.Generation != p.Generation || s.Phase == Open && !p.Probe {
			return s
		}
		failed := s.failed(&pr, f)
		if o.AccountNext && !p.Probe && failed.Phase == Open { // its own request still asks whether all accounts fail
			return s
		}
		again := g.repeats.Again(f.now, t.Provider.ID, t.Connection.ID, o.Fault == resilience.FaultUnreachable)
		if again && !p.Probe {
			return s
		}
		return failed
	})
}

// Begun closes a breaker whose probe brought the first useful event of a stream: the provider serves, and how long its answer
// takes to its end must not keep everybody else away (BRK-32). What the stream comes to is then of an earlier generation.
func (g *Gate) Begun(at resilience.Moment, t catalog.Target, p resilience.Permit) []store.Event {
	if !p.Probe {
		return nil
	}
	return g.success(at, t, p)
}

func (g *Gate) success(at resilience.Moment, t catalog.Target, p resilience.Permit) []store.Event {
	c := g.cells.Get(t.Provider.ID)
	if c == nil {
		return nil
	}
	if s := c.state.Load(); s == nil || s.resting() || s.Generation != p.Generation {
		return nil
	}
	pr := profileOf(at, t.Provider)
	return g.change(at, t.Provider.ID, func(s State) State {
		if s.Generation != p.Generation || s.resting() || s.Phase == Open && !p.Probe {
			return s
		}
		return s.succeeded(&pr, at.Now.UnixMilli(), p.Probe)
	})
}
