package badger

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
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
	oldest     store.Seq // no block begins before it
}

func rowPrefix(table string) []byte { return append(append([]byte{prefixRow}, table...), 0) }

func rowKey(table string, seq store.Seq) []byte {
	return binary.BigEndian.AppendUint64(rowPrefix(table), uint64(seq))
}

func tableKey(table string) []byte { return append([]byte{prefixTable}, table...) }

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
	err = blocksBefore(txn, table, 0, func(b block) (bool, error) {
		last = max(last, b.last())
		return false, nil
	})
	return gone, last, err
}

// AppendRows writes rows behind those of the table, packed in blocks; as many as fit are one transaction.
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
			for at := 0; at < n; {
				some := rows[at : at+cutBlock(rows[at:n])]
				if err := txn.Set(rowKey(table, t.last+store.Seq(at)+1), encodeBlock(some)); err != nil {
					return err
				}
				at += len(some)
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
		t, err := s.span(table)
		if err != nil {
			return nil, err
		}
		gone := t.gone
		t.mu.Unlock()
		err = s.with(func(db *badgerdb.DB) error {
			return db.View(func(txn *badgerdb.Txn) error {
				rows, err = rowsBefore(txn, table, before, gone, readRows)
				return err
			})
		})
		return rows, err
	})
}

// rowsBefore reads rows newest first, those of whole blocks until there are limit or about readBytes, and none up to gone.
func rowsBefore(txn *badgerdb.Txn, table string, before, gone store.Seq, limit int) (rows []store.Row, err error) {
	bytes := 0
	err = blocksBefore(txn, table, before, func(b block) (bool, error) {
		if b.last() <= gone {
			return false, nil
		}
		some, err := b.rows()
		if err != nil {
			return false, fmt.Errorf("rows of %s: %w", table, err)
		}
		for _, row := range slices.Backward(some) {
			if (before == 0 || row.Seq < before) && row.Seq > gone {
				rows, bytes = append(rows, row), bytes+len(row.Data)
			}
		}
		return len(rows) < limit && bytes < readBytes, nil
	})
	return rows, err
}

// blocksBefore calls each for the blocks that begin before before, newest first, until it says no.
func blocksBefore(txn *badgerdb.Txn, table string, before store.Seq, each func(block) (bool, error)) error {
	o := badgerdb.DefaultIteratorOptions
	o.Prefix, o.Reverse, o.PrefetchSize = rowPrefix(table), true, 2
	it := txn.NewIterator(o)
	defer it.Close()
	return walk(it, o.Prefix, rowKey(table, before-1), each) // of 0 it is behind the last one
}

// walk calls each for the blocks from a key on. A block is valid until each returns.
func walk(it *badgerdb.Iterator, prefix, from []byte, each func(block) (bool, error)) error {
	for it.Seek(from); it.ValidForPrefix(prefix); it.Next() {
		item, more := it.Item(), false
		err := item.Value(func(value []byte) error {
			b, err := readBlock(item.Key(), value)
			if err != nil {
				return err
			}
			more, err = each(b)
			return err
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
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

// pruneSome removes at most limit rows in one transaction: blocks that hold nothing else go, and of the last one the table knows how
// much of it is gone. The caller holds the span.
func (s *Store) pruneSome(table string, t *span, keep store.Keep, limit int) (n int, err error) {
	var empty []store.Seq
	err = s.with(func(db *badgerdb.DB) error {
		return db.View(func(txn *badgerdb.Txn) (err error) {
			n, empty, err = expired(txn, table, t, keep, limit)
			return err
		})
	})
	if err != nil || n == 0 {
		return 0, err
	}
	gone := t.gone + store.Seq(n)
	err = s.write(func(txn *badgerdb.Txn) error {
		for _, first := range empty {
			if err := txn.Delete(rowKey(table, first)); err != nil {
				return err
			}
		}
		return txn.Set(tableKey(table), number(uint64(gone)))
	})
	if err != nil {
		return 0, err
	}
	if t.gone = gone; len(empty) > 0 {
		t.oldest = empty[len(empty)-1] + 1
	}
	return n, nil
}

// expired counts how many of the oldest rows may go, and says which blocks are empty then. A place without a row counts as one that
// is gone: a kill took it with the last second.
func expired(txn *badgerdb.Txn, table string, t *span, keep store.Keep, limit int) (n int, empty []store.Seq, err error) {
	rows := int(t.last - t.gone)
	must := 0 // go for their number
	if keep.Rows >= 0 {
		must = max(0, rows-keep.Rows)
	}
	most := min(rows, limit)
	n = min(must, most)
	o := badgerdb.DefaultIteratorOptions
	o.Prefix, o.PrefetchSize = rowPrefix(table), 2
	it := txn.NewIterator(o)
	defer it.Close()
	err = walk(it, o.Prefix, rowKey(table, t.oldest), func(b block) (bool, error) {
		if b.last() > t.gone+store.Seq(n) { // not gone for its number: for its age?
			young, err := old(&b, keep.Since, t.gone+store.Seq(n))
			if err != nil {
				return false, err
			}
			n = min(max(n, int(young-1-t.gone)), most)
		}
		if b.last() > t.gone+store.Seq(n) {
			return false, nil
		}
		empty = append(empty, b.first)
		return true, nil
	})
	return n, empty, err
}

// old is the place of the first row of a block behind gone that is not from before since, or the one behind the block.
func old(b *block, since int64, gone store.Seq) (store.Seq, error) {
	if b.latest < since {
		return b.last() + 1, nil
	}
	rows, err := b.rows()
	if err != nil {
		return 0, err
	}
	for i := range rows {
		if rows[i].Seq > gone && rows[i].At >= since {
			return rows[i].Seq, nil
		}
	}
	return b.last() + 1, nil
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
