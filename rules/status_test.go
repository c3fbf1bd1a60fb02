package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// CLS-13, with the scopes and the fallback of ABI-4.
func TestByStatus(t *testing.T) {
	type row struct {
		reason            wire.Reason
		scope             wire.Scope
		fallback, breaker bool
	}
	want := map[int]row{
		400: {wire.InvalidRequest, wire.ScopeRequest, false, false}, 405: {wire.InvalidRequest, wire.ScopeRequest, false, false},
		409: {wire.InvalidRequest, wire.ScopeRequest, false, false}, 415: {wire.InvalidRequest, wire.ScopeRequest, false, false},
		422: {wire.InvalidRequest, wire.ScopeRequest, false, false},
		401: {wire.AuthError, wire.ScopeConnection, true, false}, 403: {wire.AuthError, wire.ScopeConnection, true, false},
		402: {wire.CreditsGone, wire.ScopeConnection, true, false},
		404: {wire.Unknown, wire.ScopeConnection, true, false}, 406: {wire.Unknown, wire.ScopeConnection, true, false},
		418: {wire.Unknown, wire.ScopeConnection, true, false}, 200: {wire.Unknown, wire.ScopeConnection, true, false},
		408: {wire.Timeout, wire.ScopeProvider, true, true}, 504: {wire.Timeout, wire.ScopeProvider, true, true},
		524: {wire.Timeout, wire.ScopeProvider, true, true},
		413: {wire.ContextOverflow, wire.ScopeRequest, true, false},
		429: {wire.RateLimitExceeded, wire.ScopeConnection, true, false},
		503: {wire.Overloaded, wire.ScopeProvider, true, true}, 529: {wire.Overloaded, wire.ScopeModel, true, false},
		500: {wire.ServerError, wire.ScopeProvider, true, true}, 502: {wire.ServerError, wire.ScopeProvider, true, true},
		520: {wire.ServerError, wire.ScopeProvider, true, true}, 501: {wire.ServerError, wire.ScopeProvider, true, false},
		599: {wire.ServerError, wire.ScopeProvider, true, false},
	}
	for status, w := range want {
		v := rules.ByStatus(answer("p", status, "x"))
		if diff := cmp.Diff(w, row{v.Reason, v.Scope, v.Fallback, v.Breaker}, cmp.AllowUnexported(row{})); diff != "" {
			t.Errorf("%d: %s", status, diff)
		}
		if v.Terminal != (status == 402) || v.Plugin != "" || v.Rule != "" {
			t.Errorf("%d: %+v", status, v)
		}
	}
}

func TestByStatusNoAnswer(t *testing.T) { // CLS-13, RST-10
	for code, want := range map[string]struct {
		reason wire.Reason
		status int
	}{
		wire.TransportTimeout: {wire.Timeout, 504}, wire.TransportConnect: {wire.NetworkError, 502},
		wire.TransportReset: {wire.NetworkError, 502}, wire.TransportTLS: {wire.NetworkError, 502},
		wire.TransportDNS: {wire.NetworkError, 502}, wire.TransportEOF: {wire.NetworkError, 502}, "": {wire.NetworkError, 502},
	} {
		r := &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{Code: code}}
		if got := rules.HostStatus(r); got != want.status {
			t.Errorf("%s: status %d, want %d", code, got, want.status)
		}
		for range 2 { // also when the host has put its own reading in place
			if v := rules.ByStatus(r); v.Reason != want.reason || v.Scope != wire.ScopeProvider || !v.Breaker {
				t.Errorf("%s: %+v", code, v)
			}
			r.Status = rules.HostStatus(r)
		}
	}
}

func TestHostStatus(t *testing.T) { // RST-10
	for status, want := range map[int]int{520: 502, 524: 504, 521: 521, 529: 529, 429: 429, 200: 200} {
		if got := rules.HostStatus(answer("p", status, "")); got != want {
			t.Errorf("%d is read as %d, want %d", status, got, want)
		}
	}
	r := answer("p", 524, "x")
	r.Status, r.Restated = 429, "rule"
	if got := rules.HostStatus(r); got != 429 {
		t.Errorf("a restated 524 is read as %d", got)
	}
}

