package memory

import (
	"context"
	"iter"

	"github.com/weirgate/weir/store"
)

var _ store.Rows = (*Store)(nil)

// AppendRows adds rows to a table.
func (s *Store) AppendRows(ctx context.Context, table string, rows ...store.Row) (store.Seq, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.rows.Append(table, rows...)
}

// NewestRows yields the rows of a table before before, newest first.
func (s *Store) NewestRows(ctx context.Context, table string, before store.Seq) iter.Seq2[store.Row, error] {
	return s.rows.Newest(ctx, table, before)
}

// PruneRows removes the oldest rows of a table.
func (s *Store) PruneRows(ctx context.Context, table string, keep store.Keep) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.rows.Prune(table, keep)
}

// CountRows is how many rows a table holds.
func (s *Store) CountRows(ctx context.Context, table string) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.rows.Count(table)
}
