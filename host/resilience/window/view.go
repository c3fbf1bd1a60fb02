package window

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

// Entry is what is remembered of a provider, or of one connection of it, for people.
type Entry struct {
	Provider     string
	ConnectionID string // empty: the provider as a whole
	Failures     int    // of a provider: within the window; of a connection: in a row
	Reason       wire.Reason
	FailedAt     time.Time
	Since        time.Time // of the cooldown; zero: none runs
	Until        time.Time
}

// Entries lists what is remembered at this moment, providers before their connections. It is empty while the switch is
// off (PCD-1).
func (g *Gate) Entries(at resilience.Moment) []Entry {
	out := []Entry{}
	v := at.Catalog.Settings.ProviderCooldown
	if !v.Enabled {
		return out
	}
	now := at.Now.UnixMilli()
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, e := range g.providers.All() {
		if !e.old(now) {
			shown := e.show(now)
			shown.Provider = id
			if p := at.Catalog.Provider(id); p != nil {
				from := now - profile(v, p.Category).Window.Milliseconds()
				shown.Failures = len(slices.DeleteFunc(slices.Clone(e.failures), func(t int64) bool { return t <= from }))
			}
			out = append(out, shown)
		}
	}
	for id, e := range g.connections.All() {
		if !e.old(now) {
			shown := e.show(now)
			shown.Provider, shown.ConnectionID = e.owner, id
			out = append(out, shown)
		}
	}
	slices.SortFunc(out, func(x, y Entry) int {
		return cmp.Or(cmp.Compare(x.Provider, y.Provider), cmp.Compare(x.ConnectionID, y.ConnectionID))
	})
	return out
}

func (e *entry) show(now int64) Entry {
	out := Entry{Failures: len(e.failures) + e.count, Reason: e.reason, FailedAt: time.UnixMilli(e.failedAt).UTC()}
	if c := e.until.Load(); c != nil && now < c.end {
		out.Since, out.Until = time.UnixMilli(c.since).UTC(), time.UnixMilli(c.end).UTC()
	}
	return out
}

// Clear drops the entries of the providers named, by id or alias, and of their connections, or all when none is named,
// and returns how many cooled.
func (g *Gate) Clear(at resilience.Moment, providers ...string) (n int) {
	now := at.Now.UnixMilli()
	for i, name := range providers {
		if p := at.Catalog.Provider(name); p != nil {
			providers = slices.Clone(providers)
			providers[i] = p.ID
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	clear := func(provider string, e *entry) {
		if len(providers) > 0 && !slices.Contains(providers, provider) {
			return
		}
		if e.cools(now) {
			n++
		}
		e.clear()
	}
	for id, e := range g.providers.All() {
		clear(id, e)
	}
	for _, e := range g.connections.All() {
		clear(e.owner, e)
	}
	return n
}

// Sweep drops old entries (PCD-7). The host calls it now and then; failures do it by themselves once a minute.
func (g *Gate) Sweep(at resilience.Moment) { g.sweepSometimes(at.Now.UnixMilli()) }

func (g *Gate) sweepSometimes(now int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now-g.swept < sweepEvery.Milliseconds() && now >= g.swept {
		return
	}
	g.swept = now
	for _, cells := range []*resilience.Cells[entry]{&g.providers, &g.connections} {
		var gone []string
		for id, e := range cells.All() {
			if e.old(now) {
				gone = append(gone, id)
			}
		}
		if len(gone) > 0 {
			cells.Drop(gone...)
		}
	}
}
