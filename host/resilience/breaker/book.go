package breaker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/store"
)

const (
	// maxBreakers is how many breakers are kept (BRK-42).
	maxBreakers = 500
	// writeEvery is how often counts are journaled when nothing else happens (BRK-41).
	writeEvery = 5 * time.Second
)

// moment is the stored time ms; the zero time when it is 0.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// hold returns the cell of a provider with its lock held, or nil when there is no room for another one.
func (g *Gate) hold(at resilience.Moment, provider string) *cell {
	for {
		c := g.cells.Get(provider)
		if c == nil {
			if c = g.add(at, provider); c == nil {
				return nil
			}
		}
		c.mu.Lock()
		if !c.gone {
			return c
		}
		c.mu.Unlock()
	}
}

// add makes the cell of a provider, and room for it first.
func (g *Gate) add(at resilience.Moment, provider string) *cell {
	g.room.Lock()
	defer g.room.Unlock()
	if c := g.cells.Get(provider); c != nil {
		return c
	}
	if g.cells.Len() >= maxBreakers && !g.prune(at, true) {
		return nil
	}
	return g.cells.Make(provider)
}

// idle says whether a breaker is closed at this moment and nothing happened to it for half an hour (BRK-42). Without a
// catalogue, as in a restore, a degraded one is not known to have closed.
func (s *State) idle(at resilience.Moment, id string) bool {
	now := *s
	if at.Catalog != nil && s.Phase == Degraded {
		pr := profileOf(at, s.provider(at, id))
		now = s.at(&pr, at.Now.UnixMilli())
	}
	return now.Phase == Closed && at.Now.UnixMilli()-now.Touched >= forgetAfter.Milliseconds()
}

// prune drops idle breakers, and with one also the oldest that is closed and counted nothing when that made no room;
// never one that is open (BRK-42). It says whether any went. It is called with room held.
func (g *Gate) prune(at resilience.Moment, one bool) bool {
	var gone []string
	oldest, touched := "", int64(0)
	for id, c := range g.cells.All() {
		switch s := c.state.Load(); {
		case s == nil:
		case s.idle(at, id):
			gone = append(gone, id)
		case s.resting() && (oldest == "" || s.Touched < touched):
			oldest, touched = id, s.Touched
		}
	}
	if len(gone) == 0 && one && oldest != "" {
		gone = []string{oldest}
	}
	gone = slices.DeleteFunc(gone, func(id string) bool { return !g.retire(at, id) })
	if len(gone) > 0 {
		g.cells.Drop(gone...)
	}
	return len(gone) > 0
}

