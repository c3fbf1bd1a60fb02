package fuel

// Value types, as in the binary format. unknown is the operand of unreachable code.
const (
	unknown   byte = 0
	typeI32   byte = 0x7f
	typeI64   byte = 0x7e
	typeF32   byte = 0x7d
	typeF64   byte = 0x7c
	typeV128  byte = 0x7b
	typeFunc  byte = 0x70
	typeExt   byte = 0x6f
	typeEmpty byte = 0x40 // of a block
)

// Opcodes that are treated one by one.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opReturnCall   = 0x12
	opReturnCallIn = 0x13
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI64LtS       = 0x53
	opI32ShrU      = 0x76
	opI64Sub       = 0x7d
	opI64Mul       = 0x7e
	opI64ExtendU   = 0xad
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd
	opAtomic       = 0xfe
)

// Second bytes after opMisc.
const (
	miscMemoryInit = 8
	miscDataDrop   = 9
	miscMemoryCopy = 10
	miscMemoryFill = 11
	miscTableInit  = 12
	miscElemDrop   = 13
	miscTableCopy  = 14
	miscTableGrow  = 15
	miscTableSize  = 16
	miscTableFill  = 17
)

// shape is the type of an instruction that only computes: what it takes, the top of the stack last, and what it leaves.
type shape struct {
	known   bool
	in, out string
	memory  bool // has an alignment and an offset
	align   byte // log2 of the widest alignment
}

// The same types as operands of a shape.
const (
	vI   = "\x7f"
	vL   = "\x7e"
	vF   = "\x7d"
	vD   = "\x7c"
	none = ""
)

// shapes are the instructions of one byte without an immediate, and the loads and stores.
var shapes = buildShapes()

func buildShapes() *[256]shape {
	t := new([256]shape)
	for _, x := range []struct {
		from, to int
		in, out  string
	}{
		{0x45, 0x45, vI, vI}, {0x46, 0x4f, vI + vI, vI}, {0x50, 0x50, vL, vI}, {0x51, 0x5a, vL + vL, vI},
		{0x5b, 0x60, vF + vF, vI}, {0x61, 0x66, vD + vD, vI},
		{0x67, 0x69, vI, vI}, {0x6a, 0x78, vI + vI, vI}, {0x79, 0x7b, vL, vL}, {0x7c, 0x8a, vL + vL, vL},
		{0x8b, 0x91, vF, vF}, {0x92, 0x98, vF + vF, vF}, {0x99, 0x9f, vD, vD}, {0xa0, 0xa6, vD + vD, vD},
		{0xa7, 0xa7, vL, vI}, {0xa8, 0xa9, vF, vI}, {0xaa, 0xab, vD, vI},
		{0xac, 0xad, vI, vL}, {0xae, 0xaf, vF, vL}, {0xb0, 0xb1, vD, vL},
		{0xb2, 0xb3, vI, vF}, {0xb4, 0xb5, vL, vF}, {0xb6, 0xb6, vD, vF},
		{0xb7, 0xb8, vI, vD}, {0xb9, 0xba, vL, vD}, {0xbb, 0xbb, vF, vD},
		{0xbc, 0xbc, vF, vI}, {0xbd, 0xbd, vD, vL}, {0xbe, 0xbe, vI, vF}, {0xbf, 0xbf, vL, vD},
		{0xc0, 0xc1, vI, vI}, {0xc2, 0xc4, vL, vL},
	} {
		for op := x.from; op <= x.to; op++ {
			t[op] = shape{known: true, in: x.in, out: x.out}
		}
	}
	for k, x := range []struct {
		in, out string
		align   byte
	}{
		{vI, vI, 2}, {vI, vL, 3}, {vI, vF, 2}, {vI, vD, 3}, // loads, from 0x28
		{vI, vI, 0}, {vI, vI, 0}, {vI, vI, 1}, {vI, vI, 1},
		{vI, vL, 0}, {vI, vL, 0}, {vI, vL, 1}, {vI, vL, 1}, {vI, vL, 2}, {vI, vL, 2},
		{vI + vI, none, 2}, {vI + vL, none, 3}, {vI + vF, none, 2}, {vI + vD, none, 3}, // stores
		{vI + vI, none, 0}, {vI + vI, none, 1}, {vI + vL, none, 0}, {vI + vL, none, 1}, {vI + vL, none, 2},
	} {
		t[0x28+k] = shape{known: true, in: x.in, out: x.out, memory: true, align: x.align}
	}
	return t
}

// saturating are the conversions after opMisc.
var saturating = [8]shape{
	{in: vF, out: vI}, {in: vF, out: vI}, {in: vD, out: vI}, {in: vD, out: vI},
	{in: vF, out: vL}, {in: vF, out: vL}, {in: vD, out: vL}, {in: vD, out: vL},
}

// edges are what an instruction adds to the control flow graph, roughly; br_table adds one more for each label.
var edges = [256]int{opBlock: 1, opLoop: 2, opIf: 3, opBr: 1, opBrIf: 2, opBrTable: 1}

// What instructions weigh in a straight line, in simple ones. What leaves the guest's code (a call that may be one of the host, a
// growth) costs the time of many.
const (
	maxLine    = 128
	weightHost = 64
	weightBulk = 32
)

var weights = buildWeights()

func buildWeights() *[256]uint8 {
	t := new([256]uint8)
	for op := range t {
		switch {
		case op == opCallIndirect || op == opMemoryGrow:
			t[op] = weightHost
		case op >= 0x6d && op <= 0x70 || op >= 0x7f && op <= 0x82 || op == 0x91 || op == 0x95 || op == 0x9f || op == 0xa3:
			t[op] = 16 // divisions and roots
		case shapes[op].memory:
			t[op] = 4
		case op != opNop && op != opElse && op != opEnd && op != opDrop:
			t[op] = 1
		}
	}
	return t
}

// bulkEdges are those of an operation over a range.
const bulkEdges = 3

// refuseOpcode fails with the code of the proposal that an unknown opcode belongs to.
func refuseOpcode(op byte, offset int) {
	switch op {
	case opVector:
		fail(SIMD, offset, "the module uses SIMD instructions")
	case opAtomic:
		fail(Threads, offset, "the module uses atomic instructions")
	case opReturnCall, opReturnCallIn, 0x14, 0x15:
		fail(TailCall, offset, "the module uses tail calls or typed function references")
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		fail(Unsupported, offset, "the module uses exceptions")
	case 0xd3, 0xd4, 0xd5, 0xd6, 0xfb:
		fail(Unsupported, offset, "the module uses typed or garbage-collected references")
	}
	fail(OpcodeUnknown, offset, "the module has an unknown instruction 0x%02x", op)
}
