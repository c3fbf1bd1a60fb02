package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// The rules of RST-3 and RUL-10, and those of RUL-1.
const agentrouter = `[
 {"id": "agentrouter-quota-misstatus", "providers": ["agentrouter"], "status": [403, 400],
  "text_contains": ["额度不足"], "text_none": ["无权访问"],
  "then": {"restate_status": 429, "restate_code": "rate_limit_exceeded", "retry_after": "60s"}},
 {"id": "agentrouter-user-quota-exhausted", "providers": ["agentrouter"], "status": [400, 403, 429],
  "text_contains": ["额度不足"], "then": {"reason": "quota_exhausted", "scope": "connection"}},
 {"id": "agentrouter-model-access-denied", "providers": ["agentrouter"], "status": [403],
  "text_contains": ["无权访问模型"], "then": {"reason": "model_access_denied", "cooldown": "6h"}}]`

func TestAgentrouter(t *testing.T) {
	const quota = `{"error":{"message":"用户额度不足, 剩余额度: 0","type":"new_api_error"}}`
	const access = `{"error":{"message":"该令牌无权访问模型 gpt-5.5","type":"new_api_error"}}`
	const escaped = `{"error":{"message":"\u7528\u6237\u989d\u5ea6\u4e0d\u8db3"}}`
	none := wire.Reason("")
	for _, c := range []struct {
		name     string
		provider string
		status   int
		body     string
		restated int // 0: kept
		reason   wire.Reason
		scope    wire.Scope
	}{
		{"RST-1 403 quota", "agentrouter", 403, quota, 429, wire.QuotaExhausted, wire.ScopeConnection},
		{"RST-1 400 short marker", "agentrouter", 400, `{"error":{"message":"额度不足"}}`, 429, wire.QuotaExhausted, wire.ScopeConnection},
		{"RST-3 429 needs no restatement", "agentrouter", 429, quota, 0, wire.QuotaExhausted, wire.ScopeConnection},
		{"RST-3 other status", "agentrouter", 402, quota, 0, none, ""},
		{"RST-4 escaped in the JSON", "agentrouter", 403, escaped, 429, wire.QuotaExhausted, wire.ScopeConnection},
		{"RST-4 plain text", "agentrouter", 403, "额度不足", 429, wire.QuotaExhausted, wire.ScopeConnection},
		{"RST-4 provider in capitals", "AgentRouter", 403, quota, 429, wire.QuotaExhausted, wire.ScopeConnection},
		{"RST-4 another provider", "openai", 403, quota, 0, none, ""},
		{"RST-5 veto", "agentrouter", 403, access, 0, wire.ModelAccessDenied, wire.ScopeModel},
		{"RST-5 veto beside the marker", "agentrouter", 403, `{"error":{"message":"无权访问模型, 额度不足"}}`, 0, wire.QuotaExhausted, wire.ScopeConnection},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := answer(c.provider, c.status, c.body)
			m := one(t, agentrouter).Match(r)
			re, ok := restate(m, r, 1)
			if ok != (c.restated != 0) || re.Status != c.restated {
				t.Errorf("restated %v to %d, want %d", ok, re.Status, c.restated)
			}
			if ok && (re.RetryAfter != time.Minute || re.Code != "rate_limit_exceeded" || re.Rule != "agentrouter-quota-misstatus" ||
				re.Plugin != "p" || re.Digest != "d") { // RST-6, RST-7
				t.Errorf("restatement = %+v", re)
			}
			v, _ := classify(m, 1)
			if v.Reason != c.reason || v.Scope != c.scope {
				t.Errorf("verdict = %s %s, want %s %s", v.Reason, v.Scope, c.reason, c.scope)
			}
			if c.restated != 0 && (v.Terminal || v.RetryAfter != 0) { // RST-6: not a cooldown
				t.Errorf("verdict = %+v", v)
			}
		})
	}
}

func TestRestatementReads(t *testing.T) {
	set := one(t, `[{"id": "acme", "text_contains": ["quota"], "then": {"restate_status": 429,
	  "retry_after": {"from": "text", "match": "try again in ([0-9.]+)s", "unit": "s"}, "note": "quota_as_403"}}]`)
	r := answer("acme", 403, "Quota reached, try again in 20s")
	re, i, ok := set.Match(r).Restate(0, 1)
	if !ok || i != 0 || re.RetryAfter != 20*time.Second || re.Note != "quota_as_403" {
		t.Errorf("restatement = %+v, %d, %v", re, i, ok)
	}
}

