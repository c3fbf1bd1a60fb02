package plugin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

func (p *pool) count() int {
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
		if _, err := g.call(t.Context(), wire.OpClassify, []byte("{}"), time.Now(), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		if g.pool.count() == 1 {
			most = max(most, g.pool.idle[0].memory.Size())
		}
	}
	if first := uint32(4+2) * 65536; most == 0 || most > 4*first {
		t.Errorf("an instance of %d bytes is used again, the first call left %d", most, first)
	}
}

func TestIdleInstancesAreClosed(t *testing.T) { // ABI-7
	_, s := setOf(t, Options{}, guestFile(module{manifest: hookManifest}))
	g := s.byName["acme"].v.guest
	g.pool.init(3)
	fresh := func() (*instance, error) { return g.fresh(t.Context(), time.Now()) }
	var held []*instance
	for range 3 {
		in, err := g.pool.get(t.Context(), fresh)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, in)
	}
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := g.pool.get(short, fresh); !errors.Is(err, errBusy) {
		t.Errorf("a fourth instance: %v", err)
	}
	for _, in := range held {
		g.pool.put(in, false)
	}
	g.pool.trim(time.Now().Add(-time.Minute))
	if n := g.pool.count(); n != 3 {
		t.Errorf("%d left of three that were used just now", n)
	}
	g.pool.trim(time.Now().Add(time.Minute))
	if n := g.pool.count(); n != 1 {
		t.Errorf("%d left of three that are idle, the last one is kept", n)
	}
	if !held[0].mod.IsClosed() || held[2].mod.IsClosed() {
		t.Error("the wrong ones are closed")
	}
}
