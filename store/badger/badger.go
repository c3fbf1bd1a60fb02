package badger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/internal/state"
)

// Sizes of DATA-6.
const (
	DefaultReserve = 256 << 20
	MinReserve     = 96 << 20
	DefaultBallast = 64 << 20
	DefaultLook    = 10 * time.Second
)

// Options of a store; the zero value is ready for use.
type Options struct {
	Log       *slog.Logger     // silent when nil
	Now       func() time.Time // time.Now when nil
	Retention store.Retention  // of events older than the last snapshot, and of deletions

	// Free tells the bytes that are free where dir is; the platform's answer when nil.
	Free func(dir string) (uint64, error)
	// Reserve is the free space below which the store stops writing: DefaultReserve when 0, never under MinReserve.
	Reserve uint64
	// Ballast is the size of the file that is given up when space runs out; DefaultBallast when 0.
	Ballast uint64
	// Look is how often the store looks after itself; DefaultLook when 0.
	Look time.Duration

	// Migrations lead from schema 1 to the present one, in order; Migrations() when nil.
	Migrations []Migration
}

// Store implements store.Store and store.Notifier. Safe for concurrent use.
type Store struct {
	o    Options
	dir  string
	lock *os.File // held as long as the store, also while Badger is closed

	gate   sync.RWMutex  // read-held by whoever uses db
	db     *badgerdb.DB  // guarded by gate; nil while degraded and after Close
	fault  string        // guarded by gate; why db is nil
	closed bool          // guarded by gate
	ending chan struct{} // guarded by gate; closes when the Badger that was given up is closed

	docs *state.Documents
	sync group

	appending sync.Mutex
	lastEvent store.Seq                     // guarded by appending
	tape      atomic.Pointer[state.Journal] // events while degraded; replaced under appending
	pruned    store.Seq                     // guarded by appending; events up to here are gone

	tables tables

	saving     sync.Mutex
	generation uint64          // guarded by saving; of the snapshot on disk
	held       *store.Snapshot // guarded by saving; saved while degraded
	snapshot   atomic.Uint64   // Seq of the latest snapshot

	locks *state.Locks
	told  listeners
	bytes atomic.Int64

	sick chan string // Badger's own complaints about writing
	stop chan struct{}
	done chan struct{}
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Notifier = (*Store)(nil)
)

// Open opens the store in dir, and makes it when there is none. A folder that another process has open is ErrLocked; one
// that a newer version wrote, or that has too little room even for reading, is refused with what to do about it. A new
// folder with too little room starts degraded.
func Open(dir string, o Options) (*Store, error) {
	s := &Store{
		o: o.withDefaults(), dir: dir, docs: state.NewDocuments(), locks: state.NewLocks(0),
		sick: make(chan string, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the store's folder: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	s.lock = lock
	if err := s.start(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.tape.CompareAndSwap(nil, state.NewJournal(s.lastEvent, s.tapeLimit()))
	s.measure()
	go s.maintain()
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Free == nil {
		o.Free = freeSpace
	}
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
	o.Reserve = max(o.Reserve, MinReserve)
	if o.Ballast == 0 {
		o.Ballast = DefaultBallast
	}
	if o.Look <= 0 {
		o.Look = DefaultLook
	}
	if o.Migrations == nil {
		o.Migrations = Migrations()
	}
	o.Retention = o.Retention.OrDefault()
	return o
}

// Close ends every watch, the maintenance and Badger, and gives the folder free. Later calls return ErrClosed.
func (s *Store) Close() error {
	s.gate.Lock()
	if s.closed {
		s.gate.Unlock()
		<-s.done
		return nil
	}
	s.closed = true
	s.gate.Unlock()
	close(s.stop)
	<-s.done
	s.docs.Close()
	s.tape.Load().Close()

	s.gate.Lock()
	db, ending := s.db, s.ending
	s.db = nil
	s.gate.Unlock()
	var err error
	if db != nil {
		err = db.Close()
	}
	if ending != nil {
		select {
		case <-ending:
		case <-time.After(closePatience):
			err = errors.New("the store could not be closed: its disk takes no writes")
		}
	}
	return errors.Join(err, s.lock.Close())
}

// closePatience is how long Close waits for a Badger that was given up: it tries to write its last table for ever, and on
// a disk that takes nothing it never ends.
const closePatience = 10 * time.Second

// with lets f use Badger. While f runs, Badger stays open.
func (s *Store) with(f func(db *badgerdb.DB) error) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	if s.db == nil {
		return store.ErrDegraded
	}
	return f(s.db)
}

// write runs f in one transaction, if there is room. Whatever keeps it from being written, other than its size, degrades
// the store and is returned as ErrDegraded.
func (s *Store) write(f func(txn *badgerdb.Txn) error) error {
	if err := s.room(); err != nil {
		s.degrade(s.current(), err)
	}
	return s.attempt("write", func(db *badgerdb.DB) error { return db.Update(f) })
}

// flush has everything written so far on the disk, once for all that wait now.
func (s *Store) flush() error {
	return s.sync.do(func() error {
		return s.attempt("sync", func(db *badgerdb.DB) error {
			if err := db.Sync(); err != nil {
				return err
			}
			return syncRotated(s.dir)
		})
	})
}

func (s *Store) attempt(what string, f func(db *badgerdb.DB) error) error {
	var used *badgerdb.DB
	err := s.with(func(db *badgerdb.DB) error { used = db; return f(db) })
	if err == nil || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrDegraded) || errors.Is(err, badgerdb.ErrTxnTooBig) {
		return err
	}
	s.degrade(used, fmt.Errorf("%s: %w", what, err))
	return fmt.Errorf("%w: %s: %w", store.ErrDegraded, what, err)
}

// syncRotated syncs logs that Badger's Sync leaves out: it syncs that of the active memtable alone, but what waits may be
// in one that became full a moment ago and whose table is not written yet.
func syncRotated(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil || len(logs) < 2 {
		return err
	}
	for _, name := range logs {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue // its table is written, and tables are synced
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Health says whether the store writes to disk, and how much it has there.
func (s *Store) Health() store.Health {
	s.gate.RLock()
	defer s.gate.RUnlock()
	h := store.Health{Kind: "badger", State: store.StateOK, Fault: s.fault, Bytes: s.bytes.Load()}
	if s.fault != "" {
		h.State = store.StateDegraded
	}
	return h
}

// usable returns why a call cannot go on.
func (s *Store) usable(ctx context.Context) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}
