package fuel

import "testing"

// full has exactly one of everything, so that each index 1 is the first that does not exist: after metering it would be the
// fuel global, or for Extism a wrapper, its type, or the segment that declares it.
func full(parts ...any) *built {
	return &built{
		types: [][]byte{functype("", "")}, funcs: [][]byte{{0}}, tables: [][]byte{cat(typeFunc, 0, 1)}, mems: [][]byte{{0, 1}},
		globals: [][]byte{cat(typeI64, 1, i64c(0), opEnd)}, exports: [][]byte{exported("weir_plan", kindFunc, 0)},
		elems: [][]byte{cat(1, 0, 1, 0)}, dataCount: u32(1), bodies: [][]byte{code([]byte{1, 1, typeI32}, parts...)},
		data: [][]byte{cat(1, 0)},
	}
}

// ABI-7, ABI-13: whatever names something beyond the original's counts is refused, above all the fuel global by its index.
func TestIndicesABI13(t *testing.T) {
	zeros := cat(i32c(0), i32c(0), i32c(0))
	for _, x := range []struct {
		name string
		code []byte
	}{
		{"global.set of the fuel", cat(i64c(1<<40), opGlobalSet, 1)},
		{"global.set of the fuel, written longer", cat(i64c(1<<40), opGlobalSet, 0x81, 0)},
		{"global.set of the fuel in a loop", cat(opLoop, typeEmpty, i64c(1<<40), opGlobalSet, 1, opBr, 0, opEnd)},
		{"global.set in code that is never reached", cat(opUnreachable, opGlobalSet, 1)},
		{"global.get", cat(opGlobalGet, 1, opDrop)},
		{"global.get far off", cat(opGlobalGet, 0xff, 0xff, 0xff, 0xff, 0x0f, opDrop)},
		{"local.get", cat(opLocalGet, 1, opDrop)},
		{"local.set of the added local", cat(i32c(0), opLocalSet, 1, zeros, opMisc, miscMemoryFill, 0)},
		{"local.tee", cat(i32c(0), opLocalTee, 1, opDrop)},
		{"call", cat(opCall, 1)},
		{"ref.func", cat(opRefFunc, 1, opDrop)},
		{"call_indirect type", cat(i32c(0), opCallIndirect, 1, 0)},
		{"call_indirect table", cat(i32c(0), opCallIndirect, 0, 1)},
		{"block type", cat(opBlock, 1, opEnd)},
		{"loop type", cat(opLoop, 1, opEnd)},
		{"if type", cat(i32c(0), opIf, 1, opEnd)},
		{"br", cat(opBr, 1)},
		{"br_if", cat(i32c(0), opBrIf, 1)},
		{"br_table", cat(i32c(0), opBrTable, 1, 1, 0)},
		{"br_table default", cat(i32c(0), opBrTable, 1, 0, 1)},
		{"table.get", cat(i32c(0), opTableGet, 1, opDrop)},
		{"table.set", cat(i32c(0), opRefNull, typeFunc, opTableSet, 1)},
		{"table.size", cat(opMisc, miscTableSize, 1, opDrop)},
		{"table.grow", cat(opRefNull, typeFunc, i32c(0), opMisc, miscTableGrow, 1, opDrop)},
		{"table.fill", cat(i32c(0), opRefNull, typeFunc, i32c(0), opMisc, miscTableFill, 1)},
		{"table.copy to", cat(zeros, opMisc, miscTableCopy, 1, 0)},
		{"table.copy from", cat(zeros, opMisc, miscTableCopy, 0, 1)},
		{"table.init segment", cat(zeros, opMisc, miscTableInit, 1, 0)},
		{"table.init table", cat(zeros, opMisc, miscTableInit, 0, 1)},
		{"elem.drop", cat(opMisc, miscElemDrop, 1)},
		{"memory.init segment", cat(zeros, opMisc, miscMemoryInit, 1, 0)},
		{"data.drop", cat(opMisc, miscDataDrop, 1)},
	} {
		t.Run(x.name, func(t *testing.T) {
			wasm := full(x.code).bytes()
			refused(t, wasm, Options{}, IndexOutOfRange)
			if _, _, err := RewriteExtism(wasm, Options{}, same("weir_plan", 1)); err == nil {
				t.Error("accepted for Extism")
			}
		})
	}
	for _, x := range []struct {
		name   string
		change func(*built)
	}{
		{"export of a function", func(m *built) { m.exports = [][]byte{exported("x", kindFunc, 1)} }},
		{"export of a table", func(m *built) { m.exports = [][]byte{exported("x", kindTable, 1)} }},
		{"export of a memory", func(m *built) { m.exports = [][]byte{exported("x", kindMemory, 1)} }},
		{"export of a global", func(m *built) { m.exports = [][]byte{exported("x", kindGlobal, 1)} }},
		{"start", func(m *built) { m.start = u32(1) }},
		{"type of a function", func(m *built) { m.funcs = [][]byte{{1}} }},
		{"type of an import", func(m *built) { m.imports = [][]byte{cat(str("m"), str("f"), kindFunc, 1)} }},
		{"initial value of a global", func(m *built) { m.globals = append(m.globals, cat(typeI64, 0, opGlobalGet, 1, opEnd)) }},
		{"initial value from an own global", func(m *built) { m.globals = append(m.globals, cat(typeI64, 0, opGlobalGet, 0, opEnd)) }},
		{"initial reference", func(m *built) { m.globals = append(m.globals, cat(typeFunc, 0, opRefFunc, 1, opEnd)) }},
		{"element", func(m *built) { m.elems = [][]byte{cat(1, 0, 1, 1)} }},
		{"element expression", func(m *built) { m.elems = [][]byte{cat(5, typeFunc, 1, opRefFunc, 1, opEnd)} }},
		{"element table", func(m *built) { m.elems = [][]byte{cat(2, 1, i32c(0), opEnd, 0, 1, 0)} }},
		{"element offset", func(m *built) { m.elems = [][]byte{cat(0, opGlobalGet, 1, opEnd, 1, 0)} }},
		{"data memory", func(m *built) { m.data = [][]byte{cat(2, 1, i32c(0), opEnd, 0)} }},
		{"data offset", func(m *built) { m.data = [][]byte{cat(0, opGlobalGet, 1, opEnd, 0)} }},
	} {
		t.Run(x.name, func(t *testing.T) {
			m := full()
			x.change(m)
			refused(t, m.bytes(), Options{}, IndexOutOfRange)
		})
	}
	t.Run("all in range", func(t *testing.T) {
		start(t, rewritten(t, full(i64c(5), opGlobalSet, 0, opBlock, 0, opEnd, opMisc, miscElemDrop, 0, opMisc, miscDataDrop, 0).bytes()))
	})
	t.Run("without a memory or table", func(t *testing.T) {
		for _, parts := range [][]byte{
			cat(i32c(0), 0x28, 2, 0, opDrop), cat(opMemorySize, 0, opDrop), cat(i32c(0), opMemoryGrow, 0, opDrop),
			cat(zeros, opMisc, miscMemoryFill, 0), cat(i32c(0), opCallIndirect, 0, 0),
		} {
			m := one("", "", code(nil, parts))
			m.mems, m.exports = nil, nil
			refused(t, m.bytes(), Options{}, IndexOutOfRange)
		}
	})
}

// ABI-7: no index of the guest moves, so its own globals keep their place and value.
func TestOwnGlobalsABI7(t *testing.T) {
	m := full(i64c(77), opGlobalSet, 0)
	m.exports = append(m.exports, exported("own", kindGlobal, 0))
	wasm := rewritten(t, m.bytes())
	r := start(t, wasm)
	if _, err := r.call("weir_plan"); err != nil {
		t.Fatal(err)
	}
	if own := r.mod.ExportedGlobal("own").Get(); own != 77 || r.fuel() != initialFuel-1 {
		t.Errorf("own global %d, fuel %d", own, r.fuel())
	}
}
