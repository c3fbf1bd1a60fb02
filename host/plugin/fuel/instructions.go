package fuel

// special treats the instructions that do more than compute.
func (w *walker) special(op byte, start int) {
	w.edges += edges[op]
	switch op {
	case opNop:
	case opUnreachable:
		w.unreachable()
	case opBlock, opLoop:
		params, results := w.blockType()
		w.open(op, start, params, results)
		if op == opLoop {
			w.chargeOne()
		}
	case opIf:
		params, results := w.blockType()
		w.pop(typeI32)
		w.open(op, start, params, results)
	case opElse:
		f := w.leave()
		if f.op != opIf {
			fail(Malformed, start, "an else without its if")
		}
		if !f.unreachable {
			f.joined = max(f.joined, w.since)
		}
		f.op, f.unreachable, w.since = opElse, false, f.entered
		w.pushAll(f.params)
	case opEnd:
		w.end()
	case opBr:
		label := w.target().label()
		w.moved += len(label)
		w.popAll(label)
		w.unreachable()
	case opBrIf:
		label := w.target().label()
		w.moved += len(label)
		w.pop(typeI32)
		w.popAll(label)
		w.pushAll(label)
	case opBrTable:
		w.branchTable()
	case opReturn:
		w.popAll(w.frames[0].results)
		w.unreachable()
	case opCall:
		n := w.r.index(len(w.m.funcs), "function")
		if n < w.m.importedFuncs {
			w.line(start, weightHost)
		}
		w.call(w.m.typeOf(n))
		if n >= w.m.importedFuncs {
			w.since = 0 // its entry was charged
		}
	case opCallIndirect:
		w.callIndirect(start)
	case opDrop:
		w.pop(unknown)
	case opSelect, opSelectTyped:
		w.selection(op, start)
	case opI32Const:
		w.r.signed(32)
		w.push(typeI32)
	case opI64Const:
		w.r.signed(64)
		w.push(typeI64)
	case opF32Const:
		w.r.take(4)
		w.push(typeF32)
	case opF64Const:
		w.r.take(8)
		w.push(typeF64)
	default:
		w.stateful(op, start)
	}
}

// stateful treats the instructions that name locals, globals, tables, memory or functions.
func (w *walker) stateful(op byte, start int) {
	switch op {
	case opLocalGet:
		w.push(w.local())
	case opLocalSet:
		w.pop(w.local())
	case opLocalTee:
		t := w.local()
		w.pop(t)
		w.push(t)
	case opGlobalGet:
		w.push(w.global().value)
	case opGlobalSet:
		g := w.global()
		if !g.mutable {
			fail(TypeMismatch, start, "a constant is set")
		}
		w.pop(g.value)
	case opTableGet:
		t := w.table()
		w.pop(typeI32)
		w.push(t)
	case opTableSet:
		w.pop(w.table())
		w.pop(typeI32)
	case opMemorySize, opMemoryGrow:
		w.memoryZero(start)
		if op == opMemoryGrow {
			w.chargeGrowth(start)
			w.pop(typeI32)
		}
		w.push(typeI32)
	case opRefNull:
		at := w.r.at
		w.push(refType(w.r.byte(), at))
	case opRefIsNull:
		if t := w.pop(unknown); t != unknown && t != typeFunc && t != typeExt {
			fail(TypeMismatch, start, "ref.is_null of a number")
		}
		w.push(typeI32)
	case opRefFunc:
		n := w.r.index(len(w.m.funcs), "function")
		if w.m.declared == nil || !w.m.declared[n] {
			fail(IndexOutOfRange, start, "function %d is not declared for references", n)
		}
		w.push(typeFunc)
	case opMisc:
		w.misc(start)
	default:
		refuseOpcode(op, start)
	}
}

func (w *walker) local() byte {
	w.top().uses++
	return w.locals[w.r.index(len(w.locals), "local")]
}

func (w *walker) global() globalType { return w.m.globals[w.r.index(len(w.m.globals), "global")] }

func (w *walker) table() byte { return w.m.tables[w.r.index(len(w.m.tables), "table")].element }

// memoryZero reads the one byte that stands for the only memory.
func (w *walker) memoryZero(start int) {
	if w.m.memories == 0 {
		fail(IndexOutOfRange, start, "memory 0 does not exist, the module has 0")
	}
	if w.r.byte() != 0 {
		fail(Unsupported, start, "the module uses several memories")
	}
}

func (w *walker) call(t funcType) {
	w.popAll(t.params)
	w.pushAll(t.results)
	w.moved += len(t.params) + len(t.results) + w.m.variables
}

