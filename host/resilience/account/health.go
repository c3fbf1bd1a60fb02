package account

import (
	"time"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

// Condition is the status word of a connection (API-41).
type Condition string

// The conditions, the first that holds.
const (
	IsTerminal    Condition = "terminal"
	IsCoolingDown Condition = "cooling_down"
	IsUnavailable Condition = "unavailable" // marked but not cooling: eligible, and not yet proved by a success
	IsHealthy     Condition = "healthy"
)

// Condition is the word that holds at now.
func (s State) Condition(now time.Time) Condition {
	switch {
	case s.TestStatus.Terminal():
		return IsTerminal
	case s.Cooling(now.UnixMilli()):
		return IsCoolingDown
	case s.TestStatus == Unavailable:
		return IsUnavailable
	}
	return IsHealthy
}

// Health is the health object of a connection as the management API shows it (OBJ-8): times are RFC 3339 in UTC with
// milliseconds, absent values null.
type Health struct {
	Status           Condition   `json:"status"`
	TestStatus       Status      `json:"testStatus"`
	RateLimitedUntil *string     `json:"rateLimitedUntil"`
	NextProbeAt      *string     `json:"nextProbeAt"`
	RecheckAt        *string     `json:"recheckAt"`
	BackoffLevel     int         `json:"backoffLevel"`
	LastError        *string     `json:"lastError"`
	LastErrorType    *string     `json:"lastErrorType"`
	LastErrorAt      *string     `json:"lastErrorAt"`
	ErrorCode        *string     `json:"errorCode"`
	Cause            *CauseShown `json:"cause"`
}

// CauseShown is the answer that put the present state there (COOL-6).
type CauseShown struct {
	RequestID      string  `json:"requestId,omitempty"`
	ConnectionID   string  `json:"connectionId,omitempty"` // whose answer it was, when it was another connection's (OTH-9)
	At             *string `json:"at"`
	Status         int     `json:"status,omitempty"`
	OriginalStatus int     `json:"originalStatus,omitempty"`
	Plugin         string  `json:"plugin,omitempty"`
	Rule           string  `json:"rule,omitempty"`
	Source         string  `json:"source,omitempty"`
	Message        string  `json:"message,omitempty"`
}

// Health is the health object of a connection at now. One without a record is healthy.
func (b *Book) Health(connection string, now time.Time) Health {
	s, _ := b.State(connection)
	return s.Health(now)
}

// Health shows the record at now: a cooldown that has passed is not shown, and the level is the one in force.
func (s State) Health(now time.Time) Health {
	ms := now.UnixMilli()
	h := Health{
		Status: s.Condition(now), TestStatus: s.TestStatus, BackoffLevel: s.LevelAt(ms),
		LastError: shown(s.LastError), LastErrorType: shown(string(s.LastErrorType)), LastErrorAt: shownTime(s.LastErrorAt),
		ErrorCode: shown(s.ErrorCode), Cause: shownCause(s.Cause),
	}
	if s.Cooling(ms) {
		h.RateLimitedUntil = shownTime(s.Until)
		h.NextProbeAt = shownTime(s.NextProbe(ms))
	}
	if s.TestStatus.Terminal() {
		h.RecheckAt = shownTime(s.RecheckAt)
	}
	return h
}

// Remaining is how long the cooldown still runs at now; 0 when none does.
func (s State) Remaining(now time.Time) time.Duration {
	if ms := now.UnixMilli(); s.Cooling(ms) {
		return time.Duration(s.Until-ms) * time.Millisecond
	}
	return 0
}

func shown(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func shownTime(ms int64) *string {
	if ms == 0 {
		return nil
	}
	return shown(Time(ms).Format("2006-01-02T15:04:05.000Z"))
}

func shownCause(c *resilience.Cause) *CauseShown {
	if c == nil {
		return nil
	}
	return &CauseShown{
		RequestID: c.RequestID, ConnectionID: c.ConnectionID, At: shownTime(c.At), Status: c.Status, OriginalStatus: c.OriginalStatus,
		Plugin: c.Plugin, Rule: c.Rule, Source: c.Source, Message: c.Message,
	}
}

// Reason is the reason that a refusal because of this record gives.
func (s *State) Reason() wire.Reason {
	switch s.TestStatus {
	case Banned:
		return wire.ReasonBanned
	case Expired:
		return wire.ReasonExpired
	case CreditsExhausted:
		return wire.CreditsGone
	case Active, Unavailable:
	}
	return s.LastErrorType
}
