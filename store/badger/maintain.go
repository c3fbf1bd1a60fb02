package badger

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/weirgate/weir/store"
)

const (
	pruneEvery = 6  // looks, a minute by default (OBJ-18)
	gcEvery    = 60 // looks, ten minutes by default
	pruneStep  = 10_000
)

// maintain is the store's own goroutine: it watches space and faults, prunes, and collects garbage.
func (s *Store) maintain() {
	defer close(s.done)
	look := time.NewTicker(s.o.Look)
	defer look.Stop()
	for n := 1; ; n++ {
		select {
		case <-s.stop:
			return
		case text := <-s.sick:
			s.degrade(s.current(), errors.New("the disk takes no writes: "+text))
		case <-look.C:
			s.look(n)
		}
	}
}

func (s *Store) look(n int) {
	db := s.current()
	if db == nil {
		s.resume()
	} else if err := s.room(); err != nil {
		s.degrade(db, err)
	}
	s.measure()
	if n%pruneEvery == 0 {
		if err := s.Prune(context.Background()); err != nil {
			s.o.Log.Warn("the store was not pruned", "error", err)
		}
	}
	if n%gcEvery == 0 {
		s.collect()
	}
}

// Prune drops events, deletions and locks that have had their time (DATA-4), a bounded number at once. While degraded it
// does nothing, since what is in memory is bounded anyway.
func (s *Store) Prune(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	now := s.o.Now()
	s.locks.Expire(now.UnixMilli())
	err := s.pruneEvents(pruneStep)
	if err == nil {
		err = s.forgetDeletions(now.Add(-s.o.Retention.Age).UnixMilli(), store.MaxWrites/2)
	}
	if errors.Is(err, store.ErrDegraded) {
		return nil
	}
	return err
}

// collect rewrites value log files that are half garbage.
func (s *Store) collect() {
	for range 10 {
		if s.room() != nil {
			return
		}
		if s.with(func(db *badgerdb.DB) error { return db.RunValueLogGC(0.5) }) != nil {
			return // nothing more to do, or not now
		}
	}
}

// measure adds up what the files take on the disk; Badger's are sparse.
func (s *Store) measure() {
	var sum int64
	_ = filepath.WalkDir(s.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == ballastName {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			sum += allocated(info)
		}
		return nil
	})
	s.bytes.Store(sum)
}
