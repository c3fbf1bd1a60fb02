package settings

// breakerRows is the breaker of one category (BRK-3, BRK-5, BRK-6, BRK-7). degrades 0 means derived (BRK-4).
func breakerRows(category, env string, opens, degrades, reset int, at func(*Values) *BreakerProfile) []Row {
	path, env := "providerBreaker."+category+".", "WEIR_CIRCUIT_BREAKER_"+env+"_"
	degradation := Row{
		Path: path + "degradationThreshold", Docs: []Doc{Resilience}, Default: degrades, Min: 1, Max: 1000,
		Meaning: "failures at which the breaker is degraded; lowered to one less than failureThreshold",
		at:      func(v *Values) any { return &at(v).DegradationThreshold },
		high:    func(v *Values) int64 { return int64(max(at(v).FailureThreshold-1, 1)) },
	}
	if degrades == 0 {
		degradation.derive = func(v *Values) int64 { return int64((6*at(v).FailureThreshold + 9) / 10) } // 60 %, rounded up
	}
	kind := func(name string, field func(*KindThresholds) *int) Row {
		return Row{
			Path: path + "kindThresholds." + name, Docs: []Doc{Resilience}, Default: 0, Min: 1, Max: 1000, as: optionalInt{},
			Meaning: "failures of kind " + name + " that open the breaker by themselves; null: none",
			at:      func(v *Values) any { return field(&at(v).KindThresholds) },
		}
	}
	return []Row{
		{
			Path: path + "failureThreshold", Docs: []Doc{Resilience}, Env: []string{env + "THRESHOLD"}, Default: opens, Min: 1, Max: 1000,
			Meaning: "failures at which the breaker opens",
			at:      func(v *Values) any { return &at(v).FailureThreshold },
		},
		degradation,
		{
			Path: path + "resetTimeoutMs", Docs: []Doc{Resilience}, Env: []string{env + "RESET_MS"}, Default: reset, Min: 1000, Max: day,
			Meaning: "how long the breaker stays open before it lets a probe through",
			at:      func(v *Values) any { return &at(v).ResetTimeout },
		},
		kind("rate_limit", func(k *KindThresholds) *int { return &k.RateLimit }),
		kind("quota_exhausted", func(k *KindThresholds) *int { return &k.QuotaExhausted }),
		kind("transient", func(k *KindThresholds) *int { return &k.Transient }),
		{
			Path: path + "immediateOpen", Docs: []Doc{Resilience}, Default: []string{}, Words: []string{"rate_limit", "quota_exhausted", "transient"},
			Meaning: "kinds that open at their own threshold without passing degraded",
			at:      func(v *Values) any { return &at(v).ImmediateOpen }, as: words{},
		},
	}
}

// windowRows are providerCooldown: the switch, the connection's ladder, and the window gates, which only the environment
// sets and the document shows (PCD-1, PCD-5, PCD-9, PCD-11).
func windowRows() []Row {
	rows := []Row{
		{
			Path: "providerCooldown.enabled", Docs: []Doc{Resilience}, Env: []string{"PROVIDER_COOLDOWN_ENABLED"}, Default: false,
			Meaning: "combos leave out a provider that failed too often within a window",
			at:      func(v *Values) any { return &v.ProviderCooldown.Enabled },
		}, {
			Path: "providerCooldown.minRetryCooldownMs", Docs: []Doc{Resilience}, Env: []string{"PROVIDER_COOLDOWN_MIN_MS"},
			Default: 5000, Max: 3_600_000,
			Meaning: "first cooldown of a pinned connection in combos; doubled with each further failure",
			at:      func(v *Values) any { return &v.ProviderCooldown.MinRetry },
		}, {
			Path: "providerCooldown.maxRetryCooldownMs", Docs: []Doc{Resilience}, Env: []string{"PROVIDER_COOLDOWN_MAX_MS"},
			Default: 300_000, Max: day,
			Meaning: "longest cooldown of a pinned connection in combos",
			at:      func(v *Values) any { return &v.ProviderCooldown.MaxRetry },
			above:   "providerCooldown.minRetryCooldownMs",
			low:     func(v *Values) int64 { return v.ProviderCooldown.MinRetry.Milliseconds() },
		},
	}
	const minute = 60_000
	gate := func(category, env string, threshold, window, cooldown int, at func(*Values) *WindowProfile) {
		path, env := "providerCooldown.profiles."+category+".", "WEIR_PROVIDER_BREAKER_"+env+"_"
		one := func(name, env string, value int, meaning string, field func(v *Values) any) {
			rows = append(rows, Row{
				Path: path + name, Docs: []Doc{Resilience}, Env: []string{env}, Default: value, Min: 1, Max: maxInt,
				Meaning: meaning + "; read-only here", at: field, readOnly: true,
			})
		}
		one("providerFailureThreshold", env+"FAILURE_THRESHOLD", threshold, "failures that cool the provider",
			func(v *Values) any { return &at(v).Threshold })
		one("providerFailureWindowMs", env+"FAILURE_WINDOW_MS", window*minute, "time within which they count",
			func(v *Values) any { return &at(v).Window })
		one("providerCooldownMs", env+"COOLDOWN_MS", cooldown*minute, "how long the provider is left out",
			func(v *Values) any { return &at(v).Cooldown })
	}
	gate("oauth", "OAUTH", 10, 15, 5, func(v *Values) *WindowProfile { return &v.ProviderCooldown.OAuth })
	gate("apikey", "API_KEY", 15, 30, 10, func(v *Values) *WindowProfile { return &v.ProviderCooldown.APIKey })
	gate("local", "LOCAL", 2, 5, 1, func(v *Values) *WindowProfile { return &v.ProviderCooldown.Local })
	return rows
}

// providerRows are providerQuotaOverrides (API-13) and p2cLatency (SEL-11).
func providerRows() []Row {
	return []Row{
		{
			Path: "providerQuotaOverrides", Docs: []Doc{Resilience}, Default: map[string]map[string]any{}, as: quotaOverrides(),
			Meaning: "what the operator knows of a provider's limits; `rateLimitCooldownSeconds` is how long a rate-limited connection of it rests",
			at:      func(v *Values) any { return &v.ProviderQuotaOverrides },
		}, {
			Path: "p2cLatency.weight", Docs: []Doc{Resilience}, Default: 0.0, Max: 20, as: fraction{},
			Meaning: "how many penalty points latency and errors may add in the strategy p2c; 0: off",
			at:      func(v *Values) any { return &v.P2CLatencyWeight },
		},
	}
}
