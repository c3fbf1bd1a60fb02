package cooldown

import (
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/sdk/wire"
)

// probe makes the attempt at t the one that tests the cooling connection, when a test is due and nobody else does it
// (COOL-24).
func (g *Gate) probe(at resilience.Moment, t catalog.Target) (resilience.Permit, bool) {
	s := g.book.Peek(t.Connection.ID)
	if !due(at, s) || !g.book.TakeProbe(t.Connection.ID) {
		return resilience.Permit{}, false
	}
	if s = g.book.Peek(t.Connection.ID); !due(at, s) { // another probe ended in between
		g.book.EndProbe(t.Connection.ID)
		return resilience.Permit{}, false
	}
	return resilience.Permit{Generation: s.Revision, Probe: true}, true
}

func due(at resilience.Moment, s *account.State) bool {
	return at.Catalog.Settings.CooldownProbe.Enabled && s.ProbeDue(at.Now.UnixMilli())
}

// probing plans the probes of a cooldown that cool just wrote over before. A cooldown that only moved its end goes on with
// the probes that it had.
func (f failure) probing(s, before account.State, l length) account.State {
	reason := f.outcome.Verdict.Reason
	if !l.explicit || !f.probes.Enabled || l.end <= f.probes.First || reason != wire.RateLimitExceeded && reason != wire.QuotaExhausted {
		s.ProbeAt, s.Probes = 0, 0
		return s
	}
	if before.NextProbe(f.now) == 0 {
		s.ProbeAt, s.Probes = f.now+f.probes.First.Milliseconds(), 0
	}
	return s
}

// probed is the record after a failure of the probe: nothing of the cooldown changes but the time of the next probe.
func (f failure) probed(s account.State, kind string) (account.State, string) {
	if s.TestStatus.Terminal() || !s.Cooling(f.now) || s.ProbeAt == 0 {
		return s, kind
	}
	if kind == "" {
		kind = account.KindProbe
	}
	return s.Probed(f.now, f.probes), kind
}
