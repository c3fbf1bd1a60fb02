package settings

import "time"

// Values is the resolved set of settings in force: immutable, part of a catalog snapshot. Every field is read by somebody
// and has its row in the table.
type Values struct {
	ConnectionCooldown   Cooldown
	MaxCooldown          time.Duration // modelLockout.maxCooldownMs: caps a scaled cooldown (COOL-12)
	RouteDefaults        RouteDefaults
	ExposeRoutingHeaders string        // auto, on, off (OBS-5)
	FetchTimeout         time.Duration // STM-1: to the response headers
	BodyTimeout          time.Duration // STM-1: whole plain body
	ConnectTimeout       time.Duration // STM-1
	StreamIdleTimeout    time.Duration // STM-1: no upstream bytes
	ReadinessTimeout     time.Duration // STM-1: first useful event
	AttemptDeadline      time.Duration // STM-2; 0: off
	CompatHeaders        bool          // OV-11
	AutoDisableBanned    bool          // COOL-63
	CustomBannedSignals  []string      // COOL-62
}

// Cooldown is connectionCooldown (COOL-10).
type Cooldown struct{ OAuth, APIKey, Local CooldownProfile }

// CooldownProfile is the ladder of one category.
type CooldownProfile struct {
	Base     time.Duration
	MaxSteps int
	UseHints bool
}

// RouteDefaults are the per-route options for routes that are silent (CMB-26). 0 means the fallback that CMB-26 names.
type RouteDefaults struct {
	TargetTimeout       time.Duration
	FirstContentTimeout time.Duration
	FallbackOnFilter    bool
	FallbackOnOverflow  bool
}
