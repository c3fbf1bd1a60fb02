package badger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/internal/state"
)

const (
	ballastName = "ballast"
	lockName    = "weir.lock"
	// openRoom is what opening and closing Badger may write: its logs, and the tables of two memtables.
	openRoom = 64 << 20
)

// room says why there is too little space to write. It takes about a microsecond.
func (s *Store) room() error {
	free, err := s.o.Free(s.dir)
	if err != nil {
		return fmt.Errorf("the free space of %s is not known: %w", s.dir, err)
	}
	if free < s.o.Reserve {
		return fmt.Errorf("only %d MiB are free in %s, below the reserve of %d MiB: make room there", free>>20, s.dir, s.o.Reserve>>20)
	}
	return nil
}

// start opens Badger if there is room, and reads the documents into memory in any case.
func (s *Store) start() error {
	tight := s.room()
	if tight == nil {
		db, err := s.open()
		if err != nil {
			return err
		}
		s.db = db
		s.makeBallast()
		return nil
	}
	s.fault = tight.Error()
	s.o.Log.Error("the store starts degraded: nothing is written to disk", "fault", s.fault)
	if _, err := os.Stat(filepath.Join(s.dir, badgerdb.ManifestFilename)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// What is stored decides who may come in, so it is read even now; the ballast makes the room for that.
	s.dropBallast()
	free, err := s.o.Free(s.dir)
	if err != nil {
		return err
	}
	db, err := openEngine(s.dir, s.o.Log, nil, free < openRoom)
	if err != nil {
		return fmt.Errorf("%w; and what is stored there cannot be read without room: %w", tight, err)
	}
	err = s.load(db)
	if err == nil {
		err = s.loadJournal(db)
	}
	return errors.Join(err, db.Close())
}

// loadJournal reads the latest snapshot and the events after it into memory, for a start without room: what was cooling
// before goes on cooling.
func (s *Store) loadJournal(db *badgerdb.DB) error {
	return db.View(func(txn *badgerdb.Txn) error {
		after := store.Seq(0)
		record, err := latest(txn)
		if err == nil {
			snap, err := record.read(txn)
			if err != nil {
				return err
			}
			s.held, after = &snap, snap.Seq
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		tape := state.NewJournal(after, s.tapeLimit())
		for {
			es, err := firstEvents(txn, after, readEvents)
			if err != nil || len(es) == 0 {
				s.tape.Store(tape)
				return err
			}
			tape.Load(es)
			after = es[len(es)-1].Seq
		}
	})
}

// open opens Badger, upgrades what an older version wrote, and loads.
func (s *Store) open() (*badgerdb.DB, error) {
	db, err := openEngine(s.dir, s.o.Log, s.complain, false)
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", s.dir, err)
	}
	err = s.migrate(db)
	if err == nil {
		err = s.load(db)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (s *Store) load(db *badgerdb.DB) error {
	if err := s.checkSchema(db); err != nil {
		return err
	}
	return db.View(func(txn *badgerdb.Txn) (err error) {
		if err := s.loadDocuments(txn); err != nil {
			return err
		}
		if s.lastEvent, s.pruned, err = lastEventOf(txn); err != nil {
			return err
		}
		record, err := latest(txn)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		s.generation = record.generation
		s.snapshot.Store(uint64(record.seq))
		s.lastEvent = max(s.lastEvent, record.seq)
		fence, err := getNumber(txn, metaFence)
		s.locks = state.NewLocks(fence)
		return err
	})
}

// degrade gives Badger up, if db is still the one in use: from now on everything is in memory. Badger is closed in the
// background, since it writes its tables while it closes.
func (s *Store) degrade(db *badgerdb.DB, cause error) {
	s.gate.Lock()
	if s.db != db || db == nil || s.closed {
		s.gate.Unlock()
		return
	}
	ended := make(chan struct{})
	s.db, s.fault, s.ending = nil, cause.Error(), ended
	s.gate.Unlock()
	s.dropBallast()
	s.o.Log.Error("the store is degraded: nothing is written to disk, management changes are refused", "fault", cause.Error())
	go func() {
		defer close(ended)
		if err := db.Close(); err != nil {
			s.o.Log.Warn("the store was not closed cleanly", "error", err)
		}
	}()
	s.told.tell(s.Health())
}

// current is the Badger in use, or nil.
func (s *Store) current() *badgerdb.DB {
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.db
}

// resume opens Badger again when there is room, twice the reserve so that it does not go back and forth, and brings it up
// to what happened meanwhile.
func (s *Store) resume() {
	s.gate.RLock()
	ending := s.ending
	s.gate.RUnlock()
	if ending != nil {
		select {
		case <-ending:
		default:
			return // still closing
		}
	}
	if free, err := s.o.Free(s.dir); err != nil || free < 2*s.o.Reserve {
		return
	}
	if err := s.reopen(); err != nil {
		s.o.Log.Error("the store stays degraded", "error", err)
		s.gate.Lock()
		s.fault = err.Error()
		s.gate.Unlock()
		return
	}
	s.makeBallast()
	s.o.Log.Info("the store writes to disk again")
	if err := s.locks.Keep(s.keepFence); err != nil {
		s.o.Log.Warn("the fence counter was not written", "error", err)
	}
	s.told.tell(s.Health())
}

func (s *Store) reopen() error {
	db, err := openEngine(s.dir, s.o.Log, s.complain, false)
	if err != nil {
		return fmt.Errorf("open the store in %s again: %w", s.dir, err)
	}
	s.docs.Writing.Lock()
	defer s.docs.Writing.Unlock()
	s.appending.Lock()
	defer s.appending.Unlock()
	s.saving.Lock()
	defer s.saving.Unlock()
	if err := s.catchUp(db); err != nil {
		return errors.Join(fmt.Errorf("bring the store in %s up to date: %w", s.dir, err), db.Close())
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	s.db, s.fault, s.ending = db, "", nil
	return nil
}

// catchUp writes what is in memory only: documents, events, the snapshot. The caller holds all writers.
func (s *Store) catchUp(db *badgerdb.DB) error {
	if err := s.migrate(db); err != nil { // a folder that was new when there was no room
		return err
	}
	if err := s.reconcile(db); err != nil {
		return err
	}
	after := store.Seq(0)
	for {
		es, err := s.tape.Load().Read(after)
		if err != nil {
			return err
		}
		if len(es) == 0 {
			break
		}
		n := cut(es)
		if err := db.Update(func(txn *badgerdb.Txn) error { return setEvents(txn, es[0].Seq, es[:n]) }); err != nil {
			return err
		}
		after = es[n-1].Seq
	}
	if s.held != nil {
		if err := s.saveParts(*s.held, db.Update); err != nil {
			return err
		}
		s.snapshot.Store(uint64(s.held.Seq))
		s.held = nil
	}
	if err := db.Sync(); err != nil {
		return err
	}
	s.tape.Store(state.NewJournal(s.lastEvent, s.tapeLimit()))
	return nil
}

// makeBallast allocates the file that is given up when space runs out, if it would not itself use up the reserve.
func (s *Store) makeBallast() {
	name := filepath.Join(s.dir, ballastName)
	if info, err := os.Stat(name); err == nil && info.Size() == int64(s.o.Ballast) {
		return
	}
	if free, err := s.o.Free(s.dir); err != nil || free < s.o.Reserve+s.o.Ballast {
		return
	}
	if err := allocate(name, int64(s.o.Ballast)); err != nil {
		s.o.Log.Warn("no ballast file was made; on a full disk the store may lack the room to close", "error", err)
		s.dropBallast()
	}
}

func (s *Store) dropBallast() {
	if err := os.Remove(filepath.Join(s.dir, ballastName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.o.Log.Warn("the ballast file was not removed", "error", err)
	}
}
