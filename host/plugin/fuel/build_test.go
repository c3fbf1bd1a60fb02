package fuel

import "slices"

// built is a module under construction: the raw items of each section.
type built struct {
	types, imports, funcs, tables, mems, globals, exports, elems, bodies, data [][]byte
	start, dataCount                                                           []byte
	tail                                                                       []byte
}

// vec is a list as the binary format has it.
func vec(items ...[]byte) []byte {
	return append(appendU32(nil, uint32(len(items))), slices.Concat(items...)...)
}

func str(s string) []byte { return append(appendU32(nil, uint32(len(s))), s...) }

func u32(n int) []byte { return appendU32(nil, uint32(n)) }

func cat(parts ...any) (b []byte) {
	for _, p := range parts {
		switch x := p.(type) {
		case int:
			b = append(b, byte(x))
		case byte:
			b = append(b, x)
		case []byte:
			b = append(b, x...)
		case string:
			b = append(b, x...)
		default:
			panic("cat: unknown part")
		}
	}
	return b
}

// functype takes the types as strings of i, l, f, d.
func functype(params, results string) []byte {
	return cat(0x60, u32(len(params)), params, u32(len(results)), results)
}

// code is a body: groups of locals, then instructions; the end is added.
func code(locals []byte, parts ...any) []byte {
	if locals == nil {
		locals = []byte{0}
	}
	b := cat(locals, cat(parts...), opEnd)
	return cat(u32(len(b)), b)
}

func exported(name string, kind byte, index int) []byte { return cat(str(name), kind, u32(index)) }

func i32c(n int32) []byte { return appendS64([]byte{opI32Const}, int64(n)) }

func i64c(n int64) []byte { return appendS64([]byte{opI64Const}, n) }

func (m *built) bytes() []byte {
	out := slices.Clone(magic)
	section := func(id int, content []byte) { out = appendSection(out, id, content) }
	list := func(id int, items [][]byte) {
		if items != nil {
			section(id, vec(items...))
		}
	}
	list(secType, m.types)
	list(secImport, m.imports)
	list(secFunction, m.funcs)
	list(secTable, m.tables)
	list(secMemory, m.mems)
	list(secGlobal, m.globals)
	list(secExport, m.exports)
	if m.start != nil {
		section(secStart, m.start)
	}
	list(secElement, m.elems)
	if m.dataCount != nil {
		section(secDataCount, m.dataCount)
	}
	list(secCode, m.bodies)
	list(secData, m.data)
	return append(out, m.tail...)
}

// one is a module with one function of that type, exported as "run", and one memory of a page, exported as "memory".
func one(params, results string, body []byte) *built {
	return &built{
		types: [][]byte{functype(params, results)}, funcs: [][]byte{{0}}, mems: [][]byte{{0, 1}},
		exports: [][]byte{exported("run", kindFunc, 0), exported("memory", kindMemory, 0)}, bodies: [][]byte{body},
	}
}
