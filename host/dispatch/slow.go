package dispatch

import (
	"sync"
	"sync/atomic"
	"time"
)

// slowpokes remembers connections whose last attempt ended at our own deadline. Such a timeout cools nothing (COOL-33), but
// while another connection answers, nobody should wait for that one again: it is tried last, for a time that doubles with
// each timeout in a row. An answer forgets it. In memory only, like every latency sample (OV-5).
type slowpokes struct {
	any   atomic.Bool // false: nothing is slow, the usual case
	mu    sync.Mutex
	since map[string]slowness // guarded by mu
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
	if !known || now.Before(x.until) {
		return known
	}
	x.until = now.Add(slowFirst)
	s.since[connection] = x
	return false
}

func (s *slowpokes) timedOut(connection string, began, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since = map[string]slowness{}
	}
	x := s.since[connection]
	if began.Before(x.noted) { // the same episode: a request that was already waiting
		return
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

// known is last without its effect.
func (s *slowpokes) known(connection string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.since[connection].until)
}
