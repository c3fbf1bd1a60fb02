package manage

import (
	"maps"
	"slices"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/lockout"
)

// within returns b with the transitions from since on only (API-50).
func within(b breaker.Status, since time.Time) breaker.Status {
	recent := []breaker.TransitionShown{}
	for _, t := range b.TransitionHistory {
		if at, err := time.Parse(time.RFC3339, t.At); err == nil && !at.Before(since) {
			recent = append(recent, t)
		}
	}
	b.TransitionHistory = recent
	return b
}

// modelCooldown is one lockout of the list (API-30).
type modelCooldown struct {
	Provider     string              `json:"provider"`
	ConnectionID string              `json:"connectionId"`
	Connection   *string             `json:"connection"` // its name
	Model        string              `json:"model"`
	Reason       string              `json:"reason"`
	RemainingMs  int64               `json:"remainingMs"`
	FailureCount int                 `json:"failureCount"`
	ExpiresAt    *string             `json:"expiresAt"`
	Scope        string              `json:"scope"`
	LockedAt     *string             `json:"lockedAt"`
	Cause        *account.CauseShown `json:"cause"`
}

func showLockout(s *catalog.Snapshot, l *lockout.Lock) modelCooldown {
	v := modelCooldown{
		Provider: l.Provider, ConnectionID: l.Connection, Model: l.Model, Reason: string(l.Reason), RemainingMs: l.Remaining.Milliseconds(),
		FailureCount: l.FailureCount, ExpiresAt: stamp(l.Until), Scope: l.Scope, LockedAt: stamp(l.LockedAt), Cause: shownCause(l.Cause),
	}
	if c := s.Connection(l.Connection); c != nil {
		v.Connection = orNull(c.Name)
	}
	return v
}

// picture is what the machines say at one instant. A source that fails is left empty and named (API-4).
type picture struct {
	breakers map[string]breaker.Status // by provider
	lockouts map[string][]lockout.Lock // by connection, longest first
	degraded []string
}

// look reads all sources at the moment of c.
func (s *Server) look(c *call) *picture {
	p := &picture{breakers: map[string]breaker.Status{}, lockouts: map[string][]lockout.Lock{}, degraded: []string{}}
	p.read(s, "breakers", func() {
		for _, b := range s.ports.States.Breakers(c.now) {
			p.breakers[b.Name] = b
		}
	})
	p.read(s, "lockouts", func() {
		for _, l := range s.ports.States.Lockouts(c.now) {
			p.lockouts[l.Connection] = append(p.lockouts[l.Connection], l)
		}
	})
	return p
}

// read runs one source; one that breaks is named and logged, and the others are still answered.
func (p *picture) read(s *Server, source string, f func()) {
	defer func() {
		if cause := recover(); cause != nil {
			p.degraded = append(p.degraded, source)
			s.ports.Log.Error("a source of the resilience view failed", "source", source, "error", cause)
		}
	}()
	f()
}

// providers that have a breaker, sorted.
func (p *picture) providers() []string { return slices.Sorted(maps.Keys(p.breakers)) }

func (p *picture) countBreakers() (n breakerCounts) {
	for _, b := range p.breakers {
		n.Total++
		switch b.State {
		case breaker.Open:
			n.Open++
		case breaker.HalfOpen:
			n.HalfOpen++
		case breaker.Degraded:
			n.Degraded++
		case breaker.Closed:
			n.Closed++
		}
	}
	return n
}

// statusWord is the word of API-41: the first that holds.
func statusWord(h *account.Health, locked int) string {
	if locked > 0 && (h.Status == account.IsHealthy || h.Status == account.IsUnavailable) {
		return "model_locked"
	}
	return string(h.Status)
}
