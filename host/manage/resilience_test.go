package manage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/manage"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// troubled is a rig with a cooling, a banned, a locked and a healthy connection of openai.
func troubled(t *testing.T) *rig {
	r := newRig(t)
	for _, id := range []string{"cooling", "banned", "locked", "well"} {
		r.call("POST", "/api/providers", `{"id":"`+id+`","provider":"openai","name":"The `+id+` one","apiKey":"sk-`+id+`-0123456789"}`).is(201)
	}
	r.fail("cooling", "gpt-5", wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeConnection, Fallback: true, RetryAfter: time.Minute, Hinted: true, Plugin: "generic", Rule: "rate"})
	r.fail("banned", "gpt-5", wire.Verdict{Reason: wire.ReasonBanned, Scope: wire.ScopeConnection, Fallback: true, Terminal: true, SetStatus: wire.Banned})
	r.lock("locked", "gpt-5", 10*time.Minute)
	r.lock("locked", "gpt-5-mini", 20*time.Minute)
	return r
}

// lock takes a model out on a connection.
func (r *rig) lock(id, model string, d time.Duration) {
	r.t.Helper()
	r.fail(id, model, wire.Verdict{Reason: wire.QuotaExhausted, Scope: wire.ScopeModel, Fallback: true, RetryAfter: d, Hinted: true, Plugin: "generic", Rule: "quota"})
}

// trip gives the breaker of openai n failures, each of another connection, so that none is a repetition.
func (r *rig) trip(n int) { r.t.Helper(); r.tripBy("well", n) }

// tripBy is trip for the provider of another connection.
func (r *rig) tripBy(id string, n int) {
	r.t.Helper()
	for range n {
		r.failWith(id, "gpt-5", 503, wire.Verdict{Reason: wire.ServerError, Scope: wire.ScopeProvider, Fallback: true, Breaker: true, Plugin: "generic", Rule: "down"})
		r.call("POST", "/api/resilience/cooldowns", `{"connectionIds":["`+id+`"]}`).is(200)
		r.pass(6 * time.Second)
	}
}

