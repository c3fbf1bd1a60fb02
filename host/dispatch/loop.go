package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/sdk/wire"
)

// targets is the attempt loop: the targets in the order of the strategy, again after a wait for a cooldown, and again as often as
// the combo repeats its whole set (CMB-10, CMB-16, CMB-41).
func (r *run) targets(ctx context.Context) {
	r.order = r.d.Router.Order(r.c.Route, r, r.t.Began)
	r.carried = r.d.carries(r.c, r.t.Began)
	r.traceOrder()
	next := r.passes(ctx)
	for set := orZero(r.c.Route.Config.MaxSetRetries); set > 0 && next == stepNext && r.last.set; set-- {
		if pauseFor(ctx, choose(r.c.Route.Config.SetRetryDelay, 2*time.Second)) != nil {
			break
		}
		r.exhausted.Lift(route.UntilSet)
		r.t.Excluded = r.t.Excluded[:0]
		next = r.passes(ctx)
	}
	if next != stepDone {
		r.surface(ctx)
	}
	if f := r.t.Failure; f != nil && !r.t.Committed && (r.c.Route.Kind == catalog.KindCombo || !r.last.set) {
		r.diagnose(f)
	}
	if next != stepDone {
		r.emergency(ctx)
	}
	if r.c.Route.Kind == catalog.KindCombo && !r.t.Committed && !r.t.Cancelled {
		r.d.Router.Failed(r.c.Route)
	}
}

// traceOrder tells the order in which the targets are tried.
func (r *run) traceOrder() {
	if r.t.trace == nil {
		return
	}
	var names []string
	for i := range r.order.Len() {
		names = append(names, r.order.At(i).Provider.ID+"/"+r.order.At(i).Model)
	}
	r.t.trace.note(gateOrder, "order", r.c.Route.Kind, strings.Join(names, ", "))
}

// passes goes over the targets, and again after each wait that helps. When there is nothing to wait for, what was passed over
// with less reason gets its chance.
func (r *run) passes(ctx context.Context) step {
	next := r.pass(ctx)
	for next == stepNext && r.await(ctx) {
		next = r.pass(ctx)
	}
	if next == stepNext && r.skippedAsSlow() {
		r.unsure = true
		next = r.pass(ctx)
	}
	if next == stepNext {
		next = r.withFewerTools(ctx)
	}
	if next == stepNext {
		next = r.force(ctx)
	}
	return next
}

// pass tries every target once. Targets of which every connection hung lately come after the others.
func (r *run) pass(ctx context.Context) step {
	n := r.order.Len()
	if n == 1 {
		r.target = r.order.At(0)
		return r.connections(ctx, r.target)
	}
	late := r.homeFirst(r.hungLast())
	next := stepNext
	for i := 0; i < n && next == stepNext; {
		if i > 0 {
			r.pause(ctx)
		}
		r.target, r.after = r.nth(late, i), r.nth(late, i+1)
		if delay, on := r.hedges(); on && r.after != nil {
			used := 0
			next, used = r.race(ctx, r.target, r.after, r.nth(late, i+2), delay)
			i += used
			continue
		}
		next = r.connections(ctx, r.target)
		i++
	}
	return next
}

// hungLast lists the targets as they are to be tried now, when some are to be tried last; else nil.
func (r *run) hungLast() []*catalog.RouteTarget {
	if !r.d.slow.any.Load() {
		return nil
	}
	var out, late []*catalog.RouteTarget
	for i := range r.order.Len() {
		if rt := r.order.At(i); r.d.slow.allLast(rt, r.c.Key, r.t.Began) {
			late = append(late, rt)
		} else {
			out = append(out, rt)
		}
	}
	return append(out, late...)
}

// nth is the i-th target to be tried, or nil behind the last one.
func (r *run) nth(listed []*catalog.RouteTarget, i int) *catalog.RouteTarget {
	switch {
	case i >= r.order.Len():
		return nil
	case listed != nil:
		return listed[i]
	}
	return r.order.At(i)
}

// connections tries the connections of one target, each at most once and at once: first those that answer, then those that
// lately hung (CMB-19). Then the one that failed last may be tried again (CMB-13).
func (r *run) connections(ctx context.Context, rt *catalog.RouteTarget) step {
	if r.exhausted.Provider(rt.Provider.ID) {
		r.skipped(rt)
		return stepNext
	}
	if r.lacksEndpoint(rt) {
		return stepNext
	}
	if r.needWindow > 0 && route.Window(rt) <= r.needWindow {
		return stepNext
	}
	if want := r.c.Route.Config.Context; want.Strict && route.TooSmall(rt, want) {
		r.leaveOut(rt, contextReason)
		return stepNext
	}
	before := len(r.t.Attempts)
	next, some := r.each(ctx, rt)
	if next != stepNext {
		return next
	}
	if !some && r.c.Route.Kind == catalog.KindCombo {
		r.leaveOut(rt, "unavailable") // CMB-6
	}
	if len(r.t.Attempts) == before {
		return stepNext
	}
	return r.again(ctx, rt)
}

