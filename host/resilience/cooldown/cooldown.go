// Package cooldown owns the connection cooldown: how long a connection is left alone after a failure, and what a success
// lifts (COOL-2 to COOL-46), and who may test a long one before its end (COOL-24). Its state is the record in package account, which it shares with the terminal gate.
package cooldown

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/egress"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// Name is the gate's name in refusals, snapshots and explanations (CMB-52).
const Name = "connection_cooldown"

// Gate skips connections that are cooling. Safe for concurrent use.
type Gate struct {
	book   *account.Book
	egress egress.Log
}

var _ resilience.Gate = (*Gate)(nil)

// New returns the gate over book. The terminal gate of the same ladder gets the same book and stands before this one.
func New(book *account.Book) *Gate { return &Gate{book: book} }

// Name returns connection_cooldown.
func (g *Gate) Name() string { return Name }

// Admit refuses while the cooldown runs (COOL-2), except for the one request that tests it (COOL-24). The permit remembers
// the revision of the record, by which a late answer is told from a new one.
func (g *Gate) Admit(at resilience.Moment, t catalog.Target) (resilience.Permit, *resilience.Refusal) {
	s := g.book.Peek(t.Connection.ID)
	if s == nil {
		return resilience.Permit{}, nil
	}
	if s.Until != 0 {
		if refusal := refuse(at, t, s); refusal != nil && !(at.Forced && refusal.Wait == resilience.WaitTransient) { // CMB-23
			if p, ok := g.probe(at, t); ok {
				return p, nil
			}
			return resilience.Permit{}, refusal
		}
	}
	return resilience.Permit{Generation: s.Revision}, nil
}

// Peek is the refusal that Admit would give.
func (g *Gate) Peek(at resilience.Moment, t catalog.Target) *resilience.Refusal {
	s := g.book.Peek(t.Connection.ID)
	if s == nil || due(at, s) && !g.book.Probing(t.Connection.ID) {
		return nil
	}
	return refuse(at, t, s)
}

func refuse(at resilience.Moment, t catalog.Target, s *account.State) *resilience.Refusal {
	if !s.Cooling(at.Now.UnixMilli()) || s.Outdated(t.Connection) {
		return nil
	}
	return &resilience.Refusal{
		Gate: Name, Reason: s.OutFor(), Wait: waitFor(s.OutFor()),
		Since: account.Time(s.Since), RetryAt: account.Time(s.Until), NextProbeAt: account.Time(s.NextProbe(at.Now.UnixMilli())),
		Cause: s.Cause,
	}
}

// waitFor says whether a request may wait for the end of a cooldown with this reason (COOL-71, LOCK-32).
func waitFor(r wire.Reason) resilience.Wait {
	switch r {
	case wire.RateLimitExceeded, wire.ConcurrencyLimited, wire.Overloaded, wire.ServerError, wire.Timeout,
		wire.NetworkError, wire.ServiceNotRunning:
		return resilience.WaitTransient
	default:
		return resilience.WaitQuota
	}
}

// Cancel gives a probe back: the next request may make it.
func (g *Gate) Cancel(_ resilience.Moment, t catalog.Target, p resilience.Permit) {
	if p.Probe {
		g.book.EndProbe(t.Connection.ID)
	}
}

// Settle learns from an outcome as CLS-15 says: a success clears what is set, a failure with scope connection or provider
// cools the connection, one with scope model is recorded for display, and one with scope request changes nothing.
func (g *Gate) Settle(at resilience.Moment, t catalog.Target, p resilience.Permit, o resilience.Outcome) []store.Event {
	if p.Probe {
		defer g.book.EndProbe(t.Connection.ID)
	}
	if o.Ignore {
		return nil // COOL-34
	}
	g.egress.Note(t, at.Now)
	if o.OK {
		if s := g.book.Peek(t.Connection.ID); s == nil || s.Resting() {
			return nil
		}
		changed := g.book.Learn(at, t, p.Generation, o, func(s account.State) (account.State, string) {
			return succeeded(s, at.Now.UnixMilli(), p, t)
		})
		if p.Probe && t.Provider.EgressFamily != "" {
			changed = append(changed, g.reopened(at, t)...)
		}
		return changed
	}
	changed := g.fail(at, t, p, o)
	if !o.Stays && egress.Counts(t, o.Verdict, o.Cause.Status) {
		changed = append(changed, g.siblings(at, t, o)...)
	}
	if coolsProvider(at, o) {
		for _, c := range t.Provider.Connections {
			if c.ID != t.Connection.ID {
				other := t
				other.Connection = c
				changed = append(changed, g.fail(at, other, resilience.Permit{Generation: newest}, o)...)
			}
		}
	}
	return changed
}

