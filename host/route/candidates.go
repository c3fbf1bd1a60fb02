package route

import (
	"iter"
	"slices"

	"github.com/weirgate/weir/host/catalog"
)

// Candidates yields the connections that may serve t for key, best first: those that the key prefers (SEL-2), then the
// others, each group in the order of fill-first, which is priority and then id (SEL-4). Each comes at most once (CMB-19).
// Key is nil when clients need none. What is out for this request and what the ladder refuses is not asked here.
func Candidates(t *catalog.RouteTarget, key *catalog.Key) iter.Seq[*catalog.Connection] {
	return func(yield func(*catalog.Connection) bool) { walk(t, key, yield) }
}

// walk is apart from Candidates so that the iterator is inlined and a walk allocates nothing.
func walk(t *catalog.RouteTarget, key *catalog.Key, yield func(*catalog.Connection) bool) {
	var preferred []string
	if key != nil {
		preferred = key.PreferredConnections
	}
	for _, wanted := range [...]bool{true, false} {
		if wanted && len(preferred) == 0 {
			continue
		}
		for _, c := range t.Provider.Connections {
			if slices.Contains(preferred, c.ID) == wanted && allows(t, key, c) && !yield(c) {
				return
			}
		}
	}
}

// allows holds the filters of SEL-1 that need no state. Preferring a connection grants no access to it (SEL-2).
func allows(t *catalog.RouteTarget, key *catalog.Key, c *catalog.Connection) bool {
	return c.Active && t.Permits(c) && (key == nil || key.AllowsConnection(c.ID)) && c.Serves(t.Model)
}
