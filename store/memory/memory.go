// Package memory owns the store that keeps everything in memory and nothing longer than the process: for tests, and for
// programs that embed the gateway and want no folder.
package memory

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/internal/state"
)

// pruneStep bounds the work of one Prune.
const pruneStep = 10_000

// Options of a store; the zero value is ready for use.
type Options struct {
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Retention of events older than the last snapshot. Its Count also bounds the events that are newer, since a journal in
	// memory has nobody to replay it after a restart.
	Retention store.Retention
}

// Store implements store.Store. Safe for concurrent use.
type Store struct {
	now       func() time.Time
	retention store.Retention

	docs    *state.Documents
	journal *state.Journal
	rows    *state.Rows
	locks   *state.Locks
	closed  atomic.Bool

	mu       sync.Mutex
	snapshot *store.Snapshot // guarded by mu
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	retention := o.Retention.OrDefault()
	return &Store{
		now: o.Now, retention: retention,
		docs: state.NewDocuments(), journal: state.NewJournal(0, retention.Count), rows: state.NewRows(), locks: state.NewLocks(0),
	}
}

// Get returns one document, or ErrNotFound.
func (s *Store) Get(ctx context.Context, kind, id string) (store.Document, error) {
	if err := ctx.Err(); err != nil {
		return store.Document{}, err
	}
	return s.docs.Get(kind, id)
}

// Change writes all of ws or none.
func (s *Store) Change(ctx context.Context, ws ...store.Write) ([]store.Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.docs.Writing.Lock()
	defer s.docs.Writing.Unlock()
	docs, err := s.docs.Stage(ws, s.now().UnixMilli())
	if err != nil {
		return nil, err
	}
	s.docs.Commit(docs)
	return state.Copies(docs), nil
}

// List yields the documents of one kind by id.
func (s *Store) List(ctx context.Context, kind string) iter.Seq2[store.Document, error] {
	return s.docs.List(ctx, kind)
}

// Watch yields documents as they change.
func (s *Store) Watch(ctx context.Context, after store.Seq) iter.Seq2[store.Document, error] {
	return s.docs.Watch(ctx, after)
}

// Append adds es to the journal.
func (s *Store) Append(ctx context.Context, es ...store.Event) (store.Seq, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.journal.Append(es...)
}

// Replay yields the events after after.
func (s *Store) Replay(ctx context.Context, after store.Seq) iter.Seq2[store.Event, error] {
	return s.journal.Replay(ctx, after)
}

// Save keeps a copy of snap as the latest snapshot.
func (s *Store) Save(ctx context.Context, snap store.Snapshot) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	snap = copySnapshot(snap)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot = &snap
	return nil
}

// Latest returns the latest snapshot, or ErrNotFound.
func (s *Store) Latest(ctx context.Context) (store.Snapshot, error) {
	if err := s.usable(ctx); err != nil {
		return store.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot == nil {
		return store.Snapshot{}, fmt.Errorf("snapshot: %w", store.ErrNotFound)
	}
	return copySnapshot(*s.snapshot), nil
}

// Lock grants name for ttl, or returns ErrLocked.
func (s *Store) Lock(ctx context.Context, name string, ttl time.Duration) (uint64, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	g, err := s.locks.Lock(name, s.now(), ttl, func(state.Grant) error { return nil })
	return g.Fence, err
}

// Unlock ends a grant.
func (s *Store) Unlock(ctx context.Context, name string, fence uint64) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.locks.Unlock(name, fence)
	return nil
}

// Health is always ok; Bytes counts documents, events and rows.
func (s *Store) Health() store.Health {
	return store.Health{Kind: "memory", State: store.StateOK, Bytes: s.docs.Bytes() + s.journal.Bytes() + s.rows.Bytes()}
}

// Prune drops old events, deletions and ended locks.
func (s *Store) Prune(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	now := s.now()
	before := now.Add(-s.retention.Age).UnixMilli()
	s.mu.Lock()
	snapshot := store.Seq(0)
	if s.snapshot != nil {
		snapshot = s.snapshot.Seq
	}
	s.mu.Unlock()
	s.journal.Prune(snapshot, snapshot-min(snapshot, store.Seq(s.retention.Count)), before, pruneStep)
	s.locks.Expire(now.UnixMilli())
	s.docs.Writing.Lock()
	defer s.docs.Writing.Unlock()
	s.docs.Forget(s.docs.Dead(before, pruneStep))
	return nil
}

// Close ends every watch and has later calls return ErrClosed.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.docs.Close()
	s.journal.Close()
	s.rows.Close()
	return nil
}

func (s *Store) usable(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

func copySnapshot(s store.Snapshot) store.Snapshot {
	s.Data = maps.Clone(s.Data)
	for name, data := range s.Data {
		s.Data[name] = slices.Clone(data)
	}
	return s
}
