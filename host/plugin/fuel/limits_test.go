package fuel

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
)

func rep(n int, parts ...any) []byte { return bytes.Repeat(cat(parts...), n) }

func many(n int, item []byte) [][]byte { return slices.Repeat([][]byte{item}, n) }

// nop is a function that does nothing.
func nop() *built { return one("", "", code(nil)) }

func with(m *built, change func(*built)) []byte {
	change(m)
	return m.bytes()
}

// functions is a module with n functions.
func functions(n int) []byte {
	return with(nop(), func(m *built) { m.funcs, m.bodies = many(n, []byte{0}), many(n, code(nil)) })
}

// body is a module whose function has that many bytes: locals, instructions and end.
func body(n int) []byte { return one("", "", code(nil, rep(n-2, opNop))).bytes() }

func locals(params, declared int) []byte {
	return one(strings.Repeat(vI, params), "", code(cat(1, u32(declared), typeI32))).bytes()
}

func nested(n int, open []byte, start ...any) []byte {
	return one(vI, "", code(nil, rep(n, open), cat(start...), rep(n, opEnd))).bytes()
}

// joins is 1,000 locals that change within that many nested ifs: a few KB that take wazero seconds when there are 490 of them.
func joins(n int) []byte {
	change := []byte{}
	for k := range 1000 {
		change = cat(change, opLocalGet, u32(k), i32c(1), 0x6a, opLocalSet, u32(k))
	}
	return one("", "", code(cat(1, u32(1000), typeI32), rep(n, opLocalGet, 0, opIf, typeEmpty), change, rep(n, opEnd), change)).bytes()
}

func table(limits ...any) []byte {
	return with(nop(), func(m *built) { m.tables = [][]byte{cat(typeFunc, cat(limits...))} })
}

