package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// larder is a KVStore that fails on command.
type larder struct {
	mu      sync.Mutex
	fault   error
	kept    map[string]KVEntry // by plugin and key
	saves   [][]KVEntry
	loadErr error
}

func newShelf() *larder { return &larder{kept: map[string]KVEntry{}} }

func (s *larder) Load(_ context.Context, plugin string) ([]KVEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []KVEntry
	for at, e := range s.kept {
		if strings.HasPrefix(at, plugin+"/") {
			list = append(list, e)
		}
	}
	return list, s.loadErr
}

func (s *larder) Save(_ context.Context, plugin string, list []KVEntry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saves = append(s.saves, list)
	if s.fault != nil {
		return s.fault
	}
	for _, e := range list {
		e.Value = bytes.Clone(e.Value)
		if s.kept[plugin+"/"+e.Key] = e; e.Gone {
			delete(s.kept, plugin+"/"+e.Key)
		}
	}
	return nil
}

func (s *larder) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

func (s *larder) value(at string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.kept[at]
	return string(e.Value), ok
}

func (s *larder) count() (kept, saves int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept), len(s.saves)
}

func noSecret(string, string) catalog.Secret { return catalog.Secret{} }

func roomsOf(s KVStore, now func() time.Time) *rooms {
	return newRooms(Ports{KV: s}, noSecret, now, slog.New(slog.DiscardHandler))
}

func TestKVIsShared(t *testing.T) { // ABI-6, ABI-13: by two instances, over a reload, and by nobody else
	w := newWorld(t, Ports{}, grantAll(), forwarder{function: "kv_add"})
	one, two := w.in, w.fresh(w.v)
	next := w.fresh(w.load(forwarder{function: "kv_add", calls: 1, manifest: strings.NewReplacer("PORT", "443", "1.0.0", "1.0.1").Replace(askAll)}))
	for i, in := range []*instance{one, two, next, one} {
		if n, _ := askInstance(t.Context(), w, in, wire.OpClassify, 0, "n", 1, 0); n != int64(i)+1 {
			t.Errorf("the %d. call counts %d", i+1, n)
		}
	}
	if w.rooms.space("other").entries["n"].value != nil {
		t.Error("another plugin sees the key")
	}
}

func TestKVQuota(t *testing.T) { // ABI-6: bytes of keys and values
	s, now := newSpace(), time.Unix(1000, 0)
	for _, c := range []struct {
		key, value string
		quota      int
		want       bool
	}{
		{"abc", "1234567", 10, true}, {"abc", "12345678", 10, false}, {"abc", "123456", 10, true}, {"d", "", 10, true}, {"e", "", 10, false},
		{"abc", "", 4, true}, {"abc", "1", 4, false}, {"e", "", 1 << 20, true},
	} {
		if got := s.set(c.key, []byte(c.value), 0, c.quota, now); got != c.want {
			t.Errorf("%s=%s in %d bytes: %v", c.key, c.value, c.quota, got)
		}
	}
	if s.bytes != 5 {
		t.Errorf("%d bytes are counted", s.bytes)
	}
	if v, _ := s.get("abc", now); len(v) != 0 {
		t.Errorf("what was refused is there: %q", v)
	}
	if n, ok := s.add("num", 1, 0, 15, now); ok || s.bytes != 5 {
		t.Errorf("a counter of 11 bytes beside 5 in 15: %d", n)
	}
	for i := range maxKeys + 1 {
		if ok := s.set(fmt.Sprint(i), nil, 0, 1<<30, now); ok != (i < maxKeys-3) {
			t.Fatalf("key %d: %v", i, ok)
		}
	}
}

