package route

import (
	"sync"

	"github.com/weirgate/weir/host/catalog"
)

// maxMemories bounds the combos whose state is kept (STR-2).
const maxMemories = 500

// memory is what the strategy of one combo keeps. A change of the combo begins a new one (STR-2).
type memory struct {
	mu       sync.Mutex
	mark     uint64
	made     uint64         // in which order memories were made
	sticky   string         // execution key that stays first (STR-11); guarded by mu, as all below
	served   int            // successes of the sticky target, or of the present one of a rotation
	counter  int            // of a rotation (STR-12)
	deck     []int          // cards that were not dealt yet (STR-23)
	dealt    int            // the last card plus one; 0: none
	used     map[string]int // dispatched requests by execution key (STR-17)
	good     lastGood       // STR-25
	failures int            // requests that failed in a row (CMB-54)
}

// lastGood is who answered last for a combo.
type lastGood struct{ provider, connection string }

// memories keeps the memory of each combo. The zero value is ready.
type memories struct {
	mu   sync.Mutex
	made uint64             // guarded by mu
	all  map[string]*memory // by combo name; guarded by mu
}

// of returns the memory of a combo, a new one when the combo changed. The oldest gives way when there are too many.
func (m *memories) of(rt *catalog.Route) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.all[rt.Name]; x != nil && x.mark == rt.Mark {
		return x
	}
	if m.all == nil {
		m.all = map[string]*memory{}
	}
	delete(m.all, rt.Name)
	if len(m.all) >= maxMemories {
		m.dropOldest()
	}
	m.made++
	x := &memory{mark: rt.Mark, made: m.made}
	m.all[rt.Name] = x
	return x
}

// dropOldest needs mu.
func (m *memories) dropOldest() {
	oldest, name := uint64(0), ""
	for n, x := range m.all {
		if name == "" || x.made < oldest {
			oldest, name = x.made, n
		}
	}
	delete(m.all, name)
}

// copyOf returns what a combo's memory holds, for a look that moves nothing.
func (m *memories) copyOf(rt *catalog.Route) *memory {
	m.mu.Lock()
	x := m.all[rt.Name]
	m.mu.Unlock()
	if x == nil || x.mark != rt.Mark {
		return &memory{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return &memory{sticky: x.sticky, served: x.served, counter: x.counter, deck: x.deck, dealt: x.dealt, used: x.used, good: x.good}
}

// remembering returns the locked memory of a combo whose strategy learns from outcomes, or nil.
func (r *Router) remembering(rt *catalog.Route) *memory {
	if rt.Kind != catalog.KindCombo || !find(rt.Strategy).remembers {
		return nil
	}
	m := r.memories.of(rt)
	m.mu.Lock()
	return m
}

// Dispatched notes that a request went to a target (STR-17).
func (r *Router) Dispatched(rt *catalog.Route, t *catalog.RouteTarget) {
	m := r.remembering(rt)
	if m == nil {
		return
	}
	defer m.mu.Unlock()
	next := make(map[string]int, len(rt.Targets)) // copied: copyOf hands the old one out
	for k, n := range m.used {
		next[k] = n
	}
	next[t.Key]++
	m.used = next
}

// Succeeded notes who answered a request: stickiness, rotation and the last good provider follow (CMB-10).
func (r *Router) Succeeded(rt *catalog.Route, t *catalog.RouteTarget, connection string) {
	m := r.remembering(rt)
	if m == nil {
		return
	}
	defer m.mu.Unlock()
	m.failures = 0
	m.good = lastGood{t.Provider.ID, connection}
	switch rt.Strategy {
	case "weighted":
		m.stick(t.Key, limitOf(rt.Config.StickyWeighted))
	case "round-robin":
		m.rotate(rt, t, limitOf(rt.Config.StickyRoundRobin))
	}
}

// maxFailures is after how many failed requests in a row a combo forgets whom it preferred (CMB-54).
const maxFailures = 3

// Failed notes that a request of a combo found no target that answered.
func (r *Router) Failed(rt *catalog.Route) {
	m := r.remembering(rt)
	if m == nil {
		return
	}
	defer m.mu.Unlock()
	if m.failures++; m.failures >= maxFailures {
		m.failures, m.sticky, m.served, m.good = 0, "", 0, lastGood{}
	}
}

// limitOf is a limit of stickiness; 1 is none.
func limitOf(own *int) int {
	if own != nil {
		return *own
	}
	return 1
}
