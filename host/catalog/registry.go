package catalog

import "sync/atomic"

// Registry holds the snapshot in force. Safe for concurrent use; reading costs one atomic load.
type Registry struct{ current atomic.Pointer[Snapshot] }

// NewRegistry starts with first, as number 1.
func NewRegistry(first *Snapshot) *Registry {
	r := &Registry{}
	r.Swap(first)
	return r
}

// Current returns the snapshot in force. It stays valid for as long as the caller keeps it.
func (r *Registry) Current() *Snapshot { return r.current.Load() }

// Swap puts next in force, numbers it one above the previous one and returns that. next must not be shared before. Requests
// that began with the previous snapshot finish with it.
func (r *Registry) Swap(next *Snapshot) (previous *Snapshot) {
	for {
		previous = r.current.Load()
		next.Number = 1
		if previous != nil {
			next.Number = previous.Number + 1
		}
		if r.current.CompareAndSwap(previous, next) {
			return previous
		}
	}
}
