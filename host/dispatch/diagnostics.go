package dispatch

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/sdk/wire"
)

// maxListed bounds each list of the diagnostics (CMB-52).
const maxListed = 64

// timeForm is how times stand in answers: RFC 3339 in UTC with milliseconds.
const timeForm = "2006-01-02T15:04:05.000Z"

// diagnostics says why there is no answer, without naming accounts (CMB-52).
type diagnostics struct {
	PoolSize       int         `json:"poolSize"`
	Attempted      int         `json:"attempted"`
	Excluded       []leftOut   `json:"excluded"`
	AttemptOrder   []attempted `json:"attemptOrder"`
	TerminalReason string      `json:"terminalReason"`
	Recovery       string      `json:"recovery"`
	Notes          []string    `json:"notes,omitempty"` // cut cycles and the like (CMB-3)
}

type leftOut struct {
	Provider   string `json:"provider"`
	Model      string `json:"model"`
	Reason     string `json:"reason"`
	RetryAfter int64  `json:"retryAfterMs,omitempty"`
}

type attempted struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// recovery is recovery_hint: what the caller can do (CMB-53).
type recovery struct {
	Action   string `json:"action"` // wait, retry, switch-combo; try-auto when there is auto
	NextStep string `json:"next_step"`
	Seconds  int64  `json:"retry_after_seconds,omitempty"` // 0 to 3600
}

// diagnose adds diagnostics and the recovery hint to a failure, in its body and in headers.
func (r *run) diagnose(f *dialect.Failure) {
	hint := r.recovery(f)
	d := diagnostics{
		PoolSize: r.order.Len(), Attempted: len(r.t.Attempts), TerminalReason: cut(r.terminalReason(f), 96), Recovery: hint.Action,
		Excluded: []leftOut{}, AttemptOrder: []attempted{},
	}
	now := r.d.Now()
	for i := range min(len(r.t.Excluded), maxListed) {
		x := &r.t.Excluded[i]
		e := leftOut{Provider: cut(x.Target.Provider.ID, 64), Model: cut(x.Target.Model, 96), Reason: diagnosedReason(x)}
		if at := r.backAt(x); !at.IsZero() && at.After(now) {
			e.RetryAfter = at.Sub(now).Milliseconds()
		}
		d.Excluded = append(d.Excluded, e)
	}
	for i := range min(len(r.t.Attempts), maxListed) {
		a := &r.t.Attempts[i]
		d.AttemptOrder = append(d.AttemptOrder, attempted{cut(a.Provider, 64), cut(a.Model, 96)})
	}
	for _, note := range r.c.Route.Notes[:min(len(r.c.Route.Notes), maxListed)] {
		d.Notes = append(d.Notes, cut(note, 200))
	}
	f.Facts = append(f.Facts, dialect.Fact{Name: "diagnostics", Value: d}, dialect.Fact{Name: "recovery_hint", Value: hint})
	if r.c.Route.Kind == catalog.KindCombo {
		r.t.tell("Combo-Pool-Size", strconv.Itoa(d.PoolSize))
		r.t.tell("Combo-Attempted", strconv.Itoa(d.Attempted))
		r.t.tell("Combo-Excluded", strconv.Itoa(len(r.t.Excluded)))
		r.t.tell("Combo-Terminal-Reason", d.TerminalReason)
	}
	r.t.tell("Recovery-Action", hint.Action)
	r.t.tell("Recovery-Next-Step", hint.NextStep)
	if hint.Seconds > 0 {
		r.t.tell("Retry-After-Seconds", strconv.FormatInt(hint.Seconds, 10))
	}
}

// terminalReason is the word for how the request ended.
func (r *run) terminalReason(f *dialect.Failure) string {
	small := len(r.t.Excluded) > 0
	for i := range r.t.Excluded {
		small = small && r.t.Excluded[i].Refusal.Gate == string(contextReason)
	}
	switch {
	case r.last.set && !ownWord(f.Code):
		return string(r.last.verdict.Reason)
	case small:
		return "context_requirements_exhausted"
	}
	return f.Code
}

// ownWord says whether the gateway itself ended the request, whatever the last attempt came to (CMB-14, CMB-16).
func ownWord(code string) bool {
	switch code {
	case "COMBO_TIMEOUT", "max_attempts_exceeded", "reasoning_budget_exhausted":
		return true
	}
	return false
}

const contextReason = wire.Reason("context_requirements")

// recovery says what to do about f.
func (r *run) recovery(f *dialect.Failure) recovery {
	const most = time.Hour
	switch {
	case f.NoRetry && f.RetryAfter > 0: // a time that clients find on every 429, though nothing heals by then
		return recovery{Action: "switch-combo", NextStep: "Repeating does not help; ask for another model or combo, or tell the gateway's operator."}
	case f.RetryAfter > most:
		return recovery{Action: "switch-combo", NextStep: "Ask for another model or combo; this one is not back within an hour.", Seconds: int64(most.Seconds())}
	case f.RetryAfter > 0:
		return recovery{Action: "wait", NextStep: "Send the request again after the time in retry_after_seconds.", Seconds: dialect.Seconds(f.RetryAfter)}
	case f.Code == "quota_exhausted":
		return recovery{Action: "switch-combo", NextStep: "Waiting does not help, since no reset of the quota is known; ask for another model or combo."}
	case f.NoRetry:
		return recovery{Action: "switch-combo", NextStep: "Repeating does not help; ask for another model or combo, or tell the gateway's operator."}
	}
	return recovery{Action: "retry", NextStep: "Send the request again; if it fails the same way, ask for another model or combo."}
}

// diagnosedReason is the word of CMB-52 for an exclusion.
func diagnosedReason(x *Exclusion) string {
	quota := x.Refusal.Reason == wire.QuotaExhausted || x.Refusal.Reason == wire.CreditsGone
	switch x.Refusal.Gate {
	case breakerGate, windowGate, lockoutGate, predictedGate, string(contextReason):
		return x.Refusal.Gate
	case cooldownGate, skippedGate, terminalGate:
		switch {
		case quota:
			return "quota_exhausted"
		case x.Refusal.Gate == terminalGate:
			return "unavailable"
		}
		return cooldownGate
	}
	return "unavailable"
}

// cut is s without line breaks and at most n bytes (CMB-52).
func cut(s string, n int) string {
	return shorten(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s), n)
}
