package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/store"
)

func testDocuments(t *testing.T, s store.Store) {
	absent(t, s, "combo", "best")
	created := change(t, s, put("combo", "best", "one"))[0]
	if created.Revision != 1 || created.Created != 1000 || created.Updated != 1000 || created.Seq == 0 || string(created.Data) != "one" {
		t.Fatalf("created: %+v", created)
	}
	second := put("combo", "best", "two")
	second.At = 2000
	updated := change(t, s, second)[0]
	if updated.Revision != 2 || updated.Created != 1000 || updated.Updated != 2000 || updated.Seq <= created.Seq {
		t.Fatalf("updated: %+v after %+v", updated, created)
	}
	if got := get(t, s, "combo", "best"); string(got.Data) != "two" || got.Revision != 2 || got.Seq != updated.Seq || got.Deleted {
		t.Fatalf("got: %+v", got)
	}
	change(t, s, put("combo", "a", ""), put("combo", "z/ü:1", "z"), put("key", "best", "other kind"))
	if got := ids(collect(t, 0, s.List(t.Context(), "combo"))); !slices.Equal(got, []string{"a", "best", "z/ü:1"}) {
		t.Fatalf("list by id: %q", got)
	}
	if got := collect(t, 0, s.List(t.Context(), "comb")); len(got) != 0 {
		t.Fatalf("list of a kind that is a prefix of another: %+v", got)
	}
	gone := change(t, s, store.Write{Kind: "combo", ID: "best", Delete: true, At: 3000})[0]
	if !gone.Deleted || gone.Data != nil || gone.Revision != 3 || gone.Updated != 3000 {
		t.Fatalf("deleted: %+v", gone)
	}
	absent(t, s, "combo", "best")
	if got := ids(collect(t, 0, s.List(t.Context(), "combo"))); !slices.Equal(got, []string{"a", "z/ü:1"}) {
		t.Fatalf("list after deletion: %q", got)
	}
	if again := change(t, s, store.Write{Kind: "combo", ID: "never", Delete: true})[0]; !again.Deleted || again.Revision != 0 {
		t.Fatalf("deleting nothing: %+v", again)
	}
	for _, w := range []store.Write{{ID: "x"}, {Kind: "x"}, {Kind: "a\x00b", ID: "x"}} {
		if _, err := s.Change(t.Context(), w); err == nil {
			t.Errorf("a document named %q/%q was taken", w.Kind, w.ID)
		}
	}
}

func testConflicts(t *testing.T, s store.Store) {
	first := change(t, s, ifRevision(put("key", "k", "1"), 0))[0]
	_, err := s.Change(t.Context(), ifRevision(put("key", "k", "2"), 0))
	wantError(t, "creating what exists", err, store.ErrConflict)
	change(t, s, ifRevision(put("key", "k", "2"), first.Revision))
	for _, stale := range []uint64{1, 3, 99} {
		_, err = s.Change(t.Context(), ifRevision(put("key", "k", "3"), stale))
		wantError(t, "a stale write", err, store.ErrConflict)
		_, err = s.Change(t.Context(), ifRevision(store.Write{Kind: "key", ID: "k", Delete: true}, stale))
		wantError(t, "a stale deletion", err, store.ErrConflict)
	}
	_, err = s.Change(t.Context(), ifRevision(put("key", "none", "1"), 1))
	wantError(t, "changing what does not exist", err, store.ErrConflict)
	if got := get(t, s, "key", "k"); string(got.Data) != "2" || got.Revision != 2 {
		t.Fatalf("a refused write left %+v", got)
	}
	absent(t, s, "key", "none")
	if last := change(t, s, put("key", "k", "any"))[0]; last.Revision != 3 {
		t.Fatalf("without an expectation the last write wins: %+v", last)
	}
	change(t, s, ifRevision(store.Write{Kind: "key", ID: "k", Delete: true}, 3))
	absent(t, s, "key", "k")
}

func testComeBack(t *testing.T, s store.Store) {
	old := change(t, s, put("key", "k", "mine"))[0]
	change(t, s, store.Write{Kind: "key", ID: "k", Delete: true})
	fresh := change(t, s, ifRevision(put("key", "k", "another's"), 0))[0]
	if fresh.Revision <= old.Revision {
		t.Fatalf("the new document has revision %d, the old one had %d", fresh.Revision, old.Revision)
	}
	_, err := s.Change(t.Context(), ifRevision(put("key", "k", "late"), old.Revision))
	wantError(t, "a write over the new document", err, store.ErrConflict)
}

func testAllOrNone(t *testing.T, s store.Store) {
	change(t, s, put("a", "1", "old"), put("a", "2", "old"))
	_, err := s.Change(t.Context(), put("a", "1", "new"), put("b", "3", "new"),
		store.Write{Kind: "a", ID: "2", Delete: true}, ifRevision(put("a", "2", "new"), 7))
	wantError(t, "a change with one stale part", err, store.ErrConflict)
	if one, two := get(t, s, "a", "1"), get(t, s, "a", "2"); string(one.Data) != "old" || string(two.Data) != "old" || one.Revision != 1 {
		t.Fatalf("a refused change left %+v and %+v", one, two)
	}
	absent(t, s, "b", "3")
	docs := change(t, s, put("a", "1", "x"), ifRevision(put("a", "1", "y"), 2), ifRevision(put("b", "3", "z"), 0))
	if docs[0].Revision != 2 || docs[1].Revision != 3 || docs[2].Revision != 1 || docs[0].Seq >= docs[1].Seq || docs[1].Seq >= docs[2].Seq {
		t.Fatalf("a later part sees the earlier ones, in order: %+v", docs)
	}
	if got := get(t, s, "a", "1"); string(got.Data) != "y" {
		t.Fatalf("got %+v", got)
	}
	if docs := change(t, s); len(docs) != 0 {
		t.Fatalf("an empty change wrote %+v", docs)
	}
}