// ABI-7, step 2: each limit, and the largest that is allowed.
func TestLimitsABI7(t *testing.T) {
	block, loop, branch := cat(opBlock, typeEmpty), cat(opLoop, typeEmpty), cat(opLocalGet, 0, opIf, typeEmpty)
	dispatch := cat(opLocalGet, 0, opBrTable, 1, 0, 0)
	for _, x := range []struct {
		name        string
		code        Code
		good, bad   []byte
		goodO, bad0 Options
	}{
		{name: "functions", code: TooManyFunctions, good: functions(20_000), bad: functions(20_001)},
		{name: "imported functions count", code: TooManyFunctions, bad: with(nop(), func(m *built) {
			m.imports = many(1, cat(str("weir"), str("f"), kindFunc, 0))
			m.funcs, m.bodies = many(20_000, []byte{0}), many(20_000, code(nil))
		})},
		{name: "body", code: BodyTooLarge, good: body(64 << 10), bad: body(64<<10 + 1)},
		{name: "strict body", code: BodyTooLarge, good: body(32 << 10), bad: body(32<<10 + 1), goodO: Options{BodyKiB: 32}, bad0: Options{BodyKiB: 32}},
		{name: "raised body", code: BodyTooLarge, good: body(512 << 10), bad: body(512<<10 + 1), goodO: Options{BodyKiB: 512}, bad0: Options{BodyKiB: 9999}},
		{name: "code", code: CodeTooLarge, good: with(nop(), func(m *built) {
			m.funcs, m.bodies = many(200, []byte{0}), many(200, code(nil, rep(64<<10-2, opNop)))
		}), bad: with(nop(), func(m *built) {
			m.funcs, m.bodies = many(256, []byte{0}), many(256, code(nil, rep(64<<10-2, opNop)))
		})},
		{name: "locals", code: TooManyLocals, good: locals(0, 1000), bad: locals(0, 1001)},
		{name: "parameters and locals", code: TooManyLocals, good: locals(10, 990), bad: locals(10, 991)},
		{name: "4 billion locals", code: TooManyLocals, bad: locals(0, 1<<32-1)},
		{name: "blocks", code: NestingTooDeep, good: nested(500, block), bad: nested(501, block)},
		{name: "loops", code: NestingTooDeep, good: nested(500, loop), bad: nested(501, loop)},
		{name: "ifs", code: NestingTooDeep, good: nested(500, branch), bad: nested(501, branch)},
		{name: "a switch in a loop", code: NestingTooDeep, good: nested(3_000, block, dispatch), bad: nested(4_001, block, dispatch)},
		{name: "loops around a switch", code: NestingTooDeep,
			good: one(vI, "", code(nil, rep(499, loop), rep(100, block), dispatch, rep(599, opEnd))).bytes(),
			bad:  one(vI, "", code(nil, rep(500, loop), rep(100, block), dispatch, rep(600, opEnd))).bytes()},
		{name: "if bomb", code: BodyTooComplex, good: one(vI, "", code(nil, rep(3_900, branch, opEnd))).bytes(), bad: one(vI, "", code(nil, rep(4_100, branch, opEnd))).bytes()},
		{name: "loop bomb", code: BodyTooComplex, bad: one("", "", code(nil, rep(20_000, loop, opEnd))).bytes()},
		{name: "call bomb", code: BodyTooComplex, bad: one("", strings.Repeat(vI, 64), code(nil, rep(20_000, opCall, 0), opUnreachable)).bytes()},
		{name: "join bomb", code: BodyTooComplex, good: joins(140), bad: joins(490)},
		{name: "data", code: DataTooLarge, good: with(nop(), func(m *built) { m.data = [][]byte{cat(1, str(strings.Repeat("x", 16<<20-9)))} }),
			bad: with(nop(), func(m *built) { m.data = [][]byte{cat(1, str(strings.Repeat("x", 16<<20)))} })},
		{name: "tables", code: TooManyTables, good: table(0, 1), bad: with(nop(), func(m *built) { m.tables = many(2, cat(typeFunc, 0, 1)) })},
		{name: "imported tables count", code: TooManyTables, bad: with(nop(), func(m *built) {
			m.imports = many(1, cat(str("m"), str("t"), kindTable, typeFunc, 1, 1, 1))
			m.tables = many(1, cat(typeFunc, 0, 1))
		})},
		{name: "imported table without a maximum", code: TableTooLarge, bad: with(nop(), func(m *built) {
			m.imports = many(1, cat(str("m"), str("t"), kindTable, typeFunc, 0, 1))
		})},
		{name: "table bomb", code: TableTooLarge, good: table(0, u32(65_536)), bad: table(0, u32(65_537))},
		{name: "memories", code: TooManyMemories, good: nop().bytes(), bad: with(nop(), func(m *built) { m.mems = many(2, []byte{0, 1}) })},
		{name: "memory", code: MemoryTooLarge, good: with(nop(), func(m *built) { m.mems[0] = cat(0, u32(512)) }), bad: with(nop(), func(m *built) { m.mems[0] = cat(0, u32(513)) })},
		{name: "memory by option", code: MemoryTooLarge, goodO: Options{MemoryPages: 20}, bad0: Options{MemoryPages: 20},
			good: with(nop(), func(m *built) { m.mems[0] = cat(0, 20) }), bad: with(nop(), func(m *built) { m.mems[0] = cat(0, 21) })},
		{name: "imported memory", code: MemoryTooLarge, bad: with(nop(), func(m *built) {
			m.imports, m.mems = many(1, cat(str("m"), str("m"), kindMemory, 0, u32(65_536))), nil
		})},
		{name: "types", code: TooMany, bad: with(nop(), func(m *built) { m.types = many(20_001, functype("", "")) })},
		{name: "globals", code: TooMany, good: with(nop(), func(m *built) { m.globals = many(1_000, cat(typeI32, 1, 0x41, 0, opEnd)) }),
			bad: with(nop(), func(m *built) { m.globals = many(1_001, cat(typeI32, 1, 0x41, 0, opEnd)) })},
		{name: "parameters of all types", code: TooMany, bad: with(nop(), func(m *built) { m.types = many(101, functype(strings.Repeat(vI, 1000), "")) })},
		{name: "locals of all functions", code: TooManyLocals, bad: with(nop(), func(m *built) {
			m.funcs, m.bodies = many(1_001, []byte{0}), many(1_001, code(cat(1, u32(1_000), typeI32)))
		})},
		{name: "entries of all segments", code: TableTooLarge, bad: with(nop(), func(m *built) {
			m.elems = many(2, cat(1, 0, u32(40_000), rep(40_000, 0)))
		})},
		{name: "results", code: TooMany, bad: one("", strings.Repeat(vI, 65), code(nil, opUnreachable)).bytes()},
	} {
		t.Run(x.name, func(t *testing.T) {
			if x.good != nil {
				if _, _, err := Rewrite(x.good, x.goodO); err != nil {
					t.Errorf("the largest that is allowed: %v", err)
				}
			}
			refused(t, x.bad, x.bad0, x.code)
		})
	}
}