func TestBreakerEndpoints(t *testing.T) {
	t.Run("API-20 API-21 reset", func(t *testing.T) {
		r := troubled(t)
		r.trip(12)
		r.call("GET", "/api/resilience/connections", "").is(200).has("breakers.0.name", "openai", "breakers.0.state", "OPEN", "meta.unhealthyBreakerCount", 1)
		r.call("POST", "/api/resilience/reset", `{"provider":"nobody"}`).is(200).has("ok", true, "resetCount", 0, "message", "Reset 0 circuit breaker(s)")
		r.call("POST", "/api/resilience/reset", `{"include":["terminal"]}`).refused(400, "bad_request").has("error.details.0.field", "include[0]")
		r.call("POST", "/api/resilience/reset", `{"everything":true}`).refused(400, "bad_request")
		r.call("GET", "/api/resilience/connections", "").is(200).has("breakers.0.state", "OPEN")
		r.call("POST", "/api/resilience/reset", `{"provider":"oai"}`).is(200).has("resetCount", 1, "message", "Reset 1 circuit breaker(s)")
		r.call("GET", "/api/resilience/connections", "").is(200).has("breakers.0.state", "CLOSED", "meta.unhealthyBreakerCount", 0)
		r.trip(12)
		r.call("POST", "/api/resilience/reset", "").is(200).has("ok", true, "resetCount", 1)
	})
	t.Run("API-21 the breaker of a provider that was deleted meanwhile", func(t *testing.T) {
		r := newRig(t)
		r.call("POST", "/api/catalog/providers", `{"id":"zoo","name":"Zoo","executor":"openai","baseUrl":"https://zoo.example/v1"}`).is(201)
		r.call("POST", "/api/providers", `{"id":"z","provider":"zoo","apiKey":"sk-zoo-0123456789abcd"}`).is(201)
		r.tripBy("z", 12)
		r.call("DELETE", "/api/providers/z", "").is(200)
		r.call("DELETE", "/api/catalog/providers/zoo", "").is(200)
		r.call("GET", "/api/resilience/connections", "").is(200).has("breakers.0.name", "zoo", "breakers.0.state", "OPEN")
		r.call("POST", "/api/resilience/reset", `{"provider":"zoo"}`).is(200).has("resetCount", 1)
		r.call("GET", "/api/resilience/connections", "").is(200).has("breakers.0.state", "CLOSED")
	})
	t.Run("API-21 include clears the other layers, never terminal states", func(t *testing.T) {
		r := troubled(t)
		r.call("POST", "/api/resilience/reset", `{"include":["providerCooldown"]}`).is(200)
		r.call("GET", "/api/resilience/cooldowns", "").is(200).has("connections.1.status", "cooling_down")
		r.call("POST", "/api/resilience/reset", `{"include":["lockouts","cooldowns"]}`).is(200)
		r.call("GET", "/api/resilience/cooldowns", "").is(200).has("connections.0.status", "terminal", "connections.1.status", "healthy",
			"connections.2.status", "healthy", "connections.2.lockouts", []any{})
	})
	t.Run("API-60 API-62 API-61 BRK-43 health reads an expired breaker as half-open", func(t *testing.T) {
		r := troubled(t)
		r.trip(12)
		r.call("GET", "/api/monitoring/health", "").is(200).has("circuitBreakers.open", 1, "circuitBreakers.total", 1,
			"providerBreakers.0.provider", "openai", "providerBreakers.0.state", "OPEN", "providerBreakers.0.failureCount", 12,
			"providerBreakers.0.retryAfterMs", 24000, "lockouts.0.model", "gpt-5-mini")
		r.call("GET", "/api/status", "").is(200).has("providers.1.breaker", "OPEN", "providers.1.lockouts", 2)
		r.pass(25 * time.Second)
		r.call("GET", "/api/monitoring/health", "").is(200).has("circuitBreakers.halfOpen", 1, "circuitBreakers.open", 0, "providerBreakers.0.state", "HALF_OPEN")
		r.call("POST", "/api/resilience/reset", "").is(200)
		r.call("GET", "/api/monitoring/health", "").is(200).has("circuitBreakers.closed", 1, "circuitBreakers.halfOpen", 0)
	})
	t.Run("OBJ-25 explain names the breaker and the answer that opened it", func(t *testing.T) {
		r := troubled(t)
		r.trip(12)
		r.call("POST", "/api/resilience/explain", `{"model":"openai/gpt-5"}`).is(200).has("candidates.3.connectionId", "well",
			"candidates.3.verdict", "excluded", "candidates.3.gate", "circuit_open", "candidates.3.cause.rule", "down", "candidates.3.cause.requestId", "r-1")
		r.call("POST", "/api/resilience/reset", "").is(200)
		r.call("POST", "/api/resilience/explain", `{"model":"openai/gpt-5"}`).is(200).has(
			"candidates.0.gate", "terminal", "candidates.0.reason", "banned", "candidates.0.until", nil,
			"candidates.1.connectionId", "cooling", "candidates.2.connectionId", "locked", "candidates.2.gate", "model_lockout",
			"candidates.2.reason", "quota_exhausted", "candidates.2.since", "2026-07-01T12:00:00.000Z", "candidates.2.until", "2026-07-01T12:10:00.000Z",
			"candidates.2.cause.rule", "quota", "candidates.3.verdict", "would_try")
	})
}

