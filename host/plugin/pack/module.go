package pack

// The few opcodes and types that a pack is made of.
const (
	i32 = 0x7f
	i64 = 0x7e

	end        = 0x0b
	ifVoid     = 0x04
	void       = 0x40
	elseOp     = 0x05
	ret        = 0x0f
	localGet   = 0x20
	memorySize = 0x3f
	memoryGrow = 0x40
	i32Const   = 0x41
	i64Const   = 0x42
	i32Eq      = 0x46
	i32GtU     = 0x4b
	i32Add     = 0x6a
	i32Sub     = 0x6b
	i32ShrU    = 0x76
)

// alloc is weir_alloc: the address after the manifest, after growing the memory to hold size bytes; 0 when that is not
// possible.
func alloc(buffer int) []byte {
	pages := func(b []byte) []byte { // how many pages hold the buffer
		b = append(b, localGet, 0)
		b = append(constant(b, int64(buffer+page-1)), i32Add)
		return append(constant(b, 16), i32ShrU)
	}
	b := constant([]byte{localGet, 0}, maxInput)
	b = append(constant(append(b, i32GtU, ifVoid, void), 0), ret, end)
	b = append(pages(b), memorySize, 0, i32GtU, ifVoid, void)
	b = append(pages(b), memorySize, 0, i32Sub, memoryGrow, 0)
	b = append(constant(b, -1), i32Eq, ifVoid, void)
	b = append(constant(b, 0), ret, end, end)
	return constant(b, int64(buffer))
}

// call is weir_call: the manifest for describe, "no opinion" for everything else.
func call(size int) []byte {
	b := constant([]byte{localGet, 0}, 1)
	b = append(b, i32Eq, ifVoid, i64)
	b = sleb(append(b, i64Const), int64(jsonAt)<<32|int64(size))
	return append(sleb(append(b, elseOp, i64Const), 0), end)
}

func constant(b []byte, v int64) []byte { return sleb(append(b, i32Const), v) }

func body(code []byte) []byte {
	code = append([]byte{0}, append(code, end)...) // no locals
	return append(uleb(nil, uint64(len(code))), code...)
}

func export(name string, kind, index byte) []byte {
	return append(append(uleb(nil, uint64(len(name))), name...), kind, index)
}

func vector(items ...[]byte) []byte {
	b := uleb(nil, uint64(len(items)))
	for _, it := range items {
		b = append(b, it...)
	}
	return b
}

func section(b []byte, id byte, content []byte) []byte {
	return append(uleb(append(b, id), uint64(len(content))), content...)
}

func custom(b []byte, name string, content []byte) []byte {
	head := append(uleb(nil, uint64(len(name))), name...)
	b = uleb(append(b, 0), uint64(len(head)+len(content)))
	return append(append(b, head...), content...)
}

func uleb(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func sleb(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
