package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/sdk/wire"
)

// surface tells the client why there is no answer, when every target was tried or left out (CMB-50, COOL-72, COOL-73).
func (r *run) surface(ctx context.Context) {
	if ctx.Err() != nil {
		r.gone(ctx)
		return
	}
	combo := r.c.Route.Kind == catalog.KindCombo
	var f dialect.Failure
	elsewhere, withheld := r.stateElsewhere()
	switch {
	case withheld && !r.last.set:
		f = elsewhere
	case r.last.set && combo:
		f = r.comboFailed()
		r.t.Unchanged = r.unchanged()
	case r.last.set:
		f = r.failureOf(r.last)
		r.t.Unchanged = r.unchanged()
	case combo:
		f = r.comboSkipped()
	case len(r.t.Excluded) > 0:
		f = r.nothingTried()
	default:
		f = r.nothingThere()
	}
	r.t.Failure = &f
}

// failureOf is the answer for the attempt whose error is surfaced: its own words first, then ours (INF-32).
func (r *run) failureOf(l lastWord) dialect.Failure {
	v := l.verdict
	f := dialect.Failure{Status: l.reply.status, Type: l.reply.kind, Code: l.reply.code, RequestID: r.c.RequestID}
	if f.Status < 400 || f.Status > 599 {
		f.Status = http.StatusBadGateway
	}
	if l.reply.param != "" {
		f.Facts = append(f.Facts, dialect.Fact{Name: "param", Value: l.reply.param})
	}
	message := strings.TrimSpace(r.d.Redact(l.reply.message))
	if message == "" {
		message = fmt.Sprintf("The provider answered %d without a message.", l.reply.original)
	}
	if f.Status == http.StatusTooManyRequests || f.Status == http.StatusServiceUnavailable || f.Status == 529 { // RST-11, INF-40
		f.RetryAfter = v.RetryAfter
		if f.RetryAfter == 0 {
			f.RetryAfter = l.reply.clientWait
		}
	}
	if f.Status == http.StatusTooManyRequests && f.RetryAfter == 0 {
		f.RetryAfter = r.ready(l.target) // clients that find no time on a 429 give up, or come back at once
	}
	f.RetryAfter = r.sooner(l.target, f.RetryAfter)
	switch v.Reason {
	case wire.AuthError, wire.ReasonBanned, wire.ReasonExpired: // INF-38
		f.Status, f.Type, f.Code, f.RetryAfter = http.StatusBadGateway, "server_error", "upstream_auth", 0
		f.NoRetry = r.nothingHeals()
		message += fmt.Sprintf(" (The provider %s refused the gateway's credential; its operator must act.)", l.target.Provider.ID)
	case wire.CreditsGone:
		f.NoRetry = true
	}
	f.NoRetry = f.NoRetry || f.Status < 500 && f.Status != http.StatusTooManyRequests && f.Status != http.StatusRequestTimeout
	f.Message = message + r.others()
	if f.RetryAfter > time.Minute && !f.NoRetry {
		f.Message += fmt.Sprintf(" (try again in %s)", inWords(f.RetryAfter))
	}
	return f
}

// ready is when the gateway itself would ask t again: how long its connection is out, at least a second. One that time does not heal is
// tested first after an hour (COOL-59).
func (r *run) ready(t catalog.Target) time.Duration {
	at := r.at()
	switch refusal := r.d.Ladder.Peek(at, t); {
	case refusal == nil:
	case !refusal.RetryAt.IsZero():
		return max(refusal.RetryAt.Sub(at.Now), time.Second)
	case refusal.Gate == terminalGate:
		return time.Hour
	}
	return time.Second
}

// sooner is when the target that is surfaced may be asked again, when that is known: its upstream named the time of one account, and
// another one of the same target may be back before.
func (r *run) sooner(t catalog.Target, wait time.Duration) time.Duration {
	if wait == 0 {
		return 0
	}
	at := r.at()
	for i := range r.order.Len() {
		rt := r.order.At(i)
		if rt.Provider != t.Provider || rt.Model != t.Model {
			continue
		}
		for conn := range route.Candidates(rt, r.c.Key) {
			if conn == t.Connection {
				continue
			}
			refusal := r.d.Ladder.Peek(at, r.to(rt, conn))
			if refusal != nil && (refusal.Gate == cooldownGate || refusal.Gate == lockoutGate) && !refusal.RetryAt.IsZero() {
				wait = min(wait, max(refusal.RetryAt.Sub(at.Now), time.Second))
			}
		}
	}
	return wait
}