func TestByStatusCredits(t *testing.T) {
	r := answer("p", 402, "x")
	if v := rules.ByStatus(r); !v.Terminal || v.SetStatus != wire.CreditsExhausted { // COOL-55
		t.Errorf("402: %+v", v)
	}
	for _, p := range []string{"openai-compatible-x", "Anthropic-compatible-y"} { // COOL-56
		if v := rules.ByStatus(answer(p, 402, "x")); v.Terminal || v.Scope != wire.ScopeModel || v.Reason != wire.CreditsGone {
			t.Errorf("%s: %+v", p, v)
		}
	}
	r.Restated = "rule"
	if v := rules.ByStatus(r); v.Terminal || v.Reason == wire.CreditsGone { // RST-9
		t.Errorf("restated 402: %+v", v)
	}
}

func TestByStatusHint(t *testing.T) {
	v := rules.ByStatus(answer("p", 429, "x", "Retry-After", "7"))
	if v.RetryAfter != 7*time.Second || !v.Hinted || v.HintSource != "header:retry-after" { // COOL-6
		t.Errorf("verdict = %+v", v)
	}
}

// ABI-4: the verdict of a hook.
func TestResolve(t *testing.T) {
	base := func(change func(*wire.Verdict)) wire.Verdict {
		v := wire.Verdict{Reason: wire.QuotaExhausted, Scope: wire.ScopeConnection, Fallback: true, Confidence: 100}
		change(&v)
		return v
	}
	nothing := func(*wire.Verdict) {}
	for _, c := range []struct {
		raw     string
		granted bool
		want    wire.Verdict
	}{
		{`{"reason": "quota_exhausted"}`, false, base(nothing)},
		{`{"reason": "quota_exhausted", "later": 1}`, false, base(nothing)}, // ABI-1
		{`{"reason": "quota_exhausted", "retry_after_ms": 1500}`, false, base(func(v *wire.Verdict) {
			v.RetryAfter, v.Hinted, v.HintSource = 1500*time.Millisecond, true, "hook"
		})},
		{fmt.Sprintf(`{"reason": "quota_exhausted", "retry_after_ms": 1500, "reset_at_ms": %d}`, now.UnixMilli()+60000), false, base(func(v *wire.Verdict) {
			v.RetryAfter, v.Hinted, v.HintSource = time.Minute, true, "hook"
		})},
		{`{"reason": "quota_exhausted", "reset_at_ms": 1}`, false, base(nothing)},
		{`{"reason": "quota_exhausted", "retry_after_ms": 9223372036854775807}`, false, base(func(v *wire.Verdict) {
			v.RetryAfter, v.Hinted, v.HintSource = 720*time.Hour, true, "hook"
		})},
		{`{"reason": "quota_exhausted", "scope": "model", "fallback": false, "cooldown_ms": 1000, "count_for_breaker": true,
		   "message": "m", "confidence": 0, "exact": true, "request_scoped": true}`, false, base(func(v *wire.Verdict) {
			v.Scope, v.Fallback, v.Cooldown, v.Breaker = wire.ScopeModel, false, time.Second, true
			v.Message, v.Confidence, v.Exact, v.RequestScoped = "m", 0, true, true
		})},
		{`{"reason": "banned", "terminal": true}`, false, base(func(v *wire.Verdict) { v.Reason = wire.ReasonBanned })}, // RUL-14
		{`{"reason": "banned", "terminal": true}`, true, base(func(v *wire.Verdict) {
			v.Reason, v.Terminal, v.SetStatus = wire.ReasonBanned, true, wire.Banned
		})},
		{`{"reason": "auth_error", "terminal": true}`, true, base(func(v *wire.Verdict) {
			v.Reason, v.Terminal, v.SetStatus = wire.AuthError, true, wire.Expired
		})},
		{`{"reason": "quota_exhausted", "terminal": true, "set_status": "expired"}`, true, base(func(v *wire.Verdict) {
			v.Terminal, v.SetStatus = true, wire.Expired
		})},
		{`{"reason": "model_capacity"}`, false, base(func(v *wire.Verdict) { v.Reason, v.Scope = wire.Overloaded, wire.ScopeModel })},
	} {
		got, ok, err := rules.Resolve([]byte(c.raw), answer("p", 429, "x"), c.granted)
		if !ok || err != nil || got != c.want {
			t.Errorf("%s: %v %v %s", c.raw, ok, err, cmp.Diff(c.want, got))
		}
	}
	if !rules.IgnoredTerminal([]byte(`{"reason": "banned", "terminal": true}`)) || rules.IgnoredTerminal([]byte(`{"reason": "banned"}`)) {
		t.Error("IgnoredTerminal")
	}
}

