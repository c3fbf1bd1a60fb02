package plugin

import (
	"encoding/binary"
	"maps"
	"sync"
	"time"
)

// Sizes of kv (ABI-6).
const (
	maxKey   = 256
	maxValue = 64 << 10
)

// space is the key-value room of one plugin name: shared by all its instances and kept over reloads. Safe for concurrent
// use.
type space struct {
	mu      sync.Mutex
	entries map[string]entry // guarded by mu
	bytes   int              // of keys and values, guarded by mu
}

type entry struct {
	value []byte
	ends  time.Time // zero: never
}

func (e entry) over(now time.Time) bool { return !e.ends.IsZero() && !now.Before(e.ends) }

func newSpace() *space { return &space{entries: map[string]entry{}} }

// get returns the value of key; it must not be changed.
func (s *space) get(key string, now time.Time) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok || e.over(now) {
		return nil, false
	}
	return e.value, true
}

// set stores value, or returns false when the plugin's room of quota bytes does not hold it. ttl 0 means for ever.
func (s *space) set(key string, value []byte, ttl time.Duration, quota int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(key, value, ends(now, ttl), quota, now)
}

// add adds delta to the counter at key and returns it. A value that is no counter, and one that has ended, counts as 0. The
// time to live is that of the first add.
func (s *space) add(key string, delta int64, ttl time.Duration, quota int, now time.Time) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok || e.over(now) || len(e.value) != 8 {
		e = entry{value: make([]byte, 8), ends: ends(now, ttl)}
	}
	n := int64(binary.LittleEndian.Uint64(e.value)) + delta
	if !s.put(key, binary.LittleEndian.AppendUint64(nil, uint64(n)), e.ends, quota, now) {
		return 0, false
	}
	return n, true
}

// put needs mu held.
func (s *space) put(key string, value []byte, until time.Time, quota int, now time.Time) bool {
	grow := len(key) + len(value)
	if old, ok := s.entries[key]; ok {
		grow -= len(key) + len(old.value)
	}
	if s.bytes+grow > quota {
		s.sweep(now)
		grow = len(key) + len(value)
		if old, ok := s.entries[key]; ok {
			grow -= len(key) + len(old.value)
		}
		if s.bytes+grow > quota {
			return false
		}
	}
	s.entries[key] = entry{value: append([]byte(nil), value...), ends: until}
	s.bytes += grow
	return true
}

// sweep drops what has ended. It needs mu held.
func (s *space) sweep(now time.Time) {
	maps.DeleteFunc(s.entries, func(k string, e entry) bool {
		if e.over(now) {
			s.bytes -= len(k) + len(e.value)
			return true
		}
		return false
	})
}

func ends(now time.Time, ttl time.Duration) time.Time {
	if ttl <= 0 {
		return time.Time{}
	}
	return now.Add(ttl)
}
