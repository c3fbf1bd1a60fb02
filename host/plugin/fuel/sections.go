package fuel

// The sections before the code, each held against what stands before it.

func (m *module) readTypes(r *reader) {
	all := 0
	for range r.count(maxItems, TooMany, "types") {
		start := r.at
		switch form := r.byte(); form {
		case 0x60:
		case 0x4e, 0x4f, 0x50, 0x5f, 0x5e:
			fail(Unsupported, start, "the module uses garbage-collected types")
		default:
			fail(Malformed, start, "there is no type of the form 0x%02x", form)
		}
		params := r.valueTypes(maxLocals, TooManyLocals, "parameters in one type")
		results := r.valueTypes(maxResults, TooMany, "results in one type")
		if all += len(params) + len(results); all > maxTypes {
			fail(TooMany, start, "the types of the module have more than %d parameters and results", maxTypes)
		}
		m.types = append(m.types, funcType{params, results})
	}
}

func (r *reader) valueTypes(most int, code Code, what string) []byte {
	start := r.at
	b := r.take(uint32(r.count(most, code, what)))
	for _, t := range b {
		valueType(t, start)
	}
	return b
}

func (m *module) readImports(r *reader) {
	for range r.count(maxItems, TooMany, "imports") {
		start := r.at
		if r.name() == "" {
			fail(Malformed, start, "an import names no module")
		}
		r.name()
		switch kind := r.byte(); kind {
		case kindFunc:
			m.funcs = append(m.funcs, uint32(r.index(len(m.types), "type")))
		case kindTable:
			m.tables = append(m.tables, r.table())
			if t := m.tables[len(m.tables)-1]; !t.bounded || t.max > maxEntries {
				fail(TableTooLarge, start, "the module imports a table that may grow beyond %d entries", maxEntries)
			}
		case kindMemory:
			r.memory(m)
		case kindGlobal:
			m.addGlobal(r.global())
		case 4:
			fail(Unsupported, start, "the module uses exceptions")
		default:
			fail(Malformed, start, "there is no kind %d of import", kind)
		}
	}
	m.importedFuncs, m.importedTables, m.importedGlobals = len(m.funcs), len(m.tables), len(m.globals)
	m.checkCounts(r.at)
}

// checkCounts holds the number of tables, memories, globals and functions against the limits.
func (m *module) checkCounts(offset int) {
	for _, x := range []struct {
		n, most int
		code    Code
		what    string
	}{
		{len(m.funcs), maxFunctions, TooManyFunctions, "functions"}, {len(m.tables), maxTables, TooManyTables, "tables"},
		{m.memories, maxMemories, TooManyMemories, "memories"}, {len(m.globals), maxGlobals, TooMany, "globals"},
	} {
		if x.n > x.most {
			fail(x.code, offset, "the module has %d %s, at most %d are allowed", x.n, x.what, x.most)
		}
	}
}

func (m *module) readFunctions(r *reader) {
	for range r.count(maxFunctions, TooManyFunctions, "functions") {
		m.funcs = append(m.funcs, uint32(r.index(len(m.types), "type")))
	}
	m.checkCounts(r.at)
}

func (m *module) readTables(r *reader) {
	for range r.count(maxTables, TooManyTables, "tables") {
		m.tables = append(m.tables, r.table())
	}
	m.checkCounts(r.at)
}

func (m *module) readMemories(r *reader) {
	for range r.count(maxMemories, TooManyMemories, "memories") {
		r.memory(m)
	}
	m.checkCounts(r.at)
}

func (r *reader) table() tableType {
	start := r.at
	if b := r.byte(); b == typeEmpty {
		fail(Unsupported, start, "the module has a table with an initial value")
	}
	t := tableType{element: refType(r.b[start], start)}
	t.min, t.max, t.bounded = r.limits()
	if t.min > maxEntries {
		fail(TableTooLarge, start, "the module has a table of %d entries, at most %d are allowed", t.min, maxEntries)
	}
	return t
}

func (r *reader) memory(m *module) {
	start := r.at
	least, most, bounded := r.limits()
	if least > m.o.pages() {
		fail(MemoryTooLarge, start, "the module asks for %d pages of 64 KiB at its start, at most %d are allowed", least, m.o.pages())
	}
	if bounded && most > maxPages {
		fail(Malformed, start, "a memory has at most %d pages", maxPages)
	}
	m.memories++
}

