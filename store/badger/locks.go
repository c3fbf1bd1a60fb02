package badger

import (
	"context"
	"errors"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/internal/state"
)

// Lock grants name for ttl, or returns ErrLocked. Grants end with the process, since nobody else can have the folder open;
// the fence counter stays.
func (s *Store) Lock(ctx context.Context, name string, ttl time.Duration) (uint64, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	g, err := s.locks.Lock(name, s.o.Now(), ttl, func(g state.Grant) error { return s.keepFence(g.Fence) })
	if err != nil {
		return 0, err
	}
	if err := s.flush(); err != nil && !errors.Is(err, store.ErrDegraded) {
		return 0, err
	}
	return g.Fence, nil
}

// keepFence writes the fence counter; while degraded it counts in memory.
func (s *Store) keepFence(fence uint64) error {
	err := s.write(func(txn *badgerdb.Txn) error { return txn.Set(metaFence, number(fence)) })
	if errors.Is(err, store.ErrDegraded) {
		return nil
	}
	return err
}

// Unlock ends a grant.
func (s *Store) Unlock(ctx context.Context, name string, fence uint64) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.locks.Unlock(name, fence)
	return nil
}