func (w *walker) callIndirect(start int) {
	t := w.m.types[w.r.index(len(w.m.types), "type")]
	if w.table() != typeFunc {
		fail(TypeMismatch, start, "call_indirect through a table that holds no functions")
	}
	w.pop(typeI32)
	w.call(t)
}

func (w *walker) branchTable() {
	n := w.r.count(maxNesting*maxItems, TooMany, "labels in one table")
	w.pop(typeI32)
	w.edges += n
	targets := w.r.at
	for range n {
		w.target()
	}
	arity := len(w.target().label()) // of the default
	after := w.r.at
	w.r.at = targets
	for range n + 1 {
		label := w.target().label()
		if len(label) != arity {
			fail(TypeMismatch, targets, "the labels of one table carry different values")
		}
		w.moved += arity
		w.peek(label)
	}
	w.r.at = after
	w.unreachable()
}

// peek checks that these operands are on the stack and leaves them there.
func (w *walker) peek(ts []byte) {
	f := w.top()
	for k := len(ts) - 1; k >= 0; k-- {
		at := len(w.stack) - (len(ts) - k)
		switch {
		case at < f.height && f.unreachable:
			return
		case at < f.height:
			fail(TypeMismatch, w.r.at, "a branch lacks a value")
		case w.stack[at] != ts[k] && w.stack[at] != unknown:
			fail(TypeMismatch, w.r.at, "a branch carries the type 0x%02x instead of 0x%02x", w.stack[at], ts[k])
		}
	}
}

func (w *walker) selection(op byte, start int) {
	if op == opSelectTyped {
		if w.r.byte() != 1 {
			fail(Malformed, start, "a select has one type")
		}
		at := w.r.at
		t := valueType(w.r.byte(), at)
		w.pop(typeI32)
		w.pop(t)
		w.pop(t)
		w.push(t)
		return
	}
	w.pop(typeI32)
	a := w.pop(unknown)
	b := w.pop(a)
	for _, t := range []byte{a, b} {
		if t == typeFunc || t == typeExt {
			fail(TypeMismatch, start, "a select of references names no type")
		}
	}
	if b == unknown {
		b = a
	}
	w.push(b)
}

// misc treats what follows the prefix 0xfc.
func (w *walker) misc(start int) {
	sub := w.r.byte() // wazero reads one byte here, so a longer form of the same number would be another instruction to it
	if int(sub) < len(saturating) {
		w.apply(saturating[sub].in, saturating[sub].out)
		return
	}
	switch sub {
	case miscMemoryInit, miscDataDrop:
		if w.m.dataCount < 0 {
			fail(Malformed, start, "the module uses segments of data without counting them")
		}
		w.r.index(w.m.dataCount, "segment of data")
		if sub == miscMemoryInit {
			w.memoryZero(start)
			w.bulk(start, typeI32, typeI32)
		}
	case miscMemoryCopy:
		w.memoryZero(start)
		w.memoryZero(start)
		w.bulk(start, typeI32, typeI32)
	case miscMemoryFill:
		w.memoryZero(start)
		w.bulk(start, typeI32, typeI32)
	case miscElemDrop:
		w.r.index(len(w.m.elements), "segment of elements")
	case miscTableInit:
		element := w.m.elements[w.r.index(len(w.m.elements), "segment of elements")]
		w.sameType(start, element, w.table())
		w.bulk(start, typeI32, typeI32)
	case miscTableCopy:
		w.sameType(start, w.table(), w.table())
		w.bulk(start, typeI32, typeI32)
	case miscTableFill:
		w.bulk(start, typeI32, w.table())
	case miscTableGrow:
		t := w.table()
		w.line(start, weightHost)
		w.chargeEntries(start)
		w.pop(typeI32)
		w.pop(t)
		w.push(typeI32)
	case miscTableSize:
		w.table()
		w.push(typeI32)
	default:
		if sub >= 0x80 {
			fail(NumberInvalid, start, "an instruction is written in a longer form than needed")
		}
		fail(OpcodeUnknown, start, "the module has an unknown instruction 0xfc 0x%02x", sub)
	}
}

func (w *walker) sameType(start int, a, b byte) {
	if a != b {
		fail(TypeMismatch, start, "references of one type are copied to a table of the other")
	}
}

// bulk treats an operation over a range: where to, from what, and how many, the last being on top.
func (w *walker) bulk(start int, to, from byte) {
	w.edges += bulkEdges
	w.line(start, weightBulk)
	w.chargeLength(start)
	w.pop(typeI32)
	w.pop(from)
	w.pop(to)
}
