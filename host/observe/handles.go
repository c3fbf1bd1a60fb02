package observe

import (
	"maps"
	"sync"
	"sync/atomic"
)

// handles is a map that is read without a lock and copied when it grows. It is for few keys that are read millions of
// times: a lookup in a prometheus vector hashes its labels every time.
type handles[K comparable, V any] struct {
	present atomic.Pointer[map[K]V]
	mu      sync.Mutex // guards growing
}

func (h *handles[K, V]) load(k K) (V, bool) {
	if m := h.present.Load(); m != nil {
		v, ok := (*m)[k]
		return v, ok
	}
	var none V
	return none, false
}

// get returns the value of k, made by create when it is new. Beyond limit keys, and for k outside, it is that of outside.
func (h *handles[K, V]) get(k K, limit int, outside K, create func(K) V) V {
	if v, ok := h.load(k); ok {
		return v
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var now map[K]V
	if m := h.present.Load(); m != nil {
		now = *m
	}
	if _, ok := now[outside]; !ok && len(now) >= limit || ok && len(now) > limit {
		k = outside
	}
	if v, ok := now[k]; ok {
		return v
	}
	next := make(map[K]V, len(now)+1)
	maps.Copy(next, now)
	v := create(k)
	next[k] = v
	h.present.Store(&next)
	return v
}
