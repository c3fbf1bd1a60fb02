package dispatch

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/resilience/toollimit"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// toolGate stands in the place of a gate for a target whose provider takes fewer tools than the request has (OTH-22).
const toolGate = "tool_limit"

// toolFit is what a request knows of its tools and of who takes how many.
type toolFit struct {
	counted bool
	count   int
	learned int       // refusals that named a limit (OTH-21)
	word    *lastWord // the first of them, which is the answer when nobody says anything else
	cutting bool      // a combo's targets are sent fewer tools than the request has, since nothing else is left (OTH-22)
}

// tools are those of the client's request, counted at the first question.
func (r *run) tools() int {
	if !r.fit.counted {
		r.fit.counted, r.fit.count = true, countTools(r.c.Dialect, r.c.Scan)
	}
	return r.fit.count
}

// toolLimit is how many tools a provider takes, and whether the request has more.
func (r *run) toolLimit(p *catalog.Provider) (limit int, over bool) {
	limit, known := r.d.tools.Of(p.ID, r.t.Began)
	return limit, known && r.tools() > limit
}

// mayCut says whether a request may be sent with fewer tools than it has: a direct one, and a combo's when nothing else is left.
func (r *run) mayCut() bool {
	return r.c.Catalog.Settings.ToolTruncate && (r.c.Route.Kind != catalog.KindCombo || r.fit.cutting)
}

// skipsForTools leaves a combo's target out whose provider takes fewer tools than the request has, and refuses a direct request that
// must not be cut (OTH-22).
func (r *run) skipsForTools(rt *catalog.RouteTarget) (next step, skips bool) {
	limit, over := r.toolLimit(rt.Provider)
	switch {
	case !over || r.mayCut():
		return stepNext, false
	case r.c.Route.Kind == catalog.KindCombo:
		r.leaveOut(rt, toolGate)
		r.d.Meter.Refused(toolGate)
		r.t.trace.add(gateTarget, toolGate, "refused", catalog.Target{Provider: rt.Provider, Model: rt.Model}, "")
		return stepNext, true
	}
	r.t.Failure = r.tooManyTools(rt.Provider, limit)
	return stepDone, true
}

func (r *run) tooManyTools(p *catalog.Provider, limit int) *dialect.Failure {
	return &dialect.Failure{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "too_many_tools", NoRetry: true, RequestID: r.c.RequestID,
		Message: fmt.Sprintf("The request has %d tools and the provider %s takes %d; send fewer, or ask for another model.", r.tools(), p.ID, limit),
	}
}

// learnTools notes a refusal that says how many tools the provider takes (OTH-21), and goes on: to the other targets, and with fewer
// tools when those do not answer. False: it says nothing of the kind, or the request must not be cut.
func (r *run) learnTools(a *attempt, reply *rules.Reply, v wire.Verdict, facts replyFacts) bool {
	if reply.Original != http.StatusBadRequest && reply.Original != http.StatusUnprocessableEntity || !reply.Facts.HasBody {
		return false
	}
	sent := a.tools
	if sent == 0 {
		sent = r.tools()
	}
	limit, ok := toollimit.Read(firstOf(reply.Facts.Message, reply.Facts.Text), sent)
	if !ok {
		limit, ok = toollimit.Read(reply.Facts.Text, sent)
	}
	if !ok || !r.d.tools.Learn(a.target.Provider.ID, limit, r.d.Now()) {
		return false
	}
	r.d.Log.Info("a provider said how many tools it takes", "request_id", r.c.RequestID, "provider", a.target.Provider.ID, "tools", limit, "sent", sent)
	if r.c.Route.Kind != catalog.KindCombo && !r.mayCut() {
		return false
	}
	r.fit.learned++
	r.t.trace.add(gateDecide, "decide", "fewer tools", a.target, fmt.Sprintf("%d of %d", limit, sent))
	if r.fit.word == nil {
		r.fit.word = &lastWord{set: true, verdict: v, reply: facts, target: a.target}
	}
	return true
}

// maxLearned bounds how often one request is sent anew because its tools were too many.
const maxLearned = 3

// withFewerTools is the last resort of a request that a limit of tools stands in the way of.
func (r *run) withFewerTools(ctx context.Context) step {
	next := r.askWithFewerTools(ctx)
	if next == stepNext && !r.last.set && r.fit.word != nil {
		r.last = *r.fit.word
	}
	return next
}

// askWithFewerTools asks the targets that take fewer tools with as many as they take. A request that must not be cut is refused when
// nothing but its tools was in the way.
func (r *run) askWithFewerTools(ctx context.Context) step {
	for tried := -1; tried < r.fit.learned && r.fit.learned <= maxLearned; {
		tried = r.fit.learned
		for i := range r.order.Len() {
			rt := r.order.At(i)
			limit, over := r.toolLimit(rt.Provider)
			if !over || r.c.Route.Kind != catalog.KindCombo && r.fit.learned == 0 {
				continue
			}
			if !r.c.Catalog.Settings.ToolTruncate {
				if r.onlyTools() {
					r.t.Failure = r.tooManyTools(rt.Provider, limit)
					return stepDone
				}
				return stepNext
			}
			r.fit.cutting, r.target, r.after = true, rt, nil
			if next := r.connections(ctx, rt); next != stepNext {
				return next
			}
		}
	}
	return stepNext
}

// onlyTools says whether nothing was tried, and nothing but limits of tools left targets out.
func (r *run) onlyTools() bool {
	for i := range r.t.Excluded {
		if r.t.Excluded[i].Refusal.Gate != toolGate {
			return false
		}
	}
	return len(r.t.Attempts) == 0
}
