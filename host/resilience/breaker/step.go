package breaker

import (
	"time"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

const (
	// forgetAfter is how long a closed breaker keeps what it counted without any change (BRK-42).
	forgetAfter = 30 * time.Minute
	// jitter is how far two clocks of one process may be apart before an end in the future is a clock that went wrong.
	jitter = time.Minute
)

// at is the breaker as it reads at now (BRK-25, BRK-26): time has closed a quiet degraded one (BRK-30), made an open one
// half-open, and forgotten what a closed one counted (BRK-42). It is a pure function of the stored state, so it does not
// matter who read it first, and nothing need be written.
func (s State) at(pr *profile, now int64) State {
	switch s.Phase {
	case Closed:
		if !s.resting() && now-s.Touched >= forgetAfter.Milliseconds() {
			return s.empty()
		}
	case Degraded:
		if end := s.FailedAt + pr.quiet(&s).Milliseconds(); now >= end {
			s = s.to(Closed, end, byQuiet).empty()
			s.Touched = end
			return s
		}
	case Open:
		if end := s.end(pr); now >= end || s.OpenedAt > now+jitter.Milliseconds() {
			return s.to(HalfOpen, min(end, now), byTime)
		}
	case HalfOpen:
	}
	return s
}

// end is when an open breaker becomes half-open.
func (s *State) end(pr *profile) int64 { return s.OpenedAt + pr.hold(s).Milliseconds() }

// failure is one counted failure.
type failure struct {
	now    int64
	kind   Kind
	alone  bool // counts for its kind only (BRK-24)
	probe  bool
	reason wire.Reason
	cause  resilience.Cause
}

// failed is the breaker after a failure. A failed probe opens it again (BRK-27); otherwise it counts, and may degrade or
// open (BRK-20, BRK-21).
func (s State) failed(pr *profile, f failure) State {
	if s = s.at(pr, f.now); f.probe && s.Phase == Open { // settings made the hold longer while the probe was out
		s = s.to(HalfOpen, f.now, byTime)
	}
	s.FailedAt, s.FailedKind, s.Touched = f.now, f.kind, f.now
	s.Reason, s.Cause = f.reason, &f.cause
	if !f.alone {
		s.Count++
	}
	n := s.Kinds.of(f.kind)
	*n++
	limit := *pr.kinds.of(f.kind)
	switch {
	case s.Phase == HalfOpen:
		s.Cycles++
		return s.open(pr, f.now, byFailed)
	case limit > 0 && *n >= limit:
		return s.open(pr, f.now, "kind:"+f.kind.String())
	case s.Count >= pr.opens && !f.alone:
		return s.open(pr, f.now, byFailures)
	case s.Phase == Closed && s.Count >= pr.degrades && !f.alone && !pr.immediate[f.kind]:
		return s.to(Degraded, f.now, byFailures)
	}
	return s
}

// open opens the breaker; every permit that is out is of an earlier generation from here on (BRK-31).
func (s State) open(pr *profile, now int64, reason string) State {
	s = s.to(Open, now, reason)
	s.OpenedAt = now
	s.Until = s.end(pr)
	s.Generation++
	return s
}

// succeeded is the breaker after a success: a probe closes it (BRK-27), any other lowers the counts by one (BRK-28).
func (s State) succeeded(pr *profile, now int64, probe bool) State {
	s = s.at(pr, now)
	s.Touched = now
	if probe {
		if s.Phase == Open { // settings made the hold longer while the probe was out
			s = s.to(HalfOpen, now, byTime)
		}
		s = s.to(Closed, now, byProbe).empty()
		s.Generation++
		return s
	}
	s.Count, s.Kinds = max(s.Count-1, 0), s.Kinds.less()
	if s.Phase == Degraded && s.Count < pr.degrades {
		s = s.to(Closed, now, byRecovery)
	}
	return s
}

// passed is the breaker after a connection of its provider passed its test (BRK-29). An open one keeps its hold.
func (s State) passed(pr *profile, now int64) State {
	s = s.at(pr, now)
	switch s.Phase {
	case Degraded:
		s = s.to(Closed, now, byTest).empty()
	case Closed:
		s = s.empty()
	case Open, HalfOpen:
		return s
	}
	s.Touched = now
	return s
}

// reset is the breaker after a person closed it. What is under way tells it nothing any more.
func (s State) reset(now int64) State {
	if s.Phase != Closed {
		s = s.to(Closed, now, byReset)
	}
	s = s.empty()
	s.Touched = now
	s.Generation++
	return s
}
