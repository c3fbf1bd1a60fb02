package settings

// cooldownRows is the profile of one category (COOL-10).
func cooldownRows(category string, base int, hints bool, steps int, at func(*Values) *CooldownProfile) []Row {
	path := "connectionCooldown." + category + "."
	return []Row{
		{
			Path: path + "baseCooldownMs", Docs: []Doc{Resilience}, Default: base, Max: day,
			Meaning: "first cooldown of a failing connection; doubled with each further failure",
			at:      func(v *Values) any { return &at(v).Base },
		}, {
			Path: path + "useUpstreamRetryHints", Docs: []Doc{Resilience}, Default: hints,
			Meaning: "a time that the upstream names is used in place of the ladder",
			at:      func(v *Values) any { return &at(v).UseHints },
		}, {
			Path: path + "maxBackoffSteps", Docs: []Doc{Resilience}, Default: steps, Max: 32,
			Meaning: "how often the cooldown is doubled at most",
			at:      func(v *Values) any { return &at(v).MaxSteps },
		}, {
			Path: path + "useUpstream429BreakerHints", Docs: []Doc{Resilience}, as: optionalBool{},
			Meaning: "the breaker trusts what a 429 says; null: as is usual for the provider. A change resets all breakers",
			at:      func(v *Values) any { return &at(v).Use429BreakerHints },
		},
	}
}

// probeRows are connectionCooldown.probe (COOL-24).
func probeRows() []Row {
	return []Row{
		{
			Path: "connectionCooldown.probe.enabled", Docs: []Doc{Resilience}, Default: true,
			Meaning: "a connection that the upstream named a long reset for may be tried before its end",
			at:      func(v *Values) any { return &v.CooldownProbe.Enabled },
		}, {
			Path: "connectionCooldown.probe.firstMs", Docs: []Doc{Resilience}, Default: 60_000, Min: 1000, Max: day,
			Meaning: "time to the first probe; doubled with each further one",
			at:      func(v *Values) any { return &v.CooldownProbe.First },
		}, {
			Path: "connectionCooldown.probe.maxMs", Docs: []Doc{Resilience}, Default: 3_600_000, Min: 1000, Max: day,
			Meaning: "longest time between two probes",
			at:      func(v *Values) any { return &v.CooldownProbe.Max },
			above:   "connectionCooldown.probe.firstMs", low: func(v *Values) int64 { return v.CooldownProbe.First.Milliseconds() },
		},
	}
}

// waitRows are the waits of direct requests (COOL-70) and combos (CMB-40).
func waitRows() []Row {
	direct, combo := "waitForCooldown.", "comboCooldownWait."
	return []Row{
		{
			Path: direct + "enabled", Docs: []Doc{Resilience}, Default: true,
			Meaning: "a direct request whose connections are all cooling for a transient reason waits for the first of them",
			at:      func(v *Values) any { return &v.WaitForCooldown.Enabled },
		}, {
			Path: direct + "maxRetries", Docs: []Doc{Resilience}, Default: 5, Max: 10,
			Meaning: "how often one direct request waits; 0: never",
			at:      func(v *Values) any { return &v.WaitForCooldown.MaxRetries },
		}, {
			Path: direct + "maxRetryWaitSec", Docs: []Doc{Resilience}, Default: 90, Max: 300, Unit: second,
			Meaning: "longest single wait of a direct request, in seconds; 0: never",
			at:      func(v *Values) any { return &v.WaitForCooldown.MaxRetryWait },
		}, {
			Path: direct + "budgetMs", Docs: []Doc{Resilience}, Default: 300_000, Max: 300_000,
			Meaning: "all waits of one direct request together",
			at:      func(v *Values) any { return &v.WaitForCooldown.Budget },
			above:   direct + "maxRetryWaitSec", low: func(v *Values) int64 { return v.WaitForCooldown.MaxRetryWait.Milliseconds() },
		}, {
			Path: combo + "enabled", Docs: []Doc{Resilience}, Default: true,
			Meaning: "a combo whose targets are all out for a transient reason waits for the first of them",
			at:      func(v *Values) any { return &v.ComboCooldownWait.Enabled },
		}, {
			Path: combo + "maxWaitMs", Docs: []Doc{Resilience}, Default: 90_000, Max: 300_000,
			Meaning: "longest single wait of a combo; 0: never",
			at:      func(v *Values) any { return &v.ComboCooldownWait.MaxWait },
		}, {
			Path: combo + "maxAttempts", Docs: []Doc{Resilience}, Default: 5, Max: 10,
			Meaning: "how often one request of a combo waits; 0: never",
			at:      func(v *Values) any { return &v.ComboCooldownWait.MaxAttempts },
		}, {
			Path: combo + "budgetMs", Docs: []Doc{Resilience}, Default: 300_000, Max: 300_000,
			Meaning: "all waits of one request of a combo together",
			at:      func(v *Values) any { return &v.ComboCooldownWait.Budget },
			above:   combo + "maxWaitMs", low: func(v *Values) int64 { return v.ComboCooldownWait.MaxWait.Milliseconds() },
		},
	}
}

// stallRows is streamStallCooldown (COOL-32).
func stallRows() []Row {
	return []Row{{
		Path: "streamStallCooldown.enabled", Docs: []Doc{Resilience}, Default: false,
		Meaning: "a stream whose content stalls cools its connection",
		at:      func(v *Values) any { return &v.StreamStallCooldown },
	}}
}

// lockoutRows stand in both documents (API-10, API-15, LOCK-10).
func lockoutRows() []Row {
	both := []Doc{Resilience, General}
	return []Row{
		{
			Path: "modelLockout.enabled", Docs: both, Default: false,
			Meaning: "a failing target of a combo locks its model on its connection by the status alone",
			at:      func(v *Values) any { return &v.ModelLockout.Enabled },
		}, {
			Path: "modelLockout.errorCodes", Docs: both, Default: []int{403, 404, 429, 502, 503, 504}, Min: 100, Max: 599, as: numbers{},
			Meaning: "statuses that lock so; an empty list means the default",
			at:      func(v *Values) any { return &v.ModelLockout.ErrorCodes },
		}, {
			Path: "modelLockout.baseCooldownMs", Docs: both, Default: 120_000, Min: 5000, Max: 600_000,
			Meaning: "first lockout of a model; doubled with each further failure",
			at:      func(v *Values) any { return &v.ModelLockout.Base },
		}, {
			Path: "modelLockout.maxCooldownMs", Docs: both, Default: 1_800_000, Min: 5000, Max: 3_600_000,
			Meaning: "longest lockout, and longest cooldown of a connection, without a word from the upstream; raised to the base",
			at:      func(v *Values) any { return &v.ModelLockout.Max },
			low:     func(v *Values) int64 { return v.ModelLockout.Base.Milliseconds() },
		}, {
			Path: "modelLockout.maxBackoffSteps", Docs: both, Default: 10, Max: 32,
			Meaning: "how often a lockout is doubled at most",
			at:      func(v *Values) any { return &v.ModelLockout.MaxSteps },
		}, {
			Path: "modelLockout.useExponentialBackoff", Docs: both, Default: true,
			Meaning: "lockouts double; false: each lasts the base",
			at:      func(v *Values) any { return &v.ModelLockout.Exponential },
		},
	}
}
