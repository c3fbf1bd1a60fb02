package host

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/store"
)

// states are the views of the machines and a person's actions on them, journaled.
type states struct{ h *Host }

func (s states) at() resilience.Moment {
	return resilience.Moment{Now: s.h.o.Now(), Catalog: s.h.catalog.Current()}
}

// Health is the health object of a connection (OBJ-8).
func (s states) Health(connection string, now time.Time) account.Health {
	h := s.h.book.Health(connection, now)
	if s.h.catalog.Current().Settings.CredentialCheckInterval == 0 {
		h.RecheckAt = nil // nobody would keep to it (COOL-59)
	}
	return h
}

// Peek asks the ladder without any effect.
func (s states) Peek(at resilience.Moment, t catalog.Target) *resilience.Refusal {
	return s.h.ladder.Peek(at, t)
}

// Breakers are those that ever counted a failure.
func (s states) Breakers(now time.Time) []breaker.Status {
	return s.h.breakers.All(resilience.Moment{Now: now, Catalog: s.h.catalog.Current()})
}

// Lockouts are the running ones, the longest first.
func (s states) Lockouts(now time.Time) []lockout.Lock { return s.h.lockouts.List(now) }

// ResetBreakers closes the breaker of one provider, or all for an empty one.
func (s states) ResetBreakers(provider string) int {
	n, events := s.h.breakers.Reset(s.at(), named(provider)...)
	s.h.record.Append(events...)
	return n
}

// ClearWindows forgets the failures that the provider cooldown remembers. They are in memory only (PCD-7).
func (s states) ClearWindows(provider string) { s.h.windows.Clear(s.at(), named(provider)...) }

func named(provider string) []string {
	if provider == "" {
		return nil
	}
	return []string{provider}
}

// ClearCooldown ends what is transient on a connection (API-43).
func (s states) ClearCooldown(connection string) account.Cleared {
	found, events := s.h.book.Clear(s.at(), connection)
	s.h.record.Append(events...)
	return found
}

// ClearLockouts ends the lockouts that match and says how many ran; what is empty matches all.
func (s states) ClearLockouts(provider, connection, model string) (removed int) {
	at := s.at()
	take := func(n int, events []store.Event) {
		removed += n
		s.h.record.Append(events...)
	}
	switch {
	case model != "":
		p := at.Catalog.Provider(provider)
		if p == nil {
			p = &catalog.Provider{ID: provider} // it is gone, and its lockouts are not
		}
		take(s.h.lockouts.Clear(at, p, connection, model))
	case connection != "":
		take(s.h.lockouts.ClearConnection(at, connection))
	case provider == "":
		take(s.h.lockouts.ClearAll(at))
	default:
		if p := at.Catalog.Provider(provider); p != nil {
			for _, c := range p.All {
				take(s.h.lockouts.ClearConnection(at, c.ID))
			}
		}
	}
	return removed
}

// Reset is the operator's reset (COOL-50), lockouts included (OBJ-10).
func (s states) Reset(connection string) string {
	was, events := s.h.book.Reset(s.at(), connection)
	s.h.record.Append(events...)
	s.ClearLockouts("", connection, "")
	return was.String()
}

// Forget drops the state of a deleted connection (OBJ-7).
func (s states) Forget(connection string) {
	s.h.record.Append(s.h.book.Forget(s.at(), connection)...)
	s.h.forgetQuota(connection)
	s.ClearLockouts("", connection, "")
}