// nothingHeals says whether all that was asked or left out stays as it is until a person acts.
func (r *run) nothingHeals() bool {
	for i := range r.t.Attempts {
		if !r.t.Attempts[i].Verdict.Terminal {
			return false
		}
	}
	for i := range r.t.Excluded {
		if r.t.Excluded[i].Refusal.Wait != resilience.WaitNever {
			return false
		}
	}
	return true
}

// others names up to five targets and their statuses, for a combo that tried more than one (CMB-50).
func (r *run) others() string {
	if r.c.Route.Kind != catalog.KindCombo || len(r.t.Attempts) < 2 {
		return ""
	}
	var tried []string
	for _, a := range r.t.Attempts[:min(len(r.t.Attempts), 5)] {
		tried = append(tried, fmt.Sprintf("%s/%s (%d)", a.Provider, a.Model, a.Status))
	}
	return " (tried: " + strings.Join(tried, ", ") + ")"
}

// unchanged is the upstream's own body for a refusal of the request itself, in the client's own dialect (CMB-18, COOL-45).
func (r *run) unchanged() []byte {
	v, reply := r.last.verdict, r.last.reply
	if v.Scope != wire.ScopeRequest || v.Message != "" || reply.dialect != r.c.Dialect || reply.status != reply.original {
		return nil
	}
	b := bytes.TrimSpace(reply.body)
	if len(b) == 0 || b[0] != '{' || !bytes.Contains(b, []byte(`"error"`)) || !strings.Contains(reply.contentType, "json") || !json.Valid(b) {
		return nil
	}
	return []byte(r.d.Redact(string(b)))
}

// nothingTried: every candidate of a direct request was left out by a gate. While any of them heals by itself the answer is 429 with
// the earliest end, 503 when it is the provider's breaker, otherwise it says which states they are in.
func (r *run) nothingTried() dialect.Failure {
	sum := r.sumUp()
	switch {
	case sum.open != nil && sum.cooling == 0:
		return r.circuitOpen(sum.open)
	case sum.cooling > 0:
		return r.cooling(r.d.Now(), sum.soonest, sum.cooling)
	}
	return r.unusable(sum.states)
}

// summary is what the exclusions of the last pass come to.
type summary struct {
	states    map[string]int
	cooling   int        // connections that heal by themselves, however late
	soonest   time.Time  // the first of them
	transient time.Time  // the first end that is worth waiting for; zero: none (CMB-46)
	timers    time.Time  // the first end of any timer
	open      *Exclusion // by the breaker
	terminal  int
	executor  int
	other     int // neither a timer nor a terminal state
}

func (r *run) sumUp() summary {
	s := summary{states: map[string]int{}}
	seen := map[*catalog.Connection]bool{}
	earlier := func(at *time.Time, t time.Time) {
		if at.IsZero() || t.Before(*at) {
			*at = t
		}
	}
	for i := range r.t.Excluded {
		x := &r.t.Excluded[i]
		s.states[x.word()]++
		switch x.Refusal.Gate {
		case breakerGate:
			if s.open == nil || r.backAt(x).Before(r.backAt(s.open)) {
				s.open = x
			}
		case terminalGate:
			s.terminal++
			continue
		case executorGate:
			s.executor++
		}
		if x.Refusal.RetryAt.IsZero() || x.Refusal.Wait == resilience.WaitNever {
			s.other++
			continue
		}
		earlier(&s.timers, r.backAt(x))
		if x.Refusal.Gate == breakerGate || x.Refusal.Gate == windowGate {
			continue
		}
		if !seen[x.Target.Connection] { // once, though several targets of a combo may lead to it
			seen[x.Target.Connection] = true
			s.cooling++
		}
		earlier(&s.soonest, x.Refusal.RetryAt)
		if x.Refusal.Wait == resilience.WaitTransient {
			earlier(&s.transient, x.Refusal.RetryAt)
		}
	}
	return s
}

