package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// said returns the time of a rule that holds; false when the rule requires one and the answer has none.
func (m *Match) said(e *entry) (said, bool) {
	w := e.verdict.wait
	if e.restates {
		w = e.restatement.wait
	}
	if w.fixed > 0 {
		return said{w.fixed, "rule"}, true
	}
	if w.reading == nil {
		return said{}, true
	}
	wait, source, ok := w.reading.read(m, e.limit)
	if !ok {
		return said{}, !w.reading.required
	}
	return said{wait, source}, true
}

// complete makes the verdict of this answer. Without a time of its own a verdict carries the one that the host read in
// the answer; a terminal one carries none, since time does not heal it.
func (v *verdict) complete(r *Reply, s said) wire.Verdict {
	out := wire.Verdict{Reason: v.reason, Scope: v.scope, Fallback: v.fallback, Terminal: v.terminal,
		SetStatus: v.setStatus, Cooldown: v.cooldown, Exact: v.exact, RequestScoped: v.requestScoped, Message: v.message,
		Confidence: v.confidence}
	if v.breaker != nil {
		out.Breaker, out.SkipBreaker = *v.breaker, !*v.breaker
	} else {
		out.Breaker = wire.DefaultBreaker(v.scope, HostStatus(r))
	}
	switch {
	case v.terminal:
		out.Cooldown = 0
	case s.source == byClock && !r.Hint.OK: // a length that the author chose, and as given (LOCK-25)
		out.Cooldown, out.Exact = max(out.Cooldown, s.wait), true
	case s.wait > 0 && s.source != byClock:
		out.RetryAfter, out.Hinted, out.HintSource = s.wait, true, s.source
	case r.Hint.OK:
		out.RetryAfter, out.Hinted, out.HintSource = r.Hint.Wait, true, r.Hint.Source
	}
	return out
}

// permanent reports whether the verdict says that time heals nothing.
func (v *verdict) permanent() bool { return v.terminal || v.reason == wire.CreditsGone }

// permitted holds RST-9: an error that was restated is temporary, so a rule that speaks of something permanent is not
// about it. But the corpus, which wins over the letter of RST-9, has answers that are restated *to* 401, 402 or 403 since
// that is the truth (minimax 1008 under 500, a disabled organization under 400). There the rule must have evidence from
// the answer itself: a restated status alone, which any plugin may have made, ends no account (RUL-14).
func (m *Match) permitted(e *entry) bool {
	if e.restates || m.reply.Restated == "" || !e.verdict.permanent() {
		return true
	}
	return saysPermanent(m.reply.Status) && e.hasEvidence()
}

func saysPermanent(status int) bool { return status == 401 || status == 402 || status == 403 }

// hasEvidence reports whether the rule asks for anything in the body.
func (r *rule) hasEvidence() bool {
	return len(r.codes)+len(r.types)+len(r.contains)+len(r.all)+len(r.patterns)+len(r.json)+len(r.jsonAll) > 0
}

// Declined is a hook's {"error": {...}}: the plugin has no opinion on purpose. It is no violation (ABI-1).
type Declined struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the plugin's own words.
func (d *Declined) Error() string { return "plugin declined: " + d.Code + ": " + d.Message }

type hookVerdict struct {
	Error         *Declined `json:"error"`
	Reason        string    `json:"reason"`
	Scope         string    `json:"scope"`
	Fallback      *bool     `json:"fallback"`
	RetryAfterMS  int64     `json:"retry_after_ms"`
	ResetAtMS     int64     `json:"reset_at_ms"`
	CooldownMS    int64     `json:"cooldown_ms"`
	Breaker       *bool     `json:"count_for_breaker"`
	Terminal      bool      `json:"terminal"`
	SetStatus     string    `json:"set_status"`
	Message       string    `json:"message"`
	Confidence    *int      `json:"confidence"`
	Exact         bool      `json:"exact"`
	RequestScoped bool      `json:"request_scoped"`
}

// Resolve completes the JSON verdict of a guest's classify hook (ABI-4). It returns false without an error when the hook
// has no opinion: no output, no reason, or a permanent verdict on a restated error (RST-9). A wait is cut to 30 days;
// terminal without the grant is ignored (RUL-14; IgnoredTerminal tells it for the count). An error is a *Declined, or
// says what makes the output garbage (ABI-8).
func Resolve(raw []byte, r *Reply, terminateGranted bool) (wire.Verdict, bool, error) {
	var w hookVerdict
	if empty, err := decodeHook(raw, &w); empty || err != nil {
		return wire.Verdict{}, false, err
	}
	if w.Error != nil {
		return wire.Verdict{}, false, w.Error
	}
	if w.Reason == "" {
		return wire.Verdict{}, false, nil
	}
	v, err := w.verdict()
	if err != nil {
		return wire.Verdict{}, false, err
	}
	if v.terminal && !terminateGranted {
		v.terminal, v.setStatus = false, ""
	}
	if r.Restated != "" && v.permanent() && !saysPermanent(r.Status) {
		return wire.Verdict{}, false, nil
	}
	return v.complete(r, w.said(r.Now)), true, nil
}

