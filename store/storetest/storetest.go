// Package storetest owns the suite that every store passes: what the interfaces of package store promise, played on a
// store that the caller opens.
package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/weirgate/weir/store"
)

// Run plays the suite. open returns a new, empty store each time; the suite closes it.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	suite := []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"documents", testDocuments},
		{"OBJ-4 a stale revision is a conflict", testConflicts},
		{"OBJ-4 a document that comes back keeps old revisions out", testComeBack},
		{"a change is written whole or not at all", testAllOrNone},
		{"DATA-7 what is too large is refused", testTooLarge},
		{"what is returned belongs to the caller", testCopies},
		{"watch", testWatch},
		{"watch shows a slow reader the newest state", testSlowWatch},
		{"watch ends with its context and with the store", testWatchEnds},
		{"OBJ-22 journal and replay", testJournal},
		{"replay while appending", testReplayWhileAppending},
		{"snapshots", testSnapshots},
		{"locks and fences", testLocks},
		{"a lock ends by itself", testLockEnds},
		{"one of many gets the lock", testLockHammer},
		{"hammer: counters lose no step", testHammer},
		{"hammer: two documents move together", testPairs},
		{"a closed store says so", testClosed},
		{"a context that has ended", testContext},
	}
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			c.test(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

func put(kind, id, data string) store.Write {
	return store.Write{Kind: kind, ID: id, Data: []byte(data), At: 1000}
}

func ifRevision(w store.Write, revision uint64) store.Write {
	w.If = &revision
	return w
}

func change(t *testing.T, s store.Store, ws ...store.Write) []store.Document {
	t.Helper()
	docs, err := s.Change(t.Context(), ws...)
	if err != nil {
		t.Fatalf("change: %v", err)
	}
	if len(docs) != len(ws) {
		t.Fatalf("change of %d documents returned %d", len(ws), len(docs))
	}
	return docs
}

func get(t *testing.T, s store.Store, kind, id string) store.Document {
	t.Helper()
	doc, err := s.Get(t.Context(), kind, id)
	if err != nil {
		t.Fatalf("get %s/%s: %v", kind, id, err)
	}
	return doc
}

func absent(t *testing.T, s store.Store, kind, id string) {
	t.Helper()
	if doc, err := s.Get(t.Context(), kind, id); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("get %s/%s: %+v, %v; want ErrNotFound", kind, id, doc, err)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", what, err, want)
	}
}

// collect takes up to n values, or all when n is 0.
func collect[T any](t *testing.T, n int, values iter.Seq2[T, error]) []T {
	t.Helper()
	var out []T
	for v, err := range values {
		if err != nil {
			t.Fatalf("after %d values: %v", len(out), err)
		}
		if out = append(out, v); len(out) == n {
			break
		}
	}
	return out
}

func ids(docs []store.Document) (out []string) {
	for _, doc := range docs {
		out = append(out, doc.ID)
	}
	return out
}

// watchIn watches in a goroutine and sends what it sees; the channel closes when the watch ends.
func watchIn(ctx context.Context, s store.Store, after store.Seq) <-chan store.Document {
	out := make(chan store.Document)
	go func() {
		defer close(out)
		for doc, err := range s.Watch(ctx, after) {
			if err != nil {
				return
			}
			select {
			case out <- doc:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
