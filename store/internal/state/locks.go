package state

import (
	"errors"
	"fmt"
	"maps"
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

// NewLocks returns locks that nobody holds, and a counter that has reached fence.
func NewLocks(fence uint64) *Locks {
	return &Locks{fence: fence, held: map[string]Grant{}}
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

// Unlock ends the grant when fence is the present one.
func (l *Locks) Unlock(name string, fence uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, ok := l.held[name]; ok && g.Fence == fence {
		delete(l.held, name)
	}
}

// Expire forgets grants that have ended.
func (l *Locks) Expire(now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.held, func(_ string, g Grant) bool { return g.Until <= now })
}

// Keep calls keep with the fence counter, while nobody is granted anything.
func (l *Locks) Keep(keep func(fence uint64) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return keep(l.fence)
}