func testTooLarge(t *testing.T, s store.Store) {
	largest := store.Write{Kind: "a", ID: "largest", Data: bytes.Repeat([]byte("x"), store.MaxDocument)}
	change(t, s, largest)
	if got := get(t, s, "a", "largest"); !bytes.Equal(got.Data, largest.Data) {
		t.Fatalf("the largest document came back with %d bytes", len(got.Data))
	}
	over := store.Write{Kind: "a", ID: "over", Data: bytes.Repeat([]byte("x"), store.MaxDocument+1)}
	_, err := s.Change(t.Context(), put("a", "beside", "x"), over)
	wantError(t, "a document above the limit", err, store.ErrTooLarge)
	_, err = s.Change(t.Context(), put("a", "beside", "x"), put("a", strings.Repeat("n", store.MaxName), "x"))
	wantError(t, "a name above the limit", err, store.ErrTooLarge)
	largest.ID = "beside"
	other := largest
	other.ID, other.Data = "other", largest.Data[:store.MaxDocument/2]
	_, err = s.Change(t.Context(), largest, other)
	wantError(t, "a change above the limit", err, store.ErrTooLarge)
	absent(t, s, "a", "beside")
	many := make([]store.Write, store.MaxWrites+1)
	for i := range many {
		many[i] = put("many", fmt.Sprint(i), "x")
	}
	_, err = s.Change(t.Context(), many...)
	wantError(t, "a change of too many documents", err, store.ErrTooLarge)
	change(t, s, many[1:]...)
	_, err = s.Append(t.Context(), store.Event{Kind: "a"}, store.Event{Kind: "b", Data: bytes.Repeat([]byte("x"), store.MaxEvent)})
	wantError(t, "an event above the limit", err, store.ErrTooLarge)
	if es := collect(t, 0, s.Replay(t.Context(), 0)); len(es) != 0 {
		t.Fatalf("a refused batch left %d events", len(es))
	}
}

func testCopies(t *testing.T, s store.Store) {
	mine := []byte("mine")
	docs, err := s.Change(t.Context(), store.Write{Kind: "a", ID: "1", Data: mine})
	if err != nil {
		t.Fatal(err)
	}
	mine[0], docs[0].Data[1] = 'X', 'X'
	get(t, s, "a", "1").Data[2] = 'X'
	collect(t, 1, s.List(t.Context(), "a"))[0].Data[3] = 'X'
	collect(t, 1, s.Watch(t.Context(), 0))[0].Data[3] = 'X'
	if got := get(t, s, "a", "1"); string(got.Data) != "mine" {
		t.Fatalf("a caller changed a stored document: %q", got.Data)
	}
}

func testWatch(t *testing.T, s store.Store) {
	change(t, s, put("a", "1", "x"), put("b", "2", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := watchIn(ctx, s, 0)
	first, second := <-seen, <-seen
	if first.ID != "1" || second.ID != "2" {
		t.Fatalf("what is there comes first: %+v %+v", first, second)
	}
	own := change(t, s, put("a", "1", "y"))[0]
	if got := <-seen; got.ID != "1" || got.Revision != 2 || string(got.Data) != "y" || got.Seq != own.Seq {
		t.Fatalf("own write: %+v", got)
	}
	change(t, s, store.Write{Kind: "b", ID: "2", Delete: true})
	gone := <-seen
	if gone.ID != "2" || !gone.Deleted || gone.Data != nil {
		t.Fatalf("deletion: %+v", gone)
	}
	late := watchIn(ctx, s, own.Seq)
	if got := <-late; got.ID != "2" || !got.Deleted {
		t.Fatalf("a watch from a place in between: %+v", got)
	}
	select {
	case extra := <-seen:
		t.Fatalf("nothing changed, but the watch shows %+v", extra)
	case <-time.After(10 * time.Millisecond):
	}
}

func testSlowWatch(t *testing.T, s store.Store) {
	change(t, s, put("a", "slow", "0"), put("a", "other", "0"))
	steps := 0
	var last store.Document
	for doc, err := range s.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if steps == 0 {
			for i := range 200 {
				change(t, s, put("a", "slow", fmt.Sprint(i+1)))
			}
		}
		steps++
		if last = doc; string(doc.Data) == "200" {
			break
		}
	}
	if last.ID != "slow" || last.Revision != 201 || steps > 10 {
		t.Fatalf("after %d steps the watch shows %+v", steps, last)
	}
}

func testWatchEnds(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := watchIn(ctx, s, 0)
	change(t, s, put("a", "1", "x"))
	<-seen
	cancel()
	if doc, open := <-seen; open {
		t.Fatalf("a watch whose context ended shows %+v", doc)
	}
	ended := make(chan error)
	go func() {
		for _, err := range s.Watch(t.Context(), 1<<40) {
			ended <- err
		}
		close(ended)
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Fatalf("a watch of a closed store: %v", err)
	}
	<-ended
}
