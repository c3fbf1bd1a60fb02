package badger

import (
	"errors"
	"testing"

	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/storetest"
)

func TestRows(t *testing.T) {
	storetest.RunRows(t, func(t *testing.T) storetest.RowStore { return open(t, t.TempDir(), small()) })
}

func rowsOf(t *testing.T, s *Store) (texts string) {
	t.Helper()
	for r, err := range s.NewestRows(t.Context(), "errors", 0) {
		if err != nil {
			t.Fatal(err)
		}
		texts += string(r.Data)
	}
	return texts
}

// OV-8: rows and the place of the next one are there after a restart, also when all were pruned.
func TestRowsSurviveReopening(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, small())
	for _, text := range []string{"a", "b", "c"} {
		if _, err := s.AppendRows(t.Context(), "errors", store.Row{Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.PruneRows(t.Context(), "errors", store.Keep{Rows: 2}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	s = open(t, dir, small())
	if n, err := s.CountRows(t.Context(), "errors"); n != 2 || err != nil || rowsOf(t, s) != "cb" {
		t.Fatalf("%d rows %q came back (%v)", n, rowsOf(t, s), err)
	}
	if _, err := s.PruneRows(t.Context(), "errors", store.Keep{}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	s = open(t, dir, small())
	if last, err := s.AppendRows(t.Context(), "errors", store.Row{Data: []byte("d")}); last != 4 || err != nil || rowsOf(t, s) != "d" {
		t.Fatalf("after all were pruned the next one is %d (%v)", last, err)
	}
	closed(t, s)
}

// DATA-5: while degraded no row is acknowledged, and the table goes on where it was when there is room again.
func TestRowsWhileDegraded(t *testing.T) {
	s := open(t, t.TempDir(), small())
	if _, err := s.AppendRows(t.Context(), "errors", store.Row{Data: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	s.degrade(s.current(), errors.New("test"))
	if _, err := s.AppendRows(t.Context(), "errors", store.Row{Data: []byte("lost")}); !errors.Is(err, store.ErrDegraded) {
		t.Fatalf("a row was taken: %v", err)
	}
	if _, err := s.PruneRows(t.Context(), "errors", store.Keep{}); !errors.Is(err, store.ErrDegraded) {
		t.Fatalf("rows were pruned: %v", err)
	}
	s.gate.RLock()
	ending := s.ending
	s.gate.RUnlock()
	<-ending
	s.resume()
	if last, err := s.AppendRows(t.Context(), "errors", store.Row{Data: []byte("b")}); last != 2 || err != nil || rowsOf(t, s) != "ba" {
		t.Fatalf("after that: %d, %q, %v", last, rowsOf(t, s), err)
	}
	closed(t, s)
}
