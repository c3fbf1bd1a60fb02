package route

import (
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
)

const (
	keptSamples = 20               // per connection, and per connection and model (SEL-10)
	sampleLife  = 15 * time.Minute // SEL-10
	maxSampled  = 8192             // names of models come from clients, so they are bounded
)

// Samples are the latest attempts of each connection, in memory (SEL-10). The zero value is ready; safe for concurrent use.
type Samples struct {
	mu  sync.Mutex
	all map[sampled]*ring // guarded by mu
}

// sampled names a connection, or one model on it.
type sampled struct{ connection, model string }

// ring holds the last samples, the oldest overwritten.
type ring struct {
	list [keptSamples]sample
	next int
}

// sample is one attempt; at is Unix milliseconds, 0 is no sample.
type sample struct {
	at        int64
	firstByte time.Duration // 0: nothing came
	ok        bool
}

// Summary is what the samples of a connection or target say.
type Summary struct {
	N         int
	ErrorRate float64
	FirstByte time.Duration // mean of the good answers; 0: there was none
}

// Add notes a dispatched attempt: the time to its first byte (of a stream, its first useful one) and how it ended. Aborts of
// clients and local refusals are not to be added (SEL-14).
func (s *Samples) Add(connection, model string, now time.Time, firstByte time.Duration, ok bool) {
	x := sample{now.UnixMilli(), firstByte, ok}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(sampled{connection: connection}, x)
	s.add(sampled{connection, model}, x)
}

// add needs mu.
func (s *Samples) add(k sampled, x sample) {
	r := s.all[k]
	if r == nil {
		if s.all == nil {
			s.all = map[sampled]*ring{}
		}
		if len(s.all) >= maxSampled {
			s.forget(x.at)
		}
		r = &ring{}
		s.all[k] = r
	}
	r.list[r.next] = x
	r.next = (r.next + 1) % keptSamples
}

// forget makes room: what is too old goes, and all of it when that is not enough. It needs mu.
func (s *Samples) forget(now int64) {
	for k, r := range s.all {
		if last := r.list[(r.next+keptSamples-1)%keptSamples]; now-last.at > sampleLife.Milliseconds() {
			delete(s.all, k)
		}
	}
	if len(s.all) >= maxSampled {
		clear(s.all)
	}
}

// Connection sums up a connection, or one model on it.
func (s *Samples) Connection(connection, model string, now time.Time) Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	var t tally
	t.take(s.all[sampled{connection, model}], now)
	return t.summary()
}

// Target sums up the target's model on every connection that it may go to.
func (s *Samples) Target(rt *catalog.RouteTarget, now time.Time) Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	var t tally
	for _, c := range rt.Provider.Connections {
		if rt.Permits(c) {
			t.take(s.all[sampled{c.ID, rt.Model}], now)
		}
	}
	return t.summary()
}

// tally adds samples up.
type tally struct {
	n, good, timed int
	time           time.Duration
}

func (t *tally) take(r *ring, now time.Time) {
	if r == nil {
		return
	}
	oldest := now.Add(-sampleLife).UnixMilli()
	for i := range r.list {
		x := &r.list[i]
		if x.at == 0 || x.at < oldest {
			continue
		}
		t.n++
		if x.ok {
			t.good++
			if x.firstByte > 0 {
				t.timed++
				t.time += x.firstByte
			}
		}
	}
}

func (t *tally) summary() Summary {
	s := Summary{N: t.n}
	if t.n > 0 {
		s.ErrorRate = float64(t.n-t.good) / float64(t.n)
	}
	if t.timed > 0 {
		s.FirstByte = t.time / time.Duration(t.timed)
	}
	return s
}
