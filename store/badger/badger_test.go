package badger

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"go.uber.org/goleak"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		os.Exit(crashChild(dir))
	}
	goleak.VerifyTestMain(m)
}

// small has a ballast that a test can afford, and a disk with room.
func small() Options {
	return Options{Ballast: 1 << 20, Free: func(string) (uint64, error) { return math.MaxUint64, nil }}
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func closed(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func put(t *testing.T, s *Store, id, data string) store.Document {
	t.Helper()
	docs, err := s.Change(t.Context(), store.Write{Kind: "key", ID: id, Data: []byte(data)})
	if err != nil {
		t.Fatalf("put %s: %v", id, err)
	}
	return docs[0]
}

func wantData(t *testing.T, s *Store, id, data string) {
	t.Helper()
	if doc, err := s.Get(t.Context(), "key", id); err != nil || string(doc.Data) != data {
		t.Fatalf("document %s: %+v, %v; want %q", id, doc, err, data)
	}
}

func appendEvents(t *testing.T, s *Store, n int) store.Seq {
	t.Helper()
	es := make([]store.Event, n)
	for i := range es {
		es[i] = store.Event{At: s.o.Now().UnixMilli(), Kind: "connection.cooldown", Key: fmt.Sprint(i), Data: []byte(`{}`)}
	}
	last, err := s.Append(t.Context(), es...)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return last
}

func seqs(t *testing.T, s *Store) (first, last store.Seq, n int) {
	t.Helper()
	for e, err := range s.Replay(t.Context(), 0) {
		if err != nil {
			t.Fatalf("replay: %v", err)
		}
		if n == 0 {
			first = e.Seq
		}
		last = e.Seq
		n++
	}
	return first, last, n
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, t.TempDir(), small()) })
}

func TestReopenKeepsEverything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	s := open(t, dir, small())
	put(t, s, "a", "1")
	second := put(t, s, "a", "2")
	put(t, s, "gone", "x")
	if _, err := s.Change(t.Context(), store.Write{Kind: "key", ID: "gone", Delete: true}); err != nil {
		t.Fatal(err)
	}
	last := appendEvents(t, s, 10)
	if err := s.Save(t.Context(), store.Snapshot{Seq: 4, Data: map[string][]byte{"gate": []byte("state")}}); err != nil {
		t.Fatal(err)
	}
	fence, err := s.Lock(t.Context(), "sweep", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, s)

	s = open(t, dir, small())
	if doc, err := s.Get(t.Context(), "key", "a"); err != nil || doc.Revision != 2 || doc.Seq != second.Seq || string(doc.Data) != "2" {
		t.Fatalf("document: %+v, %v", doc, err)
	}
	if _, err := s.Get(t.Context(), "key", "gone"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("deleted document: %v", err)
	}
	if first, end, n := seqs(t, s); first != 1 || end != last || n != 10 {
		t.Fatalf("events %d to %d, %d", first, end, n)
	}
	if next := appendEvents(t, s, 1); next != last+1 {
		t.Fatalf("numbering goes on with %d after %d", next, last)
	}
	if snap, err := s.Latest(t.Context()); err != nil || snap.Seq != 4 || string(snap.Data["gate"]) != "state" {
		t.Fatalf("snapshot: %+v, %v", snap, err)
	}
	again, err := s.Lock(t.Context(), "sweep", time.Hour) // its holder's process is gone
	if err != nil || again <= fence {
		t.Fatalf("fence %d after %d, %v", again, fence, err)
	}
	for doc, err := range s.Watch(t.Context(), second.Seq+1) {
		if err != nil || doc.ID != "gone" || !doc.Deleted {
			t.Fatalf("a watcher that was away sees %+v, %v", doc, err)
		}
		break
	}
}

// DATA-2: a second opener is refused with one sentence, also while the store is degraded and Badger is closed.
func TestSecondOpenerIsRefused(t *testing.T) {
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprintf("DATA-2 degraded %v", full), func(t *testing.T) {
			dir, o := t.TempDir(), small()
			s := open(t, dir, o)
			if full {
				s.degrade(s.current(), errors.New("test"))
			}
			_, err := Open(dir, o)
			if !errors.Is(err, store.ErrLocked) {
				t.Fatalf("a second opener: %v", err)
			}
			if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, dir) || !strings.Contains(text, fmt.Sprintf("process %d", os.Getpid())) {
				t.Errorf("the sentence: %q", text)
			}
			closed(t, s)
			closed(t, open(t, dir, o))
		})
	}
}

