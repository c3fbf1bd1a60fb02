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

// Get returns one document, or ErrNotFound; from memory, also while degraded.
func (s *Store) Get(ctx context.Context, kind, id string) (store.Document, error) {
	if err := s.usable(ctx); err != nil {
		return store.Document{}, err
	}
	return s.docs.Get(kind, id)
}

// List yields the documents of one kind by id, also while degraded.
func (s *Store) List(ctx context.Context, kind string) iter.Seq2[store.Document, error] {
	return s.docs.List(ctx, kind)
}

// Watch yields documents as they change. A watcher may see a change a moment before it is acknowledged.
func (s *Store) Watch(ctx context.Context, after store.Seq) iter.Seq2[store.Document, error] {
	return s.docs.Watch(ctx, after)
}

// Change writes all of ws or none, and returns when they are on the disk. While degraded it returns ErrDegraded; a change
// that met the fault itself may be there after all once the disk is back, as after a crash.
func (s *Store) Change(ctx context.Context, ws ...store.Write) ([]store.Document, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	docs, written, err := s.put(ws)
	if err != nil {
		return nil, fmt.Errorf("change documents: %w", err)
	}
	if written {
		if err := s.flush(); err != nil {
			return nil, fmt.Errorf("change documents: %w", err)
		}
	}
	return state.Copies(docs), nil
}

// put writes ws without waiting for the disk, so that the next writer can go on.
func (s *Store) put(ws []store.Write) (docs []store.Document, written bool, err error) {
	s.docs.Writing.Lock()
	defer s.docs.Writing.Unlock()
	docs, err = s.docs.Stage(ws, s.o.Now().UnixMilli())
	if err != nil {
		return nil, false, err
	}
	changed := s.docs.Written(docs)
	if len(changed) == 0 {
		return docs, false, nil
	}
	if err := s.write(func(txn *badgerdb.Txn) error { return setDocuments(txn, changed) }); err != nil {
		return nil, false, err
	}
	s.docs.Commit(changed)
	return docs, true, nil
}

func setDocuments(txn *badgerdb.Txn, docs []store.Document) error {
	for _, doc := range docs {
		if err := txn.Set(documentKey(doc.Kind, doc.ID), encodeDocument(doc)); err != nil {
			return err
		}
	}
	return nil
}

// loadDocuments reads all documents into memory.
func (s *Store) loadDocuments(txn *badgerdb.Txn) error {
	var docs []store.Document
	err := each(txn, []byte{prefixDocument}, func(key, value []byte) error {
		doc, err := decodeDocument(key, value)
		docs = append(docs, doc)
		return err
	})
	if err != nil {
		return err
	}
	last, err := getNumber(txn, metaLastDoc)
	if err != nil {
		return err
	}
	s.docs.Load(docs, store.Seq(last))
	return nil
}

// forgetDeletions drops up to limit deletions from before before, and remembers the last Seq, which one of them may have
// carried.
func (s *Store) forgetDeletions(before int64, limit int) error {
	s.docs.Writing.Lock()
	defer s.docs.Writing.Unlock()
	dead := s.docs.Dead(before, limit)
	if len(dead) == 0 {
		return nil
	}
	_, last := s.docs.All()
	err := s.write(func(txn *badgerdb.Txn) error {
		for _, doc := range dead {
			if err := txn.Delete(documentKey(doc.Kind, doc.ID)); err != nil {
				return err
			}
		}
		return txn.Set(metaLastDoc, number(uint64(last)))
	})
	if err == nil {
		s.docs.Forget(dead)
	}
	return err
}

// reconcile has Badger hold exactly the documents in memory. They differ by changes that met the fault which degraded the
// store. The caller holds Writing.
func (s *Store) reconcile(db *badgerdb.DB) error {
	docs, last := s.docs.All()
	want := make(map[string]store.Document, len(docs))
	for _, doc := range docs {
		want[string(documentKey(doc.Kind, doc.ID))] = doc
	}
	batch := db.NewWriteBatch()
	defer batch.Cancel()
	err := db.View(func(txn *badgerdb.Txn) error {
		return each(txn, []byte{prefixDocument}, func(key, value []byte) error {
			have, err := decodeDocument(key, value)
			if doc, ok := want[string(key)]; ok && (err != nil || have.Seq != doc.Seq) {
				return nil
			} else if ok {
				delete(want, string(key))
				return nil
			}
			return batch.Delete(append([]byte{}, key...))
		})
	})
	if err != nil {
		return err
	}
	for key, doc := range want {
		if err := batch.Set([]byte(key), encodeDocument(doc)); err != nil {
			return err
		}
	}
	if err := batch.Set(metaLastDoc, number(uint64(last))); err != nil {
		return err
	}
	return batch.Flush()
}

// each calls f with every key under prefix and its value, which are valid during the call.
func each(txn *badgerdb.Txn, prefix []byte, f func(key, value []byte) error) error {
	o := badgerdb.DefaultIteratorOptions
	o.Prefix = prefix
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if err := item.Value(func(value []byte) error { return f(item.Key(), value) }); err != nil {
			return err
		}
	}
	return nil
}

// getNumber reads a number, 0 when there is none.
func getNumber(txn *badgerdb.Txn, key []byte) (n uint64, err error) {
	item, err := txn.Get(key)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	err = item.Value(func(value []byte) error {
		n, err = parseNumber(value)
		return err
	})
	return n, err
}