// each goes over the candidates in the order of the account strategy, until one answers or a gate refuses the whole provider. The
// usual strategy, fill-first, costs nothing.
func (r *run) each(ctx context.Context, rt *catalog.RouteTarget) (next step, some bool) {
	var late []*catalog.Connection
	home := r.homeOf(rt)
	if s, whole := r.atHome(ctx, rt, home); s != stepNext || whole {
		return s, true
	}
	if route.AccountStrategy(r.c.Route, rt.Provider, r.c.Catalog) == route.FillFirst {
		for conn := range route.Candidates(rt, r.c.Key) {
			if some = true; conn == home {
				continue
			}
			if r.d.slow.last(conn.ID, r.t.Began) {
				late = append(late, conn)
				continue
			}
			if s, whole := r.connection(ctx, rt, conn); s != stepNext || whole {
				return s, true
			}
		}
	} else {
		for _, conn := range r.chosen(rt) {
			if some = true; conn == home {
				continue
			}
			if r.d.slow.last(conn.ID, r.t.Began) {
				late = append(late, conn)
				continue
			}
			if s, whole := r.connection(ctx, rt, conn); s != stepNext || whole {
				return s, true
			}
		}
	}
	for _, conn := range late {
		if s, whole := r.connection(ctx, rt, conn); s != stepNext || whole {
			return s, true
		}
	}
	return stepNext, some
}

// chosen are the connections of a target in the order of an account strategy that looks at them.
func (r *run) chosen(rt *catalog.RouteTarget) []*catalog.Connection {
	return r.d.Router.Choose(nil, route.Choice{
		Target: rt, Key: r.c.Key, Strategy: route.AccountStrategy(r.c.Route, rt.Provider, r.c.Catalog), Catalog: r.c.Catalog, World: r, Now: r.t.Began,
	}, true)
}

// connection asks the ladder and, when it agrees, makes one attempt. whole says that the refusal holds for the provider, so that
// its other connections need not be asked.
func (r *run) connection(ctx context.Context, rt *catalog.RouteTarget, conn *catalog.Connection) (next step, whole bool) {
	target := r.to(rt, conn)
	if reason, _, out := r.exhausted.Out(target); out {
		if !r.tried(conn, rt.Model) {
			r.t.exclude(target, resilience.Refusal{Gate: skippedGate, Reason: reason})
		}
		return stepNext, false
	}
	if ctx.Err() != nil {
		r.gone(ctx)
		return stepDone, false
	}
	if r.c.Form.Spent() {
		return stepAnswer, false
	}
	if len(r.t.Attempts) >= MaxAttempts {
		r.t.Failure = r.tooMany()
		return stepDone, false
	}
	if r.withheld(conn) {
		r.t.exclude(target, resilience.Refusal{Gate: stateGate, Reason: stateGate, Wait: resilience.WaitNever})
		r.d.Meter.Refused(stateGate)
		return stepNext, false
	}
	if s, skips := r.skipsForTools(rt); skips {
		return s, true
	}
	if r.predictedSlow(conn, rt.Model) {
		r.t.exclude(target, resilience.Refusal{Gate: predictedGate, Reason: predictedGate})
		return stepNext, false
	}
	at := r.at()
	ticket, refusal := r.d.Ladder.Admit(at, target)
	if refusal != nil {
		r.t.exclude(target, *refusal)
		r.d.Meter.Refused(refusal.Gate)
		r.t.trace.add(gateTarget, refusal.Gate, "refused", target, string(refusal.Reason))
		return stepNext, refusal.Gate == breakerGate || refusal.Gate == windowGate
	}
	r.t.trace.add(gateChoose, "connection", "chosen", target, "")
	r.d.Router.Dispatched(r.c.Route, rt)
	if route.AccountStrategy(r.c.Route, rt.Provider, r.c.Catalog) != route.FillFirst {
		r.d.Router.Used(conn, at.Now)
	}
	next = r.attempt(ctx, rt, target, ticket, at.Now)
	r.turn.end()
	return next, false
}

