package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/host/record"
	"github.com/weirgate/weir/store"
)

// OV-8: events are written in one batch, at most 50 ms after the first one.
func TestBatchAfterFiftyMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newSpy(), newGate()
		r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}, Node: "n1"})
		r.Start()
		start := time.Now()
		r.Append(g.move("a", "1"))
		time.Sleep(30 * time.Millisecond)
		own := g.move("b", "1")
		own.At, own.Node, own.Version = 7, "other", 3
		r.Append(own, g.move("a", "2"))
		time.Sleep(20*time.Millisecond - time.Nanosecond)
		synctest.Wait()
		if b, _ := s.written(); len(b) != 0 {
			t.Fatalf("written after %v", b[0].at.Sub(start))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		b, _ := s.written()
		if len(b) != 1 || b[0].at.Sub(start) != 50*time.Millisecond || len(b[0].events) != 3 {
			t.Fatalf("after 50 ms: %+v", b)
		}
		if e := b[0].events[0]; e.At != start.UnixMilli() || e.Node != "n1" || e.Version != 1 {
			t.Errorf("stamped: %+v", e)
		}
		if e := b[0].events[1]; e.At != 7 || e.Node != "other" || e.Version != 3 {
			t.Errorf("what the event carries stays: %+v", e)
		}
		time.Sleep(time.Second)
		again := time.Now()
		r.Append(g.move("a", "3"))
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if b, _ = s.written(); len(b) != 2 || b[1].at.Sub(again) != 50*time.Millisecond {
			t.Fatalf("the second batch: %+v", b)
		}
		stop(t, r)
	})
}

// OV-8: an append never waits for the store; what does not fit is dropped, counted, and made good by a snapshot.
func TestBoundedBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newSpy(), newGate()
		s.hang = make(chan struct{})
		r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}, Buffer: 10})
		r.Start()
		r.Append(g.move("first", "1"))
		time.Sleep(50 * time.Millisecond)
		synctest.Wait() // the store hangs now
		for i := range 25 {
			r.Append(g.move(fmt.Sprint(i), "1"))
		}
		if n := r.Dropped(); n != 15 {
			t.Fatalf("%d dropped", n)
		}
		close(s.hang)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		_, saves := s.written()
		if len(saves) != 1 || saves[0].Seq != 11 {
			t.Fatalf("no snapshot made good for the lost events: %+v", saves)
		}
		stop(t, r)
		restored := newGate()
		if err := record.New(record.Options{Store: s, Gates: []record.Snapshotter{restored}}).Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(restored.now()) != 26 {
			t.Fatalf("restored %d keys", len(restored.now()))
		}
	})
}

func TestTooLargeEventIsDroppedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newSpy(), newGate()
		r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}})
		r.Start()
		r.Append(g.move("large", strings.Repeat("x", store.MaxEvent)), g.move("small", "1"))
		time.Sleep(time.Second)
		synctest.Wait()
		b, saves := s.written()
		if len(b) != 1 || len(b[0].events) != 1 || r.Dropped() != 1 || len(saves) != 1 {
			t.Fatalf("%d batches, %d snapshots, %d dropped", len(b), len(saves), r.Dropped())
		}
		stop(t, r)
	})
}

// A half full buffer does not wait for the delay.
func TestFullBufferIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newSpy(), newGate()
		r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}, Buffer: 10})
		r.Start()
		start := time.Now()
		for range 6 {
			r.Append(g.move("a", "1"))
		}
		synctest.Wait()
		if b, _ := s.written(); len(b) != 1 || b[0].at != start {
			t.Fatalf("%+v", b)
		}
		stop(t, r)
	})
}

func TestSnapshotsNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newSpy(), newGate()
		r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}, SnapshotEvents: 5, SnapshotEvery: time.Minute})
		r.Start()
		count := func(want int, why string) {
			t.Helper()
			synctest.Wait()
			if _, saves := s.written(); len(saves) != want {
				t.Fatalf("%s: %d snapshots", why, len(saves))
			}
		}
		time.Sleep(10 * time.Minute)
		count(0, "nothing happened")
		for range 4 {
			r.Append(g.move("a", "1"))
		}
		time.Sleep(time.Second)
		count(0, "four events")
		r.Append(g.move("a", "1"))
		time.Sleep(time.Second)
		count(1, "five events")
		r.Append(g.move("a", "1"))
		time.Sleep(time.Minute)
		count(2, "a minute later")
		time.Sleep(time.Hour)
		count(2, "an hour without an event")
		r.Append(g.move("a", "last"))
		stop(t, r)
		count(3, "at the end")
		if _, saves := s.written(); saves[2].Seq != 7 || r.Last() != 7 || !strings.Contains(string(saves[2].Data["gate"]), "last") {
			t.Fatalf("the last snapshot: %+v", saves[2])
		}
		r.Append(g.move("a", "too late"))
		if r.Dropped() != 1 {
			t.Errorf("an event after the end was not counted")
		}
		stop(t, r)
	})
}

func TestFailingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s, g := newSpy(), newGate()
		r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		r.Start()
		s.setFault(errors.New("no disk"))
		r.Append(g.move("a", "1"), g.move("b", "1"))
		time.Sleep(time.Second)
		synctest.Wait()
		if r.Dropped() != 2 || !strings.Contains(log.String(), "no disk") {
			t.Fatalf("%d dropped, log: %s", r.Dropped(), log.String())
		}
		s.setFault(nil)
		r.Append(g.move("c", "1"))
		time.Sleep(time.Second)
		synctest.Wait()
		if _, saves := s.written(); len(saves) != 1 {
			t.Fatalf("%d snapshots make good for lost events", len(saves))
		}
		g.fault = errors.New("gate is sick")
		if err := r.Snapshot(t.Context()); !errors.Is(err, g.fault) {
			t.Fatalf("a gate that fails: %v", err)
		}
		stop(t, r)
	})
}

// DATA-5: when the store is back, it gets a snapshot; people find both moments in the journal.
func TestStoreComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newSpy(), newGate()
		r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}})
		r.Start()
		s.notify(store.Health{State: store.StateDegraded, Fault: "disk full"})
		time.Sleep(time.Second)
		synctest.Wait()
		if _, saves := s.written(); len(saves) != 0 {
			t.Fatal("a snapshot while degraded")
		}
		g.move("lost", "1")
		s.notify(store.Health{State: store.StateOK})
		time.Sleep(time.Second)
		synctest.Wait()
		_, saves := s.written()
		if len(saves) != 1 || !strings.Contains(string(saves[0].Data["gate"]), "lost") {
			t.Fatalf("snapshots: %+v", saves)
		}
		events, _, err := r.Events(t.Context(), record.Filter{Kind: record.KindStoreDegraded})
		if err != nil || len(events) != 2 || !strings.Contains(string(events[0].Data), "disk full") {
			t.Fatalf("%+v, %v", events, err)
		}
		stop(t, r)
		if s.notify != nil {
			t.Error("the recorder still listens to the store")
		}
	})
}

func TestStopHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newSpy(), newGate()
		s.hang = make(chan struct{})
		r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}})
		r.Start()
		r.Append(g.move("a", "1"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("stop of a hanging store: %v", err)
		}
		close(s.hang)
		stop(t, r)
	})
}

func TestStopWithoutStart(t *testing.T) {
	r := record.New(record.Options{Store: newSpy()})
	stop(t, r)
	r.Start()
	stop(t, r)
}
