package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/sdk/wire"
)

// try is what became of the latest attempt.
type try struct {
	target  *catalog.RouteTarget
	conn    *catalog.Connection
	verdict wire.Verdict
	status  int
	fault   resilience.Fault
}

// again tries the connection that failed last once more, after config.retryDelayMs and at most config.maxRetries times (CMB-13,
// CMB-19). A connection that its failure cooled for longer than the delay is not waited for here. A combo that does not say how
// often gets one further try, and only where no other target is left: to fall over is quicker than to insist.
func (r *run) again(ctx context.Context, rt *catalog.RouteTarget) step {
	left := 1
	if own := r.c.Route.Config.MaxRetries; own != nil {
		left = *own
	} else if r.after != nil {
		return stepNext
	}
	delay := choose(r.c.Route.Config.RetryDelay, 2*time.Second)
	for ; left > 0; left-- {
		last := r.lastTry
		if last.target != rt || !r.worthAgain(last, delay) {
			return stepNext
		}
		if pauseFor(ctx, delay) != nil {
			r.gone(ctx)
			return stepDone
		}
		r.exhausted.Pardon(r.to(rt, last.conn))
		before := len(r.t.Attempts)
		if next, _ := r.connection(ctx, rt, last.conn); next != stepNext || len(r.t.Attempts) == before {
			return next
		}
	}
	return stepNext
}

// worthAgain says whether a failure may be gone after the delay.
func (r *run) worthAgain(last try, delay time.Duration) bool {
	switch last.status {
	case 408, 429, 500, 502, 503, 504:
	default:
		return false
	}
	v := last.verdict
	switch v.Reason {
	case wire.RateLimitExceeded, wire.ConcurrencyLimited, wire.Overloaded, wire.ServerError, wire.Timeout, wire.NetworkError, wire.Unknown:
	default:
		return false
	}
	if !v.Fallback || v.Scope == wire.ScopeRequest || v.Rejected || isOwn(last.fault) { // one that hung hangs again
		return false
	}
	t := r.to(last.target, last.conn)
	if r.exhausted.Provider(t.Provider.ID) {
		return false
	}
	at := r.at()
	refusal := r.d.Ladder.Peek(at, t)
	if refusal == nil {
		return true
	}
	if last.status == 429 && r.after == nil && r.patience().on {
		return false // the wait for its cooldown is exact
	}
	return refusal.Wait == resilience.WaitTransient && !refusal.RetryAt.IsZero() && refusal.RetryAt.Add(waitMargin).Before(at.Now.Add(delay))
}

// spentOnReasoning says whether an error tells that reasoning used up the tokens (CMB-14).
func spentOnReasoning(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "reasoning") && (strings.Contains(m, "budget") || strings.Contains(m, "token"))
}

// noteTry keeps what later tries of this request depend on.
func (r *run) noteTry(a *attempt, v wire.Verdict, status int, fault resilience.Fault) {
	r.lastTry = try{target: r.target, conn: a.target.Connection, verdict: v, status: status, fault: fault}
	if v.RetryAfter > 0 {
		r.hints = append(r.hints, hint{a.target.Connection.ID, r.d.Now().Add(v.RetryAfter)})
	}
	egress := a.target.Provider.EgressFamily != "" && v.Reason == wire.RateLimitExceeded                         // the others cool for the same refusal (OTH-6)
	if status == 429 && !egress && (v.Reason == wire.RateLimitExceeded || v.Reason == wire.ConcurrencyLimited) { // not after RUL-7
		r.limited = append(r.limited, a.target.Provider)
	}
}

// force is the last resort of CMB-23: when a provider limited this request's rate just now and nothing is left to try or to wait
// for, one of its connections that has been cooling since before is asked all the same, once.
func (r *run) force(ctx context.Context) step {
	if r.forced || len(r.limited) == 0 {
		return stepNext
	}
	for i := range r.order.Len() {
		rt := r.order.At(i)
		if !r.isLimited(rt.Provider) {
			continue
		}
		for conn := range route.Candidates(rt, r.c.Key) {
			t := r.to(rt, conn)
			refusal := r.d.Ladder.Peek(r.moment(rt), t)
			if refusal == nil || refusal.Gate != cooldownGate || refusal.Wait != resilience.WaitTransient || r.tried(conn, rt.Model) || r.exhausted.Target(t) {
				continue
			}
			r.target, r.after, r.forced = rt, nil, true
			next, _ := r.connection(ctx, rt, conn)
			return next
		}
	}
	return stepNext
}

func (r *run) isLimited(p *catalog.Provider) bool {
	for _, l := range r.limited {
		if l == p {
			return true
		}
	}
	return false
}