// refused asserts the code, and a message that says what to do (PLG-14).
func refused(t *testing.T, wasm []byte, o Options, want Code) {
	t.Helper()
	out, _, err := Rewrite(wasm, o)
	e, ok := err.(*Error)
	if !ok || e.Code != want || out != nil {
		t.Fatalf("got %v, want the code %s", err, want)
	}
	if !strings.HasSuffix(e.Message, "; "+mends[want]) || !strings.HasSuffix(e.Error(), "("+string(want)+")") {
		t.Errorf("the message lacks its mend: %s", e.Error())
	}
	if e.Offset < 0 || e.Offset > len(wasm) {
		t.Errorf("the offset %d is not in the file", e.Offset)
	}
}

// PLG-14, ABI-7: files that are no modules, damaged ones, and features beyond WebAssembly 2.0.
func TestRefusedPLG14(t *testing.T) {
	simple := nop().bytes()
	raw := func(parts ...any) []byte { return one(vI, vI, code(nil, parts...)).bytes() }
	section := func(id int, parts ...any) []byte { return appendSection(slices.Clone(magic), id, cat(parts...)) }
	for _, x := range []struct {
		name string
		code Code
		wasm []byte
	}{
		{"empty", NotWasm, nil},
		{"text", NotWasm, []byte("name: acme\n")},
		{"half a header", Truncated, simple[:6]},
		{"component", Component, []byte("\x00asm\x0d\x00\x01\x00")},
		{"version", Malformed, []byte("\x00asm\x02\x00\x00\x00")},
		{"cut within a section", Truncated, simple[:len(simple)-1]},
		{"cut within a header", Truncated, append(slices.Clone(simple), secData)},
		{"a vector that lies", Truncated, section(secType, 0x64, 0x60, 0, 0)},
		{"a name that lies", Truncated, section(secImport, 1, 0xff, 0xff, 3)},
		{"data that lies", Truncated, with(nop(), func(m *built) { m.data = [][]byte{cat(1, 0xff, 0xff, 0xff, 0xff, 15)} })},
		{"six bytes of LEB", NumberInvalid, section(secType, 0x80, 0x80, 0x80, 0x80, 0x80, 0)},
		{"33 bits of LEB", NumberInvalid, section(secType, 0xff, 0xff, 0xff, 0xff, 0x1f)},
		{"i32 too wide", NumberInvalid, raw(opI32Const, 0xff, 0xff, 0xff, 0xff, 0x0f)},
		{"i64 too wide", NumberInvalid, raw(opI64Const, rep(9, 0xff), 0x7e)},
		{"longer form of an instruction", NumberInvalid, raw(opMisc, 0x8b, 0, 0)},
		{"order", SectionOrder, slices.Concat(magic, []byte{secMemory, 1, 0, secType, 1, 0})},
		{"twice", SectionOrder, slices.Concat(magic, []byte{secType, 1, 0, secType, 1, 0})},
		{"data count after code", SectionOrder, slices.Concat(magic, []byte{secCode, 1, 0, secDataCount, 1, 0})},
		{"unknown section", Malformed, section(77)},
		{"tag section", Unsupported, section(13)},
		{"rest of a section", Malformed, section(secType, 0, 0)},
		{"functions without code", Malformed, with(nop(), func(m *built) { m.bodies = nil })},
		{"code without functions", Malformed, with(nop(), func(m *built) { m.funcs, m.exports = nil, nil })},
		{"data not as counted", Malformed, with(nop(), func(m *built) { m.dataCount = u32(1) })},
		{"body with a rest", Malformed, raw(opLocalGet, 0, opEnd, opNop)},
		{"body without an end", Truncated, raw(opBlock, typeEmpty)},
		{"two exports of a name", Malformed, with(nop(), func(m *built) { m.exports = append(m.exports, m.exports[0]) })},
		{"bad UTF-8", Malformed, with(nop(), func(m *built) { m.exports = [][]byte{exported("\xff", 0, 0)} })},
		{"no such type", Malformed, one("a", "", code(nil)).bytes()},
		{"simd instruction", SIMD, raw(opVector, 12, rep(16, 0))},
		{"simd type", SIMD, one("\x7b", "", code(nil)).bytes()},
		{"simd local", SIMD, one("", "", code([]byte{1, 1, typeV128})).bytes()},
		{"simd initial value", SIMD, with(nop(), func(m *built) { m.globals = [][]byte{cat(typeI32, 0, opVector, 12, rep(16, 0), opEnd)} })},
		{"atomic", Threads, raw(opAtomic, 0, 2, 0)},
		{"shared memory", Threads, with(nop(), func(m *built) { m.mems[0] = []byte{3, 1, 1} })},
		{"memory64", Unsupported, with(nop(), func(m *built) { m.mems[0] = []byte{4, 1} })},
		{"tail call", TailCall, raw(opLocalGet, 0, opReturnCall, 0)},
		{"indirect tail call", TailCall, raw(opLocalGet, 0, opReturnCallIn, 0, 0)},
		{"call_ref", TailCall, raw(0x14, 0)},
		{"try", Unsupported, raw(0x06, typeEmpty)},
		{"try_table", Unsupported, raw(0x1f, typeEmpty, 0)},
		{"struct", Unsupported, raw(0xfb, 0)},
		{"typed reference", Unsupported, one("\x64", "", code(nil)).bytes()},
		{"table with a value", Unsupported, with(nop(), func(m *built) { m.tables = [][]byte{cat(typeEmpty, 0, typeFunc, 0, 1, opRefNull, typeFunc, opEnd)} })},
		{"extended constants", Unsupported, with(nop(), func(m *built) {
			m.globals = [][]byte{cat(typeI32, 0, i32c(1), i32c(1), 0x6a, opEnd)}
		})},
		{"memory 1", Unsupported, raw(opLocalGet, 0, opMemoryGrow, 1)},
		{"unknown instruction", OpcodeUnknown, raw(0xe0)},
		{"unknown second byte", OpcodeUnknown, raw(opMisc, 18)},
		{"type of an operand", TypeMismatch, raw(i64c(1))},
		{"no operand", TypeMismatch, raw(opDrop)},
		{"too much", TypeMismatch, raw(opLocalGet, 0, opLocalGet, 0)},
		{"constant set", TypeMismatch, with(one(vI, vI, code(nil, opLocalGet, 0, opGlobalSet, 0, opLocalGet, 0)), func(m *built) {
			m.globals = [][]byte{cat(typeI32, 0, i32c(1), opEnd)}
		})},
		{"initial value", TypeMismatch, with(nop(), func(m *built) { m.globals = [][]byte{cat(typeI32, 0, i64c(1), opEnd)} })},
		{"start with parameters", TypeMismatch, with(one(vI, "", code(nil)), func(m *built) { m.start = u32(0) })},
		{"weir_fuel", FuelExported, with(nop(), func(m *built) { m.exports = append(m.exports, exported(fuelExport, kindFunc, 0)) })},
		{"weir_fuel_spent", FuelExported, with(nop(), func(m *built) { m.exports = append(m.exports, exported(spentExport, kindMemory, 0)) })},
	} {
		t.Run(x.name, func(t *testing.T) {
			refused(t, x.wasm, Options{}, x.code)
		})
	}
}