func TestModelCooldowns(t *testing.T) {
	t.Run("API-30 LOCK-33 the longest first", func(t *testing.T) {
		r := troubled(t)
		r.call("GET", "/api/resilience/model-cooldowns", "").is(200).has("items.0.provider", "openai", "items.0.connectionId", "locked",
			"items.0.connection", "The locked one", "items.0.model", "gpt-5-mini", "items.0.reason", "quota_exhausted", "items.0.remainingMs", 1.2e6,
			"items.0.failureCount", 1, "items.0.expiresAt", "2026-07-01T12:20:00.000Z", "items.1.model", "gpt-5", "items.1.remainingMs", 600_000,
			"items.0.cause.rule", "quota", "items.2", nil)
		r.pass(11 * time.Minute)
		r.call("GET", "/api/resilience/model-cooldowns", "").is(200).has("items.0.model", "gpt-5-mini", "items.1", nil)
	})
	t.Run("API-31 one model, all connections, all", func(t *testing.T) {
		r := troubled(t)
		r.lock("well", "gpt-5", time.Hour)
		const path = "/api/resilience/model-cooldowns"
		for _, bad := range []string{`{}`, `{"provider":"openai"}`, `{"model":"gpt-5"}`, `{"all":false,"connection":"locked"}`} {
			r.call("DELETE", path, bad).refused(400, "bad_request").has("error.message", "provider and model are required")
		}
		r.call("DELETE", path, `{"provider":"openai","model":"gpt-5","x":1}`).refused(400, "bad_request")
		r.call("DELETE", path, `{"provider":"openai","model":"gpt-9"}`).is(200).has("ok", true, "removed", false)
		r.call("DELETE", path, `{"provider":"oai","connectionId":"locked","model":"gpt-5"}`).is(200).has("ok", true, "removed", true, "clearedAll", nil)
		r.call("GET", path, "").is(200).has("items.0.connectionId", "well", "items.1.model", "gpt-5-mini", "items.2", nil)
		r.lock("locked", "gpt-5", time.Hour)
		r.call("DELETE", path, `{"provider":"openai","model":"gpt-5"}`).is(200).has("removed", true)
		r.call("GET", path, "").is(200).has("items.0.model", "gpt-5-mini", "items.1", nil)
		r.call("DELETE", path, `{"all":true}`).is(200).has("ok", true, "clearedAll", true, "removed", nil)
		r.call("GET", path, "").is(200).has("items", []any{})
	})
}