// retire marks a cell as gone, unless it changed in the meantime.
func (g *Gate) retire(at resilience.Moment, id string) bool {
	c := g.cells.Get(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state.Load()
	if !s.resting() && !s.idle(at, id) {
		return false
	}
	c.gone = true
	raise(&g.floor, s.Revision)
	if s.Generation > 0 { // it was open once: what began before that is late for the next one, too
		raise(&g.life, s.Generation+1)
	}
	return true
}

// raise makes v at least n.
func raise(v *atomic.Uint64, n uint64) {
	for old := v.Load(); old < n && !v.CompareAndSwap(old, n); {
		old = v.Load()
	}
}

// change replaces the state of a breaker by what next makes of it, under its lock, and returns the event: of every
// transition, and of counts at most every 5 s (BRK-41).
func (g *Gate) change(at resilience.Moment, provider string, next func(State) State) []store.Event {
	now := at.Now.UnixMilli()
	c := g.hold(at, provider)
	if c == nil {
		return nil
	}
	defer c.mu.Unlock()
	before := State{Revision: g.floor.Load(), Generation: g.life.Load()}
	if s := c.state.Load(); s != nil {
		before = *s
	}
	after := next(before)
	moved := after.Generation != before.Generation || !slices.Equal(before.History, after.History)
	if !moved && after.Touched == before.Touched && after.Count == before.Count && after.Kinds == before.Kinds {
		if c.state.Load() == nil {
			c.state.Store(&before) // a cell without a failure, as the first one was a repetition
		}
		return nil
	}
	after.Revision = before.Revision + 1
	c.state.Store(&after)
	if after.Generation != before.Generation {
		c.probe = 0
	}
	if !moved && now-c.wrote < writeEvery.Milliseconds() && c.wrote <= now {
		c.pending = true
		return nil
	}
	kind := KindCounted
	if moved {
		kind = KindChanged
	}
	return c.event(kind, provider, now, after)
}

// event notes that the state is written. It is called with mu held.
func (c *cell) event(kind, provider string, now int64, s State) []store.Event {
	c.wrote, c.pending = now, false
	e := store.Event{At: now, Kind: kind, Key: provider, Revision: s.Revision, Provider: provider, Data: encode(s), Version: 1}
	if s.Cause != nil && s.Cause.At == now {
		e.RequestID = s.Cause.RequestID
	}
	return []store.Event{e}
}

// Pending returns the counts that have waited 5 s for the journal, and drops breakers that nothing happened to for half an
// hour (BRK-41, BRK-42). The host calls it every few seconds.
func (g *Gate) Pending(at resilience.Moment) []store.Event {
	now := at.Now.UnixMilli()
	g.room.Lock()
	g.prune(at, false)
	g.room.Unlock()
	var out []store.Event
	for id, c := range g.cells.All() {
		c.mu.Lock()
		if c.pending && !c.gone && now-c.wrote >= writeEvery.Milliseconds() {
			out = append(out, c.event(KindCounted, id, now, *c.state.Load())...)
		}
		c.mu.Unlock()
	}
	return out
}

// Apply brings the breaker of e.Key to what e says. An older revision is dropped, an event of another kind ignored; one
// that cannot be read is an error and changes nothing.
func (g *Gate) Apply(e store.Event) error {
	switch e.Kind {
	case KindChanged, KindCounted:
	default:
		return nil
	}
	if e.Key == "" {
		return errors.New("breaker event without key")
	}
	s, err := decode(e.Key, e.Data, g.clock().UnixMilli())
	if err != nil {
		return err
	}
	s.Revision = e.Revision
	g.put(e.Key, s)
	return nil
}

// put stores s unless a state that is not older is there.
func (g *Gate) put(provider string, s State) {
	c := g.hold(resilience.Moment{Now: g.clock()}, provider)
	if c == nil {
		raise(&g.floor, s.Revision)
		return
	}
	defer c.mu.Unlock()
	present := c.state.Load()
	if present != nil && present.Revision >= s.Revision {
		return
	}
	s.Generation = g.life.Load() + 1
	if present != nil {
		s.Generation = present.Generation + 1
	}
	c.probe = 0
	c.state.Store(&s)
}

// entry is one breaker of a snapshot.
type entry struct {
	Provider string          `json:"provider"`
	Revision uint64          `json:"revision"`
	State    json.RawMessage `json:"state"`
}

// Snapshot returns all breakers as one JSON document, by provider id; nil when there are none.
func (g *Gate) Snapshot() ([]byte, error) {
	var all []entry
	for id, c := range g.cells.All() {
		if s := c.state.Load(); s != nil {
			all = append(all, entry{Provider: id, Revision: s.Revision, State: encode(*s)})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortFunc(all, func(x, y entry) int { return cmp.Compare(x.Provider, y.Provider) })
	return json.Marshal(all)
}

// Restore takes over the breakers of a snapshot, each unless a newer revision of it is here; an open one keeps its
// remaining hold (OV-5). One that cannot be read is left out and reported; the others hold.
func (g *Gate) Restore(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var all []entry
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	var faults []error
	for _, e := range all {
		s, err := decode(e.Provider, e.State, g.clock().UnixMilli())
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.Revision = e.Revision
		g.put(e.Provider, s)
	}
	return errors.Join(faults...)
}
