package lockout

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirgate/weir/store"
)

// Apply brings one lockout to what e says. An older revision is dropped, an event of another kind ignored; one that cannot
// be read is an error and changes nothing. Revisions count the changes of all lockouts together, so that one that was
// cleared and locked again is newer than its clearing.
func (g *Gate) Apply(e store.Event) error {
	switch e.Kind {
	case KindSet, KindDecayed, KindCleared:
	default:
		return nil
	}
	if g.memory.Load() {
		return nil
	}
	var x entry
	if err := json.Unmarshal(e.Data, &x); err != nil {
		return fmt.Errorf("lockout %s: %w", e.Key, err)
	}
	if err := x.valid(); err != nil {
		return err
	}
	x.Revision = e.Revision
	g.mu.Lock()
	defer g.mu.Unlock()
	g.take(&x, e.At)
	return nil
}

// take stores x as it was at now, unless something newer is there. It needs mu.
func (g *Gate) take(x *entry, now int64) {
	g.revision.Store(max(g.revision.Load(), x.Revision))
	present := g.find(x.Connection, x.id())
	switch {
	case present != nil && present.Revision >= x.Revision:
	case !x.gone():
		g.put(x, now)
	case present != nil:
		g.remove(x.Connection, func(e *entry) bool { return e == present })
	}
}

// snapshot is the gate as JSON.
type snapshot struct {
	Revision uint64   `json:"revision"`
	Lockouts []*entry `json:"lockouts"`
}

// Snapshot returns all lockouts and counts (LOCK-30); nil while they are kept in memory only.
func (g *Gate) Snapshot() ([]byte, error) {
	if g.memory.Load() {
		return nil, nil
	}
	g.mu.Lock()
	s := snapshot{Revision: g.revision.Load(), Lockouts: []*entry{}}
	for _, shelf := range g.shelves.All() {
		s.Lockouts = slices.AppendSeq(s.Lockouts, maps.Values(all(shelf)))
	}
	g.mu.Unlock()
	slices.SortFunc(s.Lockouts, func(a, b *entry) int { return cmp.Compare(a.key(), b.key()) })
	return json.Marshal(s)
}

// Restore takes the lockouts of a snapshot over, each unless a newer revision of it is here. Ends are absolute, so a lock
// keeps its remaining time. One that cannot be used is left out and reported; the others hold.
func (g *Gate) Restore(b []byte) error {
	if g.memory.Load() || len(b) == 0 {
		return nil
	}
	var s snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("lockouts: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.revision.Store(max(g.revision.Load(), s.Revision))
	var faults []error
	for _, e := range s.Lockouts {
		if e == nil {
			continue
		}
		if err := e.valid(); err != nil {
			faults = append(faults, err)
			continue
		}
		g.take(e, e.Since)
	}
	return errors.Join(faults...)
}