func TestCooldownManager(t *testing.T) {
	t.Run("API-40 API-41 API-44 what each connection is out for", func(t *testing.T) {
		r := troubled(t)
		r.pass(10 * time.Second)
		r.call("GET", "/api/resilience/cooldowns?provider=oai", "").is(200).has("generatedAt", "2026-07-01T12:00:10.000Z",
			"connections.0.id", "banned", "connections.0.status", "terminal", "connections.0.testStatus", "banned",
			"connections.1.id", "cooling", "connections.1.name", "The cooling one", "connections.1.provider", "openai", "connections.1.authType", "api_key",
			"connections.1.priority", 1, "connections.1.isActive", true, "connections.1.status", "cooling_down", "connections.1.testStatus", "unavailable",
			"connections.1.rateLimitedUntil", "2026-07-01T12:01:00.000Z", "connections.1.cooldownRemainingMs", 50_000,
			"connections.1.lastErrorType", "rate_limit_exceeded", "connections.1.lastErrorAt", "2026-07-01T12:00:00.000Z", "connections.1.cause.rule", "rate",
			"connections.2.status", "model_locked", "connections.2.lockouts.0.model", "gpt-5-mini", "connections.2.lockouts.0.remainingMs", 1.19e6,
			"connections.3.status", "healthy", "connections.3.cooldownRemainingMs", 0, "connections.4", nil)
		r.pass(2 * time.Minute)
		r.call("GET", "/api/resilience/cooldowns", "").is(200).has("connections.1.status", "unavailable", "connections.1.rateLimitedUntil", nil)
		r.call("GET", "/api/resilience/cooldowns?provider=", "").refused(400, "bad_request")
		r.call("GET", "/api/resilience/cooldowns?provider="+strings.Repeat("x", 129), "").refused(400, "bad_request")
	})
	t.Run("API-42 API-43 API-45 by ids", func(t *testing.T) {
		r := newRig(t)
		for _, id := range []string{"cooling", "banned", "locked", "well"} {
			r.call("POST", "/api/providers", `{"id":"`+id+`","provider":"openai","apiKey":"sk-0123456789"}`).is(201)
		}
		r.lock("banned", "gpt-5-mini", time.Hour)
		r.lock("locked", "gpt-5-mini", time.Hour)
		r.lock("locked", "gpt-5", time.Hour)
		r.fail("banned", "gpt-5", wire.Verdict{Reason: wire.ReasonBanned, Scope: wire.ScopeConnection, Fallback: true, Terminal: true, SetStatus: wire.Banned})
		r.fail("cooling", "gpt-5", wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeConnection, Fallback: true})
		body := `{"connectionIds":["cooling","banned","locked","well","nobody","well"]}`
		r.call("POST", "/api/resilience/cooldowns", body).is(200).has("ok", true, "cleared", 2, "unchanged", 1, "skippedTerminal", 1,
			"lockoutsCleared", 2, "clearedIds.0", "cooling", "clearedIds.1", "locked")
		r.call("GET", "/api/resilience/cooldowns", "").is(200).has("connections.0.status", "terminal", "connections.0.lockouts.0.model", "gpt-5-mini",
			"connections.1.status", "healthy", "connections.1.lastErrorType", nil, "connections.2.status", "healthy")
		r.call("POST", "/api/resilience/cooldowns", body).is(200).has("cleared", 0, "unchanged", 3, "clearedIds", []any{})
	})
	t.Run("API-42 all of a provider", func(t *testing.T) {
		r := troubled(t)
		r.call("POST", "/api/providers", `{"id":"home","provider":"local"}`).is(201)
		r.call("POST", "/api/resilience/cooldowns", `{"all":true,"provider":"local"}`).is(200).has("cleared", 0, "unchanged", 1)
		r.call("POST", "/api/resilience/cooldowns", `{"all":true}`).is(200).has("cleared", 2, "skippedTerminal", 1, "unchanged", 2)
	})
	t.Run("API-42 API-2 neither form", func(t *testing.T) {
		r := troubled(t)
		many := strings.TrimSuffix(strings.Repeat(`"x",`, 1001), ",")
		for _, bad := range []string{`{}`, `{"all":false}`, `{"connectionIds":[]}`, `{"connectionIds":"cooling"}`, `{"connectionIds":[1]}`, `{"all":"yes"}`,
			`{"connectionIds":[""]}`, `{"connectionIds":["` + strings.Repeat("x", 129) + `"]}`, `{"connectionIds":[` + many + `]}`} {
			r.call("POST", "/api/resilience/cooldowns", bad).refused(400, "bad_request").has("error.message", "Provide connectionIds or set all to true")
		}
		r.call("POST", "/api/resilience/cooldowns", `{"all":true,"force":true}`).refused(400, "bad_request").has("error.details.0.field", "force")
		r.call("POST", "/api/resilience/cooldowns", `{`).refused(400, "bad_request").has("error.details.0.message", "Invalid JSON body")
	})
}

func TestConnectionsView(t *testing.T) {
	t.Run("API-50 counts and the window of the history", func(t *testing.T) {
		r := troubled(t)
		r.trip(12)
		now := r.clock().UnixMilli()
		r.call("GET", "/api/resilience/connections", "").is(200).has("window.sinceMs", fmt.Sprint(float64(now-3_600_000)), "window.now", fmt.Sprint(float64(now)),
			"meta.totalConnections", 4, "meta.coolingDownCount", 0, "meta.unhealthyBreakerCount", 1, "meta.countsCapped", false, "meta.degraded", []any{},
			"breakers.0.failureCount", 12, "breakers.0.lastFailureKind", "transient", "breakers.0.openCycleCount", 0, "breakers.0.degradationThreshold", 7,
			"breakers.0.effectiveResetTimeout", 30000, "breakers.0.transitionHistory.0.to", "DEGRADED", "breakers.0.transitionHistory.1.to", "OPEN",
			"breakers.0.transitionHistory.1.reason", "elevated-failures")
		r.call("GET", "/api/resilience/connections?windowMs=10000", "").is(200).has("breakers.0.transitionHistory.0.to", "OPEN", "breakers.0.transitionHistory.1", nil)
		r.call("GET", "/api/resilience/connections?windowMs=0&provider=local", "").is(200).has("connections", []any{}, "breakers", []any{}, "meta.totalConnections", 0)
		for _, bad := range []string{"windowMs=-1", "windowMs=86400001", "windowMs=x", "provider="} {
			r.call("GET", "/api/resilience/connections?"+bad, "").refused(400, "bad_request")
		}
	})
	t.Run("API-4 one source fails, the others answer", func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.ports.States = broken{states{r}} })
		r.call("POST", "/api/providers", main).is(201)
		r.call("GET", "/api/resilience/connections", "").is(200).has("meta.degraded.0", "lockouts", "meta.degraded.1", nil, "connections.0.id", "main")
		if !strings.Contains(r.log.String(), "lockouts") {
			t.Error("nobody is told", r.log.String())
		}
	})
}

