package badger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/internal/state"
)

// readBytes and readRows bound what one page of rows holds in memory.
const (
	readBytes = 1 << 20
	readRows  = 256
	pruneRows = 2000 // in one transaction, which takes about 13,000 entries
)

var _ store.Rows = (*Store)(nil)

// tables is where each table of rows begins and ends.
type tables struct {
	mu    sync.Mutex
	known map[string]*span // guarded by mu
}

// span is the rows of one table: those after gone up to last.
type span struct {
	mu         sync.Mutex // held by each write of the table
	loaded     bool
	gone, last store.Seq
}

func rowPrefix(table string) []byte { return append(append([]byte{prefixRow}, table...), 0) }

func rowKey(table string, seq store.Seq) []byte {
	return binary.BigEndian.AppendUint64(rowPrefix(table), uint64(seq))
}

func tableKey(table string) []byte { return append([]byte{prefixTable}, table...) }

func encodeRow(r *store.Row) []byte {
	b := make([]byte, 0, 12+len(r.Data))
	return append(binary.AppendVarint(append(b, layout), r.At), r.Data...)
}

func decodeRow(key, value []byte) (store.Row, error) {
	r := reader{b: value}
	if version := r.byte(); len(key) < 10 || version != layout {
		return store.Row{}, errDamaged
	}
	row := store.Row{Seq: store.Seq(binary.BigEndian.Uint64(key[len(key)-8:])), At: r.varint()}
	row.Data = append([]byte{}, r.b...)
	return row, r.err
}

// span returns the table's span, locked; the first time after an opening it is read. Call unlock.
func (s *Store) span(table string) (*span, error) {
	if err := state.CheckTable(table); err != nil {
		return nil, err
	}
	s.tables.mu.Lock()
	t := s.tables.known[table]
	if t == nil {
		t = &span{}
		if s.tables.known == nil {
			s.tables.known = map[string]*span{}
		}
		s.tables.known[table] = t
	}
	s.tables.mu.Unlock()
	t.mu.Lock()
	if t.loaded {
		return t, nil
	}
	err := s.with(func(db *badgerdb.DB) error {
		return db.View(func(txn *badgerdb.Txn) (err error) {
			t.gone, t.last, err = spanOf(txn, table)
			return err
		})
	})
	if err != nil {
		t.mu.Unlock()
		return nil, err
	}
	t.loaded = true
	return t, nil
}

func spanOf(txn *badgerdb.Txn, table string) (gone, last store.Seq, err error) {
	n, err := getNumber(txn, tableKey(table))
	if err != nil {
		return 0, 0, err
	}
	gone, last = store.Seq(n), store.Seq(n)
	rows, err := rowsBefore(txn, table, 0, 1)
	if len(rows) > 0 {
		last = max(last, rows[0].Seq)
	}
	return gone, last, err
}

