package store

import (
	"context"
	"iter"
)

// Limits of a table of rows. They are those of the embedded store, whose transaction has to hold a row.
const (
	// MaxRow is the most bytes that one row may hold.
	MaxRow = 512 << 10
	// MaxTable is the most bytes of a table's name, which holds no byte 0.
	MaxTable = 64
)

// Row is one record of a table: a fact that was written once and is read back newest first, such as an answer of a provider.
type Row struct {
	Seq  Seq    // place in the table, from 1 and without gaps; given by the store
	At   int64  // Unix milliseconds, from the caller's clock
	Data []byte // opaque; secrets are taken out by the writer
}

// Keep is how much of a table a prune leaves.
type Keep struct {
	Since int64 // rows from before this Unix millisecond go; 0: none goes for its age
	Rows  int   // the newest rows stay and the others go; 0: all go; negative: none goes for their number
	Limit int   // at most so many rows go in this call; 0: all that may
}

// Rows keeps tables of rows: what is written often, behind the requests, and may be lost with the last second before a kill
// (OV-8). A table is there as soon as it is named. A store may implement it beside Store; the host has an own table in memory for
// one that does not. Safe for concurrent use.
type Rows interface {
	// AppendRows writes rows behind those of the table, in order, and returns the Seq of the last. They are not synced to the disk.
	// While degraded nothing is written and it returns ErrDegraded (DATA-5); a row above MaxRow refuses all with ErrTooLarge.
	AppendRows(ctx context.Context, table string, rows ...Row) (Seq, error)
	// NewestRows yields the rows before before, newest first; 0 begins with the newest of all.
	NewestRows(ctx context.Context, table string, before Seq) iter.Seq2[Row, error]
	// PruneRows removes the oldest rows that keep does not keep, and returns how many went. It ends at the first row that stays.
	PruneRows(ctx context.Context, table string, keep Keep) (removed int, err error)
	// CountRows is how many rows the table holds; it does not read them.
	CountRows(ctx context.Context, table string) (int, error)
}
