package settings

import "time"

// Cooldown is connectionCooldown (COOL-10).
type Cooldown struct{ OAuth, APIKey, Local CooldownProfile }

// CooldownProfile is the ladder of one category.
type CooldownProfile struct {
	Base     time.Duration
	MaxSteps int
	UseHints bool
	// Use429BreakerHints overrides whether the breaker trusts a 429 of this category (BRK-23); nil: as the provider says.
	Use429BreakerHints *bool
}

// CooldownProbe is connectionCooldown.probe (COOL-24): the first probe is due First after a long cooldown began, each
// further one twice as late, at most Max.
type CooldownProbe struct {
	Enabled    bool
	First, Max time.Duration
}

// ProviderBreaker is providerBreaker (BRK-5).
type ProviderBreaker struct{ OAuth, APIKey, Local BreakerProfile }

// BreakerProfile is the breaker of one category.
type BreakerProfile struct {
	FailureThreshold     int
	DegradationThreshold int // below FailureThreshold, except when both are 1
	ResetTimeout         time.Duration
	KindThresholds       KindThresholds
	ImmediateOpen        []string // kinds of BRK-24 that open without passing DEGRADED
}

// KindThresholds are the counts at which one kind of failure opens the breaker (BRK-21, BRK-24); 0: that kind has none.
type KindThresholds struct{ RateLimit, QuotaExhausted, Transient int }

// ProviderCooldown is providerCooldown (PCD-1, PCD-2, PCD-5).
type ProviderCooldown struct {
	Enabled              bool
	MinRetry, MaxRetry   time.Duration
	OAuth, APIKey, Local WindowProfile
}

// WindowProfile is the window gate of one category: Threshold failures within Window cool the provider for Cooldown.
type WindowProfile struct {
	Threshold int
	Window    time.Duration
	Cooldown  time.Duration
}

// ModelLockout is modelLockout (LOCK-10).
type ModelLockout struct {
	Enabled     bool
	ErrorCodes  []int // ascending
	Base, Max   time.Duration
	MaxSteps    int
	Exponential bool
	Persist     bool           // LOCK-30
	Zone        *time.Location // LOCK-23: whose midnight ends a quota that names no reset
}

// WaitForCooldown is waitForCooldown (COOL-70): how long a direct request waits for cooling connections.
type WaitForCooldown struct {
	Enabled              bool
	MaxRetries           int
	MaxRetryWait, Budget time.Duration
}

// On reports whether a direct request waits at all (COOL-71).
func (w WaitForCooldown) On() bool { return w.Enabled && w.MaxRetries > 0 && w.MaxRetryWait > 0 }

// ComboCooldownWait is comboCooldownWait (CMB-40): how long a combo waits for cooling targets.
type ComboCooldownWait struct {
	Enabled         bool
	MaxWait, Budget time.Duration
	MaxAttempts     int
}

// On reports whether a combo waits at all (CMB-41).
func (w ComboCooldownWait) On() bool { return w.Enabled && w.MaxAttempts > 0 && w.MaxWait > 0 }

// QuotaOverride is what an operator knows of one provider's limits (API-13); 0: unset.
type QuotaOverride struct {
	RateLimitCooldown   time.Duration
	RPM                 int
	Concurrency         int
	ProviderConcurrency int
}

// ErrorRecord is errorRecord (OBJ-19).
type ErrorRecord struct {
	Enabled       bool
	RetentionDays int
	MaxRows       int
	MaxBodyBytes  int
}
