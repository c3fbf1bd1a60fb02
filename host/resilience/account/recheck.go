package account

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/store"
)

const (
	// ExpiredRetryMax is EXPIRED_RETRY_MAX: how often an expired connection is retried before that is final (COOL-53).
	ExpiredRetryMax = 3
	firstRetry      = 5 * time.Minute
	longestRetry    = 240 * time.Minute
	// longestRecheck is the longest time between two tests of a terminal state (COOL-59).
	longestRecheck = 24 * time.Hour
)

// Rechecked says whether a status of c is tested from time to time (COOL-59): an account without credit may have been
// charged, and credentials that expired may hold again. A ban is never tested.
func Rechecked(s Status, c *catalog.Connection) bool {
	return s == CreditsExhausted || s == Expired && len(c.Secrets) > 0
}

// Scheduled is a terminal record with the time of its first test: interval after now, or none when interval is 0.
func (s State) Scheduled(c *catalog.Connection, now int64, interval time.Duration) State {
	if interval > 0 && Rechecked(s.TestStatus, c) {
		s.RecheckAt, s.Rechecks = now+min(interval, longestRecheck).Milliseconds(), 0
	}
	return s
}

// NextCheck is when the terminal state of c is to be tested next, in Unix milliseconds; 0: never by itself. It is the next
// retry of expired tokens, while there are any left (COOL-53), or the next re-check, whichever comes first (COOL-59).
func (s State) NextCheck(c *catalog.Connection) int64 {
	if !Rechecked(s.TestStatus, c) {
		return 0
	}
	next := s.RecheckAt
	if retry := s.nextRetry(c); retry != 0 && (next == 0 || retry < next) {
		next = retry
	}
	return next
}

// nextRetry is when expired tokens may be tried next: before retry n, n from 0, at least 5 minutes doubled n times must have
// passed (COOL-53). 0: there is nothing to refresh, or that was tried often enough.
func (s State) nextRetry(c *catalog.Connection) int64 {
	if s.TestStatus != Expired || s.ExpiredRetryCount >= ExpiredRetryMax || !c.Secrets[catalog.SecretRefreshToken].Set() {
		return 0
	}
	return max(s.Since, s.ExpiredRetryAt) + doubled(firstRetry, s.ExpiredRetryCount, longestRetry).Milliseconds()
}

// Unhealed records that a test of c's terminal state failed at a time when one was due: a retry is counted, and the next
// re-check comes after twice the time. Interval is the time to the first one. A state that a test is not due for is not
// changed.
func (b *Book) Unhealed(at resilience.Moment, c *catalog.Connection, interval time.Duration) []store.Event {
	now := at.Now.UnixMilli()
	return b.Change(at, About{Connection: c.ID, Provider: c.Provider}, func(s State) (State, string) {
		due := false
		if retry := s.nextRetry(c); retry != 0 && retry <= now {
			s.ExpiredRetryCount, s.ExpiredRetryAt, due = s.ExpiredRetryCount+1, now, true
		}
		if Rechecked(s.TestStatus, c) && s.RecheckAt != 0 && s.RecheckAt <= now {
			s.Rechecks++
			s.RecheckAt, due = now+doubled(interval, s.Rechecks, longestRecheck).Milliseconds(), true
		}
		if !due {
			return s, ""
		}
		return s, KindTerminal
	})
}

// Schedule gives a terminal state of c the time of its first test when it has none, for states that were written while
// re-checks were off.
func (b *Book) Schedule(at resilience.Moment, c *catalog.Connection, interval time.Duration) []store.Event {
	if s := b.Peek(c.ID); s == nil || s.RecheckAt != 0 || !Rechecked(s.TestStatus, c) {
		return nil
	}
	return b.Change(at, About{Connection: c.ID, Provider: c.Provider}, func(s State) (State, string) {
		next := s.Scheduled(c, at.Now.UnixMilli(), interval)
		if s.RecheckAt != 0 || next.RecheckAt == 0 {
			return s, ""
		}
		return next, KindTerminal
	})
}