// The gates that speak for a whole provider, and what stands in the place of a gate where none was asked.
const (
	breakerGate   = "circuit_open"
	windowGate    = "provider_cooldown"
	cooldownGate  = "connection_cooldown"
	lockoutGate   = "model_lockout"
	terminalGate  = "terminal"
	executorGate  = "executor"
	skippedGate   = "exhausted" // in this request, by an attempt of it
	predictedGate = "predicted_slow"
)

func (r *run) to(rt *catalog.RouteTarget, conn *catalog.Connection) catalog.Target {
	return catalog.Target{Provider: rt.Provider, Connection: conn, Model: rt.Model, Requested: r.c.Model}
}

// at is the present moment for the target that is being tried.
func (r *run) at() resilience.Moment { return r.moment(r.target) }

func (r *run) moment(rt *catalog.RouteTarget) resilience.Moment {
	combo := r.c.Route.Kind == catalog.KindCombo
	return resilience.Moment{
		Now: r.d.Now(), Catalog: r.c.Catalog, Combo: combo, Pinned: combo && rt != nil && rt.Connection != nil, Forced: r.forced,
	}
}

// siblingNext says whether the next target of the combo goes to the same provider, so that it will tell (BRK-14): one of which every
// connection is out by now tells nothing.
func (r *run) siblingNext(t catalog.Target) bool {
	if r.after == nil || r.after.Provider.ID != t.Provider.ID {
		return false
	}
	for conn := range route.Candidates(r.after, r.c.Key) {
		if conn.ID != t.Connection.ID && !r.Refused(r.after, conn) && !r.withheld(conn) {
			return true
		}
	}
	return false
}

// accountNext says whether this request will ask another connection of the target that is being tried: when all of them fail, the last
// one says so.
func (r *run) accountNext(t catalog.Target) bool {
	if r.target == nil || len(r.t.Attempts) >= MaxAttempts {
		return false
	}
	for conn := range route.Candidates(r.target, r.c.Key) {
		if conn.ID != t.Connection.ID && !r.tried(conn, r.target.Model) && !r.Refused(r.target, conn) && !r.withheld(conn) {
			return true
		}
	}
	return false
}

// leaveOut records a target that has no candidate to ask.
func (r *run) leaveOut(rt *catalog.RouteTarget, why wire.Reason) {
	r.t.exclude(catalog.Target{Provider: rt.Provider, Model: rt.Model, Requested: r.c.Model}, resilience.Refusal{Gate: string(why), Reason: why})
}

// skipped records a target whose provider is out of this request.
func (r *run) skipped(rt *catalog.RouteTarget) {
	t := catalog.Target{Provider: rt.Provider, Model: rt.Model, Requested: r.c.Model}
	reason, _, _ := r.exhausted.Out(t)
	r.t.exclude(t, resilience.Refusal{Gate: skippedGate, Reason: reason})
}

// tried says whether this request went to a model on a connection already.
func (r *run) tried(conn *catalog.Connection, model string) bool {
	for i := range r.t.Attempts {
		if a := &r.t.Attempts[i]; a.Connection == conn.ID && a.Model == model {
			return true
		}
	}
	return false
}

// minPredicted is how many samples a prediction needs (CMB-11).
const minPredicted = 5

// predictedSlow says whether a connection has lately been slower than the combo wants (CMB-11).
func (r *run) predictedSlow(conn *catalog.Connection, model string) bool {
	limit := orZero(r.c.Route.Config.PredictiveTTFT)
	if limit <= 0 || r.unsure {
		return false
	}
	s := r.d.Router.Samples.Connection(conn.ID, model, r.d.Now())
	return s.N >= minPredicted && s.FirstByte > limit
}

// skippedAsSlow says whether connections were passed over only because they are predicted to be slow. They are better than no
// answer.
func (r *run) skippedAsSlow() bool {
	if r.unsure {
		return false
	}
	for i := range r.t.Excluded {
		if r.t.Excluded[i].Refusal.Gate == predictedGate {
			return true
		}
	}
	return false
}

// tooMany ends a request that has been tried often enough (CMB-14).
func (r *run) tooMany() *dialect.Failure {
	f := &dialect.Failure{Status: 503, Code: "max_attempts_exceeded", Type: "server_error", NoRetry: true,
		Message: "The request was tried 30 times without an answer; the last error stands in the gateway's log."}
	if r.last.set && spentOnReasoning(r.last.reply.message) {
		f.Code = "reasoning_budget_exhausted"
		f.Message = "The model used its whole token budget for reasoning, on every target; allow more output tokens or less reasoning."
	}
	return f
}