// DATA-7: writers that wait at the same moment share one sync, and none returns before a sync that began after its write.
func TestGroup(t *testing.T) {
	var g group
	var runs, began atomic.Int64
	release := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = g.do(func() error { runs.Add(1); <-release; return nil })
	})
	for runs.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	fault := errors.New("no disk")
	for range 20 {
		all.Go(func() {
			began.Add(1)
			if err := g.do(func() error { runs.Add(1); return fault }); !errors.Is(err, fault) {
				t.Errorf("a waiter got %v", err)
			}
		})
	}
	waiting := func() bool { g.mu.Lock(); defer g.mu.Unlock(); return began.Load() == 20 && g.next != nil }
	for !waiting() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	if runs.Load() != 1 {
		t.Fatal("a second sync ran beside the first")
	}
	close(release)
	all.Wait()
	if n := runs.Load(); n != 2 {
		t.Fatalf("21 writers took %d syncs", n)
	}
}

// DATA-7: a change waits for the sync; the journal does not.
func TestOnlyDocumentsWaitForTheSync(t *testing.T) {
	s := open(t, t.TempDir(), small())
	s.sync.turn.Lock() // a sync is under way
	changed := make(chan error, 1)
	go func() {
		_, err := s.Change(t.Context(), store.Write{Kind: "key", ID: "a", Data: []byte("1")})
		changed <- err
	}()
	appendEvents(t, s, 10)
	for _, err := s.Get(t.Context(), "key", "a"); err != nil; _, err = s.Get(t.Context(), "key", "a") {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-changed:
		t.Errorf("acknowledged before the sync: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	s.sync.turn.Unlock()
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
}

// A sync covers the log of a memtable that became full a moment ago.
func TestSyncOfRotatedLogs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"00001.mem", "00002.mem"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syncRotated(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "00003.mem"), 0o700); err != nil { // stands for a log that cannot be synced
		t.Fatal(err)
	}
	if err := syncRotated(dir); err == nil {
		t.Fatal("a log that cannot be synced went unnoticed")
	}
}

// DATA-7: the options, as Badger has them.
func TestEngineOptions(t *testing.T) {
	s := open(t, t.TempDir(), small())
	o := s.db.Opts()
	got := fmt.Sprint(o.MemTableSize>>20, o.NumMemtables, o.ValueLogFileSize>>20, o.BlockCacheSize>>20, o.NumCompactors, o.DetectConflicts, o.SyncWrites, o.Compression)
	if got != "8 2 16 8 2 false false 0" {
		t.Fatalf("options: %s", got)
	}
}

// DATA-7: one event batch is one transaction, and batches are cut below its limit.
func TestBatchesAreCut(t *testing.T) {
	s := open(t, t.TempDir(), small())
	before := s.db.MaxVersion()
	appendEvents(t, s, 1000)
	if n := s.db.MaxVersion() - before; n != 1 {
		t.Errorf("a batch took %d transactions", n)
	}
	large := make([]store.Event, 40)
	for i := range large {
		large[i].Data = bytes.Repeat([]byte("x"), store.MaxEvent-100)
	}
	for _, n := range []int{cut(large[:2]), cut(large), cut(make([]store.Event, 10_000)), cut(large[:1])} {
		if n < 1 || n > batchEvents || n == len(large) {
			t.Errorf("cut at %d", n)
		}
	}
	if _, err := s.Append(t.Context(), large...); err != nil {
		t.Fatal(err)
	}
	if limit := s.db.MaxBatchSize(); limit < batchBytes+store.MaxEvent || s.db.MaxBatchCount() < batchEvents || limit < store.MaxChange {
		t.Errorf("Badger's limits are %d bytes and %d entries", limit, s.db.MaxBatchCount())
	}
}

// DATA-4, OBJ-22: events older than the last snapshot go by age or count; numbering goes on even when all are gone.
func TestRetention(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	dir, o := t.TempDir(), small()
	o.Now = func() time.Time { return now }
	o.Retention = store.Retention{Age: 24 * time.Hour, Count: 300}
	s := open(t, dir, o)
	check := func(why string, first, last store.Seq) {
		t.Helper()
		if err := s.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f, l, n := seqs(t, s); f != first || l != last || n != int(last+1-first) && last > 0 {
			t.Fatalf("%s: %d events, %d to %d, want %d to %d", why, n, f, l, first, last)
		}
	}
	save := func(seq store.Seq) {
		t.Helper()
		if err := s.Save(t.Context(), store.Snapshot{Seq: seq}); err != nil {
			t.Fatal(err)
		}
	}
	appendEvents(t, s, 1000)
	check("without a snapshot nothing goes", 1, 1000)
	save(900)
	check("by count", 601, 1000)
	now = now.Add(25 * time.Hour)
	appendEvents(t, s, 10)
	check("by age, what is newer than the snapshot stays", 901, 1010)
	save(1010)
	check("by age", 1001, 1010)
	now = now.Add(25 * time.Hour)
	check("all gone", 0, 0)
	closed(t, s)
	s = open(t, dir, o)
	if last := appendEvents(t, s, 1); last != 1011 {
		t.Fatalf("numbering goes on with %d", last)
	}
}

