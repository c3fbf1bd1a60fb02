package resilience

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
)

// Cells keeps one T per identity (a connection, a provider) for as long as the process lives, so that a reload of the
// configuration loses no state. Looking one up takes no lock and allocates nothing; only the first write about an
// identity copies the map. The zero value is ready, and all methods may be called at once.
type Cells[T any] struct {
	grow sync.Mutex // guards replacing all
	all  atomic.Pointer[map[string]*T]
}

// Get returns the cell of id, or nil when nothing was ever written about it.
func (c *Cells[T]) Get(id string) *T {
	m := c.all.Load()
	if m == nil {
		return nil
	}
	return (*m)[id]
}

// Make returns the cell of id and adds an empty one when there is none.
func (c *Cells[T]) Make(id string) *T {
	if cell := c.Get(id); cell != nil {
		return cell
	}
	c.MakeAll(id)
	return c.Get(id)
}

// MakeAll adds the cells of ids that are missing with a single copy of the map: what a restore of many wants.
func (c *Cells[T]) MakeAll(ids ...string) {
	c.grow.Lock()
	defer c.grow.Unlock()
	next := make(map[string]*T, len(ids))
	if m := c.all.Load(); m != nil {
		maps.Copy(next, *m)
	}
	for _, id := range ids {
		if next[id] == nil {
			next[id] = new(T)
		}
	}
	c.all.Store(&next)
}

// Drop removes the cells of ids with a single copy of the map. Whoever still holds one of them writes into nothing, so
// the owner marks a cell as gone under its own lock before.
func (c *Cells[T]) Drop(ids ...string) {
	c.grow.Lock()
	defer c.grow.Unlock()
	m := c.all.Load()
	if m == nil {
		return
	}
	next := maps.Clone(*m)
	for _, id := range ids {
		delete(next, id)
	}
	c.all.Store(&next)
}

// Len counts the cells.
func (c *Cells[T]) Len() int {
	if m := c.all.Load(); m != nil {
		return len(*m)
	}
	return 0
}

// All yields every cell as of the call, in no order.
func (c *Cells[T]) All() iter.Seq2[string, *T] {
	m := c.all.Load()
	if m == nil {
		return func(func(string, *T) bool) {}
	}
	return maps.All(*m)
}
