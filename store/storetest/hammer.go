package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/weirgate/weir/store"
)

// testHammer has many writers raise the same counters by compare-and-set, with readers, watchers, appends and prunes
// beside them: no step may be lost, and the watch has to end at the last state.
func testHammer(t *testing.T, s store.Store) {
	const writers, steps, counters = 8, 25, 3
	ctx := t.Context()
	for c := range counters {
		change(t, s, put("counter", fmt.Sprint(c), "0"))
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range steps {
				if err := raise(t, s, fmt.Sprint((w+i)%counters)); err != nil {
					t.Error(err)
					return
				}
				if _, err := s.Append(ctx, event(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range steps {
			if err := s.Prune(ctx); err != nil {
				t.Error(err)
			}
			for _, err := range s.List(ctx, "counter") {
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	sum := watchSum(t, s, writers*steps)
	all.Wait()
	if sum != writers*steps {
		t.Fatalf("the watch ended at %d steps", sum)
	}
	if es := collect(t, 0, s.Replay(ctx, 0)); len(es) != writers*steps {
		t.Fatalf("%d events came back", len(es))
	}
}

func raise(t *testing.T, s store.Store, id string) error {
	for {
		doc, err := s.Get(t.Context(), "counter", id)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(doc.Data))
		if err != nil {
			return err
		}
		_, err = s.Change(t.Context(), ifRevision(put("counter", id, fmt.Sprint(n+1)), doc.Revision))
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// watchSum watches until all counters together reach want; a lost step would have it wait for ever.
func watchSum(t *testing.T, s store.Store, want int) int {
	values := map[string]int{}
	for doc, err := range s.Watch(t.Context(), 0) {
		if err != nil {
			t.Error(err)
			return -1
		}
		n, err := strconv.Atoi(string(doc.Data))
		if err != nil || n < values[doc.ID] || uint64(n+1) != doc.Revision {
			t.Errorf("counter %s at revision %d went from %d to %q", doc.ID, doc.Revision, values[doc.ID], doc.Data)
			return -1
		}
		values[doc.ID] = n
		sum := 0
		for _, v := range values {
			sum += v
		}
		if sum >= want {
			return sum
		}
	}
	return -1
}

// testPairs has writers move two documents in one change while others read them by watching: the two may never differ
// once both are at the same revision.
func testPairs(t *testing.T, s store.Store) {
	var all sync.WaitGroup
	for w := range 6 {
		all.Go(func() {
			for i := range 20 {
				text := fmt.Sprintf("%d-%d", w, i)
				docs, err := s.Change(t.Context(), put("pair", "left", text), put("pair", "right", text))
				if err != nil || docs[0].Revision != docs[1].Revision || docs[1].Seq != docs[0].Seq+1 {
					t.Errorf("%+v, %v", docs, err)
					return
				}
			}
		})
	}
	all.Wait()
	left, right := get(t, s, "pair", "left"), get(t, s, "pair", "right")
	if left.Revision != 120 || right.Revision != 120 || string(left.Data) != string(right.Data) {
		t.Fatalf("left %+v, right %+v", left, right)
	}
}
