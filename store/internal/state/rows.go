package state

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/weirgate/weir/store"
)

// CheckRows returns why a table or one of the rows is refused.
func CheckRows(table string, rows []store.Row) error {
	if err := CheckTable(table); err != nil {
		return err
	}
	for i := range rows {
		if size := len(rows[i].Data); size > store.MaxRow {
			return fmt.Errorf("a row of %s with %d bytes is %w: the limit is %d", table, size, store.ErrTooLarge, store.MaxRow)
		}
	}
	return nil
}

// CheckTable returns why the name of a table is refused.
func CheckTable(table string) error {
	if table == "" || len(table) > store.MaxTable || strings.IndexByte(table, 0) >= 0 {
		return fmt.Errorf("the name of a table of rows must have 1 to %d bytes, none of them 0; %.80q has not", store.MaxTable, table)
	}
	return nil
}

// Rows keeps tables in memory. Safe for concurrent use.
type Rows struct {
	mu     sync.RWMutex
	tables map[string]*rowTable // guarded by mu
	bytes  int64                // guarded by mu
	closed bool                 // guarded by mu
}

type rowTable struct {
	rows []store.Row // ascending by Seq, without gaps
	last store.Seq
}

// NewRows returns tables that are empty.
func NewRows() *Rows { return &Rows{tables: map[string]*rowTable{}} }

// Append numbers rows and keeps copies.
func (r *Rows) Append(table string, rows ...store.Row) (store.Seq, error) {
	if err := CheckRows(table, rows); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, store.ErrClosed
	}
	t := r.tables[table]
	if t == nil {
		t = &rowTable{}
		r.tables[table] = t
	}
	for _, row := range rows {
		t.last++
		row.Seq, row.Data = t.last, slices.Clone(row.Data)
		t.rows = append(t.rows, row)
		r.bytes += int64(len(row.Data))
	}
	return t.last, nil
}

// Newest yields the rows before before, newest first.
func (r *Rows) Newest(ctx context.Context, table string, before store.Seq) iter.Seq2[store.Row, error] {
	return RowPages(ctx, before, func(before store.Seq) ([]store.Row, error) { return r.read(table, before) })
}

// read returns the last rows before before, newest first, at most one page.
func (r *Rows) read(table string, before store.Seq) ([]store.Row, error) {
	if err := CheckTable(table); err != nil {
		return nil, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return nil, store.ErrClosed
	}
	t := r.tables[table]
	if t == nil || len(t.rows) == 0 {
		return nil, nil
	}
	end := len(t.rows)
	if first := t.rows[0].Seq; before != 0 && before <= t.last {
		end = int(before - min(before, first))
	}
	out := slices.Clone(t.rows[max(0, end-page):end])
	slices.Reverse(out)
	for i := range out {
		out[i].Data = slices.Clone(out[i].Data)
	}
	return out, nil
}

// Prune removes the oldest rows that keep does not keep.
func (r *Rows) Prune(table string, keep store.Keep) (int, error) {
	if err := CheckTable(table); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, store.ErrClosed
	}
	t := r.tables[table]
	if t == nil {
		return 0, nil
	}
	n := 0
	for n < len(t.rows) && (keep.Limit <= 0 || n < keep.Limit) && RowExpired(&t.rows[n], len(t.rows)-n, keep) {
		r.bytes -= int64(len(t.rows[n].Data))
		t.rows[n] = store.Row{}
		n++
	}
	t.rows = t.rows[n:]
	return n, nil
}

// Count is how many rows the table holds.
func (r *Rows) Count(table string) (int, error) {
	if err := CheckTable(table); err != nil {
		return 0, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return 0, store.ErrClosed
	}
	if t := r.tables[table]; t != nil {
		return len(t.rows), nil
	}
	return 0, nil
}

// Bytes is the size of the rows kept.
func (r *Rows) Bytes() int64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.bytes
}

// Close has later calls return ErrClosed.
func (r *Rows) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// RowExpired says whether the oldest of that many rows may go.
func RowExpired(row *store.Row, rows int, keep store.Keep) bool {
	return row.At < keep.Since || keep.Rows >= 0 && rows > keep.Rows
}

// RowPages makes an iterator of read, which returns the last rows before a Seq, newest first, and none at the end. No lock of
// read is held while the caller works.
func RowPages(ctx context.Context, before store.Seq, read func(before store.Seq) ([]store.Row, error)) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for {
			rows, err := read(before)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			if len(rows) == 0 {
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
				before = row.Seq
			}
			if before <= 1 {
				return
			}
		}
	}
}
