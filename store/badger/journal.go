package badger

import (
	"context"
	"errors"
	"fmt"
	"iter"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/internal/state"
)

// Batches of events are cut below both limits of a transaction, which are 1.2 MB and 13,000 entries (DATA-7).
const (
	batchBytes  = 600 << 10
	batchEvents = 4096
	readEvents  = 256
	maxTape     = 20_000
)

func (s *Store) tapeLimit() int { return min(s.o.Retention.Count, maxTape) }

// Append writes es; a batch of usual size is one transaction. While degraded it keeps the newest events in memory.
func (s *Store) Append(ctx context.Context, es ...store.Event) (store.Seq, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if err := state.CheckEvents(es); err != nil {
		return 0, err
	}
	s.appending.Lock()
	defer s.appending.Unlock()
	for len(es) > 0 {
		n := cut(es)
		err := s.write(func(txn *badgerdb.Txn) error { return setEvents(txn, s.lastEvent+1, es[:n]) })
		if errors.Is(err, store.ErrDegraded) {
			return s.remember(es)
		}
		if err != nil {
			return 0, fmt.Errorf("append to the journal: %w", err)
		}
		s.lastEvent += store.Seq(n)
		es = es[n:]
	}
	return s.lastEvent, nil
}

// cut returns how many of es make one transaction, at least one.
func cut(es []store.Event) int {
	size := 0
	for i := range es {
		if size += es[i].Size() + 128; i > 0 && (size > batchBytes || i == batchEvents) {
			return i
		}
	}
	return len(es)
}

func setEvents(txn *badgerdb.Txn, first store.Seq, es []store.Event) error {
	for i := range es {
		if err := txn.Set(eventKey(first+store.Seq(i)), encodeEvent(&es[i])); err != nil {
			return err
		}
	}
	return nil
}

// remember keeps es in memory. The caller holds appending.
func (s *Store) remember(es []store.Event) (store.Seq, error) {
	tape := s.tape.Load()
	if tape.Last() != s.lastEvent {
		tape = state.NewJournal(s.lastEvent, s.tapeLimit())
		s.tape.Store(tape)
	}
	last, err := tape.Append(es...)
	if err == nil {
		s.lastEvent = last
	}
	return last, err
}

// Replay yields the events after after; while degraded, only those appended since, or since the last snapshot when the
// store was opened without room.
func (s *Store) Replay(ctx context.Context, after store.Seq) iter.Seq2[store.Event, error] {
	return state.Pages(ctx, after, s.readEvents)
}

func (s *Store) readEvents(after store.Seq) (es []store.Event, err error) {
	err = s.with(func(db *badgerdb.DB) error {
		return db.View(func(txn *badgerdb.Txn) error {
			es, err = firstEvents(txn, after, readEvents)
			return err
		})
	})
	if errors.Is(err, store.ErrDegraded) {
		return s.tape.Load().Read(after)
	}
	return es, err
}

func firstEvents(txn *badgerdb.Txn, after store.Seq, limit int) (es []store.Event, err error) {
	o := badgerdb.DefaultIteratorOptions
	o.Prefix = []byte{prefixEvent}
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Seek(eventKey(after + 1)); it.Valid() && len(es) < limit; it.Next() {
		item := it.Item()
		err := item.Value(func(value []byte) error {
			e, err := decodeEvent(item.Key(), value)
			es = append(es, e)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", eventSeq(item.Key()), err)
		}
	}
	return es, nil
}

// lastEventOf finds where numbering goes on: events may have been pruned to the last one.
func lastEventOf(txn *badgerdb.Txn) (last, pruned store.Seq, err error) {
	n, err := getNumber(txn, metaPruned)
	if err != nil {
		return 0, 0, err
	}
	pruned = store.Seq(n)
	o := badgerdb.DefaultIteratorOptions
	o.Prefix, o.Reverse, o.PrefetchValues = []byte{prefixEvent}, true, false
	it := txn.NewIterator(o)
	defer it.Close()
	if it.Seek([]byte{prefixEvent + 1}); it.ValidForPrefix([]byte{prefixEvent}) {
		last = eventSeq(it.Item().Key())
	}
	return max(last, pruned), pruned, nil
}

// pruneEvents deletes up to limit events that the retention lets go (OBJ-22).
func (s *Store) pruneEvents(limit int) error {
	s.appending.Lock()
	from := s.pruned
	s.appending.Unlock()
	snapshot := store.Seq(s.snapshot.Load())
	beyond := snapshot - min(snapshot, store.Seq(s.o.Retention.Count))
	before := s.o.Now().Add(-s.o.Retention.Age).UnixMilli()
	for limit > 0 {
		page, err := s.readEvents(from)
		if err != nil {
			return err
		}
		n := 0
		for n < len(page) && n < limit && state.Expired(&page[n], snapshot, beyond, before) {
			n++
		}
		if n == 0 {
			return nil
		}
		from = page[n-1].Seq
		if err := s.dropEvents(page[:n]); err != nil {
			return err
		}
		limit -= n
	}
	return nil
}

func (s *Store) dropEvents(es []store.Event) error {
	last := es[len(es)-1].Seq
	err := s.write(func(txn *badgerdb.Txn) error {
		for i := range es {
			if err := txn.Delete(eventKey(es[i].Seq)); err != nil {
				return err
			}
		}
		return txn.Set(metaPruned, number(uint64(last)))
	})
	if err != nil {
		return err
	}
	s.appending.Lock()
	defer s.appending.Unlock()
	s.pruned = max(s.pruned, last)
	return nil
}
