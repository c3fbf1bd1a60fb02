package rules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// ABI-2.1: each condition, and RUL-1 to RUL-5.
func TestConditions(t *testing.T) {
	for _, c := range []struct {
		name      string
		condition string
		holds     []*rules.Reply
		not       []*rules.Reply
	}{
		{"providers", `"providers": ["op*en", "zai"]`,
			[]*rules.Reply{answer("open", 500, ""), answer("op-x-en", 500, ""), answer("ZAI", 500, "")},
			[]*rules.Reply{answer("opens", 500, ""), answer("za", 500, "")}},
		{"models", `"models": ["m*"]`, []*rules.Reply{with(func(r *rules.Reply) { r.Model = "M-2" }),
			with(func(r *rules.Reply) { r.Model = "p/m-2" })}, []*rules.Reply{with(func(r *rules.Reply) { r.Model = "x/m" })}},
		{"endpoints", `"endpoints": ["/v1/chat/*"]`, []*rules.Reply{answer("p", 500, "")},
			[]*rules.Reply{with(func(r *rules.Reply) { r.Endpoint = "/v1/messages" })}},
		{"auth", `"auth": ["oauth", "local"]`, []*rules.Reply{with(func(r *rules.Reply) { r.Auth = wire.AuthLocal })},
			[]*rules.Reply{answer("p", 500, "")}},
		{"status", `"status": [429, "500-599"]`,
			[]*rules.Reply{answer("p", 429, ""), answer("p", 500, ""), answer("p", 599, "")},
			[]*rules.Reply{answer("p", 400, ""), answer("p", 499, ""), answer("p", 0, "")}},
		{"status as it came behind the host's reading", `"status": [520]`,
			[]*rules.Reply{with(func(r *rules.Reply) { r.Status, r.Original = 502, 520 })},
			[]*rules.Reply{answer("p", 502, "")}},
		{"no HTTP answer", `"status": [0], "code": ["reset"]`,
			[]*rules.Reply{answer("p", 0, "read ECONNRESET"), with(func(r *rules.Reply) {
				r.Source, r.Original, r.Status, r.Facts.Code = wire.SourceTransport, 0, 502, "reset"
			})}, []*rules.Reply{answer("p", 0, "no such host"), answer("p", 502, `{"code":"reset"}`)}},
		{"original_status", `"original_status": [403]`,
			[]*rules.Reply{with(func(r *rules.Reply) { r.Status, r.Original, r.Restated = 429, 403, "x" })},
			[]*rules.Reply{answer("p", 429, "")}},
		{"code", `"code": ["Quota", 1008]`,
			[]*rules.Reply{answer("p", 500, `{"error":{"code":"QUOTA"}}`), answer("p", 500, `{"base_resp":{"status_code":1008}}`)},
			[]*rules.Reply{answer("p", 500, `{"error":{"code":"quota2"}}`), answer("p", 500, "quota")}},
		{"type", `"type": "new_api_error"`, []*rules.Reply{answer("p", 500, `{"error":{"type":"new_api_error"}}`)},
			[]*rules.Reply{answer("p", 500, `{"error":{"type":"x"}}`)}},
		{"code and type", `"type": ["t"], "code": ["c"]`, []*rules.Reply{answer("p", 500, `{"error":{"type":"t","code":"c"}}`)},
			[]*rules.Reply{answer("p", 500, `{"error":{"type":"t"}}`), answer("p", 500, `{"error":{"code":"c"}}`)}},
		{"text_contains", `"text_contains": ["Quota", "ПРЕДЕЛ"]`,
			[]*rules.Reply{answer("p", 500, "your QUOTA"), answer("p", 500, "предел")}, []*rules.Reply{answer("p", 500, "quot a")}},
		{"text_all", `"text_all": ["one", "two"]`, []*rules.Reply{answer("p", 500, "two, one")}, []*rules.Reply{answer("p", 500, "one")}},
		{"text_none", `"text_none": ["one", "two"]`, []*rules.Reply{answer("p", 500, "three")}, []*rules.Reply{answer("p", 500, "TWO")}},
		{"text_matches", `"text_matches": ["model .* not found", "^x$"]`,
			[]*rules.Reply{answer("p", 500, "Model gpt Not Found"), answer("p", 500, `{"error":{"message":"model \u0067 not found"}}`)},
			[]*rules.Reply{answer("p", 500, "model found"), answer("p", 500, "not found")}},
		{"header equals", `"header": [{"name": "X-A", "equals": "0"}, {"name": "x-b", "equals": 0}]`,
			[]*rules.Reply{answer("p", 500, "", "x-a", "0"), answer("p", 500, "", "X-B", "1", "X-B", " 0 ")},
			[]*rules.Reply{answer("p", 500, ""), answer("p", 500, "", "x-a", "00")}},
		{"header_all", `"header_all": [{"name": "x-a", "present": true}, {"name": "x-b", "present": false}]`,
			[]*rules.Reply{answer("p", 500, "", "X-A", "")}, []*rules.Reply{answer("p", 500, "", "x-a", "", "x-b", "")}},
		{"header matches", `"header": {"name": "x-a", "matches": "^a+$"}`, []*rules.Reply{answer("p", 500, "", "x-a", "aa")},
			[]*rules.Reply{answer("p", 500, "", "x-a", "ab")}},
		{"list_has_zero", `"header": {"name": "x-a", "list_has_zero": true}`,
			[]*rules.Reply{answer("p", 500, "", "x-a", "model1=5, model2=0"), answer("p", 500, "", "x-a", "m=0.0")},
			[]*rules.Reply{answer("p", 500, "", "x-a", "model1=10"), answer("p", 500, "", "x-a", "0")}},
		{"json equals", `"json": [{"path": "error.details.0.reason", "equals": "QUOTA"}, {"path": "n", "equals": 7}]`,
			[]*rules.Reply{answer("p", 500, `{"error":{"details":[{"reason":"QUOTA"}]}}`), answer("p", 500, `{"n":7.0}`),
				answer("p", 500, `[{"n":7}]`), answer("p", 500, "data: {\"n\":7}\n\n")},
			[]*rules.Reply{answer("p", 500, `{"error":{"details":[{"reason":"quota"}]}}`), answer("p", 500, `QUOTA`)}},
		{"json exists", `"json": {"path": "error", "exists": true}`, []*rules.Reply{answer("p", 200, `{"error":{}}`)},
			[]*rules.Reply{answer("p", 200, `{"error":null}`), answer("p", 200, `{}`)}},
		{"json does not exist", `"json": {"path": "error", "exists": false}`, []*rules.Reply{answer("p", 200, `{"error":null}`)},
			[]*rules.Reply{answer("p", 200, `{"error":{}}`)}},
		{"json_all", `"json_all": [{"path": "a.*.b", "matches": "^x"}, {"path": "c\\.d", "equals": true}]`,
			[]*rules.Reply{answer("p", 500, `{"a":[{"b":"y"},{"b":"xy"}],"c.d":true}`)},
			[]*rules.Reply{answer("p", 500, `{"a":[{"b":"xy"}]}`)}},
		{"json of a cut body", `"json": {"path": "error.code", "equals": "q"}`,
			[]*rules.Reply{answer("p", 500, `{"error":{"code":"q","message":"cut of`)}, []*rules.Reply{answer("p", 500, `{"error":{"co`)}},
		{"stream", `"stream": true`, []*rules.Reply{with(func(r *rules.Reply) { r.Source = wire.SourceStream })},
			[]*rules.Reply{with(func(r *rules.Reply) { r.Stream = true })}},
		{"not stream", `"stream": false`, []*rules.Reply{with(func(r *rules.Reply) { r.Stream = true })},
			[]*rules.Reply{with(func(r *rules.Reply) { r.Source = wire.SourceStream })}},
		{"a field of a later version", `"moon": "full"`, []*rules.Reply{answer("p", 500, "")}, nil}, // ABI-1
	} {
		t.Run(c.name, func(t *testing.T) {
			set := one(t, `[{"id": "r", `+c.condition+`, "then": {"reason": "unknown"}}]`)
			for i, r := range c.holds {
				if _, ok := classify(set.Match(r), 1); !ok {
					t.Errorf("does not hold for answer %d: %s", i, r.Body)
				}
			}
			for i, r := range c.not {
				if _, ok := classify(set.Match(r), 1); ok {
					t.Errorf("holds for answer %d: %s", i, r.Body)
				}
			}
		})
	}
}

