package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirgate/weir/store"
)

// Grant is a lock that somebody has.
type Grant struct {
	Name  string
	Fence uint64
	Until int64 // Unix milliseconds
}

// Locks hands out locks. All locks draw from one fence counter, so that a lock that ended can be forgotten and its next
// fence is higher all the same. Safe for concurrent use.
type Locks struct {
	mu    sync.Mutex
	fence uint64
	held  map[string]Grant
}

// NewLocks returns locks that are already granted, and a counter that has reached fence.
func NewLocks(fence uint64, granted []Grant) *Locks {
	l := &Locks{fence: fence, held: map[string]Grant{}}
	for _, g := range granted {
		l.held[g.Name] = g
		l.fence = max(l.fence, g.Fence)
	}
	return l
}

// Lock grants name until now+ttl, and keeps it when keep, called before anybody else can ask, returns nil.
func (l *Locks) Lock(name string, now time.Time, ttl time.Duration, keep func(Grant) error) (Grant, error) {
	if name == "" || ttl < time.Millisecond {
		return Grant{}, errors.New("a lock needs a name and a time to live of at least a millisecond")
	}
	if len(name) > store.MaxName {
		return Grant{}, fmt.Errorf("the name of a lock is %w: the limit is %d bytes", store.ErrTooLarge, store.MaxName)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, ok := l.held[name]; ok && now.UnixMilli() < g.Until {
		return Grant{}, fmt.Errorf("lock %s is held until %s: %w", name, time.UnixMilli(g.Until).UTC().Format(time.RFC3339), store.ErrLocked)
	}
	g := Grant{Name: name, Fence: l.fence + 1, Until: now.Add(ttl).UnixMilli()}
	if err := keep(g); err != nil {
		return Grant{}, err
	}
	l.fence, l.held[name] = g.Fence, g
	return g, nil
}

// Unlock ends the grant when fence is the present one, and gone returns nil.
func (l *Locks) Unlock(name string, fence uint64, gone func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, ok := l.held[name]; !ok || g.Fence != fence {
		return nil
	}
	if err := gone(); err != nil {
		return err
	}
	delete(l.held, name)
	return nil
}

// Expire forgets grants that have ended, and returns them.
func (l *Locks) Expire(now int64) []Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ended []Grant
	for name, g := range l.held {
		if g.Until <= now {
			ended = append(ended, g)
			delete(l.held, name)
		}
	}
	return ended
}

// All returns the counter and every grant.
func (l *Locks) All() (uint64, []Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fence, slices.Collect(maps.Values(l.held))
}
