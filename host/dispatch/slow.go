package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/sdk/wire"
)

// slowpokes remembers what is to be tried last, while anything else answers: connections whose last attempt ended at our own
// deadline, which cools nothing (COOL-33), and models of a connection that failed for that model alone, which cools no
// connection (CLS-15). It lasts as long as the answer asked, or else for a time that doubles with each failure in a row. An
// answer forgets it. In memory only, like every latency sample (OV-5).
type slowpokes struct {
	any   atomic.Bool // false: nothing is slow, the usual case
	mu    sync.Mutex
	since map[slowKey]slowness // guarded by mu
}

// slowKey names a connection, or one model of it.
type slowKey struct{ connection, model string }

type slowness struct {
	until time.Time
	noted time.Time
	times int
}

const (
	slowFirst = 30 * time.Second
	slowMax   = 10 * time.Minute
	slowMany  = 4096 // names of models come from clients, so they are bounded
)

// last says whether a model of a connection is to be tried last. When its time is over, one request finds out whether it
// answers again while the others still pass it by.
func (s *slowpokes) last(connection, model string, now time.Time) bool {
	if !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out(connection, model, now) {
		return true
	}
	for _, k := range keysOf(connection, model) {
		if x, known := s.since[k]; known {
			x.until = now.Add(slowFirst)
			s.since[k] = x
		}
	}
	return false
}

// known is last without its effect.
func (s *slowpokes) known(connection, model string, now time.Time) bool {
	if !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out(connection, model, now)
}

// out needs mu.
func (s *slowpokes) out(connection, model string, now time.Time) bool {
	for _, k := range keysOf(connection, model) {
		if now.Before(s.since[k].until) {
			return true
		}
	}
	return false
}

func keysOf(connection, model string) [2]slowKey {
	return [...]slowKey{{connection, ""}, {connection, model}}
}

// failed notes an attempt that cools no connection and that nobody should repeat at once: a timeout of our own, or a verdict
// about the model.
func (s *slowpokes) failed(t catalog.Target, v wire.Verdict, own bool, began, now time.Time) {
	switch {
	case own:
		s.note(slowKey{connection: t.Connection.ID}, 0, began, now)
	case v.Scope == wire.ScopeModel && v.Fallback && !v.Rejected && v.Reason != wire.RequestRejected:
		s.note(slowKey{t.Connection.ID, t.Model}, max(v.RetryAfter, v.Cooldown), began, now)
	}
}

func (s *slowpokes) note(k slowKey, wait time.Duration, began, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.since[k]
	if began.Before(x.noted) { // the same episode: a request that was already waiting
		return
	}
	if s.since == nil || len(s.since) >= slowMany {
		s.forget(now)
	}
	if wait <= 0 {
		wait = slowFirst << min(x.times, 10)
	}
	x.until, x.noted = now.Add(min(wait, slowMax)), now
	x.times++
	s.since[k] = x
	s.any.Store(true)
}

// forget makes room: what is over goes, and all of it when that is not enough. It needs mu.
func (s *slowpokes) forget(now time.Time) {
	for k, x := range s.since {
		if !now.Before(x.until) {
			delete(s.since, k)
		}
	}
	if s.since == nil || len(s.since) >= slowMany {
		s.since = map[slowKey]slowness{}
	}
}

func (s *slowpokes) answered(connection, model string) {
	if !s.any.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keysOf(connection, model) {
		delete(s.since, k)
	}
	s.any.Store(len(s.since) > 0)
}

// allLast says whether every connection of a target is to be tried last, so that the next targets come before it.
func (s *slowpokes) allLast(t *catalog.RouteTarget, key *catalog.Key, now time.Time) bool {
	if !s.any.Load() {
		return false
	}
	some := false
	for conn := range route.Candidates(t, key) {
		if !s.known(conn.ID, t.Model, now) {
			return false
		}
		some = true
	}
	return some
}