// newest is the generation of a failure that no older cooldown of a connection has to do with.
const newest = ^uint64(0)

// coolsProvider says whether a rule cools all connections of the provider: scope provider and a length of its own
// (RUL-8). Refusals and limits of concurrency have lengths of their own, and are counted by account.
func coolsProvider(at resilience.Moment, o resilience.Outcome) bool {
	v := o.Verdict
	if v.Scope != wire.ScopeProvider || v.Cooldown <= 0 || v.RequestScoped || spared(at, o) {
		return false
	}
	switch v.Reason {
	case wire.ServiceNotRunning, wire.RequestRejected, wire.ConcurrencyLimited:
		return false
	default:
		return true
	}
}

// spared says whether an outcome cools nothing: what our own clocks ended (COOL-33), a stream that fell silent, unless the operator
// wants it (COOL-32), and what leads to no other account (CLS-20).
func spared(at resilience.Moment, o resilience.Outcome) bool {
	if o.Stays {
		return true
	}
	switch o.Fault {
	case resilience.FaultStall:
		return !at.Catalog.Settings.StreamStallCooldown
	case resilience.FaultOwnDeadline, resilience.FaultTargetTimer:
		return true
	default:
		return o.OwnDeadline
	}
}

func (g *Gate) fail(at resilience.Moment, t catalog.Target, p resilience.Permit, o resilience.Outcome) []store.Event {
	if v := o.Verdict; v.RequestScoped || v.Scope == wire.ScopeRequest || v.Scope == wire.ScopeNone {
		return nil // COOL-45
	}
	s := at.Catalog.Settings
	f := failure{
		now: at.Now.UnixMilli(), generation: p.Generation, probe: p.Probe, model: t.Model, connection: t.Connection, outcome: o,
		spared: spared(at, o), profile: profile(s, t), longest: longest(s, t, o.Verdict), delay: delay(s, t), probes: s.CooldownProbe,
	}
	return g.book.Learn(at, t, p.Generation, o, f.apply)
}

// longest caps the ladder (COOL-12). A failure that is laid on the whole provider is the breaker's business (BRK-10): the account is
// asked again at least once within each of the breaker's resets, so that a provider which is well again serves within one (SCN-3).
func longest(s *settings.Values, t catalog.Target, v wire.Verdict) time.Duration {
	if v.Scope != wire.ScopeProvider || v.Cooldown > 0 {
		return s.MaxCooldown
	}
	reset := s.ProviderBreaker.APIKey.ResetTimeout
	switch t.Provider.Category {
	case catalog.OAuth:
		reset = s.ProviderBreaker.OAuth.ResetTimeout
	case catalog.Local:
		reset = s.ProviderBreaker.Local.ResetTimeout
	case catalog.APIKey:
	}
	if reset <= 0 {
		return s.MaxCooldown
	}
	return min(s.MaxCooldown, reset/2)
}

// delay is how long a rate-limited connection rests where the answer names no time: the connection's own word, then the
// provider's, then the process's; 0 when there is none (COOL-20).
func delay(s *settings.Values, t catalog.Target) time.Duration {
	if d := t.Connection.RateLimitReset; d > 0 {
		return d
	}
	if d := s.ProviderQuotaOverrides[t.Provider.ID].RateLimitCooldown; d > 0 {
		return d
	}
	return s.RotationRateLimitReset
}

// profile is the ladder of the provider's category (COOL-10).
func profile(v *settings.Values, t catalog.Target) settings.CooldownProfile {
	switch t.Provider.Category {
	case catalog.OAuth:
		return v.ConnectionCooldown.OAuth
	case catalog.Local:
		return v.ConnectionCooldown.Local
	case catalog.APIKey:
	}
	return v.ConnectionCooldown.APIKey
}

// Apply brings a connection's record to what e says, terminal states included: they are in the same record.
func (g *Gate) Apply(e store.Event) error { return g.book.Apply(e) }

// Snapshot returns the records of all connections, terminal states included.
func (g *Gate) Snapshot() ([]byte, error) { return g.book.Snapshot() }

// Restore takes over the records of a snapshot. Ends are absolute, so a cooldown keeps its remaining time (OV-5).
func (g *Gate) Restore(b []byte) error { return g.book.Restore(b) }
