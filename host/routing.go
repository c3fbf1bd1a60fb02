package host

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/sdk/wire"
)

// circuit tells strategies the state of a provider's breaker (STR-15).
func (h *Host) circuit(p *catalog.Provider, at resilience.Moment) route.Circuit {
	switch h.breakers.Status(at, p.ID).State {
	case breaker.Open:
		return route.Open
	case breaker.HalfOpen:
		return route.HalfOpen
	case breaker.Closed, breaker.Degraded:
	}
	return route.Closed
}

// accountCondition tells account strategies the health of a connection (SEL-4, SEL-6).
func (h *Host) accountCondition(connection string, now time.Time) route.Condition {
	var c route.Condition
	c.Headroom, c.Known = h.quota.Headroom(connection, now)
	if s := h.book.Peek(connection); s != nil && !s.Forgotten {
		c.Error, c.Backoff = troubleOf(s.OutFor()), s.LevelAt(now.UnixMilli())
	}
	return c
}

// troubleOf sorts the reason of an account's last error as the penalties do (SEL-6).
func troubleOf(r wire.Reason) route.Trouble {
	switch r {
	case "":
		return route.NoTrouble
	case wire.RateLimitExceeded, wire.ConcurrencyLimited, wire.QuotaExhausted, wire.CreditsGone:
		return route.LimitTrouble
	case wire.AuthError, wire.ReasonBanned, wire.ReasonExpired:
		return route.AuthTrouble
	case wire.ServerError, wire.Overloaded, wire.Timeout, wire.NetworkError, wire.ServiceNotRunning:
		return route.ServerTrouble
	default:
		return route.OtherTrouble
	}
}
