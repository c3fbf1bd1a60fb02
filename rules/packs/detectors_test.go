package packs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// seen is an answer of a made-up or named provider, and what all packs together must make of it.
type seen struct {
	id       string // requirement ids
	provider string // empty: acme, which no pack knows
	auth     wire.Auth
	status   int
	header   string // NAME: VALUE
	body     string
	want     int // status, 0: as it came
	reason   wire.Reason
	scope    wire.Scope
	terminal bool
	wait     time.Duration // what the client or the connection is told, 0: nothing
	cooldown time.Duration
}

// The tables of the specification, through all shipped packs at once in the order of ABI-9.
func TestDetectors(t *testing.T) {
	set := compile(load(t))
	for _, c := range detectors() {
		t.Run(strings.TrimSpace(c.id+" "+c.provider+" "+c.body), func(t *testing.T) {
			a := answer{Provider: c.provider, Auth: c.auth, Model: "m", Status: c.status, Body: c.body, Now: time.Date(2026, 5, 4, 20, 0, 0, 0, time.UTC)}
			if a.Provider == "" {
				a.Provider = "acme"
			}
			if a.Auth == "" {
				a.Auth = wire.AuthAPIKey
			}
			if name, v, ok := strings.Cut(c.header, ": "); ok {
				a.Headers = map[string]string{name: v}
			}
			if c.want == 0 {
				c.want = c.status
			}
			got := judge(set, a.reply())
			if got.status != c.want || got.Reason != c.reason || got.Scope != c.scope || got.Terminal != c.terminal || got.RetryAfter != c.wait || got.Cooldown != c.cooldown {
				t.Errorf("got %d %s %s terminal=%v wait=%v cooldown=%v by %s\nwant %d %s %s terminal=%v wait=%v cooldown=%v",
					got.status, got.Reason, got.Scope, got.Terminal, got.RetryAfter, got.Cooldown, got.Evidence(),
					c.want, c.reason, c.scope, c.terminal, c.wait, c.cooldown)
			}
		})
	}
}

