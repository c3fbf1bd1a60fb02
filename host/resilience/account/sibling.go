package account

import (
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

// EgressSibling is the lastErrorType of a connection that cools because another one, which leaves by the same address, was refused
// (OTH-9). No verdict has it.
const EgressSibling wire.Reason = "egress_sibling"

// Sibling is why a connection cools that was not refused itself.
type Sibling struct {
	Egress string      `json:"egress"` // the address that both leave by
	Reason wire.Reason `json:"reason"` // for which the other one was refused
}

// Locked is the record of a connection that cools until the same time as the one with the record other, under whose id its cause
// stands; at most until the time longest (0: no bound). A terminal state, and a cooldown that runs as long already, stay as they
// are, and so does the backoff level (OTH-5, OTH-7).
func (s State) Locked(now int64, by string, other State, egress string, longest int64) (State, string) {
	until := other.Until
	if longest > 0 {
		until = min(until, longest)
	}
	if s.TestStatus.Terminal() || !Ahead(until, now) || s.Cooling(now) && s.Until >= until {
		return s, ""
	}
	if s.TestStatus != Unavailable || !s.Cooling(now) {
		s.Since = now
	}
	s.Level = s.LevelAt(now)
	s.TestStatus, s.Until, s.Explicit, s.Fence = Unavailable, until, other.Explicit && until == other.Until, s.Revision+1
	s.ProbeAt, s.Probes = 0, 0
	var cause resilience.Cause
	if other.Cause != nil {
		cause = *other.Cause
	}
	if cause.ConnectionID == "" {
		cause.ConnectionID = by
	}
	s.Cause = &cause
	s.LastError, s.LastErrorType, s.LastErrorAt, s.ErrorCode = other.LastError, EgressSibling, now, other.ErrorCode
	s.Sibling = &Sibling{Egress: egress, Reason: other.OutFor()}
	return s, KindCooldown
}

// OutFor is the reason of the failure that the running cooldown is about: of a sibling's, when that is what it is.
func (s *State) OutFor() wire.Reason {
	if s.LastErrorType == EgressSibling && s.Sibling != nil {
		return s.Sibling.Reason
	}
	return s.LastErrorType
}
