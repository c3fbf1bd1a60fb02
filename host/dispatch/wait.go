package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/route"
)

// waitMargin is added to each wait, so that the cooldown is over when it ends (CMB-43).
const waitMargin = 50 * time.Millisecond

// hint is until when an upstream asked to be left alone.
type hint struct {
	connection string
	until      time.Time
}

// patience is how long and how often one request may wait for cooldowns (CMB-40, COOL-70).
type patience struct {
	on          bool
	times       int
	max, budget time.Duration
}

// patience is the policy for this request. A combo can only turn it off (CMB-47).
func (r *run) patience() patience { return patienceOf(r.c) }

func patienceOf(c *Call) patience {
	if c.Route.Kind == catalog.KindCombo {
		p := c.Catalog.Settings.ComboCooldownWait
		return patience{p.On() && choose(c.Route.Config.CooldownWait, true), p.MaxAttempts, p.MaxWait, p.Budget}
	}
	p := c.Catalog.Settings.WaitForCooldown
	return patience{p.On(), p.MaxRetries, p.MaxRetryWait, p.Budget}
}

// await waits for the connection that is ready first, when every one that is left is cooling for a passing reason and the wait
// is within the bounds (CMB-42, COOL-70). It says whether to try again; who left meanwhile is found by the next attempt.
func (r *run) await(ctx context.Context) bool {
	p := r.patience()
	if !p.on || r.waits >= p.times || ctx.Err() != nil {
		return false
	}
	id, wait := r.soonest()
	up := route.UntilWait
	if r.insists() && wait <= 0 { // an account that failed in this request is better than none
		r.insisted, up = true, route.UntilSet
		if id, wait = r.soonest(); wait > shortCooldown {
			return false
		}
	}
	if wait <= 0 || wait > p.max || wait > p.budget-r.waited {
		return false
	}
	r.t.trace.note(gateDecide, "wait", wait.String(), "for the cooldown of "+id)
	began := r.d.Now()
	r.turn.end()
	r.turn = r.d.turns.take(id)
	if pauseFor(ctx, wait+waitMargin) == nil {
		r.turn.wait(ctx, min(p.max, p.budget-r.waited)-wait)
	}
	r.waits++
	spent := r.d.Now().Sub(began)
	r.waited += spent
	r.t.Waited += spent
	r.exhausted.Lift(up)
	r.t.Excluded = r.t.Excluded[:0]
	return true
}

// shortCooldown is how long a request without other targets waits for an account whose server failed in it (CMB-13).
const shortCooldown = 5 * time.Second

// insists says whether a plain model's account whose server failed in this request may be waited for, which happens once (COOL-70,
// LOCK-32). In a combo the repetition of the whole set is for that (CMB-16).
func (r *run) insists() bool { return r.c.Route.Kind == catalog.KindDirect && !r.insisted }

// soonest is the connection that may be asked first, and in how long; 0: there is none to wait for. A connection whose upstream
// named a later time than its cooldown is not asked before it (CMB-43).
func (r *run) soonest() (id string, wait time.Duration) {
	for i := range r.order.Len() {
		rt := r.order.At(i)
		if r.needWindow > 0 && route.Window(rt) <= r.needWindow {
			continue
		}
		for conn := range route.Candidates(rt, r.c.Key) {
			if w := r.readyIn(rt, conn); w > 0 && (wait == 0 || w < wait) && !r.withheld(conn) {
				id, wait = conn.ID, w
			}
		}
	}
	return id, wait
}

// readyIn is how long a connection is still to be left alone, 0 when waiting for it does not help.
func (r *run) readyIn(rt *catalog.RouteTarget, conn *catalog.Connection) time.Duration {
	t := r.to(rt, conn)
	_, lasts, out := r.exhausted.Out(t)
	if out && (lasts > route.UntilSet || lasts > route.UntilWait && !r.insisted) {
		return 0
	}
	at := r.moment(rt)
	var wait time.Duration
	switch refusal := r.d.Ladder.Peek(at, t); {
	case refusal == nil && !out && !r.wasRefused(conn):
		return 0 // it was asked, or is not to be
	case refusal == nil && out && lasts > route.UntilWait:
		return 0 // a further try has its own delay
	case refusal == nil:
		wait = time.Millisecond
	case refusal.Wait != resilience.WaitTransient || refusal.RetryAt.IsZero():
		return 0
	case refusal.Gate == breakerGate && r.c.Route.Kind == catalog.KindDirect: // BRK-44
		return 0
	default:
		wait = refusal.RetryAt.Sub(at.Now)
		if refusal.Gate == breakerGate {
			wait = r.probing(rt.Provider, wait)
		}
	}
	for _, h := range r.hints {
		if h.connection == conn.ID {
			wait = max(wait, h.until.Sub(at.Now))
		}
	}
	return wait
}

// probeTime is when to ask again while a request is testing a half-open breaker: it will most likely tell by then.
const probeTime = time.Second

// probing shortens the time that a breaker names to probeTime while it is being tested: it names the latest end of the test.
func (r *run) probing(p *catalog.Provider, wait time.Duration) time.Duration {
	if wait > probeTime && r.Circuit(p) == route.HalfOpen {
		return probeTime
	}
	return wait
}

// wasRefused says whether a gate left the connection out in this pass; it came free in the meantime.
func (r *run) wasRefused(conn *catalog.Connection) bool {
	for i := range r.t.Excluded {
		x := &r.t.Excluded[i]
		if x.Refusal.Wait == resilience.WaitTransient && (x.Target.Connection == nil || x.Target.Connection.ID == conn.ID) {
			return true
		}
	}
	return false
}

// turns lets the requests that wait for one connection go one after the other when its cooldown ends: the first one finds out
// whether it answers, and the others follow when that attempt has an answer or has failed. Otherwise all of them would fall upon
// an account that has just recovered. The zero value is ready.
type turns struct {
	mu   sync.Mutex
	last map[string]*turn // the latest in line, by connection; guarded by mu
}

// turn is a place in a line. A nil turn is none.
type turn struct {
	of    *turns
	id    string
	ahead *turn
	ended chan struct{}
	once  sync.Once
}

// take stands at the end of the line for a connection.
func (t *turns) take(id string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[string]*turn{}
	}
	x := &turn{of: t, id: id, ahead: t.last[id], ended: make(chan struct{})}
	t.last[id] = x
	return x
}

// turnTime is how long one waits at most for the request ahead: an attempt that takes longer has most likely been accepted.
const turnTime = 500 * time.Millisecond

// wait returns when the request ahead has ended its attempt, and at the latest after turnTime or limit.
func (x *turn) wait(ctx context.Context, limit time.Duration) {
	if x == nil || x.ahead == nil {
		return
	}
	timer := time.NewTimer(max(0, min(turnTime, limit)))
	defer timer.Stop()
	select {
	case <-x.ahead.ended:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// end lets the next one go. It may be called more than once.
func (x *turn) end() {
	if x == nil {
		return
	}
	x.once.Do(func() {
		close(x.ended)
		x.of.mu.Lock()
		defer x.of.mu.Unlock()
		if x.of.last[x.id] == x {
			delete(x.of.last, x.id)
		}
		x.ahead = nil
	})
}