func detectors() []seen {
	const (
		model, conn, prov, req = wire.ScopeModel, wire.ScopeConnection, wire.ScopeProvider, wire.ScopeRequest
		oauth                  = wire.AuthOAuth
	)
	list := []seen{
		// Detector 1.
		{id: "COOL-36", status: 503, header: "x-omni-fallback-hint: connection_cooldown", body: "x", reason: wire.ServiceNotRunning, scope: conn, cooldown: 5 * time.Second},
		{id: "COOL-36", status: 503, header: "x-omni-fallback-hint: other", body: "x", reason: wire.Overloaded, scope: prov},
		// Detector 4.
		{id: "COOL-40", provider: "claude", auth: oauth, status: 403, body: "Request not allowed", reason: wire.RequestRejected, scope: model},
		{id: "COOL-40", provider: "claude", status: 403, body: "Request not allowed", reason: wire.AuthError, scope: conn},
		{id: "COOL-44", provider: "grok-cli", auth: oauth, status: 403, body: "I can't help with that request", reason: wire.RequestRejected, scope: model},
		// Detector 5.
		{id: "CLS-3", provider: "gemini", status: 429, body: "quota metric rpd", reason: wire.QuotaExhausted, scope: model},
		{id: "CLS-3", provider: "gemini", status: 429, body: "quota metric rpm", reason: wire.RateLimitExceeded, scope: model},
		// Detector 6: where a 429 is trusted, and where not.
		{id: "COOL-55", status: 402, body: "nothing said", reason: wire.CreditsGone, scope: conn, terminal: true},
		{id: "COOL-56", provider: "openai-compatible-x", status: 402, body: "payment required", reason: wire.CreditsGone, scope: model},
		{id: "COOL-56", status: 429, body: "insufficient balance", reason: wire.RateLimitExceeded, scope: conn},
		{id: "CLS-4", auth: oauth, status: 429, body: "insufficient balance", reason: wire.CreditsGone, scope: conn, terminal: true},
		{id: "CLS-12", status: 429, body: "insufficient_quota", reason: wire.CreditsGone, scope: conn, terminal: true},
		{id: "CLS-12", status: 429, body: "quota reached", reason: wire.RateLimitExceeded, scope: conn},
		// Detector 7.
		{id: "CLS-3", auth: oauth, status: 429, body: "please try again tomorrow", reason: wire.QuotaExhausted, scope: conn, cooldown: 4 * time.Hour},
		{id: "CLS-4", status: 429, body: "please try again tomorrow", reason: wire.RateLimitExceeded, scope: conn},
		{id: "CLS-3", status: 429, body: "daily quota reached", reason: wire.QuotaExhausted, scope: conn, cooldown: 4 * time.Hour},
		// Detectors 9 to 12.
		{id: "CLS-3", auth: oauth, status: 429, body: "usage limit reached", reason: wire.QuotaExhausted, scope: conn, cooldown: time.Hour},
		{id: "CLS-3", auth: oauth, status: 429, body: "usage limit reached, resets in 5m", reason: wire.QuotaExhausted, scope: conn, wait: 5 * time.Minute},
		{id: "CLS-4", status: 429, body: "usage limit reached", reason: wire.RateLimitExceeded, scope: conn},
		{id: "CLS-3", status: 429, body: "weekly usage limit", reason: wire.QuotaExhausted, scope: conn, cooldown: 24 * time.Hour},
		{id: "CLS-3", status: 429, body: "session limit reached", reason: wire.QuotaExhausted, scope: conn, cooldown: 5 * time.Hour},
		{id: "CLS-3", auth: oauth, status: 429, body: "your quota will reset after 2h", reason: wire.QuotaExhausted, scope: conn, wait: 2 * time.Hour},
		{id: "CLS-4", status: 429, body: "your quota will reset after 2h", reason: wire.RateLimitExceeded, scope: conn, wait: 2 * time.Hour},
		// Detectors 14 and 16.
		{id: "COOL-31", status: 429, body: "concurrency limit; daily limit of your quota", reason: wire.QuotaExhausted, scope: conn},
		// A token that does not hold is no ban: a cooldown, until tokens are refreshed.
		{id: "COOL-54", auth: oauth, status: 401, body: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.", reason: wire.AuthError, scope: conn},
		{id: "COOL-54", auth: oauth, status: 401, body: "invalid credentials", reason: wire.AuthError, scope: conn},
		{id: "COOL-58", status: 403, body: "forbidden", reason: wire.AuthError, scope: conn},
		{id: "CLS-3", status: 403, body: "error code: 1010", reason: wire.RequestRejected, scope: req},
		// Tables 17 to 19.
		{id: "CLS-11", status: 400, body: "no credentials", reason: wire.AuthError, scope: conn, cooldown: 2 * time.Minute},
		{id: "CLS-11", status: 404, body: "nothing here", reason: wire.Unknown, scope: conn, cooldown: 2 * time.Minute},
		{id: "CLS-11", auth: oauth, status: 429, body: "exhausted your capacity", reason: wire.QuotaExhausted, scope: conn},
		{id: "CLS-14", status: 400, body: "too many tokens", reason: wire.ContextOverflow, scope: req},
		{id: "CLS-14", status: 400, body: "max_tokens illegal", reason: wire.InvalidRequest, scope: req},
		{id: "CLS-14", status: 400, body: "roles must alternate", reason: wire.InvalidRequest, scope: req},
		{id: "CLS-14", status: 400, body: "unsupported model", reason: wire.ModelNotFound, scope: model},
		{id: "CLS-14", status: 400, body: "Function id 'x': DEGRADED", reason: wire.Overloaded, scope: model},
		{id: "CLS-14", status: 400, body: "请求过于频繁", want: 429, reason: wire.RateLimitExceeded, scope: conn},
		{id: "RUL-4 CLS-14", status: 400, body: "anything else", reason: wire.InvalidRequest, scope: req},
		// RST-1 to RST-5 and the table of RUL-10.
		{id: "RST-1 RST-3 RST-6", provider: "agentrouter", status: 403, body: "用户额度不足", want: 429, reason: wire.QuotaExhausted, scope: conn},
		{id: "RST-4", provider: "agentrouter", status: 400, body: `{"error":"\u989d\u5ea6\u4e0d\u8db3"}`, want: 429, reason: wire.QuotaExhausted, scope: conn},
		{id: "RST-5", provider: "agentrouter", status: 403, body: "额度不足 无权访问模型", reason: wire.ModelAccessDenied, scope: model, cooldown: 6 * time.Hour},
		{id: "RUL-10", provider: "opencode", status: 429, body: "endpoint is unavailable", reason: wire.Overloaded, scope: model, cooldown: 5 * time.Minute},
		{id: "RUL-10", provider: "opencode-go", status: 429, body: "Monthly usage limit reached. Resets in 2 days 3 hours.", reason: wire.QuotaExhausted, scope: conn, wait: 51 * time.Hour},
		{id: "RUL-10", provider: "opencode-cli", status: 429, header: "x-ratelimit-remaining-tokens: 0", body: "x", reason: wire.QuotaExhausted, scope: conn},
		{id: "RUL-10", provider: "opencode-zen", status: 429, body: "plan_limit_reached", reason: wire.QuotaExhausted, scope: conn},
		{id: "RUL-4 RUL-10", provider: "opencode", status: 400, body: "upstream request failed: model is unavailable.", reason: wire.Overloaded, scope: model, cooldown: time.Hour},
		{id: "RUL-10", provider: "minimax", status: 429, header: "x-model-quota-remaining: a=3,b=0", body: "x", reason: wire.QuotaExhausted, scope: model},
		{id: "RUL-10", provider: "cloudflare-ai", status: 429, body: "daily free allocation", reason: wire.QuotaExhausted, scope: conn, cooldown: 4 * time.Hour},
		{id: "RUL-10", provider: "openrouter", status: 402, body: "x", reason: wire.QuotaExhausted, scope: conn, cooldown: 2 * time.Minute},
		// COOL-65: rate-limit words are no ban.
		{id: "COOL-65", status: 429, body: "rate limit: account limit", reason: wire.RateLimitExceeded, scope: conn},
	}
	for _, s := range rules.BanSignals() {
		list = append(list, seen{id: "COOL-60 COOL-61", status: 403, body: "x " + strings.ToUpper(s) + " y", reason: wire.ReasonBanned, scope: conn, terminal: true},
			seen{id: "COOL-60", auth: oauth, status: 400, body: s, want: 403, reason: wire.ReasonBanned, scope: conn, terminal: true})
	}
	for _, s := range rules.CreditSignals() {
		list = append(list, seen{id: "COOL-55", status: 402, body: "x " + strings.ToUpper(s) + " y", reason: wire.CreditsGone, scope: conn, terminal: true})
	}
	for _, s := range []string{"too many concurrent requests", "concurrency limit", "parallel request limit", "并发数过高"} {
		list = append(list, seen{id: "COOL-30", status: 429, body: s, reason: wire.ConcurrencyLimited, scope: conn})
	}
	return list
}

// COOL-35: the client hears it at once, and nothing cools.
func TestNotForThisRoute(t *testing.T) {
	got := judge(compile(load(t)), answer{Provider: "acme", Auth: wire.AuthAPIKey, Status: 403, Body: "key not authorized for this route"}.reply())
	if got.Fallback || got.Scope != wire.ScopeRequest || got.Breaker {
		t.Errorf("got %+v", got)
	}
}

// CLS-5: no rule of a later phase comes before a ban, whatever its provider.
func TestBanBeforeProviderRules(t *testing.T) {
	set := compile(load(t))
	for _, p := range []string{"openrouter", "zhipu", "minimax", "agentrouter", "opencode"} {
		got := judge(set, answer{Provider: p, Auth: wire.AuthAPIKey, Status: 403, Body: `{"error":{"message":"Your account has been suspended, monthly usage limit reached"}}`}.reply())
		if got.Reason != wire.ReasonBanned || !got.Terminal {
			t.Errorf("%s: got %s by %s", p, got.Reason, got.Evidence())
		}
	}
}

// "Bad input" of 09-restatement-classification.md: any bytes get a verdict.
func FuzzJudge(f *testing.F) {
	set := compile(load(f))
	for _, a := range answers(f, "upstream-errors.jsonl") {
		f.Add(a.Provider, a.Status, a.Stream, a.Body)
	}
	f.Fuzz(func(t *testing.T, provider string, status int, stream bool, body string) {
		if status != 0 && (status < 100 || status > 599) {
			return
		}
		got := judge(set, answer{Provider: provider, Auth: wire.AuthAPIKey, Status: status, Stream: stream, Body: body}.reply())
		if got.Reason == "" || got.Scope == "" || got.Terminal && got.Scope != wire.ScopeConnection {
			t.Fatalf("%+v", got)
		}
	})
}