// backAt is when an exclusion ends. A breaker that is being tested names the latest end of the test, which tells much sooner.
func (r *run) backAt(x *Exclusion) time.Time {
	at := x.Refusal.RetryAt
	if at.IsZero() || x.Refusal.Gate != breakerGate {
		return at
	}
	now := r.d.Now()
	return now.Add(r.probing(x.Target.Provider, at.Sub(now)))
}

// word is what an exclusion is called when states are counted.
func (x *Exclusion) word() string {
	if x.Refusal.State != "" {
		return string(x.Refusal.State)
	}
	return string(x.Refusal.Reason)
}

// circuitOpen: the breaker of the provider of a direct request is open (BRK-44).
func (r *run) circuitOpen(x *Exclusion) dialect.Failure {
	wait := max(r.backAt(x).Sub(r.d.Now()), time.Second)
	provider := x.Target.Provider.ID
	r.t.tell("Provider-Breaker", "open")
	return dialect.Failure{
		Status: http.StatusServiceUnavailable, Type: "server_error", Code: "provider_circuit_open", RetryAfter: wait, RequestID: r.c.RequestID,
		Message: fmt.Sprintf("The provider %s failed too often and is left alone for now; try again in %s.", provider, inWords(wait)),
		Facts:   []dialect.Fact{{Name: "provider", Value: provider}, {Name: "retry_after", Value: dialect.Seconds(wait)}},
	}
}

func (r *run) cooling(now, soonest time.Time, n int) dialect.Failure {
	wait := max(soonest.Sub(now), time.Second)
	seconds := dialect.Seconds(wait)
	return dialect.Failure{
		Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "model_cooldown", RetryAfter: wait, RequestID: r.c.RequestID,
		Message: fmt.Sprintf("%s after errors of the provider; try again in %s.", coolingDown(n, r.c.Model), inWords(wait)),
		Facts: []dialect.Fact{
			{Name: "model", Value: r.c.Model}, {Name: "reset_seconds", Value: seconds},
			{Name: "retry_after", Value: soonest.UTC().Format(timeForm)}, {Name: "credentials_cooling", Value: n},
		},
	}
}

func coolingDown(n int, model string) string {
	if n == 1 {
		return "The only connection for " + model + " is cooling down"
	}
	return fmt.Sprintf("All %d connections for %s are cooling down", n, model)
}

// unusable: no candidate heals by time (COOL-73). Never 401: the client's own key is fine.
func (r *run) unusable(states map[string]int) dialect.Failure {
	f := dialect.Failure{
		Status: http.StatusServiceUnavailable, Type: "server_error", Code: "no_usable_connection", NoRetry: true, RequestID: r.c.RequestID,
		Message: fmt.Sprintf("No connection for %s is usable (%s); the gateway's operator must act.", r.c.Model, counted(states)),
	}
	switch {
	case len(states) == 1 && states[string(wire.CreditsExhausted)] > 0:
		f.Status, f.Type, f.Code = http.StatusPaymentRequired, "insufficient_quota", "insufficient_quota"
	case states["plugin_unavailable"] > 0 || states["plan_invalid"] > 0 || states["executor_error"] > 0:
		f.Status, f.Code = http.StatusBadGateway, "executor_error"
	}
	return f
}

// nothingThere: no gate was involved, there is just no connection (CMB-50, COOL-73).
func (r *run) nothingThere() dialect.Failure {
	if r.c.Route.Kind == catalog.KindCombo {
		return dialect.Failure{Status: http.StatusNotFound, Code: "no_executable_targets", NoRetry: true, RequestID: r.c.RequestID,
			Message: fmt.Sprintf("The combo %s has no target with an active connection that this key may use.", r.c.Route.Name)}
	}
	return dialect.Failure{
		Status: http.StatusServiceUnavailable, Type: "server_error", Code: "no_usable_connection", NoRetry: true, RequestID: r.c.RequestID,
		Message: fmt.Sprintf("There is no active connection for %s that this key may use; add one with `weir connections add`.", r.c.Model),
	}
}

func inWords(d time.Duration) string {
	switch {
	case dialect.Seconds(d) == 1:
		return "1 second"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d seconds", dialect.Seconds(d))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes", int(d.Round(time.Minute)/time.Minute))
	}
	return fmt.Sprintf("%d hours", int(d.Round(time.Hour)/time.Hour))
}
