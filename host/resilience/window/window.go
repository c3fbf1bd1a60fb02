// Package window owns the opt-in provider cooldown: a memory across requests of providers that failed too often within a
// time, asked only when a combo looks for its next target (PCD-1 to PCD-12). It is kept in memory only.
package window

import (
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// Name is the gate's name in refusals and explanations (CMB-52).
const Name = "provider_cooldown"

const (
	// forgetAfter is how long an entry is kept without a failure (PCD-7).
	forgetAfter = 30 * time.Minute
	// sweepEvery is how often old entries are dropped (PCD-7).
	sweepEvery = time.Minute
)

// Gate keeps the entries of providers and of connections. Safe for concurrent use; make it with New.
type Gate struct {
	isOpen  func(resilience.Moment, *catalog.Provider) bool
	repeats breaker.Repeats

	mu          sync.Mutex // held while entries change, are added or dropped
	swept       int64      // guarded by mu: Unix milliseconds
	providers   resilience.Cells[entry]
	connections resilience.Cells[entry] // by connection id, which is unique among all providers
}

var _ resilience.Gate = (*Gate)(nil)

// New returns the gate without entries. IsOpen says whether a provider's breaker is open: a success then came from an
// older attempt and clears nothing (PCD-4). The breaker stands before this gate in the ladder, so that a probe's success
// has closed it by the time it is asked. Nil means never.
func New(isOpen func(resilience.Moment, *catalog.Provider) bool) *Gate {
	if isOpen == nil {
		isOpen = func(resilience.Moment, *catalog.Provider) bool { return false }
	}
	return &Gate{isOpen: isOpen}
}

// Name returns provider_cooldown.
func (g *Gate) Name() string { return Name }

// Admit refuses a combo's target while its provider cools, and a pinned one while its connection does (PCD-8).
func (g *Gate) Admit(at resilience.Moment, t catalog.Target) (resilience.Permit, *resilience.Refusal) {
	return resilience.Permit{}, g.Peek(at, t)
}

// Peek is the refusal that Admit would give.
func (g *Gate) Peek(at resilience.Moment, t catalog.Target) *resilience.Refusal {
	if !at.Combo || !at.Catalog.Settings.ProviderCooldown.Enabled {
		return nil
	}
	now := at.Now.UnixMilli()
	if refusal := g.providers.Get(t.Provider.ID).refusal(now); refusal != nil || !at.Pinned {
		return refusal
	}
	return g.connections.Get(t.Connection.ID).refusal(now)
}

// Cancel does nothing: a permit of this gate holds nothing.
func (g *Gate) Cancel(resilience.Moment, catalog.Target, resilience.Permit) {}

// Settle counts failures and lets a success clear (PCD-3 to PCD-6). It journals nothing, since nothing is to survive.
func (g *Gate) Settle(at resilience.Moment, t catalog.Target, _ resilience.Permit, o resilience.Outcome) []store.Event {
	v := at.Catalog.Settings.ProviderCooldown
	if !v.Enabled || o.Ignore || !named(t.Provider.ID) {
		return nil
	}
	if o.OK {
		g.succeeded(at, t)
		return nil
	}
	now := at.Now.UnixMilli()
	g.sweepSometimes(now)
	if breaker.ServiceFailure(at, o) && !g.repeats.Again(now, t.Provider.ID, t.Connection.ID, o.Fault == resilience.FaultUnreachable) {
		g.mu.Lock()
		g.providers.Make(t.Provider.ID).provider(now, profile(v, t.Provider.Category), o.Verdict.Reason)
		g.mu.Unlock()
	}
	if ofConnection(o) {
		g.mu.Lock()
		e := g.connections.Make(t.Connection.ID)
		e.owner = t.Provider.ID
		e.connection(now, v.MinRetry, v.MaxRetry, o.Verdict.Reason)
		g.mu.Unlock()
	}
	return nil
}

// named says whether an id is one (PCD-12).
func named(provider string) bool { return provider != "" && provider != "unknown" }

// ofConnection says whether a failure is one of its connection (PCD-6).
func ofConnection(o resilience.Outcome) bool {
	v := o.Verdict
	return v.Fallback && !o.Local && !v.RequestScoped && !v.Rejected && (v.Scope == wire.ScopeConnection || v.Scope == wire.ScopeProvider)
}

func (g *Gate) succeeded(at resilience.Moment, t catalog.Target) {
	p, c := g.providers.Get(t.Provider.ID), g.connections.Get(t.Connection.ID)
	provider := p != nil && p.busy.Load() && !g.isOpen(at, t.Provider)
	connection := c != nil && c.busy.Load()
	if !provider && !connection {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if provider {
		p.clear()
	}
	if connection {
		c.clear()
	}
}

// profile is the window of a category (PCD-2). Values that are not set are the defaults.
func profile(v settings.ProviderCooldown, c catalog.Category) settings.WindowProfile {
	own, otherwise := v.APIKey, settings.WindowProfile{Threshold: 15, Window: 30 * time.Minute, Cooldown: 10 * time.Minute}
	switch c {
	case catalog.OAuth:
		own, otherwise = v.OAuth, settings.WindowProfile{Threshold: 10, Window: 15 * time.Minute, Cooldown: 5 * time.Minute}
	case catalog.Local:
		own, otherwise = v.Local, settings.WindowProfile{Threshold: 2, Window: 5 * time.Minute, Cooldown: time.Minute}
	case catalog.APIKey:
	}
	if own.Threshold <= 0 {
		own.Threshold = otherwise.Threshold
	}
	if own.Window <= 0 {
		own.Window = otherwise.Window
	}
	if own.Cooldown <= 0 {
		own.Cooldown = otherwise.Cooldown
	}
	return own
}

// Apply ignores every event: this gate has none.
func (g *Gate) Apply(store.Event) error { return nil }

// Snapshot returns nothing: the state is memory only (PCD-7).
func (g *Gate) Snapshot() ([]byte, error) { return nil, nil }

// Restore does nothing.
func (g *Gate) Restore([]byte) error { return nil }
