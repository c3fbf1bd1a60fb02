package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/record"
	"github.com/weirgate/weir/store"
)

// OV-5: snapshot plus replay equals never having stopped, whenever the snapshots and the stops fall.
func TestRestoreEqualsNeverHavingStopped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, g := newSpy(), newGate()
		r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}})
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"move", "move", "move", "journal", "snapshot", "restart"}).Draw(t, "step") {
			case "move":
				r.Append(g.move(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), fmt.Sprint(i)))
			case "journal":
				if _, err := s.Store.Append(t.Context(), store.Event{Kind: record.KindPluginLoaded, Key: "p"}); err != nil {
					t.Fatal(err)
				}
			case "snapshot":
				if err := r.Snapshot(t.Context()); err != nil {
					t.Fatal(err)
				}
			case "restart":
				r.Start()
				if err := r.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
				restored := newGate()
				r = record.New(record.Options{Store: s, Gates: []record.Snapshotter{restored}})
				if err := r.Restore(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(g.now(), restored.now()); diff != "" {
					t.Fatalf("restored (-want +got):\n%s", diff)
				}
				g = restored
			}
		}
	})
}

// OBJ-22: an unknown kind is skipped with one warning, what is for people only without.
func TestUnknownKinds(t *testing.T) {
	var log bytes.Buffer
	s, g := newSpy(), newGate()
	for _, kind := range []string{"moon.rose", "moon.rose", record.KindConfigReloaded, record.KindTerminal} {
		if _, err := s.Store.Append(t.Context(), store.Event{Kind: kind, Key: kind, Revision: 1}); err != nil {
			t.Fatal(err)
		}
	}
	r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := r.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "WARN"); n != 1 || !strings.Contains(log.String(), "moon.rose") {
		t.Fatalf("%d warnings: %s", n, log.String())
	}
	if got := g.now(); len(got) != 1 || got[record.KindTerminal].Revision != 1 {
		t.Fatalf("applied: %+v", got)
	}
	if r.Last() != 4 {
		t.Fatalf("last: %d", r.Last())
	}
}

// Every kind of OBJ-22 is known, and the kinds for people are not applied.
func TestKinds(t *testing.T) {
	const (
		gates  = "connection.cooldown connection.error connection.cleared connection.terminal connection.probe rejected.counted lockout.set lockout.decayed lockout.cleared breaker.counted breaker.changed affinity.pinned lease.changed"
		people = "plugin.loaded plugin.rejected plugin.removed plugin.quarantined plugin.restored config.reloaded config.rejected settings.changed store.degraded"
	)
	var log bytes.Buffer
	s, g := newSpy(), newGate()
	for kind := range strings.FieldsSeq(gates + " " + people) {
		if _, err := s.Store.Append(t.Context(), store.Event{Kind: kind, Key: kind, Revision: 1}); err != nil {
			t.Fatal(err)
		}
	}
	r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{g}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := r.Restore(t.Context()); err != nil || log.Len() > 0 {
		t.Fatalf("%v, log: %s", err, log.String())
	}
	for kind := range strings.FieldsSeq(people) {
		if _, ok := g.now()[kind]; ok {
			t.Errorf("%s was applied", kind)
		}
	}
	if len(g.now()) != len(strings.Fields(gates)) {
		t.Errorf("applied: %v", g.now())
	}
}

func TestRestoreReportsFaults(t *testing.T) {
	s, sick, well := newSpy(), newGate(), newGate()
	if _, err := s.Store.Append(t.Context(), well.move("a", "1")); err != nil {
		t.Fatal(err)
	}
	sick.fault = errors.New("cannot read")
	restored := newGate()
	r := record.New(record.Options{Store: s, Gates: []record.Snapshotter{sick, restored}})
	if err := r.Restore(t.Context()); !errors.Is(err, sick.fault) || !strings.Contains(err.Error(), "event 1") {
		t.Fatalf("restore: %v", err)
	}
	if len(restored.now()) != 1 {
		t.Fatal("a sick gate kept the well one from its state")
	}
	if err := s.Store.Save(t.Context(), store.Snapshot{Seq: 1, Data: map[string][]byte{"gate": []byte("{")}}); err != nil {
		t.Fatal(err)
	}
	r = record.New(record.Options{Store: s, Gates: []record.Snapshotter{newGate()}})
	if err := r.Restore(t.Context()); err == nil || !strings.Contains(err.Error(), "gate gate") {
		t.Fatalf("a damaged snapshot: %v", err)
	}
}