// ABI-7: a file cut off anywhere is refused, except right before a section that may be absent.
func TestCutAnywhereABI7(t *testing.T) {
	wasm := file(t, cGuest)
	passed := 0
	for n := range len(wasm) {
		if _, _, err := Rewrite(wasm[:n], Options{}); err == nil {
			passed++
		}
	}
	if passed > 12 {
		t.Errorf("%d beginnings of a module are taken for modules", passed)
	}
}

// ABI-7: names of functions stay for stack traces, other custom sections go, and a malformed one is no reason to refuse.
func TestCustomSections(t *testing.T) {
	custom := func(name string, content ...any) []byte {
		return appendSection(nil, secCustom, str(name), cat(content...))
	}
	names := cat(1, 7, 1, 0, str("work"))
	trapping := one("", "", code(nil, opUnreachable)).bytes()
	for _, x := range []struct {
		section []byte
		kept    bool
	}{
		{custom("name", names), true}, {custom("name", 0, 2, str("m"), names), true}, {custom("name", 1, 7, 9, 0, str("work")), false},
		{custom("name", 1, 200, 0), false}, {custom(".debug_line", "work"), false}, {custom("weir.pack", "work"), false},
	} {
		wasm := rewritten(t, append(slices.Clone(trapping), x.section...))
		if kept := bytes.Contains(wasm, []byte("work")); kept != x.kept {
			t.Errorf("%q kept: %v", x.section, kept)
		}
		_, err := start(t, wasm).call("run")
		if named := strings.Contains(err.Error(), ".work()"); named != x.kept {
			t.Errorf("%q: the trace is %v", x.section, err)
		}
	}
}

// ABI-7: rewriting keeps nothing between calls, so many may run at once.
func TestAtOnce(t *testing.T) {
	wasm := file(t, rustGuest)
	want := rewritten(t, wasm)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, _, err := Rewrite(wasm, Options{}); err != nil || !bytes.Equal(got, want) {
				t.Error("another result at the same time")
			}
		})
	}
	all.Wait()
}

// ABI-7: a file of a header only passes here (it lacks its exports, which is for the host to see) and stays valid.
func TestHeaderOnly(t *testing.T) {
	start(t, rewritten(t, magic))
}
