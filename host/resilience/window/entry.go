package window

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// entry is what is known of one provider or connection. Its fields change under the gate's lock; the atomic ones are read
// without it. Times are Unix milliseconds.
type entry struct {
	until atomic.Pointer[cooling] // nil: not cooling
	busy  atomic.Bool             // there is something to clear

	owner    string  // of a connection: its provider
	failures []int64 // of a provider, within the window, oldest first
	count    int     // of a connection
	failedAt int64
	reason   wire.Reason
}

// cooling is a cooldown.
type cooling struct {
	since, end int64
	reason     wire.Reason
}

// refusal is why an attempt may not go there at now; nil for no entry and for one that does not cool.
func (e *entry) refusal(now int64) *resilience.Refusal {
	if e == nil {
		return nil
	}
	c := e.until.Load()
	if c == nil || now >= c.end {
		return nil
	}
	return &resilience.Refusal{
		Gate: Name, Reason: c.reason, Wait: resilience.WaitTransient,
		Since: time.UnixMilli(c.since).UTC(), RetryAt: time.UnixMilli(c.end).UTC(),
	}
}

func (e *entry) cools(now int64) bool {
	c := e.until.Load()
	return c != nil && now < c.end
}

// provider notes a failure of a provider; the one that fills the window starts the cooldown, and those that come while it
// runs move nothing (PCD-3).
func (e *entry) provider(now int64, w settings.WindowProfile, reason wire.Reason) {
	if e.old(now) {
		e.failures = nil
	}
	from := now - w.Window.Milliseconds()
	kept := slices.DeleteFunc(e.failures, func(at int64) bool { return at <= from })
	kept = append(kept, now)
	e.failures = kept[max(0, len(kept)-w.Threshold):]
	e.failed(now, reason)
	if len(e.failures) >= w.Threshold && !e.cools(now) {
		e.cool(now, w.Cooldown)
	}
}

// connection notes a failure of a connection: the cooldown doubles with each (PCD-5). Failures that come while it runs are
// of the same episode, as for the connection's own cooldown (COOL-16).
func (e *entry) connection(now int64, shortest, longest time.Duration, reason wire.Reason) {
	if e.cools(now) {
		return
	}
	if e.old(now) {
		e.count = 0
	}
	e.count++
	e.failed(now, reason)
	e.cool(now, doubled(shortest, e.count-1, longest))
}

// doubled is d doubled n times, at most longest.
func doubled(d time.Duration, n int, longest time.Duration) time.Duration {
	for range n {
		if d <= 0 || d >= longest {
			break
		}
		d *= 2
	}
	return min(d, longest)
}

func (e *entry) failed(now int64, reason wire.Reason) {
	e.failedAt, e.reason = now, reason
	e.busy.Store(true)
}

func (e *entry) cool(now int64, d time.Duration) {
	if d > 0 {
		e.until.Store(&cooling{since: now, end: now + d.Milliseconds(), reason: e.reason})
	}
}

func (e *entry) clear() {
	e.failures, e.count = nil, 0
	e.until.Store(nil)
	e.busy.Store(false)
}

// old says whether nothing happened for so long that the entry is dropped (PCD-7). A cooldown that runs is kept.
func (e *entry) old(now int64) bool {
	return !e.busy.Load() || now-e.failedAt >= forgetAfter.Milliseconds() && !e.cools(now)
}
