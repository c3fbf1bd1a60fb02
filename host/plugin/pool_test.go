package plugin

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// free is how many instances lie idle.
func (p *pool) free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

func TestWornInstancesAreReplaced(t *testing.T) { // ABI-7 step 7
	grows := []byte{0x41, 2, 0x40, 0, 0x1a, 0x42, 0} // two pages more with each call
	_, s := setOf(t, Options{}, guestFile(module{manifest: hookManifest, call: grows}))
	g := s.byName["acme"].v.guest
	most := uint32(0)
	for range 30 {
		if err := g.call(t.Context(), wire.OpClassify, []byte("{}"), func([]byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		g.pool.mu.Lock()
		for _, in := range g.pool.idle {
			most = max(most, in.memory.Size())
		}
		g.pool.mu.Unlock()
	}
	if first := uint32(4+2) * 65536; most == 0 || most > 4*first {
		t.Errorf("an instance of %d bytes is used again, the first call left %d", most, first)
	}
}

// SCN-19: a million calls leave the memory as it was.
func TestMemoryStaysFlat(t *testing.T) {
	_, s := setOf(t, Options{}, guestFile(module{manifest: hookManifest, answer: `{"reason":"overloaded"}`}))
	g := s.byName["acme"].v.guest
	used := func(calls int) uint64 {
		for range calls {
			if err := g.call(t.Context(), wire.OpClassify, []byte("{}"), func([]byte) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used(2_000)
	if after := used(1_000_000); after > before+1<<20 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
}

func TestIdleInstancesAreClosed(t *testing.T) { // ABI-7
	_, s := setOf(t, Options{}, guestFile(module{manifest: hookManifest}))
	g := s.byName["acme"].v.guest
	g.pool.init(3)
	var held []*instance
	for range 3 {
		turn, err := g.begin(t.Context(), wire.OpClassify, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, turn.in)
	}
	if _, _, err := g.pool.get(t.Context(), 10*time.Millisecond); !errors.Is(err, errBusy) {
		t.Errorf("a fourth instance: %v", err)
	}
	for _, in := range held {
		g.pool.put(in, false, time.Now())
	}
	g.pool.trim(time.Now().Add(-time.Minute))
	if n := g.pool.free(); n != 3 {
		t.Errorf("%d left of three that were used just now", n)
	}
	g.pool.trim(time.Now().Add(time.Minute))
	if n := g.pool.free(); n != 1 || g.pool.count() != 1 {
		t.Errorf("%d left of three that are idle, the last one is kept", n)
	}
	if !held[0].mod.IsClosed() || held[2].mod.IsClosed() {
		t.Error("the wrong ones are closed")
	}
}
