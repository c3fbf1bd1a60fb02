package settings

import (
	"encoding/json"
	"time"
)

// Values is the resolved set of settings in force: immutable, part of a catalog snapshot. Every field is read by somebody
// and has its row in the table.
type Values struct {
	ConnectionCooldown   Cooldown
	MaxCooldown          time.Duration // the same as ModelLockout.Max: caps a scaled cooldown (COOL-12)
	RouteDefaults        RouteDefaults
	ExposeRoutingHeaders string        // auto, on, off (OBS-5)
	FetchTimeout         time.Duration // STM-1: to the response headers
	BodyTimeout          time.Duration // STM-1: whole plain body
	ConnectTimeout       time.Duration // STM-1
	StreamIdleTimeout    time.Duration // STM-1: no upstream bytes
	ReadinessTimeout     time.Duration // STM-1: first useful event
	ReadinessMax         time.Duration // STM-1, STM-12: ceiling of the adaptive time to it
	ContentStall         time.Duration // STM-20; 0: off, negative: the adaptive time to the first useful event
	Heartbeat            time.Duration // STM-13; 0: none
	AttemptDeadline      time.Duration // STM-2; 0: off
	CompatHeaders        bool          // OV-11
	AutoDisableBanned    bool          // COOL-63
	CustomBannedSignals  []string      // COOL-62

	ProviderBreaker         ProviderBreaker
	ProviderCooldown        ProviderCooldown
	CooldownProbe           CooldownProbe
	ModelLockout            ModelLockout
	WaitForCooldown         WaitForCooldown
	ComboCooldownWait       ComboCooldownWait
	P2CLatencyWeight        float64                  // SEL-11; 0: off
	ProviderQuotaOverrides  map[string]QuotaOverride // by provider in lower case (API-13, COOL-20)
	RotationRateLimitReset  time.Duration            // COOL-20 level 4; 0: unset
	Rotation                Rotation                 // CLS-20
	ToolTruncate            bool                     // OTH-22
	FallbackStrategy        string                   // SEL-3: account strategy where no provider has its own
	ProviderStrategies      map[string]string        // SEL-3: account strategy by provider in lower case
	StickyRoundRobinLimit   int                      // SEL-4
	StreamStallCooldown     bool                     // COOL-32
	StreamRecovery          StreamRecovery           // STM-40, STM-43
	Streams                 Streams                  // STM-65
	CredentialCheckInterval time.Duration            // COOL-59, OTH-43; 0: no recheck
	ErrorRecord             ErrorRecord
	RequestLog              RequestLog      // OBJ-18
	Emergency               Emergency       // OTH-23
	ProviderErrorRules      json.RawMessage // RUL-30; an object
	ProviderErrorDefaults   json.RawMessage // RUL-40; an object
	ExecutionMaxWait        time.Duration   // BRK-32: longest time that a probe holds its allowance
}

// RouteDefaults are the per-route options for routes that are silent (CMB-26). 0 means the fallback that CMB-26 names.
type RouteDefaults struct {
	TargetTimeout       time.Duration
	FirstContentTimeout time.Duration
	StallTimeout        time.Duration
	StreamRecovery      string // off, hold, continue (STM-64)
	EncryptedState      string // strip, refuse (SCN-16)
	FallbackOnFilter    bool
	FallbackOnOverflow  bool
}

// StreamRecovery is streamRecovery: what is done about streams that are cut (STM-40, STM-43).
type StreamRecovery struct {
	Enabled    bool // early recovery
	Continue   bool // in mid-stream
	Throughput ThroughputWatchdog
}

// ThroughputWatchdog is streamRecovery.throughputWatchdog (STM-30).
type ThroughputWatchdog struct {
	Enabled        bool
	Warmup, Window time.Duration
	MinRate        int // useful bytes per second
	MinBytes       int
}

// Streams is streams (STM-65).
type Streams struct {
	EarlyKeepalive time.Duration // 0: never
	MaxEventBytes  int
	HoldMaxBytes   int
}
