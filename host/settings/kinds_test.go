package settings

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patched applies a patch to nothing stored and resolves the result.
func patched(t *testing.T, which Doc, text string) *Values {
	t.Helper()
	next, faults, err := Patch(inForce(), nil, parse(t, text), which, nil)
	if len(faults) > 0 || err != nil {
		t.Fatal(text, faults, err)
	}
	v, _, warnings := Resolve(environment(), next, nil)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	return v
}

// refused returns what a patch is refused for.
func refused(t *testing.T, which Doc, text string) []string {
	t.Helper()
	next, faults, err := Patch(inForce(), nil, parse(t, text), which, nil)
	if next != nil || len(faults) == 0 || err != nil {
		t.Fatalf("%s gives %s %v %v", text, next, faults, err)
	}
	var got []string
	for _, f := range faults {
		got = append(got, f.Path+": "+f.Message)
	}
	return got
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBreakerSettings(t *testing.T) {
	t.Run("BRK-5 BRK-6 bounds name the field", func(t *testing.T) {
		same(t, []string{
			"providerBreaker.oauth.failureThreshold: must be 1 to 1000",
			"providerBreaker.apikey.degradationThreshold: must be 1 to 1000",
			"providerBreaker.local.resetTimeoutMs: must be 1000 to 86400000",
		}, refused(t, Resilience, `{"providerBreaker":{"oauth":{"failureThreshold":0},"apikey":{"degradationThreshold":1001},
			"local":{"resetTimeoutMs":999}}}`))
	})
	t.Run("BRK-5 BRK-4 degradation is lowered below the threshold", func(t *testing.T) {
		for _, tc := range []struct {
			patch string
			want  int
		}{
			{`{"providerBreaker":{"apikey":{"failureThreshold":3}}}`, 2},
			{`{"providerBreaker":{"apikey":{"failureThreshold":1}}}`, 1},
			{`{"providerBreaker":{"apikey":{"failureThreshold":4,"degradationThreshold":900}}}`, 3},
		} {
			same(t, tc.want, patched(t, Resilience, tc.patch).ProviderBreaker.APIKey.DegradationThreshold)
		}
		for opens, degrades := range map[string]int{"1": 1, "2": 1, "3": 2, "5": 3, "10": 6} {
			v := patched(t, Resilience, `{"providerBreaker":{"local":{"failureThreshold":`+opens+`}}}`)
			same(t, degrades, v.ProviderBreaker.Local.DegradationThreshold)
		}
	})
	t.Run("BRK-5 stored values are clamped, a non-number keeps the default", func(t *testing.T) {
		v, _, warnings := Resolve(environment(), Stored{
			"providerBreaker.oauth.failureThreshold": json.RawMessage("5000"), "providerBreaker.oauth.resetTimeoutMs": json.RawMessage(`"soon"`),
		}, nil)
		same(t, 1000, v.ProviderBreaker.OAuth.FailureThreshold)
		same(t, time.Minute, v.ProviderBreaker.OAuth.ResetTimeout)
		same(t, 2, len(warnings))
	})
	t.Run("BRK-7 PCD-9 PCD-10 two families of variables", func(t *testing.T) {
		v, _, _ := Resolve(environment("OMNIROUTE_CIRCUIT_BREAKER_API_KEY_THRESHOLD", "20", "WEIR_CIRCUIT_BREAKER_LOCAL_RESET_MS", "9000",
			"OMNIROUTE_PROVIDER_BREAKER_OAUTH_FAILURE_THRESHOLD", "4", "WEIR_PROVIDER_BREAKER_LOCAL_FAILURE_WINDOW_MS", "7000"), nil, nil)
		same(t, []int{20, 8, 4}, []int{v.ProviderBreaker.APIKey.FailureThreshold, v.ProviderBreaker.OAuth.FailureThreshold, v.ProviderCooldown.OAuth.Threshold})
		same(t, []time.Duration{9 * time.Second, 7 * time.Second}, []time.Duration{v.ProviderBreaker.Local.ResetTimeout, v.ProviderCooldown.Local.Window})
		v, _, warnings := Resolve(environment("WEIR_PROVIDER_BREAKER_API_KEY_COOLDOWN_MS", "0"), nil, nil)
		same(t, 10*time.Minute, v.ProviderCooldown.APIKey.Cooldown)
		same(t, 1, len(warnings))
	})
	t.Run("BRK-24 BRK-21 kinds", func(t *testing.T) {
		v := patched(t, Resilience, `{"providerBreaker":{"oauth":{"kindThresholds":{"rate_limit":3},"immediateOpen":["rate_limit"]}}}`)
		same(t, KindThresholds{RateLimit: 3}, v.ProviderBreaker.OAuth.KindThresholds)
		same(t, []string{"rate_limit"}, v.ProviderBreaker.OAuth.ImmediateOpen)
		same(t, []string{
			"providerBreaker.oauth.kindThresholds.transient: must be 1 to 1000",
			"providerBreaker.oauth.immediateOpen[0]: must be one of rate_limit, quota_exhausted, transient",
		}, refused(t, Resilience, `{"providerBreaker":{"oauth":{"kindThresholds":{"transient":0},"immediateOpen":["slow"]}}}`))
	})
	t.Run("BRK-23 COOL-10 a boolean wins, null unsets, absent leaves", func(t *testing.T) {
		v := patched(t, Resilience, `{"connectionCooldown":{"apikey":{"useUpstream429BreakerHints":false}}}`)
		if p := v.ConnectionCooldown.APIKey.Use429BreakerHints; p == nil || *p || v.ConnectionCooldown.OAuth.Use429BreakerHints != nil {
			t.Error("not set alone")
		}
		stored := Stored{"connectionCooldown.apikey.useUpstream429BreakerHints": json.RawMessage("false")}
		next, _, _ := Patch(inForce(), stored, parse(t, `{"connectionCooldown":{"apikey":{"baseCooldownMs":1}}}`), Resilience, nil)
		if len(next) != 2 {
			t.Error("absent does not leave it", next)
		}
		next, _, _ = Patch(inForce(), stored, parse(t, `{"connectionCooldown":{"apikey":{"useUpstream429BreakerHints":null}}}`), Resilience, nil)
		if len(next) != 0 {
			t.Error("null does not unset it", next)
		}
	})
}

func TestCooldownSettings(t *testing.T) {
	t.Run("PCD-1 OV-21 the stored boolean wins over the variable", func(t *testing.T) {
		env := environment("PROVIDER_COOLDOWN_ENABLED", "true", "PROVIDER_COOLDOWN_MIN_MS", "1000")
		v, sources, _ := Resolve(env, nil, nil)
		if !v.ProviderCooldown.Enabled || sources["providerCooldown.enabled"] != FromEnv || v.ProviderCooldown.MinRetry != time.Second {
			t.Error(v.ProviderCooldown, sources["providerCooldown.enabled"])
		}
		v, sources, _ = Resolve(env, Stored{"providerCooldown.enabled": json.RawMessage("false")}, nil)
		if v.ProviderCooldown.Enabled || sources["providerCooldown.enabled"] != FromStored {
			t.Error(v.ProviderCooldown, sources["providerCooldown.enabled"])
		}
		v, sources, _ = Resolve(env, Stored{"providerCooldown.enabled": json.RawMessage(`"false"`)}, nil)
		if !v.ProviderCooldown.Enabled || sources["providerCooldown.enabled"] != FromEnv {
			t.Error("OV-22", v.ProviderCooldown, sources["providerCooldown.enabled"])
		}
	})
	t.Run("OV-23 the environment's stall time beats all, since nothing stored stands for it", func(t *testing.T) {
		v, _, warnings := Resolve(environment("STREAM_CONTENT_STALL_TIMEOUT_MS", "7000"), Stored{"streams.contentStallTimeoutMs": json.RawMessage("1")}, nil)
		if v.ContentStall != 7*time.Second || len(warnings) == 0 {
			t.Error(v.ContentStall, warnings)
		}
		if v, _, _ = Resolve(environment(), nil, nil); v.ContentStall >= 0 {
			t.Error("not set, so that the budget adapts:", v.ContentStall)
		}
	})
	t.Run("PCD-5 COOL-24 COOL-70 CMB-40 a bound that another field gives", func(t *testing.T) {
		same(t, []string{"providerCooldown.maxRetryCooldownMs: providerCooldown.maxRetryCooldownMs must be at least providerCooldown.minRetryCooldownMs, which is 5000 ms"},
			refused(t, Resilience, `{"providerCooldown":{"maxRetryCooldownMs":4999}}`))
		for path, text := range map[string]string{
			"providerCooldown.minRetryCooldownMs": `{"providerCooldown":{"minRetryCooldownMs":300001}}`,
			"connectionCooldown.probe.maxMs":      `{"connectionCooldown":{"probe":{"firstMs":2000,"maxMs":1999}}}`,
			"waitForCooldown.budgetMs":            `{"waitForCooldown":{"budgetMs":89999}}`,
			"comboCooldownWait.budgetMs":          `{"comboCooldownWait":{"budgetMs":1}}`,
		} {
			if got := refused(t, Resilience, text); len(got) != 1 || !strings.HasPrefix(got[0], path+":") {
				t.Error(text, got)
			}
		}
		same(t, 4*time.Second, patched(t, Resilience, `{"providerCooldown":{"minRetryCooldownMs":1,"maxRetryCooldownMs":4000}}`).ProviderCooldown.MaxRetry)
		v, _, warnings := Resolve(environment(), Stored{"comboCooldownWait.budgetMs": json.RawMessage("1")}, nil)
		same(t, 90*time.Second, v.ComboCooldownWait.Budget)
		same(t, 1, len(warnings))
	})
	t.Run("LOCK-10 bounds, an empty list, the raised maximum", func(t *testing.T) {
		v := patched(t, General, `{"modelLockout":{"errorCodes":[],"baseCooldownMs":300000,"maxCooldownMs":5000}}`)
		same(t, []int{403, 404, 429, 502, 503, 504}, v.ModelLockout.ErrorCodes)
		same(t, []time.Duration{5 * time.Minute, 5 * time.Minute}, []time.Duration{v.ModelLockout.Max, v.MaxCooldown})
		same(t, []int{429, 500}, patched(t, Resilience, `{"modelLockout":{"errorCodes":[500,429,500]}}`).ModelLockout.ErrorCodes)
		same(t, []string{
			"modelLockout.errorCodes[1]: must be 100 to 599", "modelLockout.baseCooldownMs: must be 5000 to 600000",
			"modelLockout.maxBackoffSteps: must be 0 to 32",
		}, refused(t, Resilience, `{"modelLockout":{"errorCodes":[429,42],"baseCooldownMs":4999,"maxBackoffSteps":33}}`))
	})
	t.Run("PCD-11 the window gates are read-only", func(t *testing.T) {
		got := refused(t, Resilience, `{"providerCooldown":{"profiles":{"oauth":{"providerCooldownMs":1}}}}`)
		if len(got) != 1 || !strings.Contains(got[0], "WEIR_PROVIDER_BREAKER_OAUTH_COOLDOWN_MS") {
			t.Error(got)
		}
		v, _, _ := Resolve(environment(), Stored{"providerCooldown.profiles.oauth.providerCooldownMs": json.RawMessage("1")}, nil)
		same(t, 5*time.Minute, v.ProviderCooldown.OAuth.Cooldown)
	})
	t.Run("COOL-71 CMB-41 0 switches a wait off", func(t *testing.T) {
		v := inForce()
		if !v.WaitForCooldown.On() || !v.ComboCooldownWait.On() {
			t.Error("off by default")
		}
		for _, text := range []string{
			`{"waitForCooldown":{"maxRetries":0},"comboCooldownWait":{"maxAttempts":0}}`,
			`{"waitForCooldown":{"maxRetryWaitSec":0},"comboCooldownWait":{"maxWaitMs":0}}`,
			`{"waitForCooldown":{"enabled":false},"comboCooldownWait":{"enabled":false}}`,
		} {
			if v := patched(t, Resilience, text); v.WaitForCooldown.On() || v.ComboCooldownWait.On() {
				t.Error(text)
			}
		}
	})
	t.Run("LOCK-23 LOCK-30 COOL-20 BRK-32 environment", func(t *testing.T) {
		v, _, warnings := Resolve(environment("OMNIROUTE_ROTATION_RATE_LIMIT_RESET_SECONDS", "45", "WEIR_LOCKOUT_PERSIST", "false",
			"WEIR_QUOTA_TIMEZONE", "Asia/Shanghai", "RATE_LIMIT_EXECUTION_MAX_WAIT_MS", "1000"), nil, nil)
		same(t, "Asia/Shanghai", v.ModelLockout.Zone.String())
		same(t, []time.Duration{45 * time.Second, time.Second}, []time.Duration{v.RotationRateLimitReset, v.ExecutionMaxWait})
		if v.ModelLockout.Persist || len(warnings) > 0 {
			t.Error(v.ModelLockout.Persist, warnings)
		}
		if v, _, warnings = Resolve(environment("WEIR_QUOTA_TIMEZONE", "Mars/Olympus"), nil, nil); v.ModelLockout.Zone != time.UTC || len(warnings) != 1 {
			t.Error(v.ModelLockout.Zone, warnings)
		}
	})
}

func TestProviderSettings(t *testing.T) {
	apply := func(stored Stored, text string) (Stored, *Values) {
		t.Helper()
		next, faults, err := Patch(inForce(), stored, parse(t, text), Resilience, nil)
		if len(faults) > 0 || err != nil {
			t.Fatal(text, faults, err)
		}
		v, _, _ := Resolve(environment(), next, nil)
		return next, v
	}
	t.Run("API-13 COOL-22 a field is merged, null removes it", func(t *testing.T) {
		next, v := apply(nil, `{"providerQuotaOverrides":{"GLM":{"rateLimitCooldownSeconds":900}}}`)
		same(t, map[string]QuotaOverride{"glm": {RateLimitCooldown: 15 * time.Minute}}, v.ProviderQuotaOverrides)
		next, v = apply(next, `{"providerQuotaOverrides":[{"provider":"glm","rpm":3},{"provider":"kimi","concurrency":2,"providerConcurrency":0}]}`)
		same(t, map[string]QuotaOverride{"glm": {RateLimitCooldown: 15 * time.Minute, RPM: 3}, "kimi": {Concurrency: 2}}, v.ProviderQuotaOverrides)
		same(t, `{"glm":{"rateLimitCooldownSeconds":900,"rpm":3},"kimi":{"concurrency":2}}`,
			string(parse(t, string(Document(v, Resilience))).Member("providerQuotaOverrides").JSON()))
		next, v = apply(next, `{"providerQuotaOverrides":{"glm":{"rateLimitCooldownSeconds":null},"kimi":null}}`)
		same(t, map[string]QuotaOverride{"glm": {RPM: 3}}, v.ProviderQuotaOverrides)
		if next, _ = apply(next, `{"providerQuotaOverrides":{"glm":{"rpm":null}}}`); len(next) != 0 {
			t.Error("something stays stored", next)
		}
	})
	t.Run("COOL-22 API-13 bounds", func(t *testing.T) {
		got := refused(t, Resilience, `{"providerQuotaOverrides":{"a":{"rateLimitCooldownSeconds":0},"b":{"rateLimitCooldownSeconds":21601},
			"c":{"rateLimitCooldownSeconds":1.5},"d":{"rpm":0},"e":{"providerConcurrency":-1},"f":{"rate":1}}}`)
		same(t, 6, len(got))
		same(t, "providerQuotaOverrides.a.rateLimitCooldownSeconds: must be 1 to 21600", got[0])
	})
	t.Run("SEL-3 strategies", func(t *testing.T) {
		v := patched(t, General, `{"fallbackStrategy":"p2c","providerStrategies":{"openai":{"fallbackStrategy":"round-robin"}},"stickyRoundRobinLimit":1}`)
		same(t, []any{"p2c", map[string]string{"openai": "round-robin"}, 1}, []any{v.FallbackStrategy, v.ProviderStrategies, v.StickyRoundRobinLimit})
		same(t, []string{"providerStrategies.openai.fallbackStrategy: must be one of fill-first, round-robin, p2c, random"},
			refused(t, General, `{"providerStrategies":{"openai":{"fallbackStrategy":"best"}}}`))
	})
	t.Run("SEL-11 SEL-13 API-13 weight", func(t *testing.T) {
		same(t, 10.5, patched(t, Resilience, `{"p2cLatency":{"weight":10.5}}`).P2CLatencyWeight)
		for _, bad := range []string{"-0.1", "20.1", `"10"`, "true"} {
			if got := refused(t, Resilience, `{"p2cLatency":{"weight":`+bad+`}}`); !strings.HasPrefix(got[0], "p2cLatency.weight: ") {
				t.Error(bad, got)
			}
		}
		v, _, _ := Resolve(environment(), Stored{"p2cLatency.weight": json.RawMessage("99")}, nil)
		same(t, 20.0, v.P2CLatencyWeight)
	})
	t.Run("RUL-30 API-15 documents of the operator stay as written", func(t *testing.T) {
		v := patched(t, General, `{"providerErrorRules":{"glm":[{"status":403,"cooldownMs":60000}]}}`)
		same(t, `{"glm":[{"status":403,"cooldownMs":60000}]}`, string(v.ProviderErrorRules))
		if got := refused(t, General, `{"providerErrorRules":[]}`); !strings.HasPrefix(got[0], "providerErrorRules: ") {
			t.Error(got)
		}
	})
	t.Run("COOL-59 OTH-43 minutes, COOL-70 seconds", func(t *testing.T) {
		v := patched(t, Resilience, `{"credentialHealthCheck":{"intervalMinutes":0},"waitForCooldown":{"maxRetryWaitSec":2}}`)
		same(t, []time.Duration{0, 2 * time.Second}, []time.Duration{v.CredentialCheckInterval, v.WaitForCooldown.MaxRetryWait})
	})
}

func TestOldShapes(t *testing.T) {
	t.Run("API-12 profiles", func(t *testing.T) {
		v := patched(t, Resilience, `{"profiles":{"oauth":{"transientCooldown":7000,"rateLimitCooldown":0,"maxBackoffLevel":4},
			"apikey":{"transientCooldown":1000,"rateLimitCooldown":9000,"circuitBreakerThreshold":20,"circuitBreakerReset":60000}},
			"connectionCooldown":{"oauth":{"maxBackoffSteps":6}}}`)
		same(t, CooldownProfile{Base: 7 * time.Second, MaxSteps: 6, UseHints: true}, v.ConnectionCooldown.OAuth)
		same(t, CooldownProfile{Base: 9 * time.Second, MaxSteps: 5}, v.ConnectionCooldown.APIKey)
		same(t, []any{20, time.Minute}, []any{v.ProviderBreaker.APIKey.FailureThreshold, v.ProviderBreaker.APIKey.ResetTimeout})
	})
	t.Run("API-12 API-14 faults name the old field", func(t *testing.T) {
		same(t, []string{"profiles.oauth.maxBackoffLevel: must be 0 to 32"}, refused(t, Resilience, `{"profiles":{"oauth":{"maxBackoffLevel":40}}}`))
		same(t, 2, len(refused(t, Resilience, `{"profiles":{"oauth":{"wait":1},"cookie":{}}}`)))
		same(t, 1, len(refused(t, General, `{"profiles":{}}`)))
	})
	t.Run("API-10 API-12 legacy shows the values in force", func(t *testing.T) {
		got := string(parse(t, string(Document(inForce(), Resilience))).Member("legacy").Member("profiles").Member("apikey").JSON())
		same(t, `{"transientCooldown":3000,"rateLimitCooldown":0,"maxBackoffLevel":5,"circuitBreakerThreshold":12,"circuitBreakerReset":30000}`, got)
	})
	t.Run("API-11 legacy is not taken back", func(t *testing.T) {
		same(t, 1, len(refused(t, Resilience, `{"legacy":{}}`)))
	})
}
