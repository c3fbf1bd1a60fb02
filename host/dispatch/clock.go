package dispatch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// phase is what an attempt is waiting for.
type phase int32

const (
	phaseHead  phase = iota // the answer's head
	phaseEvent              // the first useful event of a stream, or first byte of a plain answer
	phaseBody               // the rest of a plain answer
	phaseIdle               // the next bytes of a stream
	phaseTotal              // the hard deadline of the attempt (STM-2)
)

// deadlineError is the cause of an attempt that our own clock ended.
type deadlineError struct{ phase phase }

func (deadlineError) Error() string { return "attempt deadline" }

// Timeout makes it a timeout for errors.As.
func (deadlineError) Timeout() bool { return true }

// attemptClock bounds an attempt with one timer that is set anew for each phase.
type attemptClock struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
	phase  atomic.Int32
	ends   time.Time // hard deadline; zero: none
}

// start begins with the wait for the head; 0 means no limit.
func (c *attemptClock) start(cancel context.CancelCauseFunc, total, head time.Duration) {
	c.cancel = cancel
	if total > 0 {
		c.ends = time.Now().Add(total)
	}
	c.limit(phaseHead, head)
}

// limit gives the phase p the time d from now, within the hard deadline; 0 means only the latter.
func (c *attemptClock) limit(p phase, d time.Duration) {
	if !c.ends.IsZero() {
		if left := max(time.Until(c.ends), 1); d <= 0 || left < d {
			p, d = phaseTotal, left
		}
	}
	c.phase.Store(int32(p))
	switch {
	case d <= 0 && c.timer != nil:
		c.timer.Stop()
	case d <= 0:
	case c.timer == nil:
		c.timer = time.AfterFunc(d, c.fire)
	default:
		c.timer.Reset(d)
	}
}

func (c *attemptClock) fire() { c.cancel(deadlineError{phase(c.phase.Load())}) }

func (c *attemptClock) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// ownDeadline says whether our own clock ended the attempt (COOL-33).
func ownDeadline(actx context.Context) bool {
	var d deadlineError
	return errors.As(context.Cause(actx), &d)
}

// endedPhase is the phase in which our own clock ended the attempt.
func endedPhase(actx context.Context) (phase, bool) {
	var d deadlineError
	ok := errors.As(context.Cause(actx), &d)
	return d.phase, ok
}
