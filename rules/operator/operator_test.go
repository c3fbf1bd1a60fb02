package operator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/rules/operator"
	"github.com/weirgate/weir/sdk/wire"
)

func set(t *testing.T, ruleDoc, defaultDoc string) *operator.Set {
	t.Helper()
	for _, f := range [...]func([]byte) []operator.Fault{
		func([]byte) []operator.Fault { _, f := operator.ParseRules([]byte(ruleDoc)); return f },
		func([]byte) []operator.Fault { _, f := operator.ParseDefaults([]byte(defaultDoc)); return f },
	} {
		if faults := f(nil); faults != nil {
			t.Fatal(faults)
		}
	}
	var b operator.Book
	return b.Set([]byte(ruleDoc), []byte(defaultDoc))
}

func reply(provider string, status int, body string, header ...string) *rules.Reply {
	r := &rules.Reply{Provider: provider, Status: status, Original: status, Source: wire.SourceHTTP, Body: []byte(body),
		Header: map[string][]string{}, Now: time.Date(2026, 5, 4, 20, 0, 0, 0, time.UTC)}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = []string{header[i+1]}
	}
	rules.Read(r)
	return r
}

func TestRule(t *testing.T) {
	s := set(t, `{"GLM":[{"status":403,"match":"Used Up","scope":"model","reason":"rate_limit_exceeded","cooldownMs":60000},
		{"match":"a.c"},{"status":400},{"status":418,"cooldownMs":0}],"acme":[{"status":500,"reason":"model_capacity","scope":"provider","cooldownMs":2592000000}]}`, "")
	type want struct {
		rule     string
		reason   wire.Reason
		scope    wire.Scope
		cooldown time.Duration
		exact    bool
	}
	for _, c := range []struct {
		id   string
		r    *rules.Reply
		want want
	}{
		{"RUL-30 providers compare in lower case", reply("Glm", 403, `{"error":"used UP"}`), want{"providerErrorRules.GLM[0]", wire.RateLimitExceeded, wire.ScopeModel, time.Minute, true}},
		{"RUL-31 both must hold", reply("glm", 402, `{"error":"used up"}`), want{}},
		{"RUL-31 an omitted status is any", reply("glm", 503, "xa.cx"), want{"providerErrorRules.GLM[1]", wire.QuotaExhausted, wire.ScopeConnection, 0, false}},
		{"RUL-31 a match is no pattern", reply("glm", 503, "abc"), want{}},
		{"RUL-31 escaped text is read too", reply("glm", 503, `{"error":"\u0061.c"}`), want{"providerErrorRules.GLM[1]", wire.QuotaExhausted, wire.ScopeConnection, 0, false}},
		{"RUL-31 the first that holds", reply("glm", 403, "used up a.c"), want{"providerErrorRules.GLM[0]", wire.RateLimitExceeded, wire.ScopeModel, time.Minute, true}},
		{"RUL-35 RUL-32 status 400", reply("glm", 400, "x"), want{"providerErrorRules.GLM[2]", wire.QuotaExhausted, wire.ScopeConnection, 0, false}},
		{"RUL-32 0 is no time", reply("glm", 418, "x"), want{"providerErrorRules.GLM[3]", wire.QuotaExhausted, wire.ScopeConnection, time.Millisecond, true}},
		{"RUL-32 an alias and 30 days", reply("acme", 500, "x"), want{"providerErrorRules.acme[0]", wire.Overloaded, wire.ScopeProvider, 30 * 24 * time.Hour, true}},
		{"RUL-30 another provider", reply("other", 403, "used up"), want{}},
	} {
		t.Run(c.id, func(t *testing.T) {
			v, ok := s.Rule(c.r)
			if ok != (c.want.rule != "") {
				t.Fatalf("got %v %+v", ok, v)
			}
			if got := (want{v.Rule, v.Reason, v.Scope, v.Cooldown, v.Exact}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if v.Terminal {
				t.Error("an operator's rule ended a connection")
			}
		})
	}
}

// RUL-32: the number is used exactly, whatever the answer asks for.
func TestRuleTakesNoHint(t *testing.T) {
	s := set(t, `{"glm":[{"status":403,"cooldownMs":60000},{"status":429}]}`, "")
	if v, _ := s.Rule(reply("glm", 403, "x", "retry-after", "7200")); v.Hinted || v.RetryAfter != 0 || v.Cooldown != time.Minute {
		t.Errorf("got %+v", v)
	}
	if v, _ := s.Rule(reply("glm", 429, "x", "retry-after", "7200")); v.RetryAfter != 2*time.Hour || v.Cooldown != 0 {
		t.Errorf("without a number the normal length holds, got %+v", v)
	}
}

// RUL-31: the status that came and the restated one both count.
func TestRuleSeesBothStatuses(t *testing.T) {
	s := set(t, `{"agentrouter":[{"status":403}],"x":[{"status":429}]}`, "")
	for _, p := range []string{"agentrouter", "x"} {
		r := reply(p, 403, "x")
		r.Status, r.Restated = 429, "some-rule"
		if _, ok := s.Rule(r); !ok {
			t.Errorf("%s: no rule holds", p)
		}
	}
}

func TestDefault(t *testing.T) {
	s := set(t, "", `{"GLM":{"cooldownMs":600000},"acme":{"cooldownMs":60000,"scope":"model","reason":"overloaded"}}`)
	for status, reason := range map[int]wire.Reason{402: wire.CreditsGone, 403: wire.AuthError, 408: wire.Timeout, 429: wire.RateLimitExceeded, 500: wire.ServerError, 503: wire.Overloaded, 599: wire.ServerError} {
		t.Run(fmt.Sprintf("RUL-41 RUL-42/%d", status), func(t *testing.T) {
			v, ok := s.Default(reply("glm", status, "x"))
			if !ok || v.Reason != reason || v.Scope != wire.ScopeConnection || v.Cooldown != 10*time.Minute || v.Terminal {
				t.Errorf("got %v %+v", ok, v)
			}
		})
	}
	for _, status := range []int{400, 401, 404, 409, 413, 422, 200} {
		t.Run(fmt.Sprintf("RUL-41/not %d", status), func(t *testing.T) {
			if v, ok := s.Default(reply("glm", status, "x")); ok {
				t.Errorf("got %+v", v)
			}
		})
	}
	t.Run("RUL-42/scope and reason of its own", func(t *testing.T) {
		if v, _ := s.Default(reply("Acme", 429, "x")); v.Scope != wire.ScopeModel || v.Reason != wire.Overloaded || v.Breaker {
			t.Errorf("got %+v", v)
		}
	})
	t.Run("RUL-43/beside the wait that the answer asks for", func(t *testing.T) {
		if v, _ := s.Default(reply("glm", 429, "x", "retry-after", "7200")); v.Cooldown != 10*time.Minute || v.RetryAfter != 2*time.Hour || !v.Hinted || !v.Exact {
			t.Errorf("got %+v", v)
		}
	})
	t.Run("RUL-44/only who declares one", func(t *testing.T) {
		if v, ok := s.Default(reply("other", 429, "x")); ok {
			t.Errorf("got %+v", v)
		}
	})
}

// "Bad input" of RUL-30 and RUL-40: each fault names rule and field.
func TestFaults(t *testing.T) {
	long := strings.Repeat("x", 513)
	many := `{"a":[` + strings.TrimSuffix(strings.Repeat(`{"status":400},`, 51), ",") + `]}`
	for doc, want := range map[string]string{
		`[]`:         `must be an object keyed by provider`,
		`{"a":{}}`:   `a must be a list of rules`,
		`{"a":[{}]}`: `a[0].status or match is required`,
		`{"a":[{"status":400},{"reason":"x","match":"y"}]}`: `a[1].reason must be one of the canonical reasons, such as quota_exhausted or rate_limit_exceeded`,
		`{"a":[{"status":399}]}`:                            `a[0].status must be a status from 400 to 599`,
		`{"a":[{"status":"403"}]}`:                          `a[0].status must be a status from 400 to 599`,
		`{"a":[{"match":""}]}`:                              `a[0].match must be a text of 1 to 512 characters`,
		`{"a":[{"match":"` + long + `"}]}`:                  `a[0].match must be a text of 1 to 512 characters`,
		`{"a":[{"status":403,"scope":"x"}]}`:                `a[0].scope must be request, model, connection or provider`,
		`{"a":[{"status":403,"cooldownMs":-1}]}`:            `a[0].cooldownMs must be a whole number from 0 to 2592000000`,
		`{"a":[{"status":403,"cooldownMs":2592000001}]}`:    `a[0].cooldownMs must be a whole number from 0 to 2592000000`,
		`{"a":[{"status":403,"cooldownMs":1.5}]}`:           `a[0].cooldownMs must be a whole number from 0 to 2592000000`,
		`{"a":[{"status":403,"colour":1}]}`:                 `a[0].colour is unknown; the fields are status, match, scope, reason, cooldownMs`,
		`{"a":[7]}`:                                         `a[0] must be an object`,
		`{"":[]}`:                                           ` names no provider`,
		many:                                                `a[50] is one rule too many; at most 50 are allowed over all providers`,
	} {
		t.Run("RUL-31 RUL-32 RUL-33/"+doc[:min(len(doc), 40)], func(t *testing.T) {
			r, faults := operator.ParseRules([]byte(doc))
			if len(faults) != 1 || strings.TrimPrefix(faults[0].Error(), " ") != strings.TrimPrefix(want, " ") {
				t.Errorf("got %v, want %s", faults, want)
			}
			if !cmp.Equal(r, operator.Rules{}, cmp.AllowUnexported(operator.Rules{})) {
				t.Error("a document with faults holds")
			}
		})
	}
	for doc, want := range map[string]string{
		`{"a":{}}`:                   `a.cooldownMs is required`,
		`{"a":{"cooldownMs":59999}}`: `a.cooldownMs must be a whole number from 60000 to 2592000000`,
		`{"a":{"cooldownMs":60000,"reason":"none"}}`: `a.reason must be one of the canonical reasons, such as quota_exhausted or rate_limit_exceeded`,
		`{"a":{"cooldownMs":60000,"status":403}}`:    `a.status is unknown; the fields are cooldownMs, scope, reason`,
		`{"a":[]}`: `a must be an object`,
	} {
		t.Run("RUL-40/"+doc, func(t *testing.T) {
			if _, faults := operator.ParseDefaults([]byte(doc)); len(faults) != 1 || faults[0].Error() != want {
				t.Errorf("got %v, want %s", faults, want)
			}
		})
	}
}

// RUL-15: the documents hold as a whole, the old or the new.
func TestBook(t *testing.T) {
	var b operator.Book
	one := b.Set([]byte(`{"a":[{"status":403}]}`), nil)
	if b.Set([]byte(`{"a":[{"status":403}]}`), nil) != one {
		t.Error("the same documents were read twice")
	}
	if two := b.Set([]byte(`{"a":[{"status":404}]}`), nil); two == one {
		t.Error("a new document was not read")
	}
	if _, ok := one.Rule(reply("a", 403, "x")); !ok {
		t.Error("the old set no longer holds")
	}
	if _, ok := b.Set([]byte(`{"a":[{}]}`), nil).Rule(reply("a", 403, "x")); ok {
		t.Error("a document with faults holds")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":[{"status":403,"match":"x","scope":"model","reason":"unknown","cooldownMs":1}]}`))
	f.Add([]byte(`{"a":{"cooldownMs":60000}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if r, faults := operator.ParseRules(doc); faults == nil {
			if v, ok := (&operator.Set{Rules: r}).Rule(reply("a", 403, "x")); ok && (v.Reason == "" || v.Scope == "" || v.Cooldown < 0 || v.Cooldown > operator.MaxCooldown) {
				t.Fatalf("%+v", v)
			}
		}
		operator.ParseDefaults(doc)
	})
}
