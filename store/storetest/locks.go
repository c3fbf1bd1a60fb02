package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/store"
)

func lock(t *testing.T, s store.Store, name string, ttl time.Duration) uint64 {
	t.Helper()
	fence, err := s.Lock(t.Context(), name, ttl)
	if err != nil {
		t.Fatalf("lock %s: %v", name, err)
	}
	return fence
}

func unlock(t *testing.T, s store.Store, name string, fence uint64) {
	t.Helper()
	if err := s.Unlock(t.Context(), name, fence); err != nil {
		t.Fatalf("unlock %s: %v", name, err)
	}
}

func testLocks(t *testing.T, s store.Store) {
	first := lock(t, s, "sweep", time.Hour)
	_, err := s.Lock(t.Context(), "sweep", time.Hour)
	wantError(t, "a lock that is held", err, store.ErrLocked)
	lock(t, s, "refresh", time.Hour)
	unlock(t, s, "sweep", first)
	second := lock(t, s, "sweep", time.Hour)
	if second <= first {
		t.Fatalf("fence %d after %d", second, first)
	}
	unlock(t, s, "sweep", first) // an earlier holder
	unlock(t, s, "none", 1)
	_, err = s.Lock(t.Context(), "sweep", time.Hour)
	wantError(t, "a lock that an earlier holder gave back", err, store.ErrLocked)
	if _, err := s.Lock(t.Context(), "sweep", 0); err == nil {
		t.Fatal("a lock without a time to live was granted")
	}
}

func testLockEnds(t *testing.T, s store.Store) {
	first := lock(t, s, "job", 20*time.Millisecond)
	deadline := time.Now().Add(10 * time.Second)
	for {
		second, err := s.Lock(t.Context(), "job", time.Hour)
		if err == nil {
			if second <= first {
				t.Fatalf("fence %d after %d", second, first)
			}
			return
		}
		wantError(t, "a lock before its end", err, store.ErrLocked)
		if time.Now().After(deadline) {
			t.Fatal("the lock never ended")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func testLockHammer(t *testing.T, s store.Store) {
	var granted atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			switch _, err := s.Lock(t.Context(), "one", time.Hour); {
			case err == nil:
				granted.Add(1)
			case !errors.Is(err, store.ErrLocked):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := granted.Load(); n != 1 {
		t.Fatalf("%d got the lock", n)
	}
}

func testClosed(t *testing.T, s store.Store) {
	ctx := t.Context()
	change(t, s, put("a", "1", "x"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(ctx, "a", "1")
	wantError(t, "get", err, store.ErrClosed)
	_, err = s.Change(ctx, put("a", "2", "x"))
	wantError(t, "change", err, store.ErrClosed)
	_, err = s.Append(ctx, event(1))
	wantError(t, "append", err, store.ErrClosed)
	wantError(t, "save", s.Save(ctx, store.Snapshot{}), store.ErrClosed)
	_, err = s.Latest(ctx)
	wantError(t, "latest", err, store.ErrClosed)
	_, err = s.Lock(ctx, "l", time.Second)
	wantError(t, "lock", err, store.ErrClosed)
	wantError(t, "prune", s.Prune(ctx), store.ErrClosed)
	for _, err := range s.Replay(ctx, 0) {
		wantError(t, "replay", err, store.ErrClosed)
	}
	for _, err := range s.List(ctx, "a") {
		wantError(t, "list", err, store.ErrClosed)
	}
	if h := s.Health(); h.Kind == "" {
		t.Errorf("health of a closed store: %+v", h)
	}
}

func testContext(t *testing.T, s store.Store) {
	change(t, s, put("a", "1", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Get(ctx, "a", "1")
	wantError(t, "get", err, context.Canceled)
	_, err = s.Change(ctx, put("a", "2", "x"))
	wantError(t, "change", err, context.Canceled)
	_, err = s.Append(ctx, event(1))
	wantError(t, "append", err, context.Canceled)
	absent(t, s, "a", "2")
	if es := collect(t, 0, s.Replay(t.Context(), 0)); len(es) != 0 {
		t.Fatalf("appended %+v", es)
	}
}