// RST-2: the restatement sees the status as it came, the classifier the corrected one and the one that came.
func TestStagesSeeTheirStatus(t *testing.T) {
	set := one(t, `[
	 {"id": "r", "status": [403], "then": {"restate_status": 429}},
	 {"id": "old", "status": [403], "then": {"reason": "auth_error"}},
	 {"id": "both", "status": [429], "original_status": [403], "then": {"reason": "quota_exhausted"}},
	 {"id": "new", "status": [429], "then": {"reason": "rate_limit_exceeded"}}]`)
	r := answer("p", 403, "x")
	m := set.Match(r)
	restate(m, r, 1)
	if v, _ := classify(m, 1); v.Rule != "both" {
		t.Errorf("decided by %q", v.Rule)
	}
	if v, _ := classify(set.Match(answer("p", 429, "x")), 1); v.Rule != "new" {
		t.Errorf("a plain 429 was decided by %q", v.Rule)
	}
	if v, _ := classify(set.Match(answer("p", 403, "x")), 1); v.Rule != "old" {
		t.Errorf("a 403 that was not restated was decided by %q", v.Rule)
	}
}

func TestKeepStopsTheTable(t *testing.T) { // ABI-2.1 keep
	set := one(t, `[
	 {"id": "keep", "text_contains": ["fine"], "then": {"keep": true}},
	 {"id": "rest", "then": {"restate_status": 503}}]`)
	r := answer("p", 500, "this is fine")
	if re, ok := restate(set.Match(r), r, 1); !ok || !re.Keep || r.Status != 500 {
		t.Errorf("restatement = %+v, %v", re, ok)
	}
}

func TestBodilessIsNeverRestated(t *testing.T) { // RST-10
	set := one(t, `[{"id": "r", "then": {"restate_status": 429}}]`)
	for _, body := range []string{"", " \n"} {
		if re, _, ok := set.Match(answer("p", 403, body)).Restate(0, 1); ok {
			t.Errorf("body %q was restated: %+v", body, re)
		}
	}
	lost := answer("p", 0, "read ECONNRESET")
	if re, _, ok := set.Match(lost).Restate(0, 1); ok {
		t.Errorf("a lost connection was restated: %+v", re)
	}
	if _, _, ok := set.Match(answer("p", 403, "x")).Restate(0, 1); !ok {
		t.Error("an error with a body was not restated")
	}
}

func TestBodyBounds(t *testing.T) { // RST-10
	set := one(t, `[{"id": "r", "text_contains": ["needle"], "then": {"restate_status": 429}}]`)
	for at, want := range map[int]bool{0: true, rules.MaxText - 6: true, rules.MaxText - 5: false, rules.MaxText + 10: false} {
		r := answer("p", 500, strings.Repeat("-", at)+"needle"+strings.Repeat("-", 10))
		if _, _, ok := set.Match(r).Restate(0, 1); ok != want {
			t.Errorf("needle at %d: restated %v, want %v", at, ok, want)
		}
	}
	if r := answer("p", 500, "bad \xff\xfe bytes, needle"); r.Facts.Text != "bad \uFFFD bytes, needle" {
		t.Errorf("text = %q", r.Facts.Text)
	}
}

// RST-9, and where the corpus goes before its letter.
func TestRestatedIsNotPermanent(t *testing.T) {
	const table = `[
	 {"id": "to-429", "code": ["quota"], "then": {"restate_status": 429}},
	 {"id": "to-402", "code": ["1008"], "then": {"restate_status": 402}},
	 {"id": "to-403", "code": ["bare"], "then": {"restate_status": 403}},
	 {"id": "credits", "text_contains": ["balance"], "then": {"reason": "credits_exhausted", "terminal": true}},
	 {"id": "ban", "status": [403], "then": {"reason": "banned", "terminal": true}},
	 {"id": "rest", "then": {"reason": "rate_limit_exceeded"}}]`
	for _, c := range []struct{ name, body, rule string }{
		{"429 is temporary", `{"code":"quota","message":"balance is low"}`, "rest"},
		{"402 with evidence", `{"code":1008,"message":"balance is low"}`, "credits"},
		{"403 by status alone", `{"code":"bare","message":"no"}`, "rest"},
		{"not restated", `{"code":"x","message":"balance is low"}`, "credits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := answer("p", 500, c.body)
			m := one(t, table).Match(r)
			restate(m, r, 1)
			v, _ := classify(m, 1)
			if v.Rule != c.rule {
				t.Errorf("decided by %s, want %s", v.Rule, c.rule)
			}
			if v.Terminal != (c.rule == "credits") {
				t.Errorf("terminal = %v", v.Terminal)
			}
		})
	}
}
