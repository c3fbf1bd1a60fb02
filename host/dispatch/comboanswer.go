package dispatch

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/sdk/wire"
)

// comboFailed is the answer of a combo that tried something: the last error, or that the quota of all is used up (CMB-50).
func (r *run) comboFailed() dialect.Failure {
	f := r.failureOf(r.last)
	if !r.allQuota() {
		if f.Status == http.StatusTooManyRequests && f.RetryAfter > 0 && !f.NoRetry { // CMB-46
			f.Type = cmp.Or(f.Type, "rate_limit_error")
			f.Facts = append(f.Facts, r.until(r.d.Now().Add(f.RetryAfter))...)
		}
		return f
	}
	f.Type, f.Code, f.NoRetry = "rate_limit_error", "quota_exhausted", f.RetryAfter == 0 || f.NoRetry
	if r.last.verdict.Reason == wire.QuotaExhausted {
		f.Status = http.StatusTooManyRequests
	}
	if at := r.reset(); !at.IsZero() && !f.NoRetry {
		f.RetryAfter = max(at.Sub(r.d.Now()), time.Second)
	}
	return f
}

// allQuota says whether every attempt ended by a used-up quota or credit, and nothing but those left the others out. A 402 stays what
// it is (INF-38).
func (r *run) allQuota() bool {
	if r.last.verdict.Reason == wire.CreditsGone && r.last.reply.status != http.StatusTooManyRequests {
		return false
	}
	for i := range r.t.Attempts {
		if reason := r.t.Attempts[i].Verdict.Reason; reason != wire.QuotaExhausted && reason != wire.CreditsGone {
			return false
		}
	}
	for i := range r.t.Excluded {
		if diagnosedReason(&r.t.Excluded[i]) != "quota_exhausted" {
			return false
		}
	}
	return true
}

// reset is when the quota of the target that is surfaced begins anew, as far as its upstream said so; zero: not known.
func (r *run) reset() time.Time {
	if wait := r.last.verdict.RetryAfter; wait > 0 {
		return r.d.Now().Add(wait)
	}
	return time.Time{}
}

// comboSkipped is the answer of a combo of which nothing was tried (CMB-46, CMB-50, CMB-51).
func (r *run) comboSkipped() dialect.Failure {
	sum, name := r.sumUp(), r.c.Route.Name
	timed := !sum.timers.IsZero()
	switch {
	case timed && (r.c.Route.Strategy == "weighted" || sum.transient.IsZero() && r.somePassing()):
		return r.coolingDown(sum)
	case !sum.transient.IsZero():
		wait := max(sum.transient.Sub(r.d.Now()), time.Second)
		return dialect.Failure{
			Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded", RetryAfter: wait, RequestID: r.c.RequestID,
			Message: fmt.Sprintf("Every target of the combo %s is out after errors of its provider; try again in %s.", name, inWords(wait)),
			Facts:   r.until(sum.transient),
		}
	case sum.executor > 0 && !timed && sum.terminal == 0:
		return r.unusable(sum.states)
	case sum.terminal > 0 && sum.other == 0 && !timed:
		return dialect.Failure{
			Status: http.StatusServiceUnavailable, Type: "server_error", Code: "ALL_ACCOUNTS_INACTIVE", NoRetry: true, RequestID: r.c.RequestID,
			Message: fmt.Sprintf("No account of the combo %s can be used (%s); the gateway's operator must act.", name, counted(sum.states)),
		}
	case sum.terminal > 0 || timed || sum.states[predictedGate] > 0:
		return dialect.Failure{
			Status: http.StatusServiceUnavailable, Type: "server_error", Code: "ALL_TARGETS_SKIPPED", NoRetry: true, RequestID: r.c.RequestID,
			Message: fmt.Sprintf("Every target of the combo %s was left out (%s); waiting a little does not help.", name, counted(sum.states)),
		}
	}
	return r.nothingThere()
}

// until are the fields that say when to come back (CMB-46).
func (r *run) until(end time.Time) []dialect.Fact {
	return []dialect.Fact{
		{Name: "retry_after", Value: dialect.Seconds(end.Sub(r.d.Now()))}, {Name: "reset_at", Value: end.UTC().Format(timeForm)},
	}
}

// somePassing says whether a breaker or a provider cooldown, which pass by themselves, left a target out.
func (r *run) somePassing() bool {
	for i := range r.t.Excluded {
		switch r.t.Excluded[i].Refusal.Gate {
		case breakerGate, windowGate:
			return true
		}
	}
	return false
}

// coolingDown names the earliest known end of all timers (CMB-50, CMB-51).
func (r *run) coolingDown(sum summary) dialect.Failure {
	wait := max(sum.timers.Sub(r.d.Now()), time.Second)
	if r.c.Route.Strategy == "weighted" {
		var reasons []string
		for i := range min(len(r.t.Excluded), maxListed) {
			x := &r.t.Excluded[i]
			text := x.Target.Provider.ID + "/" + x.Target.Model + " " + diagnosedReason(x)
			if at := r.backAt(x); !at.IsZero() {
				text += fmt.Sprintf(" %ds", dialect.Seconds(at.Sub(r.d.Now())))
			}
			reasons = append(reasons, text)
		}
		r.d.Log.Warn("[COMBO] Weighted selection: every target excluded before dispatch", "request_id", r.c.RequestID,
			"combo", r.c.Route.Name, "reasons", strings.Join(reasons, ", "))
	}
	return dialect.Failure{
		Status: http.StatusServiceUnavailable, Type: "service_unavailable", Code: "all_targets_cooling_down", RetryAfter: wait, RequestID: r.c.RequestID,
		Message: fmt.Sprintf("All targets of the combo %s are cooling down; the first one is back in %s.", r.c.Route.Name, inWords(wait)),
	}
}

func counted(states map[string]int) string {
	var parts []string
	for _, word := range sortedKeys(states) {
		parts = append(parts, fmt.Sprintf("%d %s", states[word], word))
	}
	return strings.Join(parts, ", ")
}
