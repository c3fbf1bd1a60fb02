package settings

// environmentRows are set by the environment alone (BRK-32, COOL-20, LOCK-23, LOCK-30).
func environmentRows() []Row {
	return []Row{
		{
			Env: []string{"RATE_LIMIT_EXECUTION_MAX_WAIT_MS"}, Default: 600_000, Min: 1, Max: day,
			Meaning: "longest time that one probe of a half-open breaker holds the place",
			at:      func(v *Values) any { return &v.ExecutionMaxWait },
		}, {
			Env: []string{"WEIR_ROTATION_RATE_LIMIT_RESET_SECONDS"}, Default: 0, Max: 21_600, Unit: second,
			Meaning: "how long a rate-limited connection rests that nothing else names a time for, in seconds; 0: the ladder",
			at:      func(v *Values) any { return &v.RotationRateLimitReset },
		}, {
			Env: []string{"WEIR_LOCKOUT_PERSIST"}, Default: true,
			Meaning: "lockouts survive a restart",
			at:      func(v *Values) any { return &v.ModelLockout.Persist },
		}, {
			Env: []string{"WEIR_QUOTA_TIMEZONE"}, Default: "UTC", as: zone{},
			Meaning: "zone whose midnight ends a used-up quota that names no reset",
			at:      func(v *Values) any { return &v.ModelLockout.Zone },
		},
	}
}
