package fuel

import (
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// tabled is a module with a memory of 1 to 8 pages, a table of 70 entries, and a function "run" of that code.
func tabled(params, results string, parts ...any) []byte {
	return with(one(params, results, code(nil, parts...)), func(m *built) {
		m.mems[0] = []byte{1, 1, 8}
		m.tables = [][]byte{cat(typeFunc, 0, u32(70))}
		m.elems = [][]byte{cat(3, 0, 1, 0), cat(5, typeFunc, vec(many(70, cat(opRefNull, typeFunc, opEnd))...))}
		m.data = [][]byte{cat(1, str(string(rep(700, "x"))))}
		m.dataCount = u32(1)
	})
}

// ABI-7, step 3: what each operation costs, to the unit.
func TestChargesABI7(t *testing.T) {
	n := cat(opLocalGet, 0)
	zero := i32c(0)
	fill := tabled(vI, "", zero, zero, n, opMisc, miscMemoryFill, 0)
	copies := tabled(vI, "", zero, zero, n, opMisc, miscMemoryCopy, 0, 0)
	init := tabled(vI, "", zero, zero, n, opMisc, miscMemoryInit, 0, 0)
	tableFill := tabled(vI, "", zero, opRefNull, typeFunc, n, opMisc, miscTableFill, 0)
	tableCopy := tabled(vI, "", zero, zero, n, opMisc, miscTableCopy, 0, 0)
	tableInit := tabled(vI, "", zero, zero, n, opMisc, miscTableInit, 1, 0)
	grow := tabled(vI, vI, n, opMemoryGrow, 0)
	tableGrow := tabled(vI, vI, opRefNull, typeFunc, n, opMisc, miscTableGrow, 0)
	loop := tabled(vI, "", opLoop, typeEmpty, n, i32c(1), 0x6b, opLocalTee, 0, opBrIf, 0, opEnd)
	for _, x := range []struct {
		name  string
		wasm  []byte
		n     uint32
		price int64
		trap  bool
	}{
		{"loop once", loop, 1, 1, false}, {"loop 1000 times", loop, 1000, 1000, false},
		{"fill 0", fill, 0, 0, false}, {"fill 63", fill, 63, 0, false}, {"fill 64", fill, 64, 1, false},
		{"fill a page", fill, 65536, 1024, false}, {"fill out of bounds", fill, 65537, 1024, true}, {"fill 4 GiB", fill, 1<<32 - 1, 1<<26 - 1, true},
		{"copy", copies, 6400, 100, false}, {"copy 2 GiB", copies, 1 << 31, 1 << 25, true},
		{"init", init, 640, 10, false}, {"init 4 GiB", init, 1<<32 - 1, 1<<26 - 1, true},
		{"table.fill", tableFill, 70, 1, false}, {"table.fill 4 G", tableFill, 1<<32 - 1, 1<<26 - 1, true},
		{"table.copy", tableCopy, 64, 1, false}, {"table.copy 4 G", tableCopy, 1<<32 - 1, 1<<26 - 1, true},
		{"table.init", tableInit, 65, 1, false}, {"table.init 4 G", tableInit, 1<<32 - 1, 1<<26 - 1, true},
		{"grow 0", grow, 0, 0, false}, {"grow 7", grow, 7, 7000, false}, {"a refused growth", grow, 8, 8000, false},
		{"grow by -1", grow, 1<<32 - 1, (1<<32 - 1) * 1000, false},
		{"table.grow", tableGrow, 800, 100, false}, {"table.grow 4 G", tableGrow, 1<<32 - 1, 1<<29 - 1, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := metered(t, x.wasm)
			r.setFuel(plenty)
			_, err := r.call("run", uint64(x.n))
			if spent := plenty - r.fuel(); spent != x.price+1 || (err != nil) != x.trap {
				t.Errorf("spent %d, want %d and 1 for the entry; %v", spent, x.price, err)
			}
			if x.price == 0 {
				return
			}
			// With one unit less it stops before the operation, and never above zero (no refund).
			r = metered(t, x.wasm)
			r.setFuel(x.price)
			_, err = r.call("run", uint64(x.n))
			if trapOf(err) != "wasm error: unreachable" || r.fuel() != -1 {
				t.Errorf("with one unit too few: %v, fuel %d", err, r.fuel())
			}
		})
	}
}

// ABI-7: an operation that cannot be paid is not done.
func TestUnpaidIsNotDoneABI7(t *testing.T) {
	r := metered(t, tabled(vI, "", i32c(0), i32c(7), opLocalGet, 0, opMisc, miscMemoryFill, 0))
	r.setFuel(100)
	if _, err := r.call("run", 65536); err == nil {
		t.Fatal("no trap")
	}
	if b, _ := r.mod.Memory().ReadByte(0); b != 0 {
		t.Error("memory was filled on credit")
	}
}