// broken has no lockouts to give.
type broken struct{ states }

func (broken) Lockouts(time.Time) []lockout.Lock { panic("lost") }

func TestRateLimits(t *testing.T) {
	t.Run("API-70 API-71 OBJ-5 the flag is stored", func(t *testing.T) {
		r := troubled(t)
		r.call("POST", "/api/rate-limits", `{"connectionId":"well","enabled":true}`).is(200).has("success", true, "connectionId", "well", "enabled", true)
		r.call("POST", "/api/rate-limits", `{"connectionId":"well","enabled":true}`).is(200)
		r.call("GET", "/api/providers/well", "").is(200).has("connection.rateLimitProtection", true, "connection.revision", 2)
		r.call("GET", "/api/rate-limits", "").is(200).has("connections.3.connectionId", "well", "connections.3.rateLimitProtection", true, "connections.3.enabled", true,
			"connections.0.enabled", false, "connections.3.queued", 0, "connections.3.running", 0, "overview.protected", 1, "overview.connections", 4, "lockouts.0.model", "gpt-5-mini")
		r.call("POST", "/api/rate-limits", `{"connectionId":"nobody","enabled":true}`).refused(404, "not_found")
		r.call("POST", "/api/rate-limits", `{"connectionId":"well","enabled":"yes"}`).refused(400, "bad_request")
		r.call("POST", "/api/rate-limits", `{}`).refused(400, "bad_request").has("error.details.0.field", "connectionId", "error.details.1.field", "enabled")
	})
	t.Run("API-72 PUT leaves the flag alone, PATCH sets limits and null clears", func(t *testing.T) {
		r := troubled(t)
		r.call("POST", "/api/rate-limits", `{"connectionId":"well","enabled":true}`).is(200)
		r.call("PUT", "/api/providers/well", `{"provider":"openai","rateLimitProtection":false,"name":"new"}`).is(200).has("connection.rateLimitProtection", true, "connection.name", "new")
		r.call("PATCH", "/api/providers/well", `{"rateLimitOverrides":{"rpm":30},"maxConcurrent":2}`).is(200).has("connection.rateLimitOverrides.rpm", 30, "connection.maxConcurrent", 2)
		r.call("PATCH", "/api/providers/well", `{"rateLimitOverrides":null,"maxConcurrent":null}`).is(200).has("connection.rateLimitOverrides.rpm", nil, "connection.maxConcurrent", nil)
	})
}

// OBJ-10, COOL-50: the operator's reset ends a terminal state, and the lockouts with it.
func TestResetClearsLockouts(t *testing.T) {
	r := troubled(t)
	r.call("POST", "/api/providers/banned/reset", "").is(200).has("was", "banned", "connection.health.status", "healthy")
	r.call("POST", "/api/providers/locked/reset", "").is(200)
	r.call("GET", "/api/resilience/model-cooldowns", "").is(200).has("items", []any{})
}

