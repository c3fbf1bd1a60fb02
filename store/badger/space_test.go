package badger

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/weirgate/weir/store"
)

// disk is a disk whose free space the test says, and which counts how often it is asked.
type disk struct {
	free  atomic.Uint64
	asked atomic.Int64
	fault atomic.Pointer[error]
}

func (d *disk) Free(string) (uint64, error) {
	d.asked.Add(1)
	if err := d.fault.Load(); err != nil {
		return 0, *err
	}
	return d.free.Load(), nil
}

const mib = 1 << 20

func newDisk(free uint64) (*disk, Options) {
	d := &disk{}
	d.free.Store(free)
	return d, Options{Free: d.Free, Ballast: 3 * mib, Reserve: 100 * mib, Look: time.Hour}
}

// heard collects what a listener is told.
type heard struct {
	mu  sync.Mutex
	all []store.Health
}

func listen(s *Store) (*heard, func()) {
	h := &heard{}
	return h, s.Notify(func(health store.Health) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, health)
	})
}

func (h *heard) states() (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, health := range h.all {
		out = append(out, health.State)
	}
	return out
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// settle waits until a Badger that was given up is closed.
func settle(s *Store) {
	s.gate.RLock()
	ending := s.ending
	s.gate.RUnlock()
	if ending != nil {
		<-ending
	}
}

func wantState(t *testing.T, s *Store, state string) {
	t.Helper()
	if h := s.Health(); h.State != state || (h.Fault == "") != (state == store.StateOK) {
		t.Fatalf("health: %+v, want %s", h, state)
	}
}

// DATA-5, DATA-6: below the reserve the store stops writing, gives up its ballast and goes on in memory; above twice the
// reserve it opens again and has everything, on the disk as well.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	d, o := newDisk(1000 * mib)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, dir, o)
	told, stop := listen(s)
	defer stop()
	if !exists(dir, ballastName) {
		t.Fatal("no ballast")
	}
	put(t, s, "before", "1")
	appendEvents(t, s, 5)

	d.free.Store(99 * mib)
	asked := d.asked.Load()
	_, err := s.Change(t.Context(), store.Write{Kind: "key", ID: "during", Data: []byte("x")})
	if !errors.Is(err, store.ErrDegraded) || d.asked.Load() == asked {
		t.Fatalf("a change without room: %v", err)
	}
	wantState(t, s, store.StateDegraded)
	if h := s.Health(); !strings.Contains(h.Fault, "99 MiB") || !strings.Contains(log.String(), "ERROR") {
		t.Errorf("fault %q, log %s", h.Fault, log.String())
	}
	settle(s)
	if exists(dir, ballastName) {
		t.Fatal("the ballast is still there")
	}
	wantData(t, s, "before", "1")
	if last := appendEvents(t, s, 3); last != 8 {
		t.Fatalf("numbering goes on with %d", last)
	}
	if first, last, n := seqs(t, s); first != 6 || last != 8 || n != 3 {
		t.Fatalf("in memory: %d events, %d to %d", n, first, last)
	}
	if err := s.Save(t.Context(), store.Snapshot{Seq: 8, Data: map[string][]byte{"gate": []byte("held")}}); err != nil {
		t.Fatal(err)
	}
	fence, err := s.Lock(t.Context(), "job", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}

	d.free.Store(199 * mib)
	s.look(1)
	wantState(t, s, store.StateDegraded)
	d.free.Store(200 * mib)
	s.look(2)
	wantState(t, s, store.StateOK)
	if !exists(dir, ballastName) {
		t.Error("no new ballast")
	}
	if got := fmt.Sprint(told.states()); got != "[degraded ok]" {
		t.Errorf("the listener heard %s", got)
	}
	put(t, s, "after", "1")
	appendEvents(t, s, 1)
	closed(t, s)

	s = open(t, dir, o)
	wantData(t, s, "before", "1")
	wantData(t, s, "after", "1")
	if _, err := s.Get(t.Context(), "key", "during"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a refused change is there: %v", err)
	}
	if first, last, n := seqs(t, s); first != 1 || last != 9 || n != 9 {
		t.Errorf("after a restart: %d events, %d to %d", n, first, last)
	}
	if snap, err := s.Latest(t.Context()); err != nil || snap.Seq != 8 || string(snap.Data["gate"]) != "held" {
		t.Errorf("snapshot: %+v, %v", snap, err)
	}
	if again, err := s.Lock(t.Context(), "job", time.Hour); err != nil || again <= fence {
		t.Errorf("fence %d after %d, %v", again, fence, err)
	}
}

