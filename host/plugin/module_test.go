package plugin

import (
	"encoding/binary"
	"slices"
)

// module describes a guest that a test wants, down to the bytes of its functions.
type module struct {
	manifest  string
	answer    string   // what call and weir_call answer for ops other than describe
	abi       byte     // 0: 1
	imports   []string // MODULE.NAME of functions () -> (), with a ! in front (i32) -> (), with a # () -> (i64), a $ (i32 i32 i32 i32) -> (i32)
	call      []byte   // code for ops other than describe, instead of the answer; leaves an i64
	describe  []byte   // code for describe, instead of the manifest
	alloc     []byte   // code of weir_alloc; leaves an i32
	init      []byte   // code of _initialize
	configure []byte   // code for configure, which answers nothing otherwise
	without   string   // an export that is missing
	mistyped  string   // an export that has the type of weir_abi
	pages     uint64

	exportsFuel bool   // its own global, as weir_fuel
	table       uint64 // entries
	locals      uint64
}

const manifestAt = 16

// Code of the functions that tests put together.
var (
	codeSpin  = []byte{0x03, 0x40, 0x0c, 0, 0x0b, 0x42, 0}                                           // loop br 0 end
	codeTrap  = []byte{0x00, 0x42, 0}                                                                // unreachable
	codeGrow  = []byte{0x03, 0x40, 0x41, 1, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0x00, 0x42, 0} // a page more until refused, then trap
	codeExit  = []byte{0x41, 3, 0x10, 0, 0x42, 0}                                                    // call import 0 with 3
	codeZero  = []byte{0x42, 0}                                                                      // no opinion
	codeLeave = []byte{0x41, 0}                                                                      // weir_alloc that refuses
	codeFar   = append([]byte{0x41}, signed(1<<30)...)                                               // weir_alloc outside of the memory
)

// place is code that answers n bytes at an address.
func place(at, n uint64) []byte { return append([]byte{0x42}, signed(int64(at<<32|n))...) }

func (m module) wasm() []byte {
	b := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	data := append([]byte(m.manifest), m.answer...)
	b = part(b, 1, vec([]byte{0x60, 0, 1, 0x7f}, []byte{0x60, 1, 0x7f, 1, 0x7f}, []byte{0x60, 2, 0x7f, 0x7f, 1, 0x7e},
		[]byte{0x60, 0, 0}, []byte{0x60, 1, 0x7f, 0}, []byte{0x60, 0, 1, 0x7e}, []byte{0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}))
	if len(m.imports) > 0 {
		var list [][]byte
		for _, im := range m.imports {
			t := byte(3)
			switch im[0] {
			case '!':
				im, t = im[1:], 4
			case '#':
				im, t = im[1:], 5
			case '$':
				im, t = im[1:], 6
			}
			dot := slices.Index([]byte(im), '.')
			list = append(list, append(append(text(im[:dot]), text(im[dot+1:])...), 0, t))
		}
		b = part(b, 2, vec(list...))
	}
	b = part(b, 3, []byte{4, 0, 1, 2, 3})
	if m.table > 0 {
		b = part(b, 4, append([]byte{1, 0x70, 0}, number(m.table)...))
	}
	b = part(b, 5, append([]byte{1, 0}, number(max(m.pages, 4))...))
	b = part(b, 6, []byte{1, 0x7f, 1, 0x41, 0, 0x0b}) // one mutable i32
	first := byte(len(m.imports))
	exports := [][]byte{}
	for i, name := range []string{"weir_abi", "weir_alloc", "weir_call", "_initialize", "memory"} {
		kind, index := byte(0), first+byte(i)
		if name == "memory" {
			kind, index = 2, 0
		}
		if name == m.mistyped {
			kind, index = 0, first
		}
		if name != m.without {
			exports = append(exports, append(text(name), kind, index))
		}
	}
	if m.exportsFuel {
		exports = append(exports, append(text("weir_fuel"), 3, 0))
	}
	b = part(b, 7, vec(exports...))
	call := m.call
	if call == nil {
		call = place(0, 0)
		if m.answer != "" {
			call = place(uint64(manifestAt+len(m.manifest)), uint64(len(m.answer)))
		}
	}
	describe := m.describe
	if describe == nil {
		describe = place(manifestAt, uint64(len(m.manifest)))
	}
	alloc := m.alloc
	if alloc == nil {
		alloc = append([]byte{0x41}, signed(3<<16)...) // the last page
	}
	whole := append([]byte{0x20, 0, 0x41, 1, 0x46, 0x04, 0x7e}, describe...)
	configure := m.configure
	if configure == nil {
		configure = codeZero
	}
	whole = append(append(append(append(whole, 0x05, 0x20, 0, 0x41, 2, 0x46, 0x04, 0x7e), configure...), 0x05), call...)
	whole = append(whole, 0x0b, 0x0b)
	b = part(b, 10, vec(function([]byte{0x41, max(m.abi, 1)}, 0), function(alloc, 0), function(whole, m.locals), function(m.init, 0)))
	segment := append(append([]byte{0, 0x41, manifestAt, 0x0b}, number(uint64(len(data)))...), data...)
	return part(b, 11, vec(segment))
}

func function(code []byte, locals uint64) []byte {
	head := []byte{0}
	if locals > 0 {
		head = append(append([]byte{1}, number(locals)...), 0x7f)
	}
	body := append(append(head, code...), 0x0b)
	return append(number(uint64(len(body))), body...)
}

func part(b []byte, id byte, content []byte) []byte {
	return append(append(append(b, id), number(uint64(len(content)))...), content...)
}

func vec(items ...[]byte) []byte {
	return append(number(uint64(len(items))), slices.Concat(items...)...)
}

func text(s string) []byte { return append(number(uint64(len(s))), s...) }

func number(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func signed(v int64) []byte {
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