// DATA-4: deletions are forgotten, also on disk, and the order of writes goes on.
func TestForgetDeletions(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	dir, o := t.TempDir(), small()
	o.Now = func() time.Time { return now }
	s := open(t, dir, o)
	put(t, s, "a", "1")
	if _, err := s.Change(t.Context(), store.Write{Kind: "key", ID: "a", Delete: true}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(8 * 24 * time.Hour)
	if err := s.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	s = open(t, dir, o)
	if docs, last := s.docs.All(); len(docs) != 0 || last != 2 {
		t.Fatalf("after a restart: %+v, last %d", docs, last)
	}
}

// DATA-4: the folder does not grow with what was written, only with what is kept.
func TestFolderIsBounded(t *testing.T) {
	t.Parallel()
	o := small()
	o.Retention = store.Retention{Count: 100}
	s := open(t, t.TempDir(), o)
	data := bytes.Repeat([]byte("0123456789abcdef"), 16<<10/16)
	written := 0
	for written < 96<<20 {
		es := make([]store.Event, 100)
		for i := range es {
			es[i] = store.Event{At: s.o.Now().UnixMilli(), Kind: "k", Data: data}
			written += len(data)
		}
		last, err := s.Append(t.Context(), es...)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Save(t.Context(), store.Snapshot{Seq: last, Data: map[string][]byte{"gate": data}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.collect()
	s.measure()
	if size := s.Health().Bytes; size > 64<<20 || size == 0 {
		t.Fatalf("%d MiB written, of which 1.6 are kept, left a folder of %d MiB", written>>20, size>>20)
	}
	if _, _, n := seqs(t, s); n != 100 {
		t.Fatalf("%d events kept", n)
	}
	t.Logf("the folder takes %d MiB", s.Health().Bytes>>20)
}

// A snapshot that a kill cut short leaves the one before, and its parts go with the next.
func TestSnapshotCutShort(t *testing.T) {
	s := open(t, t.TempDir(), small())
	save := func(seq store.Seq, size int) {
		t.Helper()
		if err := s.Save(t.Context(), store.Snapshot{Seq: seq, Data: map[string][]byte{"gate": make([]byte, size)}}); err != nil {
			t.Fatal(err)
		}
	}
	save(1, 3*partBytes)
	if err := s.write(func(txn *badgerdb.Txn) error { return txn.Set(partKey(2, 7), []byte("orphan")) }); err != nil {
		t.Fatal(err)
	}
	if snap, err := s.Latest(t.Context()); err != nil || snap.Seq != 1 || len(snap.Data["gate"]) != 3*partBytes {
		t.Fatalf("after a cut: %d, %v", snap.Seq, err)
	}
	save(2, 10)
	save(3, 10)
	parts := 0
	err := s.db.View(func(txn *badgerdb.Txn) error {
		return each(txn, []byte{prefixSnapshot}, func([]byte, []byte) error { parts++; return nil })
	})
	if err != nil || parts != 1 {
		t.Fatalf("%d parts are left, %v", parts, err)
	}
}

// A kill between the making of a log and its first byte leaves an empty file, which Badger refuses to open.
func TestEmptyLogsOfAKill(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, small())
	put(t, s, "a", "1")
	closed(t, s)
	for _, name := range []string{"000099.vlog", "00099.mem"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantData(t, open(t, dir, small()), "a", "1")
}

func TestDamagedRecords(t *testing.T) {
	s := open(t, t.TempDir(), small())
	if err := s.write(func(txn *badgerdb.Txn) error { return txn.Set(eventKey(1), []byte("?")) }); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Replay(t.Context(), 0) {
		if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "event 1") {
			t.Fatalf("replay of a damaged event: %v", err)
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(encodeEvent(&store.Event{At: -1, Kind: "k", Key: "a", Data: []byte("{}")}))
	f.Add(encodeDocument(store.Document{Kind: "k", ID: "a", Data: []byte("x")}))
	f.Add(encodeSnapshot(store.Snapshot{Seq: 3, Data: map[string][]byte{"a": []byte("b")}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := decodeEvent(eventKey(1), b); err == nil {
			if again, err := decodeEvent(eventKey(1), encodeEvent(&e)); err != nil || again.Key != e.Key || !bytes.Equal(again.Data, e.Data) {
				t.Errorf("%+v became %+v, %v", e, again, err)
			}
		}
		if d, err := decodeDocument(documentKey("k", "a"), b); err == nil {
			if again, err := decodeDocument(documentKey("k", "a"), encodeDocument(d)); err != nil || again.Revision != d.Revision || !bytes.Equal(again.Data, d.Data) {
				t.Errorf("%+v became %+v, %v", d, again, err)
			}
		}
		if s, err := decodeSnapshot(b); err == nil && s.Data == nil {
			t.Error("a snapshot without data and without an error")
		}
	})
}