// DATA-6: every kind of batch asks for room first.
func TestEveryBatchAsks(t *testing.T) {
	for name, write := range map[string]func(s *Store) error{
		"change": func(s *Store) error {
			_, err := s.Change(t.Context(), store.Write{Kind: "a", ID: "1"})
			return err
		},
		"append": func(s *Store) error { _, err := s.Append(t.Context(), store.Event{Kind: "k"}); return err },
		"save":   func(s *Store) error { return s.Save(t.Context(), store.Snapshot{}) },
		"lock":   func(s *Store) error { _, err := s.Lock(t.Context(), "l", time.Hour); return err },
		"look":   func(s *Store) error { s.look(1); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			d, o := newDisk(1000 * mib)
			s := open(t, t.TempDir(), o)
			d.free.Store(1 * mib)
			if err := write(s); err != nil && !errors.Is(err, store.ErrDegraded) || name != "change" && err != nil {
				t.Fatal(err)
			}
			wantState(t, s, store.StateDegraded)
		})
	}
}

// DATA-6: the reserve is 256 MiB, and never under 96; the ballast is 64 MiB that are really allocated.
func TestSizes(t *testing.T) {
	if o := (Options{}).withDefaults(); o.Reserve != 256*mib || o.Ballast != 64*mib || o.Look != 10*time.Second {
		t.Errorf("defaults: reserve %d, ballast %d, look %v", o.Reserve, o.Ballast, o.Look)
	}
	if o := (Options{Reserve: mib}).withDefaults(); o.Reserve != 96*mib {
		t.Errorf("least reserve: %d", o.Reserve)
	}
	name := filepath.Join(t.TempDir(), "ballast")
	if err := allocate(name, 8*mib); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Size() != 8*mib || allocated(info) < 8*mib {
		t.Errorf("the ballast takes %d bytes of %d, %v", allocated(info), info.Size(), err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := fill(f, 3*mib+5); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 3*mib+5 {
		t.Errorf("filled %d bytes, %v", info.Size(), err)
	}
	if free, err := freeSpace(t.TempDir()); err != nil || free == 0 {
		t.Errorf("free space: %d, %v", free, err)
	}
	if _, err := freeSpace(filepath.Join(name, "none")); err == nil {
		t.Error("the free space of no folder")
	}
	// A ballast that would use up the reserve is not made.
	_, o := newDisk(102 * mib)
	dir := t.TempDir()
	if open(t, dir, o); exists(dir, ballastName) {
		t.Error("the ballast took from the reserve")
	}
}

// DATA-5: a write that fails degrades as well, whatever the reason, and the store recovers from it.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	d, o := newDisk(1000 * mib)
	s := open(t, dir, o)
	put(t, s, "before", "1")
	_ = s.db.Close() // from now on Badger refuses to write
	if last := appendEvents(t, s, 2); last != 2 {
		t.Fatalf("appended up to %d", last)
	}
	wantState(t, s, store.StateDegraded)
	_, err := s.Change(t.Context(), store.Write{Kind: "key", ID: "x"})
	if !errors.Is(err, store.ErrDegraded) {
		t.Fatalf("a change while degraded: %v", err)
	}
	settle(s)
	s.look(1)
	wantState(t, s, store.StateOK)
	if first, last, n := seqs(t, s); first != 1 || last != 2 || n != 2 {
		t.Fatalf("%d events, %d to %d", n, first, last)
	}

	gone := errors.New("the disk was pulled out")
	d.fault.Store(&gone)
	if _, err := s.Change(t.Context(), store.Write{Kind: "key", ID: "x"}); !errors.Is(err, store.ErrDegraded) || !strings.Contains(s.Health().Fault, gone.Error()) {
		t.Fatalf("free space unknown: %v, %+v", err, s.Health())
	}
	settle(s)
	s.look(2)
	wantState(t, s, store.StateDegraded)
}

// DATA-5: Badger's complaint about a table that it cannot write degrades before its writers hang.
func TestComplaint(t *testing.T) {
	_, o := newDisk(1000 * mib)
	s := open(t, t.TempDir(), o)
	told := make(chan store.Health, 1)
	defer s.Notify(func(h store.Health) { told <- h })()
	log := engineLog{s.o.Log, s.complain}
	log.Errorf("while deleting file: %s", "x")
	log.Errorf("error flushing memtable to disk: %v, retrying", "input/output error")
	if h := <-told; h.State != store.StateDegraded || !strings.Contains(h.Fault, "input/output error") {
		t.Fatalf("told: %+v", h)
	}
}

// A change that met the fault may be in Badger or not; afterwards both sides agree.
func TestReconcile(t *testing.T) {
	dir := t.TempDir()
	_, o := newDisk(1000 * mib)
	s := open(t, dir, o)
	put(t, s, "same", "1")
	stale, lost := put(t, s, "stale", "1"), put(t, s, "lost", "1")
	err := s.db.Update(func(txn *badgerdb.Txn) error {
		unknown := store.Document{Kind: "key", ID: "unknown", Revision: 1, Seq: 99}
		stale.Seq, stale.Data = 77, []byte("older")
		return errors.Join(setDocuments(txn, []store.Document{unknown, stale}), txn.Delete(documentKey("key", lost.ID)))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.degrade(s.db, errors.New("test"))
	settle(s)
	s.look(1)
	wantState(t, s, store.StateOK)
	closed(t, s)
	s = open(t, dir, o)
	for _, id := range []string{"same", "stale", "lost"} {
		wantData(t, s, id, "1")
	}
	if _, err := s.Get(t.Context(), "key", "unknown"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("what memory never had: %v", err)
	}
	if doc := put(t, s, "next", "1"); doc.Seq != 4 {
		t.Fatalf("the order of writes goes on with %d", doc.Seq)
	}
}

// DATA-5, DATA-6, OV-5: without room the store starts degraded, and has all that is stored.
func TestStartWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	d, o := newDisk(1000 * mib)
	s := open(t, dir, o)
	put(t, s, "a", "1")
	appendEvents(t, s, 600)
	if err := s.Save(t.Context(), store.Snapshot{Seq: 300, Data: map[string][]byte{"gate": []byte("state")}}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	check := func() {
		t.Helper()
		wantData(t, s, "a", "1")
		if snap, err := s.Latest(t.Context()); err != nil || snap.Seq != 300 || string(snap.Data["gate"]) != "state" {
			t.Fatalf("snapshot: %+v, %v", snap, err)
		}
		next := store.Seq(301)
		for e, err := range s.Replay(t.Context(), 300) {
			if err != nil || e.Seq != next || next <= 600 && e.Key != fmt.Sprint(next-1) {
				t.Fatalf("event %d: %+v, %v", next, e, err)
			}
			next++
		}
		if next != 602 {
			t.Fatalf("%d is after the last event", next)
		}
	}
	for _, free := range []uint64{99 * mib, 0} { // the latter opens read-only
		d.free.Store(free)
		s = open(t, dir, o)
		wantState(t, s, store.StateDegraded)
		if exists(dir, ballastName) {
			t.Error("the ballast is still there")
		}
		if last := appendEvents(t, s, 1); last != 601 {
			t.Fatalf("numbering goes on with %d", last)
		}
		check()
		closed(t, s)
	}
	s = open(t, dir, o)
	appendEvents(t, s, 1)
	d.free.Store(1000 * mib)
	s.look(1)
	wantState(t, s, store.StateOK)
	check()
	if first, last, n := seqs(t, s); first != 1 || last != 601 || n != 601 {
		t.Fatalf("%d events, %d to %d", n, first, last)
	}
	closed(t, s)
	s = open(t, dir, o)
	check()
}

// DATA-6: a new folder without room starts in memory, and is made when there is room.
func TestNewFolderWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	d, o := newDisk(1 * mib)
	s := open(t, dir, o)
	wantState(t, s, store.StateDegraded)
	if exists(dir, badgerdb.ManifestFilename) {
		t.Fatal("Badger was opened")
	}
	appendEvents(t, s, 2)
	d.free.Store(1000 * mib)
	s.look(1)
	wantState(t, s, store.StateOK)
	put(t, s, "a", "1")
	closed(t, s)
	s = open(t, dir, o)
	wantData(t, s, "a", "1")
	if _, last, n := seqs(t, s); last != 2 || n != 2 {
		t.Fatalf("%d events up to %d", n, last)
	}
}

// DATA-6: the store looks after itself, on its own.
func TestLooksByItself(t *testing.T) {
	d, o := newDisk(1000 * mib)
	o.Look = 5 * time.Millisecond
	s := open(t, t.TempDir(), o)
	states := make(chan string, 2)
	defer s.Notify(func(h store.Health) { states <- h.State })()
	d.free.Store(0)
	if state := <-states; state != store.StateDegraded {
		t.Fatal(state)
	}
	d.free.Store(1000 * mib)
	if state := <-states; state != store.StateOK {
		t.Fatal(state)
	}
}

// Readers, writers and a disk that comes and goes: nothing acknowledged is lost, nothing hangs.
func TestHammerWithFullDisk(t *testing.T) {
	dir := t.TempDir()
	d, o := newDisk(1000 * mib)
	s := open(t, dir, o)
	var all sync.WaitGroup
	var ackedMu sync.Mutex
	acked := map[string]int{}
	done := make(chan struct{})
	for w := range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				id, text := fmt.Sprint(w), fmt.Sprint(n)
				_, err := s.Change(t.Context(), store.Write{Kind: "key", ID: id, Data: []byte(text)})
				switch {
				case err == nil:
					ackedMu.Lock()
					acked[id] = n
					ackedMu.Unlock()
				case !errors.Is(err, store.ErrDegraded):
					t.Error(err)
					return
				default:
					time.Sleep(time.Millisecond)
				}
				if _, err := s.Append(t.Context(), store.Event{Kind: "k"}); err != nil {
					t.Error(err)
				}
				for _, err := range s.Replay(t.Context(), store.Seq(n)) {
					if err != nil {
						t.Error(err)
					}
					break
				}
			}
		})
	}
	for n := range 6 {
		time.Sleep(30 * time.Millisecond)
		d.free.Store([]uint64{1, 1000 * mib}[n%2])
		for s.Health().State != []string{store.StateDegraded, store.StateOK}[n%2] {
			s.look(1)
			time.Sleep(time.Millisecond)
		}
	}
	close(done)
	all.Wait()
	_, last, n := seqs(t, s)
	if int(last) != n {
		t.Errorf("of %d events %d are there", last, n)
	}
	closed(t, s)
	s = open(t, dir, o)
	for id, least := range acked {
		doc, err := s.Get(t.Context(), "key", id)
		if err != nil {
			t.Fatal(err)
		}
		// One that met the fault may be there without an acknowledgement.
		if have, err := strconv.Atoi(string(doc.Data)); err != nil || have < least {
			t.Errorf("document %s is at %q, acknowledged was %d", id, doc.Data, least)
		}
	}
	if len(acked) != 4 {
		t.Errorf("acknowledged: %v", acked)
	}
}