// IgnoredTerminal reports whether a hook's output asked for a terminal state, which Resolve ignores without the grant.
func IgnoredTerminal(raw []byte) bool {
	var w hookVerdict
	empty, err := decodeHook(raw, &w)
	return !empty && err == nil && w.Terminal
}

func decodeHook(raw []byte, to any) (empty bool, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return true, nil
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return false, fmt.Errorf("hook output is not of the form of ABI-4: %w", err)
	}
	return false, nil
}

// verdict checks the words of w and fills what is absent.
func (w hookVerdict) verdict() (*verdict, error) {
	reason, ok := wire.ParseReason(w.Reason)
	if !ok {
		return nil, fmt.Errorf("hook output: reason %q is no canonical reason", brief([]byte(w.Reason)))
	}
	v := &verdict{reason: reason, scope: reason.DefaultScope(), fallback: reason.DefaultFallback(), breaker: w.Breaker,
		terminal: w.Terminal, exact: w.Exact, requestScoped: w.RequestScoped, message: w.Message, confidence: 100}
	if w.Scope != "" {
		if v.scope, ok = wire.ParseScope(w.Scope); !ok {
			return nil, fmt.Errorf("hook output: scope %q is none of request, model, connection, provider", brief([]byte(w.Scope)))
		}
	}
	if w.Fallback != nil {
		v.fallback = *w.Fallback
	}
	if w.Confidence != nil {
		v.confidence = *w.Confidence
	}
	if w.Terminal {
		v.setStatus, _ = reason.DefaultTerminal()
	}
	if w.SetStatus != "" {
		state, ok := terminalState(w.SetStatus)
		if !ok {
			return nil, fmt.Errorf("hook output: set_status %q is none of banned, expired, credits_exhausted", brief([]byte(w.SetStatus)))
		}
		if w.Terminal {
			v.setStatus = state
		}
	}
	if w.CooldownMS < 0 || w.CooldownMS > maxWait.Milliseconds() {
		return nil, fmt.Errorf("hook output: cooldown_ms %d is not from 0 to 30 days", w.CooldownMS)
	}
	v.cooldown = milliseconds(w.CooldownMS)
	if w.RetryAfterMS < 0 || w.ResetAtMS < 0 {
		return nil, fmt.Errorf("hook output: a wait is negative")
	}
	if field, fault := v.check(); fault != "" {
		return nil, fmt.Errorf("hook output: %s %s", field, fault)
	}
	return v, nil
}

// said is the hook's time; reset_at_ms wins, and one that has passed is none.
func (w hookVerdict) said(now time.Time) said {
	wait := milliseconds(w.RetryAfterMS)
	if w.ResetAtMS > 0 {
		wait = max(0, milliseconds(w.ResetAtMS-now.UnixMilli()))
	}
	return said{wait, "hook"}
}

// milliseconds is ms as a wait, at most 30 days.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, maxWait.Milliseconds())) * time.Millisecond
}

type hookRestatement struct {
	Error        *Declined `json:"error"`
	Status       int       `json:"status"`
	Code         string    `json:"code"`
	Note         string    `json:"note"`
	RetryAfterMS int64     `json:"retry_after_ms"`
}

// ResolveRestatement reads the JSON of a guest's restate hook (ABI-4). It returns false without an error when the hook
// keeps the status: no output, or no status. An error is a *Declined, or says what makes the output garbage (ABI-8).
func ResolveRestatement(raw []byte) (wire.Restatement, bool, error) {
	var w hookRestatement
	if empty, err := decodeHook(raw, &w); empty || err != nil {
		return wire.Restatement{}, false, err
	}
	switch {
	case w.Error != nil:
		return wire.Restatement{}, false, w.Error
	case w.Status == 0:
		return wire.Restatement{}, false, nil
	case w.Status < 400 || w.Status > 599:
		return wire.Restatement{}, false, fmt.Errorf("hook output: status %d is not from 400 to 599", w.Status)
	case w.RetryAfterMS < 0:
		return wire.Restatement{}, false, fmt.Errorf("hook output: retry_after_ms is negative")
	}
	return wire.Restatement{Status: w.Status, Code: w.Code, Note: w.Note, RetryAfter: milliseconds(w.RetryAfterMS)}, true, nil
}
