package account

import (
	"time"

	"github.com/weirgate/weir/host/settings"
)

// A cooldown whose end the upstream named is an upper bound: what it said may be wrong, or over sooner. So one real request
// at a time tests the connection before the end, at growing intervals (COOL-24).

// NextProbe is when the running cooldown may be tested next, in Unix milliseconds; 0 when it may not before its end.
func (s State) NextProbe(now int64) int64 {
	if s.ProbeAt == 0 || !s.Cooling(now) || s.ProbeAt >= s.Until {
		return 0
	}
	return s.ProbeAt
}

// ProbeDue says whether a request may test the connection now.
func (s State) ProbeDue(now int64) bool {
	at := s.NextProbe(now)
	return at != 0 && at <= now
}

// Probed is the record after a probe that failed at now: the end stays, and the next probe comes twice as late as this one
// came, as far as p allows.
func (s State) Probed(now int64, p settings.CooldownProbe) State {
	s.Probes++
	s.ProbeAt = now + doubled(p.First, s.Probes, p.Max).Milliseconds()
	return s
}

// TakeProbe makes the caller the one who tests the connection, until EndProbe; false when somebody else does.
func (b *Book) TakeProbe(connection string) bool {
	c := b.cells.Get(connection)
	return c != nil && c.probing.CompareAndSwap(false, true)
}

// EndProbe gives the probe back. The caller has it.
func (b *Book) EndProbe(connection string) {
	if c := b.cells.Get(connection); c != nil {
		c.probing.Store(false)
	}
}

// Probing says whether a probe of the connection is under way.
func (b *Book) Probing(connection string) bool {
	c := b.cells.Get(connection)
	return c != nil && c.probing.Load()
}

// doubled is first doubled n times, at most longest.
func doubled(first time.Duration, n int, longest time.Duration) time.Duration {
	d := min(first, longest)
	for range n {
		if d >= longest {
			return longest
		}
		d = min(2*d, longest)
	}
	return d
}
