// Package toollimit owns how many tools each provider takes in one request: what is known beforehand, and what providers said when
// they refused more (OTH-21). It is kept in memory.
package toollimit

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Default is the limit of a provider that refused a number of tools without saying how many it takes.
	Default = 128
	// Memory is how long a learned limit holds.
	Memory = 24 * time.Hour
	// maxProviders bounds the memory; when it is full it starts again.
	maxProviders = 1000
)

// known are the limits that need no learning.
func known(provider string) (int, bool) {
	switch provider {
	case "grok-cli":
		return 200, true
	case "nvidia":
		return 1536, true
	}
	return 0, false
}

// Limits are the limits of all providers. The zero value knows those that need no learning; it is safe for concurrent use, and
// asking it costs nothing while nothing was learned.
type Limits struct {
	some    atomic.Bool // something was learned
	mu      sync.RWMutex
	learned map[string]limit // by provider; guarded by mu
}

type limit struct {
	tools int
	until time.Time
}

// Of is how many tools a provider takes; false: as many as one likes, as far as is known.
func (l *Limits) Of(provider string, now time.Time) (int, bool) {
	if l.some.Load() {
		l.mu.RLock()
		e, ok := l.learned[provider]
		l.mu.RUnlock()
		if ok && now.Before(e.until) {
			return e.tools, true
		}
	}
	return known(provider)
}

// Learn notes what a provider said it takes, for 24 hours, if that is less than what is known (OTH-21). It says whether it was.
func (l *Limits) Learn(provider string, tools int, now time.Time) bool {
	if present, ok := l.Of(provider, now); tools < 1 || ok && tools >= present {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, has := l.learned[provider]; l.learned == nil || !has && len(l.learned) >= maxProviders {
		l.learned = map[string]limit{}
	}
	l.learned[provider] = limit{tools, now.Add(Memory)}
	l.some.Store(true)
	return true
}
