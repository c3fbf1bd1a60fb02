package plugin

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
)

// Sizes of kv (ABI-6). A key costs memory beyond the bytes that count for the quota, so their number is bounded too.
const (
	maxKey   = 256
	maxValue = 64 << 10
	maxKeys  = 1 << 16
)

// KVStore keeps the kv of plugins over restarts. Its methods are called by one goroutine at a time for one plugin.
type KVStore interface {
	// Load returns what is kept for a plugin, in any order.
	Load(ctx context.Context, plugin string) ([]KVEntry, error)
	// Save writes entries, at most 256 with 512 KiB of keys and values; after an error all come again. Values must not be
	// changed or kept.
	Save(ctx context.Context, plugin string, changes []KVEntry) error
}

// KVEntry is one key of a plugin.
type KVEntry struct {
	Key   string // any bytes
	Value []byte
	Ends  time.Time // zero: never
	Gone  bool      // to be deleted
}

// What one Save holds.
const (
	saveEntries = 256
	saveBytes   = 512 << 10
)

// space is the key-value room of one plugin name: shared by all its instances and kept over reloads. Safe for concurrent
// use.
type space struct {
	lent *lent // what the host does for this plugin, nil: nothing

	mu      sync.Mutex
	entries map[string]entry    // guarded by mu
	bytes   int                 // of keys and values, guarded by mu
	changed map[string]struct{} // keys that the store does not have as they are, nil: there is no store; guarded by mu
	wake    func()              // tells the writer that something changed; nil with changed

	load   sync.Mutex
	loaded bool // guarded by load
}

type entry struct {
	value  []byte
	ends   time.Time // zero: never
	stored bool      // the store may have an entry of this key
}

func (e entry) over(now time.Time) bool { return !e.ends.IsZero() && !now.Before(e.ends) }

func newSpace() *space { return &space{entries: map[string]entry{}} }

// get returns the value of key; it must not be changed. The key is not kept.
func (s *space) get(key string, now time.Time) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok || e.over(now) {
		return nil, false
	}
	return e.value, true
}

// set stores value, or returns false when the plugin's room of quota bytes does not hold it. ttl 0 means for ever. Neither
// key nor value is kept: the room has copies.
func (s *space) set(key string, value []byte, ttl time.Duration, quota int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(key, append([]byte(nil), value...), ends(now, ttl), quota, now)
}

// add adds delta to the counter at key and returns it; one that has ended counts as 0, and the time to live is that of the
// first add. It returns false, and changes nothing, for a value that is no counter of eight bytes, for a sum outside of
// what 64 bits hold, and without room. The smallest number is no sum: it stands for the error.
func (s *space) add(key string, delta int64, ttl time.Duration, quota int, now time.Time) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok || e.over(now) {
		e = entry{value: make([]byte, 8), ends: ends(now, ttl)}
	}
	if len(e.value) != 8 {
		return 0, false
	}
	old := int64(binary.LittleEndian.Uint64(e.value))
	n := old + delta
	if (n > old) != (delta > 0) && delta != 0 || n == math.MinInt64 {
		return 0, false
	}
	if !s.put(key, binary.LittleEndian.AppendUint64(nil, uint64(n)), e.ends, quota, now) {
		return 0, false
	}
	return n, true
}

// put keeps value, and a copy of key. It needs mu held.
func (s *space) put(key string, value []byte, until time.Time, quota int, now time.Time) bool {
	if !s.fits(key, value, quota) {
		s.sweep(now)
		if !s.fits(key, value, quota) {
			return false
		}
	}
	e := entry{value: value, ends: until}
	if old, ok := s.entries[key]; ok {
		e.stored = old.stored
		s.bytes -= len(key) + len(old.value)
	} else {
		_, e.stored = s.changed[key] // its deletion is not written yet
	}
	key = strings.Clone(key)
	s.entries[key] = e
	s.bytes += len(key) + len(value)
	s.mark(key)
	return true
}

// fits says whether there is room. It needs mu held.
func (s *space) fits(key string, value []byte, quota int) bool {
	size := len(key) + len(value)
	old, ok := s.entries[key]
	if ok {
		size -= len(key) + len(old.value)
	}
	return s.bytes+size <= quota && (ok || len(s.entries) < maxKeys)
}

// mark notes that the store has key otherwise. It needs mu held.
func (s *space) mark(key string) {
	if s.changed != nil {
		s.changed[key] = struct{}{}
		s.wake()
	}
}

// sweep drops what has ended, here and in the store. It needs mu held.
func (s *space) sweep(now time.Time) {
	for k, e := range s.entries {
		if !e.over(now) {
			continue
		}
		delete(s.entries, k)
		s.bytes -= len(k) + len(e.value)
		if e.stored {
			s.mark(k)
		} else {
			delete(s.changed, k)
		}
	}
}

