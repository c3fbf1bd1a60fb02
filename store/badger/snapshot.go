package badger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/weirgate/weir/store"
)

// partBytes is the size of the parts of a snapshot, each of which is one transaction.
const partBytes = 512 << 10

// Save writes the snapshot in parts under a new generation, and then, in one transaction, the record that makes it the
// latest; a kill in between leaves the one before. While degraded the snapshot is kept in memory.
func (s *Store) Save(ctx context.Context, snap store.Snapshot) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	err := s.saveParts(snap, s.write)
	if err == nil {
		err = s.flush()
	}
	switch {
	case errors.Is(err, store.ErrDegraded):
		snap.Data = maps.Clone(snap.Data)
		for name, data := range snap.Data {
			snap.Data[name] = slices.Clone(data)
		}
		s.held = &snap
	case err != nil:
		return fmt.Errorf("save a snapshot: %w", err)
	default:
		s.snapshot.Store(uint64(snap.Seq))
	}
	return nil
}

// saveParts is called with saving held.
func (s *Store) saveParts(snap store.Snapshot, write func(func(*badgerdb.Txn) error) error) error {
	generation, parts := s.generation+1, uint32(0)
	for part := range slices.Chunk(encodeSnapshot(snap), partBytes) {
		if err := write(func(txn *badgerdb.Txn) error { return txn.Set(partKey(generation, parts), part) }); err != nil {
			return err
		}
		parts++
	}
	record := snapshotRecord{generation, snap.Seq, parts}
	if err := write(func(txn *badgerdb.Txn) error { return txn.Set(metaSnapshot, record.encode()) }); err != nil {
		return err
	}
	s.generation = generation
	return write(func(txn *badgerdb.Txn) error { return dropParts(txn, generation) })
}

// dropParts deletes what belongs to other generations: the snapshot before, and what a kill left behind.
func dropParts(txn *badgerdb.Txn, keep uint64) error {
	o := badgerdb.DefaultIteratorOptions
	o.Prefix, o.PrefetchValues = []byte{prefixSnapshot}, false
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if key := it.Item().KeyCopy(nil); binary.BigEndian.Uint64(key[1:]) != keep {
			if err := txn.Delete(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// Latest returns the latest snapshot, or ErrNotFound.
func (s *Store) Latest(ctx context.Context) (snap store.Snapshot, err error) {
	if err := s.usable(ctx); err != nil {
		return store.Snapshot{}, err
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.held != nil {
		return decodeSnapshot(encodeSnapshot(*s.held))
	}
	err = s.with(func(db *badgerdb.DB) error {
		return db.View(func(txn *badgerdb.Txn) error {
			record, err := latest(txn)
			if err == nil {
				snap, err = record.read(txn)
			}
			return err
		})
	})
	if errors.Is(err, store.ErrDegraded) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Snapshot{}, fmt.Errorf("latest snapshot: %w", err)
	}
	return snap, nil
}

// snapshotRecord says where the latest snapshot is.
type snapshotRecord struct {
	generation uint64
	seq        store.Seq
	parts      uint32
}

func (r snapshotRecord) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{layout}, r.generation)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, uint64(r.seq)), r.parts)
}

// latest finds the latest snapshot, or ErrNotFound.
func latest(txn *badgerdb.Txn) (r snapshotRecord, err error) {
	item, err := txn.Get(metaSnapshot)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return r, store.ErrNotFound
	}
	if err != nil {
		return r, err
	}
	err = item.Value(func(b []byte) error {
		if len(b) != 21 || b[0] != layout {
			return errDamaged
		}
		r.generation, r.seq = binary.BigEndian.Uint64(b[1:]), store.Seq(binary.BigEndian.Uint64(b[9:]))
		r.parts = binary.BigEndian.Uint32(b[17:])
		return nil
	})
	return r, err
}

func (r snapshotRecord) read(txn *badgerdb.Txn) (store.Snapshot, error) {
	var b []byte
	for part := range r.parts {
		item, err := txn.Get(partKey(r.generation, part))
		if err != nil {
			return store.Snapshot{}, fmt.Errorf("part %d: %w", part, err)
		}
		if err := item.Value(func(value []byte) error { b = append(b, value...); return nil }); err != nil {
			return store.Snapshot{}, err
		}
	}
	return decodeSnapshot(b)
}