// OBJ-23: reading with filters, page by page.
func TestEvents(t *testing.T) {
	s := newSpy()
	for i := range 30 {
		e := store.Event{At: int64(i) * 1000, Kind: record.KindCooldown, Provider: []string{"openai", "groq"}[i%2], ConnectionID: fmt.Sprint(i % 3)}
		if i%10 == 9 {
			e.Kind = record.KindTerminal
		}
		if _, err := s.Store.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	r := record.New(record.Options{Store: s})
	for _, c := range []struct {
		name   string
		filter record.Filter
		seqs   []store.Seq
		next   store.Seq
	}{
		{"limit", record.Filter{Limit: 2}, []store.Seq{1, 2}, 2},
		{"after", record.Filter{After: 28}, []store.Seq{29, 30}, 30},
		{"at the end", record.Filter{After: 30}, nil, 30},
		{"kind", record.Filter{Kind: record.KindTerminal}, []store.Seq{10, 20, 30}, 30},
		{"provider and connection", record.Filter{Provider: "groq", ConnectionID: "0", Limit: 3}, []store.Seq{4, 10, 16}, 16},
		{"since", record.Filter{Since: time.UnixMilli(28_000)}, []store.Seq{29, 30}, 30},
		{"nothing fits", record.Filter{Provider: "none"}, nil, 30},
	} {
		t.Run("OBJ-23 "+c.name, func(t *testing.T) {
			events, next, err := r.Events(t.Context(), c.filter)
			if err != nil {
				t.Fatal(err)
			}
			var seqs []store.Seq
			for _, e := range events {
				seqs = append(seqs, e.Seq)
			}
			if diff := cmp.Diff(c.seqs, seqs); diff != "" || next != c.next || events == nil {
				t.Fatalf("next %d, want %d; (-want +got):\n%s", next, c.next, diff)
			}
		})
	}
	many := make([]store.Event, 2000)
	if _, err := s.Store.Append(t.Context(), many...); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]int{0: record.DefaultLimit, 5000: record.MaxLimit} {
		if events, _, err := r.Events(t.Context(), record.Filter{Limit: limit}); err != nil || len(events) != want {
			t.Errorf("limit %d: %d events, %v", limit, len(events), err)
		}
	}
}

// OBJ-23: a live reader gets what it missed, then what is written, in order.
func TestSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		r := record.New(record.Options{Store: newSpy(), Gates: []record.Snapshotter{g}})
		r.Start()
		r.Append(g.move("a", "1"), g.move("a", "2"), g.move("a", "3"))
		time.Sleep(time.Second)
		events, cancel := r.Subscribe(1)
		for _, want := range []store.Seq{2, 3} {
			if e := <-events; e.Seq != want {
				t.Fatalf("resumed with %d, want %d", e.Seq, want)
			}
		}
		r.Append(g.move("b", "1"))
		start := time.Now()
		if e := <-events; e.Seq != 4 || e.Key != "b" || time.Since(start) != 50*time.Millisecond {
			t.Fatalf("live: %+v after %v", e, time.Since(start))
		}
		cancel()
		synctest.Wait()
		if _, open := <-events; open {
			t.Fatal("open after cancel")
		}
		ended, cancel := r.Subscribe(r.Last())
		defer cancel()
		stop(t, r)
		if _, open := <-ended; open {
			t.Fatal("open after stop")
		}
		late, cancel := r.Subscribe(0)
		defer cancel()
		if _, open := <-late; open {
			t.Fatal("open for a reader that came after stop")
		}
	})
}

// OBJ-23: a reader that is too slow is cut off; neither the writer nor another reader waits for it.
func TestSlowReaderIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		r := record.New(record.Options{Store: newSpy(), Gates: []record.Snapshotter{g}, Patience: time.Second})
		r.Start()
		slow, cancelSlow := r.Subscribe(0)
		defer cancelSlow()
		quick, cancelQuick := r.Subscribe(0)
		defer cancelQuick()
		for range 200 {
			r.Append(g.move("a", "1"))
		}
		start := time.Now()
		for want := range store.Seq(200) {
			if e := <-quick; e.Seq != want+1 {
				t.Fatalf("the quick reader got %d, want %d", e.Seq, want+1)
			}
		}
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Fatalf("the quick reader waited %v", took)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		n := 0
		for range slow {
			n++
		}
		if n == 0 || n >= 200 {
			t.Fatalf("the slow reader got %d events and was not cut off", n)
		}
		stop(t, r)
	})
}