func ends(now time.Time, ttl time.Duration) time.Time {
	if ttl <= 0 {
		return time.Time{}
	}
	return now.Add(ttl)
}

// take returns changes for one Save, none when the store is up to date.
func (s *space) take() []KVEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []KVEntry
	size := 0
	for k := range s.changed {
		e, ok := s.entries[k]
		if size += len(k) + len(e.value); len(list) == saveEntries || size > saveBytes {
			break
		}
		delete(s.changed, k)
		if ok {
			e.stored = true
			s.entries[k] = e
		}
		list = append(list, KVEntry{Key: k, Value: e.value, Ends: e.ends, Gone: !ok})
	}
	return list
}

// untake notes that changes were not saved.
func (s *space) untake(list []KVEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range list {
		s.changed[c.Key] = struct{}{}
	}
}

// restore takes in what the store kept. What a guest has set since then is newer, and what has ended goes from the store.
func (s *space) restore(list []KVEntry, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range list {
		e := entry{value: c.Value, ends: c.Ends, stored: true}
		old, newer := s.entries[c.Key]
		switch {
		case newer:
			old.stored = true
			s.entries[c.Key] = old
		case e.over(now):
			s.mark(c.Key)
		default:
			s.entries[c.Key] = e
			s.bytes += len(c.Key) + len(c.Value)
		}
	}
}

// The times of the writer: calls that come together are written together, within a second of the first (ABI-6).
const (
	writeAfter = 500 * time.Millisecond
	sweepEvery = 10 * time.Second
	retryAfter = time.Second
	retryMost  = 30 * time.Second
	storeTime  = 5 * time.Second
)

// rooms are the spaces of all plugin names, with the writer that keeps them. Safe for concurrent use.
type rooms struct {
	ports  Ports
	secret func(plugin, name string) catalog.Secret
	now    func() time.Time
	log    *slog.Logger
	wake   chan struct{}

	mu     sync.Mutex
	byName map[string]*space // guarded by mu
}

func newRooms(p Ports, secret func(plugin, name string) catalog.Secret, now func() time.Time, log *slog.Logger) *rooms {
	return &rooms{ports: p, secret: secret, now: now, log: log, wake: make(chan struct{}, 1), byName: map[string]*space{}}
}

// space returns the room of a plugin name, with what the store kept of it. A store that cannot be read is asked again at the
// next load of the plugin.
func (r *rooms) space(name string) *space {
	r.mu.Lock()
	s := r.byName[name]
	if s == nil {
		s = newSpace()
		s.lent = newLent(name, &r.ports, r.secret)
		if r.ports.KV != nil {
			s.changed, s.wake = map[string]struct{}{}, r.poke
		}
		r.byName[name] = s
	}
	r.mu.Unlock()
	if r.ports.KV == nil {
		return s
	}
	s.load.Lock()
	defer s.load.Unlock()
	if s.loaded {
		return s
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTime)
	defer stop()
	list, err := r.ports.KV.Load(ctx, name)
	if err != nil {
		r.log.Warn("the kept keys of a plugin cannot be read; it starts without them", "plugin", name, "error", err)
		return s
	}
	s.restore(list, r.now())
	s.loaded = true
	return s
}

func (r *rooms) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// keep writes behind the calls until ctx ends. While the store does not write, kv lives in memory.
func (r *rooms) keep(ctx context.Context) {
	if r.ports.KV == nil {
		return
	}
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	pause := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			for _, s := range r.all() {
				s.mu.Lock()
				s.sweep(r.now())
				s.mu.Unlock()
			}
			continue
		case <-r.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(pause, writeAfter)):
		}
		err := r.save(ctx)
		switch {
		case err == nil && pause > 0:
			r.log.Info("the keys of plugins are kept again")
			pause = 0
		case err != nil && ctx.Err() == nil:
			if pause == 0 {
				r.log.Warn("the keys of plugins are not written; they live in memory until the store writes again", "error", err)
			}
			pause = min(max(2*pause, retryAfter), retryMost)
			r.poke()
		}
	}
}

func (r *rooms) all() map[string]*space {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.byName)
}

// save writes what has changed since the last time. One plugin's fault keeps none of the others' keys back.
func (r *rooms) save(ctx context.Context) error {
	var faults []error
	for name, s := range r.all() {
		for list := s.take(); len(list) > 0; list = s.take() {
			bounded, stop := context.WithTimeout(ctx, storeTime)
			err := r.ports.KV.Save(bounded, name, list)
			stop()
			if err != nil {
				s.untake(list)
				faults = append(faults, err)
				break
			}
		}
	}
	return errors.Join(faults...)
}

// close writes for the last time. keep must have ended.
func (r *rooms) close(ctx context.Context) error {
	if r.ports.KV == nil {
		return nil
	}
	return r.save(ctx)
}