func TestKVCopies(t *testing.T) { // ABI-6: what the guest does with its memory afterwards is its own
	s, now, memory := newSpace(), time.Unix(1000, 0), []byte("keyvalue")
	s.changed, s.wake = map[string]struct{}{}, func() {}
	for range 2 {
		s.set(string(memory[:3]), memory[3:], 0, 100, now)
	}
	copy(memory, "XXXXXXXX")
	if v, ok := s.get("key", now); !ok || string(v) != "value" {
		t.Errorf("%q, %v", v, ok)
	}
	w := newWorld(t, Ports{}, grantAll(), forwarder{function: "kv_set"})
	for range 2 {
		w.ask(wire.OpClassify, 0, "key", "value", 0)
	}
	w.ask(wire.OpClassify, 0, "XXX", "YYYYY", 0) // over the same places
	if v, ok := w.v.guest.kv.get("key", w.time()); !ok || string(v) != "value" || len(w.v.guest.kv.entries) != 2 {
		t.Errorf("%q, %v, %d keys", v, ok, len(w.v.guest.kv.entries))
	}
}

func TestKVIsWrittenWithinASecond(t *testing.T) { // ABI-6
	synctest.Test(t, func(t *testing.T) {
		store := newShelf()
		r := roomsOf(store, time.Now)
		s := r.space("acme")
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.keep(ctx) })
		for i := range 100 {
			s.set("k", fmt.Append(nil, i), 0, 1000, time.Now())
			s.add("n", 1, 0, 1000, time.Now())
			time.Sleep(time.Millisecond)
		}
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if v, _ := store.value("acme/k"); v != "99" {
			t.Errorf("after a second the store has %q", v)
		}
		if n, saves := store.count(); n != 2 || saves > 2 {
			t.Errorf("%d keys in %d writes for 200 changes", n, saves)
		}
		_, before := store.count()
		time.Sleep(time.Hour)
		if _, saves := store.count(); saves != before {
			t.Error("the store is written though nothing changes")
		}
		s.set("short", []byte("x"), 2*time.Second, 1000, time.Now())
		time.Sleep(time.Second)
		if _, ok := store.value("acme/short"); !ok {
			t.Error("a key with a time is not kept")
		}
		time.Sleep(20 * time.Second)
		if _, ok := store.value("acme/short"); ok || s.bytes != 1+2+1+8 {
			t.Errorf("a key that has ended is still there: %v, %d bytes", ok, s.bytes)
		}
		stop()
		wg.Wait()
	})
}

func TestKVOverRestarts(t *testing.T) { // ABI-6
	store, now := newShelf(), time.Unix(1000, 0)
	first := roomsOf(store, func() time.Time { return now })
	s := first.space("acme")
	s.set("bytes\x00\xff/", []byte{0, 1, 255}, 0, 1000, now)
	s.set("short", []byte("x"), time.Minute, 1000, now)
	s.set("long", []byte("y"), time.Hour, 1000, now)
	s.add("n", 41, 0, 1000, now)
	first.space("other").set("long", []byte("other"), 0, 1000, now)
	if err := first.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	now = now.Add(10 * time.Minute)
	second := roomsOf(store, func() time.Time { return now })
	s = second.space("acme")
	if v, _ := s.get("bytes\x00\xff/", now); !bytes.Equal(v, []byte{0, 1, 255}) {
		t.Errorf("bytes: %v", v)
	}
	if v, ok := s.get("long", now); string(v) != "y" || !ok {
		t.Errorf("long: %q", v)
	}
	if _, ok := s.get("long", now.Add(time.Hour)); ok {
		t.Error("the time to live is lost")
	}
	if n, _ := s.add("n", 1, 0, 1000, now); n != 42 {
		t.Errorf("n: %d", n)
	}
	if want := len("bytes\x00\xff/") + 3 + len("long") + 1 + len("n") + 8; s.bytes != want {
		t.Errorf("%d bytes are counted, want %d", s.bytes, want)
	}
	if err := second.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := store.value("acme/short"); ok {
		t.Error("what ended while nothing ran is still in the store")
	}
}

