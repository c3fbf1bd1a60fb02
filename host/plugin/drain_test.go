package plugin

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// swap loads m over what guest.wasm was.
func swap(t testing.TB, r *Runtime, m module) {
	t.Helper()
	src := guestFile(m)
	v, f := r.loader().load(t.Context(), src)
	if f != nil {
		t.Error(f)
		return
	}
	r.settle(r.slot(OriginFolder, src.file, 0), v.digest, v, nil, true)
}

// A version that was replaced goes on for the requests that began with it (PLG-3), for half a minute (ABI-7 step 6): then its
// instances are closed when they return, and what waits for one is woken.
func TestDrain(t *testing.T) {
	answering := func(reason string) module {
		return module{manifest: hookManifest, answer: `{"reason":"` + reason + `"}`}
	}
	classify := func(s *Set) string {
		v, _ := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 403, "x"))
		return string(v.Reason)
	}
	synctest.Test(t, func(t *testing.T) {
		r := loaded(t, Options{}, guestFile(answering("overloaded")))
		slow := r.Acquire()
		old := slow.byName["acme"].v
		held, err := old.guest.begin(t.Context(), wire.OpClassify, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		swap(t, r, answering("banned"))
		fresh := r.Acquire()
		defer fresh.Release()
		if a, b := classify(slow), classify(fresh); a != "overloaded" || b != "banned" {
			t.Errorf("PLG-3 the old set says %s, the new one %s", a, b)
		}
		if st := firstOf(r); st.Draining != 1 || st.State != StateActive {
			t.Errorf("draining %d, %s", st.Draining, st.State)
		}
		time.Sleep(drainFor - time.Second)
		if got := classify(slow); got != "overloaded" || old.guest.draining.Err() != nil {
			t.Errorf("PLG-3 within the time it says %q", got)
		}
		spare, _, err := old.guest.pool.get(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		old.guest.pool.init(2)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, _, err := old.guest.pool.get(context.Background(), time.Hour); !errors.Is(err, errDrained) {
				t.Errorf("ABI-7 what waits: %v", err)
			}
		})
		time.Sleep(2 * time.Second)
		wg.Wait()
		if got := classify(slow); got != "" || old.guest.draining.Err() == nil {
			t.Errorf("ABI-7 after the time it says %q", got)
		}
		if held.in.mod.IsClosed() {
			t.Error("ABI-7 an instance was closed under its call")
		}
		held.end(nil, resultOK)
		old.guest.pool.put(spare, false, time.Now())
		if !held.in.mod.IsClosed() || !spare.mod.IsClosed() {
			t.Error("ABI-7 an instance is kept that came back too late")
		}
		slow.Release()
		<-old.closed
		if st := firstOf(r); st.Draining != 0 {
			t.Errorf("draining %d", st.Draining)
		}
	})
}

// What was removed and still runs for some request is shown (ABI-7).
func TestRemovedAndDraining(t *testing.T) {
	r := loaded(t, Options{}, guestFile(module{manifest: hookManifest}))
	s := r.Acquire()
	r.mu.Lock()
	r.remove(r.slots[slotKey(OriginFolder, "guest.wasm", 0)])
	r.rebuild()
	r.mu.Unlock()
	if list := r.List(); len(list) != 1 || list[0].State != StateDraining || list[0].Name != "acme" {
		t.Errorf("%+v", list)
	}
	s.Release()
	if list := r.List(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// A bound stream that outlives its version's time goes on unhooked (ABI-5, ABI-7, SCN-19).
func TestStreamsOfADrainedVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := setOf(t, Options{}, guestFile(counting()))
		h := s.byName["acme"].Events(Calls{Events: true, Stateful: true, End: true})
		h.ask(t, "first")
		next := counting()
		next.pages = 5
		swap(t, r, next)
		time.Sleep(drainFor - time.Second)
		if _, n := h.ask(t, "late"); n != 2 {
			t.Errorf("event %d", n)
		}
		time.Sleep(2 * time.Second)
		if _, err := h.Event(t.Context(), nil, []byte("too late")); !errors.Is(err, ErrUnhooked) || errors.Is(err, ErrUnavailable) {
			t.Errorf("%v", err)
		}
		h.End(t.Context(), true)
	})
}
