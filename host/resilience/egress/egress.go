// Package egress owns what is known of the public addresses by which connections leave, and what a refusal by a provider that
// counts quota by address means for the others behind the same one (OTH-1 to OTH-9). It is kept in memory.
package egress

import (
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

const (
	// memory is how old an entry may be to say anything (OTH-3).
	memory = 24 * time.Hour
	// fresh is the egress cache time: what an older entry says may be wrong by now, since addresses of proxies change (OTH-8).
	fresh = 5 * time.Minute
	// Shortened is the longest cooldown that such an entry gives a sibling (OTH-8).
	Shortened = 10 * time.Minute
	// maxEntries bounds the memory; the oldest entry goes.
	maxEntries = 10_000
	// maxSiblings bounds how many connections one refusal looks at (OTH-3).
	maxSiblings = 1000
)

// Log remembers by which address each connection left last. Only connections of providers that count by address are in it. The
// zero value is ready; all methods are safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	last map[string]entry // by connection; guarded by mu
}

type entry struct {
	address string
	at      time.Time
}

// Note says that an attempt at t left at now. It costs nothing for a provider that does not count by address.
func (l *Log) Note(t catalog.Target, now time.Time) {
	if t.Provider.EgressFamily == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.last[t.Connection.ID]; !known && len(l.last) >= maxEntries {
		l.dropOldest()
	}
	if l.last == nil {
		l.last = map[string]entry{}
	}
	l.last[t.Connection.ID] = entry{t.Egress(), now}
}

func (l *Log) dropOldest() {
	oldest := ""
	for id, e := range l.last {
		if oldest == "" || e.at.Before(l.last[oldest].at) {
			oldest = id
		}
	}
	delete(l.last, oldest)
}

// known is the address by which t left last, and how old that knowledge is; empty: not known (OTH-4). What leaves by this machine's
// own address is known now, whether or not it was ever used: there is one such address, and its calls leave by that.
func (l *Log) known(t catalog.Target, now time.Time) (address string, age time.Duration) {
	if t.Connection.EgressIP == "" {
		return t.Egress(), 0
	}
	l.mu.Lock()
	e, ok := l.last[t.Connection.ID]
	l.mu.Unlock()
	if age = now.Sub(e.at); !ok || age > memory {
		return "", 0
	}
	return e.address, max(age, 0)
}

// Sibling is a connection that shares the egress of one that was refused.
type Sibling struct {
	Target catalog.Target
	Stale  bool // its address was last seen too long ago to be sure (OTH-8)
}

// Siblings are the active connections of the family of t's provider that leave by the address that t leaves by, without t itself and
// without those that never cool (OTH-2, OTH-4, OTH-5). address is that one; empty: it is not known, and there are none.
func (l *Log) Siblings(at resilience.Moment, t catalog.Target) (address string, all []Sibling) {
	if address, _ = l.known(t, at.Now); address == "" {
		return "", nil
	}
	seen := 0
	from := func(p *catalog.Provider) {
		for _, c := range p.Connections {
			if seen++; c.ID == t.Connection.ID || c.DisableCooling || seen > maxSiblings {
				continue
			}
			other := catalog.Target{Provider: p, Connection: c, Model: t.Model}
			if a, age := l.known(other, at.Now); a == address {
				all = append(all, Sibling{other, age > fresh})
			}
		}
	}
	from(t.Provider)
	for _, p := range at.Catalog.Providers {
		if p.ID != t.Provider.ID && p.EgressFamily == t.Provider.EgressFamily {
			from(p)
		}
	}
	return address, all
}

// Counts says whether a failed answer tells that the quota of t's address is used up: a 429 of a provider that counts by address, for
// a used-up quota or a rate limit (OTH-2). A connection that never cools has no part in it (OTH-5).
func Counts(t catalog.Target, v wire.Verdict, status int) bool {
	if t.Provider.EgressFamily == "" || status != 429 || t.Connection.DisableCooling || v.RequestScoped || v.Rejected {
		return false
	}
	switch v.Scope {
	case wire.ScopeRequest, wire.ScopeNone:
		return false
	case wire.ScopeModel, wire.ScopeConnection, wire.ScopeProvider:
	}
	return v.Reason == wire.QuotaExhausted || v.Reason == wire.RateLimitExceeded
}

// Verdict is the verdict on a failed answer of t with the scope that it has where quota is counted by address: the connection,
// whatever the rule said, and never for good (OTH-5, OTH-6). Others are left as they are.
func Verdict(t catalog.Target, v wire.Verdict, status int) wire.Verdict {
	if Counts(t, v, status) {
		v.Scope, v.Terminal, v.SetStatus = wire.ScopeConnection, false, ""
	}
	return v
}