// API-1: every endpoint of the resilience asks for the right to manage, reading ones for that to read.
func TestResilienceNeedsARight(t *testing.T) {
	r := troubled(t)
	keys := map[string]string{}
	for _, scope := range []string{"inference", "manage:read", "manage"} {
		keys[scope] = r.call("POST", "/api/keys", `{"scopes":["`+scope+`"]}`).is(201).at("key").(string)
	}
	checked := 0
	for _, e := range manage.Table() {
		if !strings.HasPrefix(e.Path, "/api/resilience") && e.Path != "/api/rate-limits" {
			continue
		}
		checked++
		r.pass(2 * time.Minute) // too many failures from one address are refused as such (SEC-1)
		as := func(key string) int {
			return r.call(e.Method, e.Path, `{"x":1}`, "Authorization", "Bearer "+key).status
		}
		reads := e.Method == "GET" || e.Path == "/api/resilience/explain" || e.Path == "/api/resilience/rules/preview"
		if got := r.call(e.Method, e.Path, `{}`, "Authorization", ""); got.status != 401 || got.at("error.type") != "authentication_error" || got.at("error.code") != "invalid_api_key" {
			t.Errorf("%s %s without a key: %d %s", e.Method, e.Path, got.status, got.text)
		}
		if as("weir-nobody") != 401 || as(keys["inference"]) != 403 || (as(keys["manage:read"]) == 403) == reads || as(keys["manage"]) == 403 {
			t.Errorf("%s %s: wrong rights", e.Method, e.Path)
		}
	}
	if checked < 11 {
		t.Errorf("only %d endpoints were asked", checked)
	}
}

func TestResilienceSettings(t *testing.T) {
	t.Run("API-11 API-13 OV-26 a patch answers the sections and holds at once", func(t *testing.T) {
		r := newRig(t)
		r.call("PATCH", "/api/resilience", `{"p2cLatency":{"weight":10},"streamStallCooldown":{"enabled":true},"providerQuotaOverrides":{"glm":{"rateLimitCooldownSeconds":900}}}`).
			is(200).has("ok", true, "p2cLatency.weight", 10, "streamStallCooldown.enabled", true, "providerQuotaOverrides.glm.rateLimitCooldownSeconds", 900,
			"providerBreaker.local.failureThreshold", 2, "legacy.profiles.apikey.circuitBreakerThreshold", 12)
		if v := r.registry.Current().Settings; v.P2CLatencyWeight != 10 || !v.StreamStallCooldown || v.ProviderQuotaOverrides["glm"].RateLimitCooldown != 15*time.Minute {
			t.Errorf("not in force: %+v", v)
		}
		r.call("PATCH", "/api/resilience", `{"providerQuotaOverrides":{"glm":{"rateLimitCooldownSeconds":null}}}`).is(200).has("providerQuotaOverrides.glm", nil)
		r.call("PATCH", "/api/resilience", `{}`).refused(400, "bad_request").has("error.message", "Must provide resilience settings to update")
		r.call("PATCH", "/api/resilience", `{"providerBreaker":{"oauth":{"failureThreshold":0}}}`).refused(400, "bad_request").
			has("error.details.0.field", "providerBreaker.oauth.failureThreshold")
		r.call("PATCH", "/api/resilience", `{"legacy":{}}`).refused(400, "bad_request")
	})
	t.Run("API-46 API-15 BRK-5 LOCK-10 what a user interface edits", func(t *testing.T) {
		r := newRig(t)
		r.call("PATCH", "/api/resilience", `{"connectionCooldown":{"oauth":{"baseCooldownMs":9000,"maxBackoffSteps":2},"local":{"baseCooldownMs":1}}}`).is(200).
			has("connectionCooldown.oauth.baseCooldownMs", 9000, "connectionCooldown.local.baseCooldownMs", 1)
		r.call("PATCH", "/api/settings", `{"modelLockout":{"enabled":true},"providerErrorRules":{"glm":[{"status":403}]},"fallbackStrategy":"p2c"}`).is(200).
			has("modelLockout.enabled", true, "providerErrorRules.glm.0.status", 403, "fallbackStrategy", "p2c")
		r.call("GET", "/api/resilience", "").is(200).has("modelLockout.enabled", true)
		r.call("GET", "/api/settings", "").is(200).has("errorRecord.retentionDays", 14, "autoDisableBannedAccounts", false)
	})
	t.Run("OV-20 OV-25 OV-21 explain names the source of each value", func(t *testing.T) {
		r := newRig(t, file(catalog.Input{Settings: settings.Stored{"providerBreaker.apikey.failureThreshold": []byte("9")}}), func(r *rig) {
			r.env["PROVIDER_COOLDOWN_ENABLED"], r.env["WEIR_CIRCUIT_BREAKER_OAUTH_THRESHOLD"] = "true", "6"
		})
		r.call("PATCH", "/api/resilience", `{"providerCooldown":{"enabled":false}}`).is(200)
		r.call("GET", "/api/resilience?explain=true", "").is(200).has(
			"providerCooldown.enabled.value", false, "providerCooldown.enabled.source", "stored",
			"providerBreaker.oauth.failureThreshold.value", 6, "providerBreaker.oauth.failureThreshold.source", "env",
			"providerBreaker.apikey.failureThreshold.value", 9, "providerBreaker.apikey.failureThreshold.source", "file",
			"providerBreaker.local.failureThreshold.source", "default", "providerCooldown.profiles.oauth.providerCooldownMs.value", 300000)
		r.call("PATCH", "/api/resilience", `{"providerBreaker":{"apikey":{"failureThreshold":3}}}`).refused(409, "managed_by_file")
	})
}