func TestKVWhileTheStoreDoesNotWrite(t *testing.T) { // ABI-6, DATA-5: memory only
	synctest.Test(t, func(t *testing.T) {
		store := newShelf()
		store.fault = errors.New("store degraded")
		var out bytes.Buffer
		r := newRooms(Ports{KV: store}, noSecret, time.Now, slog.New(slog.NewTextHandler(&out, nil)))
		s, other := r.space("acme"), r.space("other")
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.keep(ctx) })
		for i := range 1000 { // each ends before the store takes it
			s.set(fmt.Sprint("gone", i), []byte("x"), time.Second, 1000, time.Now())
			time.Sleep(100 * time.Millisecond)
		}
		if n := len(s.changed); n > 2*saveEntries {
			t.Errorf("%d keys wait for the store though %d live", n, len(s.entries))
		}
		s.set("k", []byte("v"), 0, 1000, time.Now())
		other.set("k", []byte("w"), 0, 1000, time.Now())
		if _, saves := store.count(); saves > 20 {
			t.Errorf("a store that does not write was asked %d times in 100 s", saves)
		}
		store.fail(nil)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		for _, at := range []string{"acme/k", "other/k"} {
			if _, ok := store.value(at); !ok {
				t.Errorf("%s was not written once the store could", at)
			}
		}
		if n, _ := store.count(); n != 2 {
			t.Errorf("%d keys in the store", n)
		}
		stop()
		wg.Wait()
		if strings.Count(out.String(), "not written") != 1 || strings.Count(out.String(), "kept again") != 1 {
			t.Errorf("%s", out.String())
		}
	})
}

// A key that ended and came back before the store heard of either must still go from the store when it ends again.
func TestKVThatEndsTwice(t *testing.T) { // ABI-6
	store, now := newShelf(), time.Unix(1000, 0)
	r := roomsOf(store, func() time.Time { return now })
	s := r.space("acme")
	s.set("k", nil, time.Second, 100, now)
	if err := r.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		now = now.Add(time.Second)
		s.sweep(now)
		s.set("k", nil, time.Second, 100, now)
	}
	now = now.Add(time.Second)
	s.sweep(now)
	if err := r.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, _ := store.count(); n != 0 {
		t.Errorf("%d keys are left in the store", n)
	}
}

func TestKVOneStoreFaultKeepsNobodyBack(t *testing.T) { // ABI-6
	store := newShelf()
	r := roomsOf(failsFor{store, "bad"}, time.Now)
	for _, name := range []string{"bad", "good", "fine"} {
		r.space(name).set("k", nil, 0, 10, time.Now())
	}
	if err := r.close(t.Context()); err == nil {
		t.Error("a fault is not told")
	}
	if n, _ := store.count(); n != 2 {
		t.Errorf("%d keys were written", n)
	}
}

type failsFor struct {
	*larder
	plugin string
}

func (f failsFor) Save(ctx context.Context, plugin string, list []KVEntry) error {
	if plugin == f.plugin {
		return errors.New("no")
	}
	return f.larder.Save(ctx, plugin, list)
}

func TestKVThatCannotBeRead(t *testing.T) { // ABI-6
	store, now := newShelf(), time.Unix(1000, 0)
	store.kept["acme/old"], store.kept["acme/k"] = KVEntry{Key: "old", Value: []byte("1")}, KVEntry{Key: "k", Value: []byte("1")}
	store.loadErr = errors.New("no")
	r := roomsOf(store, func() time.Time { return now })
	r.space("acme").set("k", []byte("2"), 0, 100, now)
	store.loadErr = nil
	s := r.space("acme") // the next load of the plugin
	old, _ := s.get("old", now)
	if k, _ := s.get("k", now); string(old) != "1" || string(k) != "2" || s.bytes != 6 {
		t.Errorf("old=%s, k=%s, %d bytes", old, k, s.bytes)
	}
}

func TestKVBatches(t *testing.T) { // ABI-6: bounded writes
	store := newShelf()
	r := roomsOf(store, time.Now)
	s := r.space("acme")
	for i := range 600 {
		s.set(fmt.Sprint("small", i), []byte("x"), 0, 16<<20, time.Now())
	}
	for i := range 20 {
		s.set(fmt.Sprint("large", i), make([]byte, maxValue), 0, 16<<20, time.Now())
	}
	if err := r.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, list := range store.saves {
		size := 0
		for _, e := range list {
			size += len(e.Key) + len(e.Value)
		}
		if total += len(list); len(list) > saveEntries || size > saveBytes {
			t.Errorf("one write has %d entries of %d bytes", len(list), size)
		}
	}
	if n, _ := store.count(); n != 620 || total != 620 {
		t.Errorf("%d keys, %d written", n, total)
	}
}

