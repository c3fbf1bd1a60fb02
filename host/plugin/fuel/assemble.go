package fuel

import "slices"

// addition is what is appended to the list of a section.
type addition struct {
	n     int
	bytes []byte
}

func (a *addition) add(b ...byte) {
	a.n++
	a.bytes = append(a.bytes, b...)
}

// assemble writes the metered module: the original's sections, with what is added at the end of their lists.
func (m *module) assemble(report *Report, wrappers []Wrapper) []byte {
	w := &walker{m: m, report: report, meter: newMeter(len(m.globals))}
	var code []byte
	bodies := 0
	if part := m.parts[secCode]; part != nil {
		r := *part
		code, bodies = w.section(&r)
	} else if n := len(m.funcs) - m.importedFuncs; n > 0 {
		fail(Malformed, 0, "the module declares %d functions and has the code of 0", n)
	}
	var added [sections]addition
	added[secGlobal].add(append(appendS64([]byte{typeI64, 1, opI64Const}, initialFuel), opEnd)...)
	added[secExport].add(exportEntry(fuelExport, kindGlobal, uint32(len(m.globals)))...)
	if wrappers != nil {
		m.wrap(&added, w.fuel, wrappers)
	}
	out := slices.Grow(append([]byte{}, magic...), report.Before+report.Before/8)
	for _, id := range []int{
		secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport, secStart, secElement, secDataCount, secCode, secData,
	} {
		part, more := m.parts[id], added[id]
		switch {
		case id == secCode && bodies+more.n > 0:
			out = appendSection(out, id, appendU32(nil, uint32(bodies+more.n)), code, more.bytes)
		case id == secTable && part != nil:
			out = appendSection(out, id, m.boundedTables())
		case id == secExport && wrappers != nil:
			out = appendSection(out, id, m.exportList(added[id], wrappers))
		case part == nil && more.n > 0:
			out = appendSection(out, id, appendU32(nil, uint32(more.n)), more.bytes)
		case part != nil && more.n > 0:
			r := *part
			n := r.u32()
			out = appendSection(out, id, appendU32(nil, n+uint32(more.n)), r.b[r.at:], more.bytes)
		case part != nil:
			out = appendSection(out, id, part.b[part.at:])
		}
	}
	if m.names != nil {
		out = appendSection(out, secCustom, []byte("\x04name\x01"), appendU32(nil, uint32(len(m.names))), m.names)
	}
	return out
}

func appendSection(out []byte, id int, parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	out = appendU32(append(out, byte(id)), uint32(size))
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func exportEntry(name string, kind byte, index uint32) []byte {
	b := append(appendU32(nil, uint32(len(name))), name...)
	return appendU32(append(b, kind), index)
}

// boundedTables is the section of tables with a maximum that keeps growth within what ABI-7 allows a table to have.
func (m *module) boundedTables() []byte {
	own := m.tables[m.importedTables:]
	b := appendU32(nil, uint32(len(own)))
	for _, t := range own {
		most := uint32(maxEntries)
		if t.bounded {
			most = min(most, t.max)
		}
		b = append(b, t.element, 1)
		b = appendU32(appendU32(b, t.min), most)
	}
	return b
}