// AppendRows writes rows behind those of the table; as many as fit are one transaction.
func (s *Store) AppendRows(ctx context.Context, table string, rows ...store.Row) (store.Seq, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if err := state.CheckRows(table, rows); err != nil {
		return 0, err
	}
	t, err := s.span(table)
	if err != nil {
		return 0, err
	}
	defer t.mu.Unlock()
	for len(rows) > 0 {
		n := cutRows(rows)
		err := s.write(func(txn *badgerdb.Txn) error {
			for i := range rows[:n] {
				if err := txn.Set(rowKey(table, t.last+store.Seq(i)+1), encodeRow(&rows[i])); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("write rows of %s: %w", table, err)
		}
		t.last += store.Seq(n)
		rows = rows[n:]
	}
	return t.last, nil
}

// cutRows returns how many of rows make one transaction, at least one.
func cutRows(rows []store.Row) int {
	size := 0
	for i := range rows {
		if size += len(rows[i].Data) + 128; i > 0 && (size > batchBytes || i == batchEvents) {
			return i
		}
	}
	return len(rows)
}

// NewestRows yields the rows of a table before before, newest first. While degraded there is only ErrDegraded.
func (s *Store) NewestRows(ctx context.Context, table string, before store.Seq) iter.Seq2[store.Row, error] {
	return state.RowPages(ctx, before, func(before store.Seq) (rows []store.Row, err error) {
		if err := state.CheckTable(table); err != nil {
			return nil, err
		}
		err = s.with(func(db *badgerdb.DB) error {
			return db.View(func(txn *badgerdb.Txn) error {
				rows, err = rowsBefore(txn, table, before, readRows)
				return err
			})
		})
		return rows, err
	})
}

// rowsBefore reads rows newest first, at most limit and about readBytes.
func rowsBefore(txn *badgerdb.Txn, table string, before store.Seq, limit int) (rows []store.Row, err error) {
	o := badgerdb.DefaultIteratorOptions
	o.Prefix, o.Reverse, o.PrefetchSize = rowPrefix(table), true, 16
	it := txn.NewIterator(o)
	defer it.Close()
	from := rowKey(table, before-1) // of 0 it is behind the last one
	bytes := 0
	for it.Seek(from); it.ValidForPrefix(o.Prefix) && len(rows) < limit && bytes < readBytes; it.Next() {
		item := it.Item()
		err := item.Value(func(value []byte) error {
			row, err := decodeRow(item.Key(), value)
			rows, bytes = append(rows, row), bytes+len(value)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("a row of %s: %w", table, err)
		}
	}
	return rows, nil
}

// PruneRows removes the oldest rows of a table, in transactions of a bounded size. While degraded nothing is removed.
func (s *Store) PruneRows(ctx context.Context, table string, keep store.Keep) (removed int, err error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	t, err := s.span(table)
	if err != nil {
		return 0, err
	}
	defer t.mu.Unlock()
	for {
		limit := pruneRows
		if keep.Limit > 0 {
			limit = min(limit, keep.Limit-removed)
		}
		n, err := s.pruneSome(table, t, keep, limit)
		removed += n
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || n < limit || removed == keep.Limit {
			return removed, err
		}
	}
}

// pruneSome removes at most limit rows in one transaction. The caller holds the span.
func (s *Store) pruneSome(table string, t *span, keep store.Keep, limit int) (n int, err error) {
	err = s.with(func(db *badgerdb.DB) error {
		return db.View(func(txn *badgerdb.Txn) (err error) {
			n, err = expired(txn, table, t, keep, limit)
			return err
		})
	})
	if err != nil || n == 0 {
		return 0, err
	}
	gone := t.gone + store.Seq(n)
	err = s.write(func(txn *badgerdb.Txn) error {
		for seq := t.gone + 1; seq <= gone; seq++ {
			if err := txn.Delete(rowKey(table, seq)); err != nil {
				return err
			}
		}
		return txn.Set(tableKey(table), number(uint64(gone)))
	})
	if err != nil {
		return 0, err
	}
	t.gone = gone
	return n, nil
}

// expired counts how many of the oldest rows may go. Those beyond the number that stays are not read for it.
func expired(txn *badgerdb.Txn, table string, t *span, keep store.Keep, limit int) (n int, err error) {
	rows := int(t.last - t.gone)
	if keep.Rows >= 0 {
		n = max(0, min(rows-keep.Rows, limit))
	}
	for n < min(rows, limit) {
		item, err := txn.Get(rowKey(table, t.gone+store.Seq(n)+1))
		if errors.Is(err, badgerdb.ErrKeyNotFound) { // a kill took it with the last second
			n++
			continue
		}
		if err != nil {
			return 0, err
		}
		var row store.Row
		err = item.Value(func(value []byte) error {
			row, err = decodeRow(item.Key(), value)
			return err
		})
		if err != nil {
			return 0, err
		}
		if row.At >= keep.Since {
			break
		}
		n++
	}
	return n, nil
}

// CountRows is how many rows a table holds.
func (s *Store) CountRows(ctx context.Context, table string) (int, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	t, err := s.span(table)
	if err != nil {
		return 0, err
	}
	defer t.mu.Unlock()
	return int(t.last - t.gone), nil
}
