package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/route"
)

// slowpokes remembers which connections are to be tried last, while anything else answers: those whose last attempt ended at our
// own deadline, which cools nothing (COOL-33). It lasts for a time that doubles with each failure in a row. An answer forgets it.
// In memory only, like every latency sample (OV-5).
type slowpokes struct {
	any   atomic.Bool // false: nothing is slow, the usual case
	mu    sync.Mutex
	since map[string]slowness // by connection; guarded by mu
}

type slowness struct {
	until time.Time
	noted time.Time
	times int
}

const (
	slowFirst = 30 * time.Second
	slowMax   = 10 * time.Minute
)

// last says whether a connection is to be tried last. When its time is over, one request finds out whether it answers again
// while the others still pass it by.
func (s *slowpokes) last(connection string, now time.Time) bool {
	if !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, known := s.since[connection]
	if known && !now.Before(x.until) {
		x.until = now.Add(slowFirst)
		s.since[connection] = x
		return false
	}
	return known
}

// known is last without its effect.
func (s *slowpokes) known(connection string, now time.Time) bool {
	if !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.since[connection].until)
}

// hung notes an attempt that our own clock ended.
func (s *slowpokes) hung(connection string, began, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.since[connection]
	if began.Before(x.noted) { // the same episode: a request that was already waiting
		return
	}
	if s.since == nil {
		s.since = map[string]slowness{}
	}
	x.until, x.noted = now.Add(min(slowFirst<<min(x.times, 10), slowMax)), now
	x.times++
	s.since[connection] = x
	s.any.Store(true)
}

func (s *slowpokes) answered(connection string) {
	if !s.any.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, connection)
	s.any.Store(len(s.since) > 0)
}

// allLast says whether every connection of a target is to be tried last, so that the next targets come before it.
func (s *slowpokes) allLast(t *catalog.RouteTarget, key *catalog.Key, now time.Time) bool {
	if !s.any.Load() {
		return false
	}
	some := false
	for conn := range route.Candidates(t, key) {
		if !s.known(conn.ID, now) {
			return false
		}
		some = true
	}
	return some
}
