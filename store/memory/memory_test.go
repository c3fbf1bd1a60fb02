package memory_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
	"github.com/weirgate/weir/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memory.New(memory.Options{}) })
}

// DATA-4, OBJ-22: what is older than the last snapshot stays for the age or the count, whichever is less; what is newer stays.
func TestRetention(t *testing.T) {
	for _, c := range []struct {
		name      string
		retention store.Retention
		snapshot  store.Seq
		kept      store.Seq // the first event kept, one per hour
	}{
		{"no snapshot", store.Retention{Age: time.Hour, Count: 50}, 0, 1},
		{"by age", store.Retention{Age: 10 * time.Hour, Count: 50}, 20, 11},
		{"by count", store.Retention{Age: 100 * time.Hour, Count: 20}, 20, 1},
		{"newer than the snapshot", store.Retention{Age: time.Hour, Count: 20}, 5, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.UnixMilli(0)
			s := memory.New(memory.Options{Now: func() time.Time { return now }, Retention: c.retention})
			for range 20 {
				now = now.Add(time.Hour)
				if _, err := s.Append(t.Context(), store.Event{At: now.UnixMilli(), Kind: "k"}); err != nil {
					t.Fatal(err)
				}
			}
			now = now.Add(time.Minute)
			if c.snapshot > 0 {
				if err := s.Save(t.Context(), store.Snapshot{Seq: c.snapshot}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Prune(t.Context()); err != nil {
				t.Fatal(err)
			}
			for e, err := range s.Replay(t.Context(), 0) {
				if err != nil || e.Seq != c.kept {
					t.Fatalf("the first event kept is %d (%v), want %d", e.Seq, err, c.kept)
				}
				break
			}
		})
	}
}

// DATA-4: a journal that nobody takes snapshots of is bounded too.
func TestBound(t *testing.T) {
	s := memory.New(memory.Options{Retention: store.Retention{Count: 10}})
	for i := range 35 {
		if _, err := s.Append(t.Context(), store.Event{Kind: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	for e, err := range s.Replay(t.Context(), 3) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	if len(kinds) != 10 || kinds[0] != "25" || s.Health().Bytes != 20 {
		t.Fatalf("kept %q, %d bytes", kinds, s.Health().Bytes)
	}
}

// DATA-4: deletions are forgotten after the retention, and their documents count from 1 again.
func TestForget(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	s := memory.New(memory.Options{Now: func() time.Time { return now }})
	change := func(w store.Write) store.Document {
		t.Helper()
		docs, err := s.Change(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return docs[0]
	}
	change(store.Write{Kind: "a", ID: "1"})
	change(store.Write{Kind: "a", ID: "1", Delete: true})
	now = now.Add(8 * 24 * time.Hour)
	if err := s.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if doc := change(store.Write{Kind: "a", ID: "1"}); doc.Revision != 1 || doc.Seq != 3 {
		t.Fatalf("after the deletion was forgotten: %+v", doc)
	}
	if _, err := s.Get(t.Context(), "a", "2"); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
}

func TestRows(t *testing.T) {
	storetest.RunRows(t, func(*testing.T) storetest.RowStore { return memory.New(memory.Options{}) })
}
