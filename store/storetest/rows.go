package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/weirgate/weir/store"
)

// RowStore is a store that keeps tables of rows.
type RowStore interface {
	store.Rows
	io.Closer
}

// RunRows plays the suite of store.Rows. open returns a new, empty store each time; the suite closes it.
func RunRows(t *testing.T, open func(t *testing.T) RowStore) {
	t.Helper()
	suite := []struct {
		name string
		test func(*testing.T, RowStore)
	}{
		{"rows come back newest first", testRows},
		{"tables are apart", testTables},
		{"OBJ-18 a prune keeps by age and by number, in small steps", testPruneRows},
		{"numbers go on after all rows are gone", testEmptied},
		{"DATA-7 a row that is too large is refused", testLargeRows},
		{"more than one transaction", testManyRows},
		{"rows while others are appended and pruned", testRowHammer},
		{"closed and ended", testRowsClosed},
	}
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			c.test(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

func row(n int) store.Row { return store.Row{At: int64(1000 + n), Data: fmt.Appendf(nil, "row %d", n)} }

func appendRows(t *testing.T, s RowStore, table string, from, to int) store.Seq {
	t.Helper()
	var rows []store.Row
	for n := from; n < to; n++ {
		rows = append(rows, row(n))
	}
	last, err := s.AppendRows(t.Context(), table, rows...)
	if err != nil {
		t.Fatalf("append rows: %v", err)
	}
	return last
}

// wantRows checks that the table holds the rows from to to-1, and says so.
func wantRows(t *testing.T, s RowStore, table string, from, to int) []store.Row {
	t.Helper()
	rows := collect(t, 0, s.NewestRows(t.Context(), table, 0))
	n, err := s.CountRows(t.Context(), table)
	if err != nil || n != to-from || len(rows) != n {
		t.Fatalf("%s counts %d rows and yields %d (%v), want %d", table, n, len(rows), err, to-from)
	}
	for i, r := range rows {
		want := row(to - 1 - i)
		if r.At != want.At || !bytes.Equal(r.Data, want.Data) || i > 0 && rows[i-1].Seq != r.Seq+1 {
			t.Fatalf("row %d of %s is %+v (%s), want %s", i, table, r, r.Data, want.Data)
		}
	}
	return rows
}

func testRows(t *testing.T, s RowStore) {
	wantRows(t, s, "errors", 0, 0)
	if last := appendRows(t, s, "errors", 0, 3); last != 3 {
		t.Fatalf("the first rows of a table end with %d", last)
	}
	appendRows(t, s, "errors", 3, 5)
	rows := wantRows(t, s, "errors", 0, 5)
	rows[0].Data[0] = 'X' // what is returned belongs to the caller
	wantRows(t, s, "errors", 0, 5)
	older := collect(t, 0, s.NewestRows(t.Context(), "errors", rows[1].Seq))
	if len(older) != 3 || older[0].Seq != rows[2].Seq {
		t.Fatalf("before %d: %+v", rows[1].Seq, older)
	}
	if none := collect(t, 0, s.NewestRows(t.Context(), "errors", 1)); len(none) != 0 {
		t.Fatalf("before the first: %+v", none)
	}
	if two := collect(t, 2, s.NewestRows(t.Context(), "errors", 0)); two[1].Seq != rows[1].Seq {
		t.Fatalf("a read that stops early: %+v", two)
	}
	if last, err := s.AppendRows(t.Context(), "errors"); err != nil || last != 5 {
		t.Fatalf("no rows: %d, %v", last, err)
	}
}

func testTables(t *testing.T, s RowStore) {
	appendRows(t, s, "a", 0, 3)
	appendRows(t, s, "ab", 0, 2)
	appendRows(t, s, "a", 3, 4)
	if _, err := s.PruneRows(t.Context(), "ab", store.Keep{}); err != nil {
		t.Fatal(err)
	}
	wantRows(t, s, "a", 0, 4)
	wantRows(t, s, "ab", 0, 0)
	for _, bad := range []string{"", "a\x00b", string(bytes.Repeat([]byte("t"), store.MaxTable+1))} {
		if _, err := s.AppendRows(t.Context(), bad, row(0)); err == nil {
			t.Errorf("a table %q is taken", bad)
		}
	}
}

func testPruneRows(t *testing.T, s RowStore) {
	appendRows(t, s, "errors", 0, 20)
	prune := func(keep store.Keep, want int) {
		t.Helper()
		n, err := s.PruneRows(t.Context(), "errors", keep)
		if err != nil || n != want {
			t.Fatalf("prune %+v: %d rows, %v; want %d", keep, n, err, want)
		}
	}
	prune(store.Keep{Since: 1003, Rows: -1}, 3) // by age: those of 1000, 1001, 1002
	wantRows(t, s, "errors", 3, 20)
	prune(store.Keep{Rows: 15}, 2) // by number
	wantRows(t, s, "errors", 5, 20)
	prune(store.Keep{Rows: 15}, 0)
	prune(store.Keep{Since: 1012, Rows: 15}, 7) // the older of both
	wantRows(t, s, "errors", 12, 20)
	prune(store.Keep{Since: 1002, Rows: 6}, 2)
	prune(store.Keep{Rows: 0, Limit: 4}, 4) // in steps
	wantRows(t, s, "errors", 18, 20)
	prune(store.Keep{}, 2)
	wantRows(t, s, "errors", 20, 20)
	prune(store.Keep{}, 0)
}

func testEmptied(t *testing.T, s RowStore) {
	last := appendRows(t, s, "errors", 0, 3)
	if _, err := s.PruneRows(t.Context(), "errors", store.Keep{}); err != nil {
		t.Fatal(err)
	}
	if next := appendRows(t, s, "errors", 3, 4); next != last+1 {
		t.Fatalf("after %d and a prune of all comes %d", last, next)
	}
	wantRows(t, s, "errors", 3, 4)
}

func testLargeRows(t *testing.T, s RowStore) {
	most := store.Row{At: 1, Data: bytes.Repeat([]byte("x"), store.MaxRow)}
	if _, err := s.AppendRows(t.Context(), "errors", most, most, most); err != nil {
		t.Fatal(err)
	}
	most.Data = append(most.Data, 'x')
	_, err := s.AppendRows(t.Context(), "errors", row(0), most)
	wantError(t, "a row above the limit", err, store.ErrTooLarge)
	if n, err := s.CountRows(t.Context(), "errors"); n != 3 || err != nil {
		t.Fatalf("%d rows, %v", n, err)
	}
	rows := collect(t, 0, s.NewestRows(t.Context(), "errors", 0))
	if len(rows) != 3 || len(rows[2].Data) != store.MaxRow {
		t.Fatalf("%d rows came back", len(rows))
	}
}

func testManyRows(t *testing.T, s RowStore) {
	appendRows(t, s, "errors", 0, 9000)
	wantRows(t, s, "errors", 0, 9000)
	if n, err := s.PruneRows(t.Context(), "errors", store.Keep{Rows: 10}); err != nil || n != 8990 {
		t.Fatalf("pruned %d, %v", n, err)
	}
	wantRows(t, s, "errors", 8990, 9000)
}

// testRowHammer: each writer's rows stay in order and none is lost while others write, read and prune another table.
func testRowHammer(t *testing.T, s RowStore) {
	const writers, each = 4, 50
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if _, err := s.AppendRows(t.Context(), "errors", store.Row{At: int64(i), Data: fmt.Appendf(nil, "%d", w)}); err != nil {
					t.Error(err)
				}
				if _, err := s.AppendRows(t.Context(), "other", row(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range each {
			if _, err := s.PruneRows(t.Context(), "other", store.Keep{Rows: 5}); err != nil {
				t.Error(err)
			}
			for _, err := range s.NewestRows(t.Context(), "errors", 0) {
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	all.Wait()
	seen := map[string]int64{}
	for i, r := range collect(t, 0, s.NewestRows(t.Context(), "errors", 0)) {
		if at, ok := seen[string(r.Data)]; r.Seq != store.Seq(writers*each-i) || ok && r.At != at-1 {
			t.Fatalf("row %d of writer %s follows %d at place %d", r.At, r.Data, at, r.Seq)
		}
		seen[string(r.Data)] = r.At
	}
}

func testRowsClosed(t *testing.T, s RowStore) {
	appendRows(t, s, "errors", 0, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.AppendRows(ended, "errors", row(1))
	wantError(t, "append with an ended context", err, context.Canceled)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = s.AppendRows(t.Context(), "errors", row(1))
	wantError(t, "append", err, store.ErrClosed)
	_, err = s.PruneRows(t.Context(), "errors", store.Keep{})
	wantError(t, "prune", err, store.ErrClosed)
	_, err = s.CountRows(t.Context(), "errors")
	wantError(t, "count", err, store.ErrClosed)
	for _, err := range s.NewestRows(t.Context(), "errors", 0) {
		if !errors.Is(err, store.ErrClosed) {
			t.Fatalf("read: %v", err)
		}
	}
}
