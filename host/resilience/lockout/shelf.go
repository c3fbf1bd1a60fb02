package lockout

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/store"
)

// Limit is how many lockouts are kept at most (LOCK-31).
const Limit = 1000

// sweepEvery is how often expired entries are removed (LOCK-31).
const sweepEvery = 15 * time.Second

// find returns the entry of a connection with that id, or nil.
func (g *Gate) find(connection string, k id) *entry { return g.on(connection)[k] }

// put replaces the entry with e's id, or adds e. When there are too many, the oldest expired one makes room; with none
// expired e is left out, since one that is active never goes (LOCK-31). It needs mu.
func (g *Gate) put(e *entry, now int64) bool {
	if g.find(e.Connection, e.id()) == nil {
		if g.held.Load() >= Limit && !g.evict(now) {
			return false
		}
		g.held.Add(1)
	}
	kept := maps.Clone(g.on(e.Connection))
	if kept == nil {
		kept = map[id]*entry{}
	}
	kept[e.id()] = e
	g.shelves.Make(e.Connection).entries.Store(&kept)
	g.revision.Store(max(g.revision.Load(), e.Revision))
	return true
}

// evict removes the entry whose lock ended first. It needs mu.
func (g *Gate) evict(now int64) bool {
	var oldest *entry
	for _, s := range g.shelves.All() {
		for _, e := range all(s) {
			if !e.locked(now) && (oldest == nil || e.Until < oldest.Until || e.Until == oldest.Until && e.Revision < oldest.Revision) {
				oldest = e
			}
		}
	}
	if oldest == nil {
		return false
	}
	g.remove(oldest.Connection, func(e *entry) bool { return e == oldest })
	return true
}

// remove takes the entries out that out names and returns them, in the order of their keys. It needs mu.
func (g *Gate) remove(connection string, out func(*entry) bool) []*entry {
	var removed []*entry
	kept := map[id]*entry{}
	for k, e := range g.on(connection) {
		if out(e) {
			removed = append(removed, e)
		} else {
			kept[k] = e
		}
	}
	slices.SortFunc(removed, func(a, b *entry) int { return cmp.Compare(a.key(), b.key()) })
	if len(removed) > 0 {
		g.shelves.Make(connection).entries.Store(&kept)
		g.held.Add(-int64(len(removed)))
	}
	return removed
}

// sweepAtTimes sweeps when the last time is long enough ago.
func (g *Gate) sweepAtTimes(now time.Time) {
	if now.UnixMilli()-g.swept.Load() < sweepEvery.Milliseconds() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(now)
}

// sweep removes what has expired, at most every 15 seconds. Nothing is journaled: whoever replays finds the end in the
// entry. It needs mu.
func (g *Gate) sweep(now time.Time) {
	ms := now.UnixMilli()
	if ms-g.swept.Load() < sweepEvery.Milliseconds() {
		return
	}
	g.swept.Store(ms)
	for connection, s := range g.shelves.All() {
		if len(all(s)) > 0 {
			g.remove(connection, func(e *entry) bool { return e.expired(ms) })
		}
	}
}

// Sweep removes lockouts and counts that have expired at now, unless that was done within 15 seconds (LOCK-31). The host
// calls it where no traffic does.
func (g *Gate) Sweep(now time.Time) {
	if g.held.Load() > 0 {
		g.sweepAtTimes(now)
	}
}

func all(s *shelf) map[id]*entry {
	if p := s.entries.Load(); p != nil {
		return *p
	}
	return nil
}

// decay halves the counts of every key that takes out t's model; at 0 the lockout is deleted (LOCK-28, LOCK-29). An end that
// somebody named holds against answers of attempts that began before it was written.
func (g *Gate) decay(at resilience.Moment, t catalog.Target, generation uint64, o resilience.Outcome) []store.Event {
	some := false
	each(g.on(t.Connection.ID), at, t, func(*entry) { some = true })
	if !some {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := at.Now.UnixMilli()
	var changed []store.Event
	each(g.on(t.Connection.ID), at, t, func(e *entry) {
		if e.Explicit && e.locked(now) && e.Fence > generation {
			return
		}
		next, kind := *e, KindDecayed
		next.Count /= 2
		next.Revision = g.revision.Load() + 1
		if next.Count == 0 {
			kind = KindCleared
			g.drop(e, &next)
		} else {
			g.put(&next, now)
		}
		changed = append(changed, g.event(at, kind, &next, t.Model, o.Cause.RequestID)...)
	})
	return changed
}

// drop removes e and makes next what the journal says about it. It needs mu.
func (g *Gate) drop(e, next *entry) {
	g.remove(e.Connection, func(x *entry) bool { return x == e })
	*next = entry{Provider: e.Provider, Connection: e.Connection, Shape: e.Shape, Model: e.Model, Revision: next.Revision}
	g.revision.Store(next.Revision)
}

// event tells of e as it is now; nothing while lockouts are kept in memory only (LOCK-30).
func (g *Gate) event(at resilience.Moment, kind string, e *entry, model, requestID string) []store.Event {
	if g.memory.Load() {
		return nil
	}
	data, err := json.Marshal(e)
	if err != nil {
		panic(err) // an entry has nothing that could not be encoded
	}
	return []store.Event{{
		At: at.Now.UnixMilli(), Kind: kind, Key: e.key(), Revision: e.Revision, Provider: e.Provider, ConnectionID: e.Connection,
		Model: model, RequestID: requestID, Data: data, Version: 1,
	}}
}