func TestKVUnderLoad(t *testing.T) { // ABI-6
	store := newShelf()
	r := roomsOf(store, time.Now)
	s := r.space("acme")
	ctx, stop := context.WithCancel(t.Context())
	var writer, guests sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			_ = r.save(ctx)
		}
	})
	for g := range 8 {
		guests.Go(func() {
			for i := range 300 {
				s.add("n", 1, 0, 10_000, time.Now())
				s.set(fmt.Sprint(g), fmt.Append(nil, i), 0, 10_000, time.Now())
				s.set(fmt.Sprint("gone", g), nil, time.Microsecond, 10_000, time.Now())
				r.space("acme").get("n", time.Now())
			}
		})
	}
	guests.Wait()
	stop()
	writer.Wait()
	s.mu.Lock()
	s.sweep(time.Now())
	s.mu.Unlock()
	if err := r.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := roomsOf(store, time.Now).space("acme")
	if n, _ := again.add("n", 0, 0, 10_000, time.Now()); n != 2400 {
		t.Errorf("counted %d", n)
	}
	for g := range 8 {
		if v, _ := again.get(fmt.Sprint(g), time.Now()); string(v) != "299" {
			t.Errorf("the last write of %d is lost: %q", g, v)
		}
	}
	if n, _ := store.count(); n != 9 {
		t.Errorf("%d keys in the store", n)
	}
}

// Whatever happens, and whenever the store fails: after a last good write a restart finds what was there.
func TestKVProperty(t *testing.T) { // ABI-6
	rapid.Check(t, func(t *rapid.T) {
		store, now := newShelf(), time.Unix(1000, 0)
		r := roomsOf(store, func() time.Time { return now })
		s := r.space("acme")
		key := rapid.SampledFrom([]string{"a", "b", "ccc", "dddd"})
		ttl := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				s.set(key.Draw(t, "key"), []byte(rapid.StringN(0, 8, 8).Draw(t, "value")), ttl.Draw(t, "ttl"), 40, now)
			case 2:
				delta := rapid.SampledFrom([]int64{1, -1, math.MaxInt64, math.MinInt64}).Draw(t, "delta")
				if n, ok := s.add(key.Draw(t, "key"), delta, ttl.Draw(t, "ttl"), 40, now); ok && n == math.MinInt64 {
					t.Fatal("a sum is the word for an error")
				}
			case 3:
				now = now.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute}).Draw(t, "pass"))
				s.sweep(now)
			case 4:
				store.fault = rapid.SampledFrom([]error{nil, errors.New("no")}).Draw(t, "fault")
				_ = r.save(context.Background())
			case 5:
				store.fault = nil
				if r.close(context.Background()) != nil {
					t.Fatal("the last write failed")
				}
				r = roomsOf(store, func() time.Time { return now })
				s = r.space("acme")
			}
			bytes := 0
			for k, e := range s.entries {
				bytes += len(k) + len(e.value)
			}
			if bytes != s.bytes || bytes > 40 {
				t.Fatalf("%d bytes are there, %d counted", bytes, s.bytes)
			}
		}
		s.sweep(now)
		store.fault = nil
		if err := r.close(context.Background()); err != nil || len(s.changed) != 0 {
			t.Fatal(err, s.changed)
		}
		again := roomsOf(store, func() time.Time { return now }).space("acme")
		if d := cmp.Diff(contents(s), contents(again)); d != "" {
			t.Fatal(d)
		}
		if len(store.kept) != len(s.entries) {
			t.Fatalf("the store has %d keys, %d are there", len(store.kept), len(s.entries))
		}
	})
}

func contents(s *space) []KVEntry {
	list := []KVEntry{}
	for k, e := range s.entries {
		list = append(list, KVEntry{Key: k, Value: append([]byte{}, e.value...), Ends: e.ends})
	}
	slices.SortFunc(list, func(a, b KVEntry) int { return strings.Compare(a.Key, b.Key) })
	return list
}
