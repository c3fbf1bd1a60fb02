package observe

import (
	"math/bits"
	"sync"
	"time"
)

// recent remembers the requests of the last minute, by second, for the status page (OBJ-24). Times are counted in steps of
// about a fifth.
type recent struct {
	mu      sync.Mutex // guards seconds; held for a few additions
	seconds [60]second
}

type second struct {
	at            int64 // Unix seconds
	total, failed uint32
	steps         [steps]uint32
}

// steps is four per doubling, from 1 ms to 2^15 ms (half a minute); longer ones fall into the last.
const steps = 4 * 16

// step returns the place of d: the doubling of its milliseconds and the next two bits.
func step(d time.Duration) int {
	ms := uint64(max(d.Milliseconds(), 1))
	n := bits.Len64(ms) - 1
	fraction := ms << 2 >> n & 3
	return min(4*n+int(fraction), steps-1)
}

// middle is the inverse of step: the least duration of a place.
func middle(s int) time.Duration {
	n, fraction := s/4, s%4
	return time.Duration((1 << n) * (4 + fraction) * int(time.Millisecond) / 4)
}

func (r *recent) add(now time.Time, failed bool, took time.Duration) {
	at := now.Unix()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.seconds[at%60]
	if s.at != at {
		*s = second{at: at}
	}
	s.total++
	if failed {
		s.failed++
	}
	s.steps[step(took)]++
}

func (r *recent) sum(now time.Time) (total, failed int, p50 time.Duration) {
	oldest := now.Unix() - 59
	var all [steps]int
	r.mu.Lock()
	for i := range r.seconds {
		s := &r.seconds[i]
		if s.at < oldest || s.at > now.Unix() {
			continue
		}
		total += int(s.total)
		failed += int(s.failed)
		for j, n := range s.steps {
			all[j] += int(n)
		}
	}
	r.mu.Unlock()
	seen := 0
	for i, n := range all {
		seen += n
		if n > 0 && 2*seen >= total {
			return total, failed, middle(i)
		}
	}
	return total, failed, 0
}