func TestResolveNothingAndGarbage(t *testing.T) {
	for _, raw := range []string{"", "null", "{}", `{"scope": "model"}`} {
		if _, ok, err := rules.Resolve([]byte(raw), answer("p", 429, "x"), true); ok || err != nil {
			t.Errorf("%q: %v %v", raw, ok, err)
		}
	}
	for _, raw := range []string{"7", "[", `{"reason": 7}`, `{"reason": "sad"}`, `{"reason": "unknown", "scope": "world"}`,
		`{"reason": "unknown", "scope": "none"}`, `{"reason": "unknown", "cooldown_ms": -1}`, `{"reason": "unknown", "cooldown_ms": 2592000001}`,
		`{"reason": "unknown", "retry_after_ms": -1}`, `{"reason": "unknown", "confidence": 101}`, `{"reason": "banned", "terminal": true, "scope": "model"}`,
		`{"reason": "quota_exhausted", "terminal": true}`, `{"reason": "banned", "set_status": "gone"}`} {
		if v, ok, err := rules.Resolve([]byte(raw), answer("p", 429, "x"), true); ok || err == nil {
			t.Errorf("%s: %+v", raw, v)
		}
	}
	_, ok, err := rules.Resolve([]byte(`{"error": {"code": "unsupported", "message": "not me"}}`), answer("p", 429, "x"), true)
	if d, is := err.(*rules.Declined); ok || !is || d.Code != "unsupported" {
		t.Errorf("declined: %v %v", ok, err)
	}
}

func TestResolveRestated(t *testing.T) { // RST-9
	r := answer("p", 403, "x")
	r.Status, r.Restated = 429, "rule"
	for raw, want := range map[string]bool{`{"reason": "credits_exhausted"}`: false, `{"reason": "banned", "terminal": true}`: false,
		`{"reason": "banned"}`: true, `{"reason": "quota_exhausted"}`: true} {
		if _, ok, err := rules.Resolve([]byte(raw), r, true); ok != want || err != nil {
			t.Errorf("%s: %v %v", raw, ok, err)
		}
	}
}

func TestResolveRestatement(t *testing.T) {
	re, ok, err := rules.ResolveRestatement([]byte(`{"status": 429, "code": "c", "note": "n", "retry_after_ms": 20000}`))
	if want := (wire.Restatement{Status: 429, Code: "c", Note: "n", RetryAfter: 20 * time.Second}); !ok || err != nil || re != want {
		t.Errorf("%+v %v %v", re, ok, err)
	}
	for _, raw := range []string{"", "{}", "null"} {
		if _, ok, err := rules.ResolveRestatement([]byte(raw)); ok || err != nil {
			t.Errorf("%q: %v %v", raw, ok, err)
		}
	}
	for _, raw := range []string{"1", `{"status": "429"}`, `{"status": 399}`, `{"status": 600}`, `{"status": 429, "retry_after_ms": -1}`, `{"error": {}}`} {
		if _, ok, err := rules.ResolveRestatement([]byte(raw)); ok || err == nil {
			t.Errorf("%s: %v", raw, ok)
		}
	}
}
