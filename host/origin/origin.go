// Package origin owns the memory of which account issued an opaque value that a client sends back later: state that only its issuer
// can read (TR-18, SCN-16). It is pure: the time is an argument.
package origin

import (
	"crypto/sha256"
	"sync"
	"time"
)

// What is remembered at most, and for how long.
const (
	MaxEntries = 65_536
	Life       = 24 * time.Hour
)

// Place is the account that issued a value.
type Place struct{ Provider, Connection string }

// digest stands for a value, which is never kept.
type digest [16]byte

type entry struct {
	place Place
	until time.Time
}

// Record remembers up to MaxEntries values for Life each; the oldest goes first. The zero value is ready. Safe for concurrent use.
type Record struct {
	mu    sync.RWMutex
	of    map[digest]entry // guarded by mu
	queue []digest         // in the order of issue, from head on and around; guarded by mu
	head  int              // of the oldest, once the queue is full; guarded by mu
}

// Keep remembers that a value was issued at a place. A value that is known already keeps its place and its end.
func (r *Record) Keep(value []byte, at Place, now time.Time) {
	if len(value) == 0 {
		return
	}
	d := digestOf(value)
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known := r.of[d]
	if known && now.Before(e.until) {
		return
	}
	if r.of == nil {
		r.of = map[digest]entry{}
	}
	r.of[d] = entry{at, now.Add(Life)}
	switch {
	case known: // it stands in the queue
	case len(r.queue) < MaxEntries:
		r.queue = append(r.queue, d)
	default:
		delete(r.of, r.queue[r.head])
		r.queue[r.head] = d
		r.head = (r.head + 1) % MaxEntries
	}
}

// Find is where a value was issued; false: nobody knows, or no longer.
func (r *Record) Find(value []byte, now time.Time) (Place, bool) {
	if len(value) == 0 {
		return Place{}, false
	}
	d := digestOf(value)
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, known := r.of[d]
	if !known || !now.Before(e.until) {
		return Place{}, false
	}
	return e.place, true
}

// Empty says whether nothing was ever remembered, so that there is nothing to look for.
func (r *Record) Empty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.of) == 0
}

func digestOf(value []byte) digest {
	sum := sha256.Sum256(value)
	return digest(sum[:16])
}