// ABI-7: a table does not grow beyond 65,536 entries, whatever it declares; below, growth works as before.
func TestTableGrowthABI7(t *testing.T) {
	for _, x := range []struct {
		limits []byte
		n      uint64
		want   int32
	}{
		{cat(0, 1), 65_535, 1}, {cat(0, 1), 65_536, -1}, {cat(1, 1, u32(1<<32-1)), 65_536, -1}, {cat(1, 1, 10), 9, 1}, {cat(1, 1, 10), 10, -1},
	} {
		r := metered(t, with(one(vI, vI, code(nil, opRefNull, typeFunc, opLocalGet, 0, opMisc, miscTableGrow, 0)), func(m *built) {
			m.tables = [][]byte{cat(typeFunc, x.limits)}
		}))
		res, err := r.call("run", x.n)
		if err != nil || api.DecodeI32(res[0]) != x.want {
			t.Errorf("limits %x grown by %d: %v %v, want %d", x.limits, x.n, res, err, x.want)
		}
	}
}

// ABI-7, ABI-8: whatever a guest does for ever stops at its fuel, soon, and the trap is told apart by fuel below zero.
func TestStopsABI8(t *testing.T) {
	n := i32c(0)
	page := i32c(65536)
	forever := func(parts ...any) []byte { return tabled("", "", opLoop, typeEmpty, cat(parts...), opBr, 0, opEnd) }
	mutual := with(one("", "", code(nil, opCall, 1)), func(m *built) {
		m.funcs, m.bodies = many(2, []byte{0}), append(m.bodies, code(nil, opCall, 0))
	})
	indirect := with(one("", "", code(nil, n, opCallIndirect, 0, 0)), func(m *built) {
		m.tables, m.elems = [][]byte{cat(typeFunc, 0, 1)}, [][]byte{cat(0, n, opEnd, 1, 0)}
	})
	tree := one(vI, "", code(nil, opLocalGet, 0, opIf, typeEmpty, rep(2, opLocalGet, 0, i32c(1), 0x6b, opCall, 0), opEnd)).bytes()
	for _, x := range []struct {
		name string
		wasm []byte
		fuel int64
	}{
		{"loop", forever(), 2e6},
		{"loop with values", one(vI, vI, code(nil, opLocalGet, 0, opLoop, 0, opBr, 0, opEnd)).bytes(), 2e6},
		{"br_if back", tabled("", "", opLoop, typeEmpty, i32c(1), opBrIf, 0, opEnd), 2e6},
		{"br_table back", tabled("", "", opLoop, typeEmpty, opBlock, typeEmpty, opBlock, typeEmpty, i32c(9), opBrTable, 2, 0, 1, 2, opEnd, opEnd, opEnd), 2e6},
		{"outer loop", forever(opLoop, typeEmpty, opBr, 1, opEnd), 2e6},
		{"recursion", one("", "", code(nil, opCall, 0)).bytes(), 10_000},
		{"mutual recursion", mutual, 10_000},
		{"recursion through the table", indirect, 10_000},
		{"a tree of calls", tree, 2e6},
		{"fill", forever(n, n, page, opMisc, miscMemoryFill, 0), 2e6},
		{"copy", forever(n, n, page, opMisc, miscMemoryCopy, 0, 0), 2e6},
		{"init", forever(n, n, i32c(700), opMisc, miscMemoryInit, 0, 0), 2e6},
		{"fills in a row", tabled("", "", rep(1000, n, n, page, opMisc, miscMemoryFill, 0)), 200_000},
		{"table.fill", forever(n, opRefNull, typeFunc, i32c(70), opMisc, miscTableFill, 0), 2e6},
		{"table.copy", forever(n, n, i32c(70), opMisc, miscTableCopy, 0, 0), 2e6},
		{"growth", forever(i32c(1), opMemoryGrow, 0, opDrop), 2e6},
		{"refused growth", forever(page, opMemoryGrow, 0, opDrop), 2e6},
		{"table growth", forever(opRefNull, typeFunc, i32c(8), opMisc, miscTableGrow, 0, opDrop), 2e6},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := metered(t, x.wasm)
			args := []uint64{}
			if len(r.mod.ExportedFunction("run").Definition().ParamTypes()) > 0 {
				args = append(args, 60)
			}
			for range 2 { // fuel set again is fuel again
				r.setFuel(x.fuel)
				began := time.Now()
				_, err := r.call("run", args...)
				if trapOf(err) != "wasm error: unreachable" || r.fuel() >= 0 {
					t.Fatalf("%v, fuel %d", err, r.fuel())
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("stopped after %s", took)
				}
			}
		})
	}
	for _, x := range []struct {
		file string
		op   int
	}{{cGuest, 107}, {cGuest, 109}, {rustGuest, 104}} {
		r := metered(t, file(t, x.file))
		r.setFuel(20e6)
		if _, err := r.op(x.op, "x"); err == nil {
			t.Errorf("%s op %d went on", x.file, x.op)
		}
	}
}

// ABI-1: a start section runs on the 20,000,000 that the global starts with, and not longer.
func TestStartSectionABI1(t *testing.T) {
	begin := func(parts ...any) []byte {
		return with(one("", "", code(nil, parts...)), func(m *built) { m.start = u32(0) })
	}
	if r := metered(t, begin(opNop)); r.fuel() != initialFuel-1 {
		t.Errorf("fuel %d after the start", r.fuel())
	}
	if _, err := tryStart(t, rewritten(t, begin(opLoop, typeEmpty, opBr, 0, opEnd))); err == nil {
		t.Error("an endless start section ended well")
	}
}
