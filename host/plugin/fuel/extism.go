package fuel

import "slices"

// Wrapper is a function that a guest of Extism gets besides its own: it sets the fuel, and calls one of the exports.
type Wrapper struct {
	Of     string // the export that it calls
	As     string // the name that it is exported under, which may be the same
	Budget int64  // that it sets; below zero: none
}

// wrap adds one function for each wrapper of a function that is exported, and the one that tells whether fuel was spent. Their
// indices begin where those of the original end, so no code of the guest can name them.
func (m *module) wrap(added *[sections]addition, fuel []byte, wrappers []Wrapper) {
	var wrapped addition
	for _, w := range wrappers {
		e, ok := m.exported(w.Of)
		if !ok {
			continue
		}
		wrapped.add(appendU32(nil, e.index)...)
		code := append(appendS64([]byte{0, opI64Const}, max(w.Budget, -1)), opGlobalSet)
		code = append(code, fuel...)
		for k := range m.typeOf(int(e.index)).params {
			code = appendU32(append(code, opLocalGet), uint32(k))
		}
		code = append(appendU32(append(code, opCall), e.index), opEnd)
		added[secExport].add(exportEntry(w.As, kindFunc, m.next(added))...)
		added[secFunction].add(appendU32(nil, m.funcs[e.index])...)
		added[secCode].add(append(appendU32(nil, uint32(len(code))), code...)...)
	}
	// Being exported was what allowed references to the wrapped functions; now a declarative segment of elements does.
	added[secElement].add(slices.Concat([]byte{3, 0}, appendU32(nil, uint32(wrapped.n)), wrapped.bytes)...)
	spent := slices.Concat([]byte{0, opGlobalGet}, fuel, []byte{opI64Const, 0, opI64LtS, opEnd})
	added[secType].add(0x60, 0, 1, typeI32)
	added[secExport].add(exportEntry(spentExport, kindFunc, m.next(added))...)
	added[secFunction].add(appendU32(nil, uint32(len(m.types)))...)
	added[secCode].add(append(appendU32(nil, uint32(len(spent))), spent...)...)
}

// next is the index that the next added function gets.
func (m *module) next(added *[sections]addition) uint32 {
	return uint32(len(m.funcs) + added[secFunction].n)
}

// exported returns the export of a function.
func (m *module) exported(name string) (export, bool) {
	for _, e := range m.exports {
		if e.name == name {
			return e, e.kind == kindFunc
		}
	}
	return export{}, false
}

// exportList is the section of exports: those of the module that no wrapper stands for, and the added ones. A name that a
// wrapper needs and that the module exports as something else is refused.
func (m *module) exportList(more addition, wrappers []Wrapper) []byte {
	var kept addition
	for _, e := range m.exports {
		of := func(w Wrapper) bool { return w.Of == e.name && e.kind == kindFunc }
		as := func(w Wrapper) bool { _, ok := m.exported(w.Of); return ok && w.As == e.name }
		switch {
		case slices.ContainsFunc(wrappers, of):
		case slices.ContainsFunc(wrappers, as):
			fail(FuelExported, 0, "exports %q, a name that the metering of Extism guests needs", e.name)
		default:
			kept.add(exportEntry(e.name, e.kind, e.index)...)
		}
	}
	return append(append(appendU32(nil, uint32(kept.n+more.n)), kept.bytes...), more.bytes...)
}
