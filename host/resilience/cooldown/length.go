package cooldown

import (
	"time"

	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/sdk/wire"
)

const (
	// concurrencyCooldown is CONCURRENCY_LIMIT_COOLDOWN_MS (COOL-30).
	concurrencyCooldown = time.Second
	// farthestHint bounds what an upstream or a rule may say (COOL-12).
	farthestHint = 30 * 24 * time.Hour
)

// length is a cooldown to be: how long, and the backoff level afterwards.
type length struct {
	end      time.Duration
	level    int
	explicit bool // the upstream's own word
}

// hint is the wait that the answer itself gave, 0 when it gave none or hints are off (COOL-13).
func (f failure) hint() time.Duration {
	if v := f.outcome.Verdict; v.Hinted && f.profile.UseHints {
		return max(0, min(v.RetryAfter, farthestHint))
	}
	return 0
}

// cooldown is the length that the failure earns. The answer's own hint beats the scaled length (COOL-13) and is not
// capped as that is (COOL-12); beside a length that a rule chose, the longer one holds (ABI-2).
func (f failure) cooldown(s account.State) length {
	hint, own := f.hint(), f.own(s)
	if hint == 0 || f.outcome.Verdict.Cooldown > 0 && own.end > hint {
		return own
	}
	if f.outcome.Verdict.Reason == wire.ConcurrencyLimited {
		return length{end: hint, level: own.level, explicit: true} // COOL-30: the level is kept
	}
	return length{end: hint, explicit: true}
}

// own is the length without a hint. Most failures climb: the profile's base, or a rule's in its place, doubled with each
// level (COOL-11). Three kinds take a length as it stands and keep the level, and the
// operator's own delay for rate limits sets it to 0.
func (f failure) own(s account.State) length {
	v := f.outcome.Verdict
	level := s.LevelAt(f.now) // COOL-15
	switch {
	case v.Reason == wire.ConcurrencyLimited: // COOL-30
		return length{end: concurrencyCooldown, level: level}
	case v.Cooldown > 0 && v.Exact: // LOCK-25
		return length{end: min(v.Cooldown, farthestHint), level: level}
	case v.Cooldown > 0 && (v.Reason == wire.QuotaExhausted || v.Reason == wire.ServiceNotRunning): // RUL-6, COOL-36
		return length{end: min(v.Cooldown, f.longest), level: level}
	case v.Reason == wire.RateLimitExceeded && v.Cooldown == 0 && f.delay > 0: // COOL-20, COOL-21
		return length{end: f.delay}
	}
	base := f.profile.Base
	if v.Cooldown > 0 {
		base = v.Cooldown
	}
	level = min(level, f.profile.MaxSteps)
	return length{end: scaled(base, level, f.longest), level: min(level+1, f.profile.MaxSteps)}
}

// scaled is base doubled steps times and capped by longest (COOL-11, COOL-12).
func scaled(base time.Duration, steps int, longest time.Duration) time.Duration {
	d := min(base, longest)
	for range steps {
		if d >= longest {
			return longest
		}
		d = min(2*d, longest)
	}
	return d
}