func with(change func(*rules.Reply)) *rules.Reply {
	r := answer("p", 500, "body")
	change(r)
	return r
}

// RUL-2: a rule sees only what needs declare.
func TestNeeds(t *testing.T) {
	marker := `[{"id": "r", "text_contains": ["needle"], "then": {"reason": "unknown"}}]`
	far := strings.Repeat("é", 2200) // 4400 bytes
	for _, c := range []struct {
		name  string
		needs wire.Needs
		body  string
		want  bool
	}{
		{"prefix is the default", wire.Needs{ErrorText: "prefix"}, "needle", true},
		{"prefix ends", wire.Needs{ErrorText: "prefix"}, far + "needle", false},
		{"prefix, border", wire.Needs{ErrorText: "prefix"}, strings.Repeat("-", 4090) + "needle", true},
		{"prefix, over the border", wire.Needs{ErrorText: "prefix"}, strings.Repeat("-", 4091) + "needle", false},
		{"prefix, letters that fold to other lengths", wire.Needs{ErrorText: "prefix"}, strings.Repeat("\u212A", 1364) + "needle", false},
		{"full", full, far + "needle", true},
		{"full, so many bytes", wire.Needs{ErrorText: "full", ErrorTextBytes: 5}, "needle", false},
		{"full, enough bytes", wire.Needs{ErrorText: "full", ErrorTextBytes: 6}, "needle", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := parse(t, rules.Options{Needs: c.needs}, marker)
			set := rules.Compile(rules.Source{Table: table})
			r := answer("p", 500, c.body)
			if _, ok := classify(set.Match(r), 1); ok != c.want {
				t.Errorf("holds %v, want %v", ok, c.want)
			}
		})
	}
}

