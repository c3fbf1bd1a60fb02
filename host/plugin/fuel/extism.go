package fuel

import "slices"

// wrap adds one function for each exported function that has a budget, and the one that tells whether fuel was spent. Their
// indices begin where those of the original end, so no code of the guest can name them.
func (m *module) wrap(added *[sections]addition, fuel []byte, budgets map[string]int64) {
	var wrapped addition
	for _, e := range m.exports {
		budget, ok := budgets[e.name]
		if !ok || e.kind != kindFunc {
			continue
		}
		wrapped.add(appendU32(nil, e.index)...)
		code := append(appendS64([]byte{0, opI64Const}, max(budget, -1)), opGlobalSet)
		code = append(code, fuel...)
		for k := range m.typeOf(int(e.index)).params {
			code = appendU32(append(code, opLocalGet), uint32(k))
		}
		code = append(appendU32(append(code, opCall), e.index), opEnd)
		added[secFunction].add(appendU32(nil, m.funcs[e.index])...)
		added[secCode].add(append(appendU32(nil, uint32(len(code))), code...)...)
	}
	// Being exported was what allowed references to the wrapped functions; now a declarative segment of elements does.
	added[secElement].add(slices.Concat([]byte{3, 0}, appendU32(nil, uint32(wrapped.n)), wrapped.bytes)...)
	spent := slices.Concat([]byte{0, opGlobalGet}, fuel, []byte{opI64Const, 0, opI64LtS, opEnd})
	added[secType].add(0x60, 0, 1, typeI32)
	added[secFunction].add(appendU32(nil, uint32(len(m.types)))...)
	added[secCode].add(append(appendU32(nil, uint32(len(spent))), spent...)...)
	last := uint32(len(m.funcs) + added[secFunction].n - 1)
	added[secExport].add(exportEntry(spentExport, kindFunc, last)...)
}

// exportList is the section of exports with the wrappers under the names of what they wrap.
func (m *module) exportList(more addition, budgets map[string]int64) []byte {
	b := appendU32(nil, uint32(len(m.exports)+more.n))
	next := uint32(len(m.funcs))
	for _, e := range m.exports {
		index := e.index
		if _, ok := budgets[e.name]; ok && e.kind == kindFunc {
			index = next
			next++
		}
		b = append(b, exportEntry(e.name, e.kind, index)...)
	}
	return append(b, more.bytes...)
}
