package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirgate/weir/host/resilience/watchdog"
)

// phase is what an attempt is waiting for.
type phase int32

const (
	phaseHead  phase = iota // the answer's head
	phaseEvent              // the first useful event of a stream, or first byte of a plain answer
	phaseBody               // the rest of a plain answer
	phaseIdle               // the next bytes of a stream
	phaseStall              // the next sign of the model in a stream (STM-20)
	phaseSlow               // more text in a stream (STM-30)
	phaseTotal              // the hard deadline of the attempt (STM-2)
)

// deadlineError is the cause of an attempt that our own clock ended.
type deadlineError struct{ phase phase }

func (deadlineError) Error() string { return "attempt deadline" }

// Timeout makes it a timeout for errors.As.
func (deadlineError) Timeout() bool { return true }

// attemptClock bounds an attempt with one timer. Its deadlines move later much more often than it fires, so the timer is left as it
// is then, and looks again when it fires too early.
type attemptClock struct {
	ends time.Time // hard deadline; zero: none. Set before the first start

	mu     sync.Mutex
	cancel context.CancelCauseFunc // guarded by mu
	timer  *time.Timer             // guarded by mu
	armed  time.Time               // when it fires; zero: it does not; guarded by mu
	phase  phase                   // guarded by mu
	due    time.Time               // end of the phase; zero: none; guarded by mu
	dog    *watchdog.Watchdog      // of a stream; guarded by mu
	over   bool                    // guarded by mu
}

// start begins with the wait for the head; 0 means no limit.
func (c *attemptClock) start(cancel context.CancelCauseFunc, head time.Duration) {
	c.mu.Lock()
	c.cancel, c.dog, c.over = cancel, nil, false
	c.mu.Unlock()
	c.limit(phaseHead, head)
}

// limit gives the phase p the time d from now, within the hard deadline; 0 means only the latter.
func (c *attemptClock) limit(p phase, d time.Duration) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase, c.due = p, time.Time{}
	if d > 0 {
		c.due = now.Add(d)
	}
	c.arm(now)
}

// watch has dog judge the stream from now on.
func (c *attemptClock) watch(dog *watchdog.Watchdog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dog = dog
	c.arm(time.Now())
}

// heard notes that bytes of a stream came.
func (c *attemptClock) heard(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dog != nil {
		c.dog.Heard(now)
	}
}

// saw notes what an event of a stream said.
func (c *attemptClock) saw(now time.Time, s watchdog.Sign) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dog.Saw(now, s)
	c.arm(now)
}

// linger waits only for the end of a stream that has brought everything.
func (c *attemptClock) linger(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = time.Time{}
	c.dog.Linger(d)
	c.arm(time.Now())
}

// arm makes sure that the timer fires at the next deadline at the latest. The caller holds mu.
func (c *attemptClock) arm(now time.Time) {
	next := c.ends
	for _, at := range [...]time.Time{c.due, c.look(now)} {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if c.over || next.IsZero() || !c.armed.IsZero() && !next.Before(c.armed) {
		return
	}
	c.armed = next
	if d := max(next.Sub(now), 1); c.timer == nil {
		c.timer = time.AfterFunc(d, c.fire)
	} else {
		c.timer.Reset(d)
	}
}

// look is when the watchdog wants to be asked.
func (c *attemptClock) look(now time.Time) time.Time {
	if c.dog == nil {
		return time.Time{}
	}
	_, next := c.dog.Check(now)
	return next
}

func (c *attemptClock) fire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.armed = time.Time{}
	if c.over {
		return
	}
	if p, late := c.late(now); late {
		c.over = true
		c.cancel(deadlineError{p})
		return
	}
	c.arm(now)
}

// late says which time is over.
func (c *attemptClock) late(now time.Time) (phase, bool) {
	switch {
	case !c.due.IsZero() && !now.Before(c.due) && (c.ends.IsZero() || c.due.Before(c.ends)):
		return c.phase, true
	case !c.ends.IsZero() && !now.Before(c.ends):
		return phaseTotal, true
	case c.dog == nil:
		return 0, false
	}
	switch f, _ := c.dog.Check(now); f {
	case watchdog.Idle:
		return phaseIdle, true
	case watchdog.Stalled:
		return phaseStall, true
	case watchdog.TooSlow:
		return phaseSlow, true
	case watchdog.None:
	}
	return 0, false
}

func (c *attemptClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.armed = time.Time{}
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