func (r *reader) limits() (least, most uint32, bounded bool) {
	start := r.at
	switch flags := r.byte(); flags {
	case 0, 1:
		bounded = flags == 1
	case 2, 3:
		fail(Threads, start, "the module uses shared memory")
	case 4, 5, 6, 7:
		fail(Unsupported, start, "the module uses 64-bit memory")
	default:
		fail(Malformed, start, "there are no limits of the form 0x%02x", flags)
	}
	least = r.u32()
	if bounded {
		if most = r.u32(); most < least {
			fail(Malformed, start, "a minimum is above its maximum")
		}
	}
	return least, most, bounded
}

func (r *reader) global() globalType {
	start := r.at
	t := globalType{value: valueType(r.byte(), start)}
	switch r.byte() {
	case 0:
	case 1:
		t.mutable = true
	default:
		fail(Malformed, start, "a global is neither constant nor variable")
	}
	return t
}

func (m *module) addGlobal(t globalType) {
	m.globals = append(m.globals, t)
	if t.mutable {
		m.variables++
	}
}

func (m *module) readGlobals(r *reader) {
	m.declared = make([]bool, len(m.funcs))
	for range r.count(maxGlobals, TooMany, "globals") {
		t := r.global()
		m.constant(r, t.value)
		m.addGlobal(t)
	}
	m.checkCounts(r.at)
}

// constant reads an initial value: one instruction and an end. It can read imported constants only.
func (m *module) constant(r *reader, want byte) {
	start := r.at
	var has byte
	switch op := r.byte(); op {
	case opI32Const:
		r.signed(32)
		has = typeI32
	case opI64Const:
		r.signed(64)
		has = typeI64
	case opF32Const:
		r.take(4)
		has = typeF32
	case opF64Const:
		r.take(8)
		has = typeF64
	case opRefNull:
		has = refType(r.byte(), start)
	case opRefFunc:
		m.declare(r.index(len(m.funcs), "function"))
		has = typeFunc
	case opGlobalGet:
		g := m.globals[r.index(m.importedGlobals, "imported global")]
		if g.mutable {
			fail(Malformed, start, "an initial value reads a variable")
		}
		has = g.value
	case opVector:
		fail(SIMD, start, "the module uses SIMD values")
	default:
		fail(Malformed, start, "an initial value is computed by instruction 0x%02x", op)
	}
	if has != want {
		fail(TypeMismatch, start, "an initial value has the type 0x%02x instead of 0x%02x", has, want)
	}
	switch op := r.byte(); op {
	case opEnd:
	case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e, opI32Const, opI64Const, opGlobalGet:
		fail(Unsupported, start, "the module uses extended constant expressions")
	default:
		fail(Malformed, start, "an initial value does not end")
	}
}

func (m *module) declare(function int) {
	if m.declared == nil {
		m.declared = make([]bool, len(m.funcs))
	}
	m.declared[function] = true
}

func (m *module) readExports(r *reader) {
	seen := map[string]bool{}
	for range r.count(maxItems, TooMany, "exports") {
		start := r.at
		e := export{name: r.name(), kind: r.byte()}
		if seen[e.name] {
			fail(Malformed, start, "the module exports %q twice", e.name)
		}
		seen[e.name] = true
		if e.name == fuelExport || e.name == spentExport {
			fail(FuelExported, start, "the module exports %s, a name that is the host's", e.name)
		}
		switch e.kind {
		case kindFunc:
			e.index = uint32(r.index(len(m.funcs), "function"))
			m.declare(int(e.index))
		case kindTable:
			e.index = uint32(r.index(len(m.tables), "table"))
		case kindMemory:
			e.index = uint32(r.index(m.memories, "memory"))
		case kindGlobal:
			e.index = uint32(r.index(len(m.globals), "global"))
		case 4:
			fail(Unsupported, start, "the module uses exceptions")
		default:
			fail(Malformed, start, "there is no kind %d of export", e.kind)
		}
		m.exports = append(m.exports, e)
	}
}

func (m *module) readStart(r *reader) {
	start := r.at
	if t := m.typeOf(r.index(len(m.funcs), "function")); len(t.params)+len(t.results) > 0 {
		fail(TypeMismatch, start, "the start function has parameters or results")
	}
}
