package cooldown

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// failure is everything that decides what one failed attempt does to a record. Apply is pure: the same failure on
// another state may be applied again.
type failure struct {
	now        int64 // Unix milliseconds
	generation uint64
	model      string
	connection *catalog.Connection
	outcome    resilience.Outcome
	profile    settings.CooldownProfile
	longest    time.Duration // caps a scaled cooldown (COOL-12)
	delay      time.Duration // for rate limits without a hint (COOL-20); 0: none
	spared     bool          // nothing cools (COOL-32, COOL-33)
	probe      bool          // the attempt tested the cooldown (COOL-24)
	probes     settings.CooldownProbe
}

// apply returns the record after the failure and the kind of event, empty when nothing changed.
func (f failure) apply(s account.State) (account.State, string) {
	s = s.For(f.connection).EarnedBy(f.connection)
	after, kind := f.step(s)
	if f.probe {
		return f.probed(after, kind)
	}
	return after, kind
}

func (f failure) step(s account.State) (account.State, string) {
	v := f.outcome.Verdict
	switch {
	case s.TestStatus.Terminal():
		return s, "" // COOL-18, COOL-51
	case v.Reason == wire.RequestRejected:
		return f.rejected(s)
	case s.Cooling(f.now):
		return f.whileCooling(s)
	case v.Scope == wire.ScopeModel, f.spared, f.connection.DisableCooling:
		return f.shown(s), account.KindError // LOCK-16, COOL-32, COOL-33, COOL-19
	case s.Fence > f.generation:
		return f.late(s)
	}
	return f.cool(s, f.cooldown(s))
}

// whileCooling: the running cooldown is one episode, however many attempts fail in it (COOL-16). Only a reset that the
// upstream itself named, and that is later, moves the end (COOL-17).
func (f failure) whileCooling(s account.State) (account.State, string) {
	hint := f.hint()
	if v := f.outcome.Verdict; v.Scope == wire.ScopeModel || f.spared || f.connection.DisableCooling || f.now+hint.Milliseconds() <= s.Until {
		return s, ""
	}
	return f.cool(s, length{end: hint, level: s.Level, explicit: true})
}

// late: the attempt began before the present cooldown was written, which has passed by now. It belongs to that episode
// and climbs no further (COOL-16), but a reset that the upstream named still holds (COOL-17).
func (f failure) late(s account.State) (account.State, string) {
	if hint := f.hint(); hint > 0 {
		return f.cool(s, length{end: hint, level: s.Level, explicit: true})
	}
	return s, ""
}

// shown records the error for display and keeps the status.
func (f failure) shown(s account.State) account.State {
	s.Level = s.LevelAt(f.now)
	return s.Failed(f.now, f.outcome)
}

// cool writes a cooldown. A length of 0, which the settings allow, marks the connection and leaves it eligible.
func (f failure) cool(s account.State, l length) (account.State, string) {
	before := s
	if s.TestStatus != account.Unavailable || !s.Cooling(f.now) {
		s.Since = f.now
	}
	s = s.Failed(f.now, f.outcome)
	s.TestStatus, s.Sibling = account.Unavailable, nil
	s.Level = l.level
	s.Fence = s.Revision + 1
	s.Explicit = l.explicit
	if !l.explicit {
		s.Cause.Source = "" // what the answer said is not what it came to
	}
	if l.end <= 0 {
		s.Until, s.ProbeAt, s.Probes = 0, 0, 0
		return s, account.KindError
	}
	s.Until = f.now + max(l.end.Milliseconds(), 1)
	return f.probing(s, before, l), account.KindCooldown
}

// succeeded returns the record after a success of an attempt that was admitted under generation (COOL-4): everything is
// cleared in one write, except a terminal state, which is not this gate's, and what outlasts it. The model's count of refusals goes with
// any success of it (COOL-43).
func succeeded(s account.State, now int64, p resilience.Permit, t catalog.Target) (account.State, string) {
	if s.TestStatus.Terminal() {
		return s, ""
	}
	if s.Outdated(t.Connection) {
		return s.For(t.Connection), account.KindCleared
	}
	rest := without(s.Rejected, t.Model, now)
	dropped := len(rest) < len(s.Rejected)
	s.Rejected = rest
	if outlasts(s, now, p, t) {
		if dropped {
			return s, account.KindRejected
		}
		return s, ""
	}
	next := s.Rest()
	if !dropped && s.TestStatus == account.Active && s.Until == 0 && s.Level == 0 && s.LastErrorAt == 0 {
		return s, "" // only counts of other models are set
	}
	return next, account.KindCleared
}
