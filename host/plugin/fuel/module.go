package fuel

import "bytes"

// Limits of a module (ABI-7, step 2).
const (
	maxCode      = 16 << 20
	maxFunctions = 20_000
	maxLocals    = 1_000
	maxNesting   = 500
	maxData      = 16 << 20
	maxTables    = 1
	maxEntries   = 65_536
	maxMemories  = 1
	maxPages     = 65_536 // of a 32-bit memory
	pageKiB      = 64
)

// Limits that ABI-7 does not name, so that no list costs much more memory or compile time than its bytes. Real guests stay
// far below.
const (
	maxItems   = 20_000 // types, imports, exports, segments of elements
	maxSegs    = 100_000
	maxGlobals = 1_000
	maxTypes   = 100_000   // parameters and results of all types
	allLocals  = 1_000_000 // of all functions: a few bytes declare a thousand
	maxResults = 64
	maxArms    = 4_000 // nesting with the arms of switches
	maxNames   = 1 << 20
	maxEdges   = 12_000  // of control flow in a body of up to 64 KiB, metered: compile time grows with its square
	maxMerged  = 150_000 // values of locals joined in such a body
	maxMoved   = 400_000 // values passed by calls and branches in such a body
)

// The sections, numbered as in the file. dataCount stands before code.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	sections
)

// order is the place of each section in a file.
var order = [sections]int{
	secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secGlobal: 6, secExport: 7, secStart: 8,
	secElement: 9, secDataCount: 10, secCode: 11, secData: 12,
}

// The kinds of imports and exports.
const (
	kindFunc byte = iota
	kindTable
	kindMemory
	kindGlobal
)

type funcType struct{ params, results []byte }

type tableType struct {
	element  byte
	min, max uint32
	bounded  bool
}

type globalType struct {
	value   byte
	mutable bool
}

type export struct {
	name  string
	kind  byte
	index uint32
}

// module is what the original declares. Its counts are the ones that every index is held against.
type module struct {
	o     Options
	parts [sections]*reader // content of each section, nil: absent

	types           []funcType
	funcs           []uint32 // their types, imported first
	importedFuncs   int
	tables          []tableType
	importedTables  int
	memories        int
	globals         []globalType
	variables       int // globals that can be set
	importedGlobals int
	exports         []export
	elements        []byte // the type of each segment
	dataCount       int    // of the section of that name, -1: absent
	data            int
	entries         int    // of all segments of elements
	declared        []bool // functions that code may make a reference to
	names           []byte // of functions: the content of that part of the section "name"
}

// magic is "\0asm" and version 1; a component has another layer in the upper half of the version.
var magic = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// split cuts the file into sections.
func (m *module) split(wasm []byte) {
	switch {
	case len(wasm) < 4 || !bytes.Equal(wasm[:4], magic[:4]):
		fail(NotWasm, 0, "this is not a WebAssembly module")
	case len(wasm) < 8:
		fail(Truncated, len(wasm), "the module is cut off within its header")
	case wasm[6] != 0 || wasm[7] != 0:
		fail(Component, 4, "this is a WebAssembly component")
	case !bytes.Equal(wasm[:8], magic):
		fail(Malformed, 4, "the module has the unknown version %d", wasm[4])
	}
	r := &reader{b: wasm, at: 8}
	last := 0
	for !r.done() {
		start := r.at
		id := r.byte()
		part := r.part(r.u32())
		switch {
		case id == secCustom:
			m.custom(part)
		case id == 13:
			fail(Unsupported, start, "the module uses exceptions")
		case id >= sections:
			fail(Malformed, start, "the module has an unknown section %d", id)
		case order[id] <= last:
			fail(SectionOrder, start, "the module has section %d twice or at the wrong place", id)
		default:
			last = order[id]
			m.parts[id] = part
		}
	}
}

// parse reads all sections but the code. Those that others point at come first in the file.
func (m *module) parse() {
	m.dataCount = -1
	for _, s := range []struct {
		id   int
		name string
		read func(*reader)
	}{
		{secType, "the section of types", m.readTypes},
		{secImport, "the section of imports", m.readImports},
		{secFunction, "the section of functions", m.readFunctions},
		{secTable, "the section of tables", m.readTables},
		{secMemory, "the section of memories", m.readMemories},
		{secGlobal, "the section of globals", m.readGlobals},
		{secExport, "the section of exports", m.readExports},
		{secStart, "the section of the start function", m.readStart},
		{secElement, "the section of elements", m.readElements},
		{secDataCount, "the count of data", m.readDataCount},
		{secData, "the section of data", m.readData},
	} {
		if part := m.parts[s.id]; part != nil {
			r := *part
			s.read(&r)
			r.end(s.name)
		}
	}
	if m.dataCount >= 0 && m.dataCount != m.data {
		fail(Malformed, 0, "the module announces %d segments of data and has %d", m.dataCount, m.data)
	}
}

// index reads an index and holds it against a count of the original.
func (r *reader) index(count int, what string) int {
	start := r.at
	n := r.u32()
	if int64(n) >= int64(count) {
		fail(IndexOutOfRange, start, "%s %d does not exist, the module has %d", what, n, count)
	}
	return int(n)
}

func (m *module) typeOf(function int) funcType { return m.types[m.funcs[function]] }

func valueType(b byte, offset int) byte {
	switch b {
	case typeI32, typeI64, typeF32, typeF64, typeFunc, typeExt:
		return b
	case typeV128:
		fail(SIMD, offset, "the module uses SIMD values")
	case 0x69, 0x63, 0x64, 0x6e, 0x6d, 0x6c, 0x6b, 0x6a, 0x71, 0x72, 0x73, 0x74:
		fail(Unsupported, offset, "the module uses typed or garbage-collected references")
	}
	fail(Malformed, offset, "there is no value type 0x%02x", b)
	return 0
}

func refType(b byte, offset int) byte {
	if valueType(b, offset) != typeFunc && b != typeExt {
		fail(Malformed, offset, "0x%02x is no reference type", b)
	}
	return b
}