// ABI-2.1: times in then.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		name, then string
		reply      *rules.Reply
		want       time.Duration
		source     string
	}{
		{"a length", `"retry_after": "90s"`, answer("p", 429, "x"), 90 * time.Second, "rule"},
		{"text", `"retry_after": {"from": "text", "match": "in ([0-9.]+)s", "unit": "s"}`, answer("p", 429, "Try IN 1.5s"), 1500 * time.Millisecond, "text"},
		{"text, second branch", `"retry_after": {"from": "text", "match": "in (\\d+)s|after (\\d+)", "unit": "s"}`, answer("p", 429, "after 7"), 7 * time.Second, "text"},
		{"header", `"retry_after": {"from": "header:X-Reset", "unit": "unix_s"}`,
			answer("p", 429, "x", "x-reset", fmt.Sprint(now.Unix()+30)), 30 * time.Second, "header:x-reset"},
		{"json", `"retry_after": {"from": "json:quota.reset_ms", "unit": "ms"}`, answer("p", 429, `{"quota":{"reset_ms":2500}}`), 2500 * time.Millisecond, "json:quota.reset_ms"},
		{"hint", `"retry_after": {"from": "hint"}`, answer("p", 429, "x", "retry-after", "12"), 12 * time.Second, "header:retry-after"},
		{"countdown", `"retry_after": {"from": "text", "match": "resets (.*)", "unit": "countdown"}`, answer("p", 429, "resets in 2 days 3 hours"), 51 * time.Hour, "text"},
		{"the host's own without a word", `"message": "m"`, answer("p", 429, "x", "retry-after", "12"), 12 * time.Second, "header:retry-after"},
		{"over 30 days is no time", `"retry_after": {"from": "text", "match": "in ([0-9]+)h", "unit": "h"}`, answer("p", 429, "in 721h"), 0, ""},
		{"zero is no time", `"retry_after": {"from": "text", "match": "in ([0-9]+)q", "unit": "s"}`, answer("p", 429, "in 0q"), 0, ""},
		{"nothing said", `"message": "m"`, answer("p", 429, "x"), 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, ok := classify(one(t, `[{"id": "r", "then": {"reason": "quota_exhausted", `+c.then+`}}]`).Match(c.reply), 1)
			if !ok || v.RetryAfter != c.want || v.HintSource != c.source || v.Hinted != (c.want > 0) {
				t.Errorf("verdict %v = %s from %q (hinted %v), want %s from %q", ok, v.RetryAfter, v.HintSource, v.Hinted, c.want, c.source)
			}
		})
	}
	t.Run("required", func(t *testing.T) {
		set := one(t, `[{"id": "timed", "then": {"reason": "quota_exhausted",
		   "retry_after": {"from": "text", "match": "in ([0-9]+)s", "unit": "s", "required": true}}},
		  {"id": "rest", "then": {"reason": "unknown"}}]`)
		for body, want := range map[string]string{"in 5s": "timed", "in a while": "rest", "in 0s": "rest"} {
			if v, _ := classify(set.Match(answer("p", 429, body)), 1); v.Rule != want {
				t.Errorf("%q was decided by %s, want %s", body, v.Rule, want)
			}
		}
	})
}

