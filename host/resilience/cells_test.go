package resilience_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgate/weir/host/resilience"
)

// TestCells: one cell for each identity, whoever asks first, and it stays the same one while the map grows.
func TestCells(t *testing.T) {
	var cells resilience.Cells[atomic.Int64]
	if cells.Get("a") != nil {
		t.Error("a cell before anything was written")
	}
	for range cells.All() {
		t.Error("something in an empty one")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				cells.Make(fmt.Sprint(i % 10)).Add(1)
			}
		})
	}
	wg.Wait()
	n := 0
	for id, c := range cells.All() {
		n++
		if c.Load() != 80 || cells.Get(id) != c {
			t.Errorf("cell %s counted %d", id, c.Load())
		}
	}
	if n != 10 {
		t.Errorf("%d cells", n)
	}
	if got := testing.AllocsPerRun(100, func() { cells.Get("7").Add(1) }); got != 0 {
		t.Errorf("%v allocations to look one up", got)
	}
}
