package badger

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
)

// OV-8, OBJ-18: packed rows behave as rows that are kept one by one, however they are appended, pruned in the midst of a block, and read.
func TestPackedRowsAreRows(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, small())
	plain := memory.New(memory.Options{})
	defer plain.Close()
	table := 0
	rapid.Check(t, func(rt *rapid.T) {
		table++
		name := "t" + strings.Repeat("x", table%7) + string(rune('a'+table%26)) + rapid.StringMatching("[a-z]{8}").Draw(rt, "table")
		now := int64(0)
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "append") {
				var rows []store.Row
				for range rapid.IntRange(1, 40).Draw(rt, "rows") {
					now += int64(rapid.IntRange(-2, 9).Draw(rt, "later"))
					rows = append(rows, store.Row{At: now, Data: []byte(strings.Repeat("row ", rapid.SampledFrom([]int{0, 1, 1, 9, 9, 300, 4000}).Draw(rt, "size")))})
				}
				a, err := s.AppendRows(t.Context(), name, rows...)
				b, err2 := plain.AppendRows(t.Context(), name, rows...)
				if err != nil || err2 != nil || a != b {
					rt.Fatalf("%d %v, %d %v", a, err, b, err2)
				}
			} else {
				keep := store.Keep{Since: int64(rapid.IntRange(0, int(max(now, 1))).Draw(rt, "since")), Rows: rapid.IntRange(-1, 80).Draw(rt, "keep"), Limit: rapid.IntRange(0, 50).Draw(rt, "limit")}
				a, err := s.PruneRows(t.Context(), name, keep)
				b, err2 := plain.PruneRows(t.Context(), name, keep)
				if err != nil || err2 != nil || a != b {
					rt.Fatalf("%+v: %d %v, %d %v", keep, a, err, b, err2)
				}
			}
			before := store.Seq(rapid.IntRange(0, 100).Draw(rt, "before"))
			want, got := read(t, plain, name, before), read(t, s, name, before)
			if !slices.EqualFunc(want, got, func(a, b store.Row) bool { return a.Seq == b.Seq && a.At == b.At && bytes.Equal(a.Data, b.Data) }) {
				rt.Fatalf("%d rows before %d, %d expected", len(got), before, len(want))
			}
			a, _ := s.CountRows(t.Context(), name)
			if b, _ := plain.CountRows(t.Context(), name); a != b {
				rt.Fatalf("%d rows, %d expected", a, b)
			}
		}
	})
	closed(t, s)
}

func read(t *testing.T, s store.Rows, table string, before store.Seq) (out []store.Row) {
	t.Helper()
	for r, err := range s.NewestRows(t.Context(), table, before) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// A damaged block is told, and crashes nothing.
func FuzzBlock(f *testing.F) {
	f.Add(encodeBlock([]store.Row{{At: 5, Data: []byte("a")}, {At: -3, Data: nil}}))
	f.Add([]byte{packed, 1, 2, 3})
	f.Fuzz(func(t *testing.T, value []byte) {
		b, err := readBlock(rowKey("t", 7), value)
		if err != nil {
			return
		}
		rows, err := b.rows()
		if err == nil && (len(rows) != b.count || rows[0].Seq != 7) {
			t.Errorf("%d rows of %d from %d", len(rows), b.count, rows[0].Seq)
		}
	})
}

func BenchmarkAppendRows(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	rows := make([]store.Row, 1000)
	for i := range rows {
		rows[i] = store.Row{At: int64(i), Data: []byte(strings.Repeat(`{"requestId":"x","at":"2026-01-01","durationMs":812},`, 12))}
	}
	for b.Loop() {
		if _, err := s.AppendRows(b.Context(), "requests", rows...); err != nil {
			b.Fatal(err)
		}
		if _, err := s.PruneRows(b.Context(), "requests", store.Keep{Rows: 10_000}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
}

// OBJ-18: a row that is gone already does not keep an older one behind it, although it is in the same block and younger.
func TestGoneRowsKeepNothing(t *testing.T) {
	s := open(t, t.TempDir(), small())
	if _, err := s.AppendRows(t.Context(), "t", store.Row{At: 9}, store.Row{At: 1}, store.Row{At: 9}); err != nil {
		t.Fatal(err)
	}
	for _, keep := range []store.Keep{{Rows: 2}, {Since: 5, Rows: -1}} {
		if n, err := s.PruneRows(t.Context(), "t", keep); n != 1 || err != nil {
			t.Errorf("%+v: %d rows went (%v)", keep, n, err)
		}
	}
	closed(t, s)
}
