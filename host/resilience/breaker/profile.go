package breaker

import (
	"slices"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// profile is how the breaker of one provider behaves under the settings in force (BRK-45: read anew by each call).
type profile struct {
	opens, degrades int
	reset           time.Duration
	multiplier      int // most times that the hold is multiplied
	escalate        int // cycles after which the hold doubles
	kinds           Counts
	immediate       [len(kinds)]bool
	trusted         bool          // 429 hints (BRK-23)
	probe           time.Duration // how long a probe holds its allowance (BRK-32)
}

// defaults are the values of BRK-3 by category; those of local degrade at a derived count (BRK-4).
func defaults(c catalog.Category) profile {
	switch c {
	case catalog.OAuth:
		return profile{degrades: 5, opens: 8, reset: 60 * time.Second, multiplier: 8, escalate: 2}
	case catalog.Local:
		return profile{opens: 2, reset: 15 * time.Second, multiplier: 16, escalate: 3}
	case catalog.APIKey:
	}
	return profile{degrades: 7, opens: 12, reset: 30 * time.Second, multiplier: 4, escalate: 3}
}

// holdOf is cooldownByKind (BRK-23).
func holdOf(k Kind) time.Duration {
	switch k {
	case RateLimit:
		return time.Minute
	case QuotaExhausted:
		return time.Hour
	case NoKind, Transient:
	}
	return 0
}

// longestProbe bounds a probe where the settings know no bound (BRK-32).
const longestProbe = 10 * time.Minute

// profileOf is the profile of p at this moment: the category's defaults, overridden by what the settings say.
func profileOf(at resilience.Moment, p *catalog.Provider) profile {
	v := at.Catalog.Settings
	own, hints := v.ProviderBreaker.APIKey, v.ConnectionCooldown.APIKey.Use429BreakerHints
	switch p.Category {
	case catalog.OAuth:
		own, hints = v.ProviderBreaker.OAuth, v.ConnectionCooldown.OAuth.Use429BreakerHints
	case catalog.Local:
		own, hints = v.ProviderBreaker.Local, v.ConnectionCooldown.Local.Use429BreakerHints
	case catalog.APIKey:
	}
	pr := defaults(p.Category)
	pr.thresholds(own)
	pr.trusted = direct(p)
	if hints != nil {
		pr.trusted = *hints
	}
	pr.probe = soonest(v.AttemptDeadline, v.ExecutionMaxWait)
	return pr
}

// soonest is the smaller of two bounds; 0 is none, and without any a probe is still bounded.
func soonest(a, b time.Duration) time.Duration {
	switch {
	case a <= 0 && b <= 0:
		return longestProbe
	case a <= 0:
		return b
	case b <= 0:
		return a
	}
	return min(a, b)
}

// thresholds takes over what the operator set; 0 is not set.
func (pr *profile) thresholds(own settings.BreakerProfile) {
	if own.FailureThreshold > 0 {
		pr.opens, pr.degrades = own.FailureThreshold, 0
	}
	if own.DegradationThreshold > 0 {
		pr.degrades = own.DegradationThreshold
	}
	if pr.degrades == 0 {
		pr.degrades = derived(pr.opens)
	}
	pr.degrades = min(pr.degrades, max(pr.opens-1, 1)) // BRK-5
	if own.ResetTimeout > 0 {
		pr.reset = own.ResetTimeout
	}
	pr.kinds = Counts{own.KindThresholds.RateLimit, own.KindThresholds.QuotaExhausted, own.KindThresholds.Transient}
	for _, word := range own.ImmediateOpen {
		if i := slices.Index(kinds[:], word); i > 0 {
			pr.immediate[i] = true
			if n := pr.kinds.of(Kind(i)); *n <= 0 {
				*n = 1
			}
		}
	}
}

// derived is the count that degrades where none is set: 60 percent of the one that opens, below it, at least 1 (BRK-4).
func derived(opens int) int { return max(1, min((6*opens+9)/10, opens-1)) }

// direct says whether a provider speaks for itself, so that its 429s are believed: not an operator's own generic entry,
// which may be a proxy or another gateway, and nothing on a private network (BRK-23).
func direct(p *catalog.Provider) bool {
	return p.Category != catalog.Local && p.Auth != wire.AuthLocal && !p.Compatible && !p.AllowPrivate
}

// hold is how long the breaker stays open (BRK-22).
func (pr *profile) hold(s *State) time.Duration {
	if d := holdOf(s.FailedKind); d > 0 && pr.trusted {
		return d
	}
	times := 1
	for range s.Cycles - pr.escalate {
		if times *= 2; times >= pr.multiplier {
			times = pr.multiplier
			break
		}
	}
	return pr.reset * time.Duration(times)
}

// quiet is how long a degraded breaker must be without failure to close by itself (BRK-30).
func (pr *profile) quiet(s *State) time.Duration {
	longest := pr.reset * time.Duration(pr.multiplier)
	if d := holdOf(s.FailedKind); d > 0 && pr.trusted {
		longest = d
	}
	return max(longest, pr.hold(s))
}