// COOL-62, COOL-65: a ban signal that would hit ordinary errors is refused unless the body insists.
func TestBroadBanSignals(t *testing.T) {
	r := newRig(t)
	for _, bad := range []string{"banned", "Quota limit", "error 429", " denied: timeout "} {
		r.call("PATCH", "/api/settings", `{"customBannedSignals":["the drawbridge is up","`+bad+`"]}`).refused(400, "ban_signal_too_broad").
			has("error.details.0.field", "customBannedSignals[1]")
	}
	r.call("PATCH", "/api/settings", `{"customBannedSignals":["banned"],"force":"yes"}`).refused(400, "bad_request")
	r.call("PATCH", "/api/settings", `{"customBannedSignals":["banned"],"force":true}`).is(200).has("customBannedSignals.0", "banned")
	r.call("PATCH", "/api/settings", `{"customBannedSignals":["account denied"]}`).is(200).has("customBannedSignals.0", "account denied", "force", nil)
	r.call("PATCH", "/api/settings", `{"customBannedSignals":[`+strings.TrimSuffix(strings.Repeat(`"a signal of its own",`, 201), ",")+`]}`).refused(400, "bad_request")
	r.call("PATCH", "/api/settings", `{"customBannedSignals":["a signal"],"forced":true}`).refused(400, "bad_request")
}

// OV-24, OV-25, COOL-20: the connection's own delay stands before the stored one, and that before the variable.
func TestConnectionExplainsItsDelay(t *testing.T) {
	r := newRig(t, func(r *rig) { r.env["OMNIROUTE_ROTATION_RATE_LIMIT_RESET_SECONDS"] = "45" })
	r.call("POST", "/api/providers", `{"id":"a","provider":"openai","apiKey":"sk-0123456789"}`).is(201)
	is := func(seconds any, source string) {
		t.Helper()
		r.call("GET", "/api/providers/a?explain=true", "").is(200).has("explain.rateLimitCooldownSeconds.value", seconds, "explain.rateLimitCooldownSeconds.source", source)
	}
	is(45, "env")
	r.call("PATCH", "/api/resilience", `{"providerQuotaOverrides":{"openai":{"rateLimitCooldownSeconds":900}}}`).is(200)
	is(900, "stored")
	r.call("PATCH", "/api/providers/a", `{"providerSpecificData":{"rotationOverrides":{"rateLimitResetSeconds":20}}}`).is(200)
	is(20, "connection")
	r.call("PATCH", "/api/providers/a", `{"providerSpecificData":null}`).is(200)
	is(900, "stored")
}
