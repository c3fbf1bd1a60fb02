package storetest

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/store"
)

func event(n int) store.Event {
	return store.Event{
		At: int64(1000 + n), Kind: "connection.cooldown", Key: fmt.Sprintf("openai/c-%d", n), Revision: uint64(n), Node: "n1",
		Provider: "openai", ConnectionID: fmt.Sprintf("c-%d", n), Model: "gpt-5/ü", RequestID: "r", Data: fmt.Appendf(nil, `{"n":%d}`, n), Version: 1,
	}
}

func testJournal(t *testing.T, s store.Store) {
	ctx := t.Context()
	if es := collect(t, 0, s.Replay(ctx, 0)); len(es) != 0 {
		t.Fatalf("a new journal has %+v", es)
	}
	var want []store.Event
	for n := range 3 {
		want = append(want, event(n))
	}
	want[2].Seq = 999 // the store numbers, not the caller
	last, err := s.Append(ctx, want...)
	if err != nil {
		t.Fatal(err)
	}
	got := collect(t, 0, s.Replay(ctx, 0))
	if len(got) != 3 || got[2].Seq != last || got[0].Seq == 0 || got[0].Seq >= got[1].Seq || got[1].Seq >= got[2].Seq {
		t.Fatalf("numbers %d %d %d, last %d", got[0].Seq, got[1].Seq, got[2].Seq, last)
	}
	for i := range want {
		want[i].Seq = got[i].Seq
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("replayed (-want +got):\n%s", diff)
	}
	later, err := s.Append(ctx, event(3))
	if err != nil || later <= last {
		t.Fatalf("append after %d: %d, %v", last, later, err)
	}
	if es := collect(t, 0, s.Replay(ctx, last)); len(es) != 1 || es[0].Seq != later {
		t.Fatalf("replay after %d: %+v", last, es)
	}
	if es := collect(t, 0, s.Replay(ctx, later)); len(es) != 0 {
		t.Fatalf("replay after the last: %+v", es)
	}
	if es := collect(t, 0, s.Replay(ctx, math.MaxUint64)); len(es) != 0 {
		t.Fatalf("replay after the greatest number: %+v", es)
	}
	if es := collect(t, 2, s.Replay(ctx, 0)); es[1].Key != "openai/c-1" {
		t.Fatalf("a replay that stops early: %+v", es)
	}
	if seq, err := s.Append(ctx); err != nil || seq != later {
		t.Fatalf("an empty batch: %d, %v, want %d", seq, err, later)
	}
	testBigBatch(t, s, later)
}

// testBigBatch appends more than one transaction of the embedded store holds.
func testBigBatch(t *testing.T, s store.Store, after store.Seq) {
	big := make([]store.Event, 3000)
	for n := range big {
		big[n] = event(n)
		big[n].Data = bytes.Repeat([]byte{byte(n)}, 1000)
	}
	last, err := s.Append(t.Context(), big...)
	if err != nil {
		t.Fatal(err)
	}
	got := collect(t, 0, s.Replay(t.Context(), after))
	if len(got) != len(big) || got[len(got)-1].Seq != last {
		t.Fatalf("of %d events %d came back, last %d", len(big), len(got), last)
	}
	for n := range got {
		if got[n].Key != big[n].Key || !bytes.Equal(got[n].Data, big[n].Data) {
			t.Fatalf("event %d came back as %+v", n, got[n])
		}
	}
}

func testReplayWhileAppending(t *testing.T, s store.Store) {
	if _, err := s.Append(t.Context(), event(0)); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for e, err := range s.Replay(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Key != fmt.Sprintf("openai/c-%d", seen) {
			t.Fatalf("event %d is %+v", seen, e)
		}
		if seen++; seen == 1000 {
			break
		}
		if _, err := s.Append(t.Context(), event(seen)); err != nil {
			t.Fatal(err)
		}
	}
}

func testSnapshots(t *testing.T, s store.Store) {
	ctx := t.Context()
	_, err := s.Latest(ctx)
	wantError(t, "latest of none", err, store.ErrNotFound)
	if err := s.Save(ctx, store.Snapshot{Seq: 1, At: 10, Data: map[string][]byte{"old": []byte("gone")}}); err != nil {
		t.Fatal(err)
	}
	want := store.Snapshot{Seq: 7, At: 20, Data: map[string][]byte{
		"cooldown": []byte(`{"a":1}`), "terminal": {}, "large": bytes.Repeat([]byte("0123456789"), 400_000),
	}}
	if err := s.Save(ctx, want); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := s.Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got.Seq != want.Seq || got.At != want.At || !maps.EqualFunc(want.Data, got.Data, bytes.Equal) {
			t.Fatalf("snapshot of %d gates at %d came back as %d gates at %d", len(want.Data), want.Seq, len(got.Data), got.Seq)
		}
		got.Data["cooldown"][0] = 'X'
	}
}