// ABI-4: what is absent follows from the reason.
func TestDefaults(t *testing.T) {
	for _, reason := range wire.Reasons() {
		v, ok := classify(one(t, `[{"id": "r", "then": {"reason": "`+string(reason)+`"}}]`).Match(answer("p", 503, "x")), 1)
		want := wire.Verdict{Reason: reason, Scope: reason.DefaultScope(), Fallback: reason.DefaultFallback(),
			Breaker: reason.DefaultScope() == wire.ScopeProvider, Confidence: 100, Plugin: "p", Rule: "r", Digest: "d"}
		if !ok || v != want {
			t.Errorf("%s: %+v, want %+v", reason, v, want)
		}
	}
	all := `[{"id": "r", "then": {"reason": "not_found", "scope": "connection", "fallback": false, "retry_after": "5s",
	  "cooldown": "6h", "count_for_breaker": true, "message": "gone", "confidence": 40, "exact": true, "request_scoped": true}}]`
	v, _ := classify(one(t, all).Match(answer("p", 404, "x")), 1)
	want := wire.Verdict{Reason: wire.ModelNotFound, Scope: wire.ScopeConnection, Breaker: true, RetryAfter: 5 * time.Second,
		Hinted: true, HintSource: "rule", Cooldown: 6 * time.Hour, Exact: true, RequestScoped: true, Message: "gone", Confidence: 40,
		Plugin: "p", Rule: "r", Digest: "d"}
	if v != want {
		t.Errorf("verdict = %+v, want %+v", v, want)
	}
}

// RUL-14: terminal needs the permission.
func TestTerminal(t *testing.T) {
	const table = `[{"id": "r", "status": [401], "then": {"reason": "auth_error", "terminal": true, "cooldown": "1h"}},
	 {"id": "s", "then": {"reason": "quota_exhausted", "terminal": true, "set_status": "credits_exhausted"}}]`
	for _, c := range []struct {
		o    rules.Options
		want bool
	}{{rules.Options{}, false}, {rules.Options{Terminate: true}, true}, {rules.Options{Builtin: true}, true}} {
		set := rules.Compile(rules.Source{Table: parse(t, c.o, table)})
		for status, state := range map[int]wire.TerminalState{401: wire.Expired, 402: wire.CreditsExhausted} {
			v, ok := classify(set.Match(answer("p", status, "x", "retry-after", "9")), 1)
			if !ok || v.Terminal != c.want || c.want && (v.SetStatus != state || v.RetryAfter+v.Cooldown != 0) || !c.want && v.SetStatus != "" {
				t.Errorf("%+v: %+v", c.o, v)
			}
		}
	}
}

// CLS-3, detector 7: the next midnight is what the rule's author knows, so that it is a length of the rule; what the answer
// says itself comes first.
func TestMidnight(t *testing.T) {
	rule := `[{"id": "r", "then": {"reason": "quota_exhausted", "retry_after": {"from": "text", "unit": "next_midnight:UTC"}}}]`
	if v, ok := classify(one(t, rule).Match(answer("p", 429, "x")), 1); !ok || v.Cooldown != 12*time.Hour || !v.Exact || v.Hinted || v.RetryAfter != 0 {
		t.Errorf("got %v %+v", ok, v)
	}
	if v, ok := classify(one(t, rule).Match(answer("p", 429, "try again in 5s")), 1); !ok || v.Cooldown != 0 || v.Exact || v.RetryAfter != 5*time.Second {
		t.Errorf("got %v %+v", ok, v)
	}
}
