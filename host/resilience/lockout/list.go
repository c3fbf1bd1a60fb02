package lockout

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// Lock is one running lockout, for people (LOCK-33).
type Lock struct {
	Provider     string
	Connection   string // id
	Model        string // or the name of the quota family
	Scope        string // quota_family or exact
	Reason       wire.Reason
	Remaining    time.Duration
	FailureCount int
	LockedAt     time.Time
	Until        time.Time
	Cause        *resilience.Cause // to be read only
}

// The scopes of a Lock.
const (
	ScopeFamily = "quota_family"
	ScopeExact  = "exact"
)

// List returns the lockouts that run at now, the longest first (API-30).
func (g *Gate) List(now time.Time) []Lock {
	locks := []Lock{}
	for _, s := range g.shelves.All() {
		locks = appendLocks(locks, all(s), now)
	}
	return sorted(locks)
}

// On returns the lockouts of one connection that run at now, the longest first (API-40).
func (g *Gate) On(connection string, now time.Time) []Lock {
	return sorted(appendLocks([]Lock{}, g.on(connection), now))
}

func appendLocks(locks []Lock, entries map[id]*entry, now time.Time) []Lock {
	ms := now.UnixMilli()
	for _, e := range entries {
		if !e.locked(ms) {
			continue
		}
		scope := ScopeExact
		if e.Shape == Family {
			scope = ScopeFamily
		}
		locks = append(locks, Lock{
			Provider: e.Provider, Connection: e.Connection, Model: e.Model, Scope: scope, Reason: e.Reason,
			Remaining: time.Duration(e.Until-ms) * time.Millisecond, FailureCount: e.Count,
			LockedAt: account.Time(e.Since), Until: account.Time(e.Until), Cause: e.Cause,
		})
	}
	return locks
}

func sorted(locks []Lock) []Lock {
	slices.SortFunc(locks, func(a, b Lock) int {
		return cmp.Or(b.Until.Compare(a.Until), cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Scope, b.Scope))
	})
	return locks
}

// Clear removes every key of a model, with the counts behind them, from one connection of a provider, or from all of them
// when connection is empty (LOCK-7, API-31). Model may also be the name of a family (API-32). Removed says how many running
// lockouts went.
func (g *Gate) Clear(at resilience.Moment, provider *catalog.Provider, connection, model string) (removed int, changed []store.Event) {
	names, keys := aliasesOf(at, provider, model), keysOf(provider, model)
	return g.clear(at, func(e *entry) bool {
		return e.Provider == provider.ID && (connection == "" || e.Connection == connection) &&
			(slices.Contains(keys[:], e.id()) || e.Model == model || e.Shape == Exact && slices.Contains(names, e.Model))
	})
}

// aliasesOf lists the exact keys under which a model, or one of a family, is locked for those who ask by an alias (LOCK-6).
func aliasesOf(at resilience.Moment, p *catalog.Provider, model string) []string {
	var names []string
	for name, leads := range at.Catalog.Aliases {
		if m, own := strings.CutPrefix(leads, p.ID+"/"); own && (m == model || p.Family(m) == model) {
			names = append(names, exact(name).name)
		}
	}
	return names
}

// ClearConnection removes all lockouts and counts of a connection (API-43). Removed says how many running lockouts went.
func (g *Gate) ClearConnection(at resilience.Moment, connection string) (removed int, changed []store.Event) {
	return g.clear(at, func(e *entry) bool { return e.Connection == connection })
}

// ClearAll removes all lockouts and counts (API-31). Removed says how many running lockouts went.
func (g *Gate) ClearAll(at resilience.Moment) (removed int, changed []store.Event) {
	return g.clear(at, func(*entry) bool { return true })
}

func (g *Gate) clear(at resilience.Moment, out func(*entry) bool) (removed int, changed []store.Event) {
	if g.held.Load() == 0 {
		return 0, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := at.Now.UnixMilli()
	var connections []string
	for connection := range g.shelves.All() {
		connections = append(connections, connection)
	}
	slices.Sort(connections)
	for _, connection := range connections {
		for _, e := range g.remove(connection, out) {
			if e.locked(now) {
				removed++
			}
			next := entry{Provider: e.Provider, Connection: e.Connection, Shape: e.Shape, Model: e.Model, Revision: g.revision.Load() + 1}
			g.revision.Store(next.Revision)
			changed = append(changed, g.event(at, KindCleared, &next, e.Model, "")...)
		}
	}
	return removed, changed
}
