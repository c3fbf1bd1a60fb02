package sdktest

import (
	"encoding/binary"
	"slices"
	"strings"
)

// module describes a guest of a few hundred bytes, down to the code of its functions. Its function weir_call answers describe
// with the manifest, configure with nothing, and every other operation by call.
type module struct {
	manifest string
	answer   string // what the other operations answer, when there is no call
	abi      byte   // 0: 1
	imports  []imported
	call     []byte // code for the other operations; leaves an i64
	describe []byte // code for describe; leaves an i64
	alloc    []byte // code of weir_alloc; leaves an i32
	init     []byte // code of _initialize; leaves nothing
	start    bool   // _initialize is the start section's function, and not exported
	more     [][]byte
	without  string // an export that is missing
	mistyped string // an export that has the type of weir_abi
	alias    []byte // one more export: kind and index, under aliasAs
	aliasAs  string
	pages    uint64
	tables   []uint64 // entries of each
	globals  int      // mutable i64s
	locals   uint64   // of weir_call
	memory2  bool
}

// imported is an imported function.
type imported struct {
	module, name string
	kind         byte // index of its type in types
}

// The types that every module has.
const (
	typeAnswersI32 = iota // () -> i32
	typeAlloc             // i32 -> i32
	typeCall              // i32 i32 -> i64
	typeNothing           // () -> ()
	typeTakesI32          // i32 -> ()
	typeLog               // i32 i32 i32 -> ()
	typeRandom            // i32 i32 -> i32
)

var types = [][]byte{
	{0x60, 0, 1, 0x7f}, {0x60, 1, 0x7f, 1, 0x7f}, {0x60, 2, 0x7f, 0x7f, 1, 0x7e}, {0x60, 0, 0}, {0x60, 1, 0x7f, 0},
	{0x60, 3, 0x7f, 0x7f, 0x7f, 0}, {0x60, 2, 0x7f, 0x7f, 1, 0x7f},
}

// Where things lie in a module's memory.
const (
	textAt   = 16
	bufferAt = 3 << 16
	pages    = 8
)

var header = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

func (m *module) wasm() []byte {
	b := slices.Clone(header)
	b = section(b, 1, vector(types...))
	if len(m.imports) > 0 {
		var list [][]byte
		for _, im := range m.imports {
			list = append(list, slices.Concat(name(im.module), name(im.name), []byte{0, im.kind}))
		}
		b = section(b, 2, vector(list...))
	}
	own := [][]byte{{typeAnswersI32}, {typeAlloc}, {typeCall}, {typeNothing}}
	for range m.more {
		own = append(own, []byte{typeNothing})
	}
	b = section(b, 3, vector(own...))
	if len(m.tables) > 0 {
		var list [][]byte
		for _, n := range m.tables {
			list = append(list, append([]byte{0x70, 0}, uleb(n)...))
		}
		b = section(b, 4, vector(list...))
	}
	memories := [][]byte{append([]byte{0}, uleb(max(m.pages, pages))...)}
	if m.memory2 {
		memories = append(memories, []byte{0, 1})
	}
	b = section(b, 5, vector(memories...))
	if m.globals > 0 {
		b = section(b, 6, vector(slices.Repeat([][]byte{{0x7e, 1, 0x42, 0, 0x0b}}, m.globals)...))
	}
	b = section(b, 7, m.exports())
	if m.start {
		b = section(b, 8, uleb(uint64(len(m.imports)+3)))
	}
	b = section(b, 10, m.code())
	text := m.manifest + m.answer
	return section(b, 11, vector(slices.Concat([]byte{0, 0x41, textAt, 0x0b}, uleb(uint64(len(text))), []byte(text))))
}

func (m *module) exports() []byte {
	first := byte(len(m.imports))
	var list [][]byte
	for i, n := range []string{"weir_abi", "weir_alloc", "weir_call", "_initialize", "memory"} {
		kind, index := byte(0), first+byte(i)
		if n == "memory" {
			kind, index = 2, 0
		}
		if n == m.mistyped {
			kind, index = 0, first
		}
		if n != m.without && (n != "_initialize" || !m.start) {
			list = append(list, append(name(n), kind, index))
		}
	}
	if m.alias != nil {
		list = append(list, append(name(m.aliasAs), m.alias...))
	}
	return vector(list...)
}

func (m *module) code() []byte {
	call := m.call
	if call == nil {
		call = place(0, 0)
		if m.answer != "" {
			call = place(textAt+uint64(len(m.manifest)), uint64(len(m.answer)))
		}
	}
	describe := m.describe
	if describe == nil {
		describe = place(textAt, uint64(len(m.manifest)))
	}
	alloc := m.alloc
	if alloc == nil {
		alloc = i32const(bufferAt)
	}
	// if op == 1 then describe else if op == 2 then 0 else call
	whole := slices.Concat([]byte{0x20, 0, 0x41, 1, 0x46, 0x04, 0x7e}, describe,
		[]byte{0x05, 0x20, 0, 0x41, 2, 0x46, 0x04, 0x7e, 0x42, 0, 0x05}, call, []byte{0x0b, 0x0b})
	bodies := [][]byte{body([]byte{0x41, max(m.abi, 1)}, 0), body(alloc, 0), body(whole, m.locals), body(m.init, 0)}
	for _, c := range m.more {
		bodies = append(bodies, body(c, 0))
	}
	return vector(bodies...)
}

// place is code that answers n bytes at an address.
func place(at, n uint64) []byte { return i64const(int64(at<<32 | n)) }

func i32const(n int32) []byte { return append([]byte{0x41}, sleb(int64(n))...) }

func i64const(n int64) []byte { return append([]byte{0x42}, sleb(n)...) }

func body(code []byte, locals uint64) []byte {
	head := []byte{0}
	if locals > 0 {
		head = append(append([]byte{1}, uleb(locals)...), 0x7f)
	}
	whole := slices.Concat(head, code, []byte{0x0b})
	return append(uleb(uint64(len(whole))), whole...)
}

func section(b []byte, id byte, content []byte) []byte {
	return slices.Concat(b, []byte{id}, uleb(uint64(len(content))), content)
}

func vector(items ...[]byte) []byte {
	return append(uleb(uint64(len(items))), slices.Concat(items...)...)
}

func name(s string) []byte { return append(uleb(uint64(len(s))), s...) }

func uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func sleb(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func repeat(code string, n int) []byte { return []byte(strings.Repeat(code, n)) }
