package fuel

import "unicode/utf8"

// readElements reads the segments that fill tables.
func (m *module) readElements(r *reader) {
	for range r.count(maxItems, TooMany, "segments of elements") {
		start := r.at
		flags := r.u32()
		if flags > 7 {
			fail(Malformed, start, "there is no segment of elements of the form %d", flags)
		}
		active, explicit, expressions := flags&1 == 0, flags&2 != 0, flags&4 != 0
		table := 0
		if active {
			if explicit {
				table = r.index(len(m.tables), "table")
			} else if len(m.tables) == 0 {
				fail(IndexOutOfRange, start, "table 0 does not exist, the module has 0")
			}
			m.constant(r, typeI32)
		}
		element := typeFunc
		if flags&3 != 0 { // the form says what the entries are
			at := r.at
			if b := r.byte(); expressions {
				element = refType(b, at)
			} else if b != 0 {
				fail(Malformed, at, "there is no kind %d of elements", b)
			}
		}
		if active && m.tables[table].element != element {
			fail(TypeMismatch, start, "a segment of elements has another type than its table")
		}
		n := r.count(maxEntries-m.entries, TableTooLarge, "more entries in segments of elements")
		m.entries += n
		for range n {
			if expressions {
				m.constant(r, element)
			} else {
				m.declare(r.index(len(m.funcs), "function"))
			}
		}
		m.elements = append(m.elements, element)
	}
}

func (m *module) readDataCount(r *reader) {
	m.dataCount = int(r.u32())
}

func (m *module) readData(r *reader) {
	if n := len(r.b) - r.at; n > maxData {
		fail(DataTooLarge, r.at, "the module has %d bytes of data, at most %d are allowed", n, maxData)
	}
	m.data = r.count(maxSegs, TooMany, "segments of data")
	for range m.data {
		start := r.at
		switch flags := r.u32(); flags {
		case 0, 2:
			if flags == 2 {
				r.index(m.memories, "memory")
			} else if m.memories == 0 {
				fail(IndexOutOfRange, start, "memory 0 does not exist, the module has 0")
			}
			m.constant(r, typeI32)
		case 1:
		default:
			fail(Malformed, start, "there is no segment of data of the form %d", flags)
		}
		r.take(r.u32())
	}
}

// custom keeps the names of functions, if there are any and they are well-formed; a malformed custom section is no fault.
func (m *module) custom(r *reader) {
	if r.name() != "name" || len(r.b)-r.at > maxNames || m.names != nil {
		return
	}
	_ = guarded(func() {
		for !r.done() {
			id, part := r.byte(), r.part(r.u32())
			if id != 1 {
				continue
			}
			all := part.b[part.at:]
			for range part.count(maxFunctions, TooMany, "names") {
				part.u32()
				if !utf8.Valid(part.take(part.u32())) {
					return
				}
			}
			if part.done() {
				m.names = all
			}
			return
		}
	})
}
