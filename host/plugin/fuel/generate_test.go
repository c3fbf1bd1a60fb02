package fuel

// A generator of valid modules. Each counts for itself what metering should charge: its first global is raised by one at
// every entry of a function and head of a loop, its second by the price of each operation over a range and each growth.
// When the first passes stepLimit the module traps by itself, so it ends without metering too.

const (
	stepLimit  = 20_000
	stepsName  = "steps"
	pricesName = "prices"
	genPages   = 4
	genEntries = 64
)

var genTypes = []byte{typeI32, typeI64, typeF32, typeF64}

type generator struct {
	pick func(n int) int // a choice below n; 0 must lead to an end

	sigs    []funcType
	funcs   []int // signature of each function
	current int
	locals  []byte
	labels  [][]byte // what a branch to each carries, outermost first; nil entries carry nothing
	b       []byte
	size    int // instructions left for this function
}

// generate makes a module whose functions are exported as f0, f1, ...
func generate(pick func(int) int) []byte {
	g := &generator{pick: pick, sigs: []funcType{{}, {nil, []byte{typeI32}}, {[]byte{typeI32}, []byte{typeI32}}, {nil, []byte{typeI64, typeI32}}}}
	for range pick(5) {
		g.sigs = append(g.sigs, funcType{g.types(4), g.types(3)})
	}
	m := &built{tables: [][]byte{cat(typeFunc, 1, u32(genEntries/2), u32(genEntries))}, mems: [][]byte{{1, 1, genPages}}}
	for _, s := range g.sigs {
		m.types = append(m.types, functype(string(s.params), string(s.results)))
	}
	for _, name := range []string{stepsName, pricesName} {
		m.exports = append(m.exports, exported(name, kindGlobal, len(m.globals)))
		m.globals = append(m.globals, cat(typeI64, 1, i64c(0), opEnd))
	}
	for _, t := range genTypes {
		zero := map[byte][]byte{typeI32: i32c(7), typeI64: i64c(-7), typeF32: cat(opF32Const, 0, 0, 0x40, 0x40), typeF64: cat(opF64Const, 0, 0, 0, 0, 0, 0, 4, 0x40)}
		m.globals = append(m.globals, cat(t, 1, zero[t], opEnd))
	}
	n := 2 + pick(5)
	table := []byte{}
	for k := range n {
		g.funcs = append(g.funcs, pick(len(g.sigs)))
		m.funcs = append(m.funcs, u32(g.funcs[k]))
		m.exports = append(m.exports, exported("f"+string(rune('0'+k)), kindFunc, k))
		table = append(table, u32(k)...)
	}
	m.exports = append(m.exports, exported("memory", kindMemory, 0))
	m.elems = [][]byte{cat(0, i32c(0), opEnd, u32(n), table), cat(1, 0, u32(n), table)}
	m.data = [][]byte{cat(0, i32c(64), opEnd, str("some bytes that are there from the start")), cat(1, str("and some that are copied when the code says so"))}
	m.dataCount = u32(2)
	for k := range n {
		g.current = k
		m.bodies = append(m.bodies, g.function(g.sigs[g.funcs[k]]))
	}
	return m.bytes()
}

func (g *generator) types(most int) (ts []byte) {
	for range g.pick(most) {
		ts = append(ts, genTypes[g.pick(len(genTypes))])
	}
	return ts
}

func (g *generator) emit(parts ...any) { g.b = append(g.b, cat(parts...)...) }

func (g *generator) function(s funcType) []byte {
	own := append(g.types(5), typeI32, typeI64)
	g.locals = append(append([]byte{}, s.params...), own...)
	g.labels, g.b, g.size = [][]byte{s.results}, nil, 60
	g.count()
	g.statements(3)
	for _, t := range s.results {
		g.value(t, 3)
	}
	groups := [][]byte{}
	for _, t := range own {
		groups = append(groups, cat(1, t))
	}
	return code(vec(groups...), g.b)
}

// count raises the first global and traps beyond the limit.
func (g *generator) count() {
	g.emit(opGlobalGet, 0, i64c(1), 0x7c, opGlobalSet, 0, opGlobalGet, 0, i64c(stepLimit), 0x55, opIf, typeEmpty, opUnreachable, opEnd)
}

// price raises the second global by what an i32 on top of the stack costs; the value stays there, in the spare local too.
func (g *generator) price(perUnit int64, shift int) {
	spare := g.spare(typeI32)
	g.emit(opLocalTee, spare, opGlobalGet, 1, opLocalGet, spare, opI64ExtendU, i64c(int64(shift)), 0x88, i64c(perUnit), opI64Mul, 0x7c, opGlobalSet, 1)
}

// spare is the local of that type that statements do not touch.
func (g *generator) spare(t byte) int {
	if t == typeI32 {
		return len(g.locals) - 2
	}
	return len(g.locals) - 1
}

func (g *generator) statements(depth int) {
	for range g.pick(6) {
		g.statement(depth)
	}
}

func (g *generator) statement(depth int) {
	if g.size--; g.size < 0 || depth == 0 {
		g.emit(opNop)
		return
	}
	t := genTypes[g.pick(len(genTypes))]
	switch g.pick(15) {
	case 0:
		g.emit(opNop)
	case 1, 2:
		if l, ok := g.local(t); ok {
			g.value(t, depth)
			g.emit(opLocalSet, l)
		}
	case 3:
		g.value(t, depth)
		g.emit(opGlobalSet, 2+int(typeI32-t))
	case 4, 5:
		g.address()
		g.value(t, depth)
		g.emit(map[byte]int{typeI32: 0x36, typeI64: 0x37, typeF32: 0x38, typeF64: 0x39}[t], 0, u32(g.pick(100)))
	case 6, 7:
		g.loop(depth)
	case 8:
		g.value(typeI32, depth)
		g.emit(opIf, typeEmpty)
		g.inside(nil, func() { g.statements(depth - 1) })
		if g.pick(2) == 1 {
			g.emit(opElse)
			g.inside(nil, func() { g.statements(depth - 1) })
		}
		g.emit(opEnd)
	case 9:
		g.emit(opBlock, typeEmpty)
		g.inside(nil, func() { g.statements(depth - 1); g.branch(depth); g.statements(depth - 1) })
		g.emit(opEnd)
	case 10, 11:
		g.overRange(depth)
	case 12:
		g.calls(depth)
	case 13:
		g.switches(depth)
	case 14:
		g.value(t, depth)
		g.emit(opDrop)
	}
}

// inside generates under one more label.
func (g *generator) inside(carries []byte, f func()) {
	g.labels = append(g.labels, carries)
	f()
	g.labels = g.labels[:len(g.labels)-1]
}

// loop passes a bounded number of times, sometimes with values through its head.
func (g *generator) loop(depth int) {
	counter := g.spare(typeI64)
	g.emit(opLocalGet, counter) // an inner loop must not spoil the outer one's counter
	g.emit(i64c(int64(g.pick(5))), opLocalSet, counter)
	params := []byte{}
	kind := []byte{typeEmpty}
	if s := g.pick(len(g.sigs)); g.pick(3) == 1 && len(g.sigs[s].params) == 0 {
		kind = u32(s) // leaves values
		params = g.sigs[s].results
	}
	g.emit(opLoop, kind)
	g.count()
	g.inside(nil, func() {
		g.statements(depth - 1)
		g.emit(opLocalGet, counter, i64c(1), opI64Sub, opLocalTee, counter, i64c(0), 0x55, opBrIf, 0)
	})
	for _, t := range params {
		g.value(t, 1)
	}
	g.emit(opEnd)
	for range params {
		g.emit(opDrop)
	}
	g.emit(opLocalSet, counter)
}

// branch leaves a block or the function, with what the label carries.
func (g *generator) branch(depth int) {
	to := g.pick(len(g.labels))
	carries := g.labels[len(g.labels)-1-to]
	for _, t := range carries {
		g.value(t, depth-1)
	}
	switch g.pick(3) {
	case 0:
		g.value(typeI32, depth-1)
		g.emit(opBrIf, to)
		for range carries {
			g.emit(opDrop)
		}
	case 1:
		g.emit(opBr, to)
	case 2:
		for range carries {
			g.emit(opDrop)
		}
		for _, t := range g.labels[0] {
			g.value(t, depth-1)
		}
		g.emit(opReturn)
	}
}

// switches is a br_table over a row of blocks.
func (g *generator) switches(depth int) {
	arms := 1 + g.pick(4)
	for range arms {
		g.emit(opBlock, typeEmpty)
		g.labels = append(g.labels, nil)
	}
	g.value(typeI32, depth-1)
	g.emit(opBrTable, u32(arms-1))
	for k := range arms {
		g.emit((k + 1) % arms)
	}
	for range arms {
		g.labels = g.labels[:len(g.labels)-1]
		g.emit(opEnd)
		g.statement(depth - 1)
	}
}

// address leaves an i32 that mostly lies in memory.
func (g *generator) address() {
	g.value(typeI32, 1)
	if g.pick(20) != 1 {
		g.emit(i32c(0xffff), 0x71)
	}
}

// overRange is an operation over a range, mostly in bounds.
func (g *generator) overRange(depth int) {
	memory := g.pick(2) == 0
	bound := func(n int32) {
		g.value(typeI32, depth-1)
		if g.pick(20) != 1 {
			g.emit(i32c(n), 0x71)
		}
	}
	if !memory {
		bound(15)
		switch g.pick(4) {
		case 0:
			bound(7)
			bound(15)
			g.price(1, lengthShift)
			g.emit(opMisc, miscTableCopy, 0, 0)
		case 1:
			g.emit(opRefFunc, g.pick(len(g.funcs)))
			bound(15)
			g.price(1, lengthShift)
			g.emit(opMisc, miscTableFill, 0)
		case 2:
			bound(0)
			bound(1)
			g.price(1, lengthShift)
			g.emit(opMisc, miscTableInit, 1, 0)
		case 3:
			g.emit(opDrop, opRefNull, typeFunc)
			bound(31)
			g.price(1, entriesShift)
			g.emit(opMisc, miscTableGrow, 0, opDrop)
		}
		return
	}
	bound(0x7fff)
	switch g.pick(4) {
	case 0:
		bound(0xff)
		bound(0x3fff)
		g.price(1, lengthShift)
		g.emit(opMisc, miscMemoryFill, 0)
	case 1:
		bound(0x3fff)
		bound(0x3fff)
		g.price(1, lengthShift)
		g.emit(opMisc, miscMemoryCopy, 0, 0)
	case 2:
		bound(7)
		bound(31)
		g.price(1, lengthShift)
		g.emit(opMisc, miscMemoryInit, 1, 0)
	case 3:
		g.emit(opDrop)
		bound(3)
		g.price(fuelPerPage, 0)
		g.emit(opMemoryGrow, 0, opDrop)
		if g.pick(8) == 1 {
			g.emit(opMisc, miscDataDrop, 1, opMisc, miscElemDrop, 1)
		}
	}
}

// calls calls a later function, directly or through the table, and drops what it returns.
func (g *generator) calls(depth int) {
	if g.current+1 >= len(g.funcs) {
		return
	}
	to := g.current + 1 + g.pick(len(g.funcs)-g.current-1)
	s := g.sigs[g.funcs[to]]
	for _, t := range s.params {
		g.value(t, depth-1)
	}
	if g.pick(3) == 1 {
		g.emit(i32c(int32(to)), opCallIndirect, g.funcs[to], 0)
	} else {
		g.emit(opCall, to)
	}
	for range s.results {
		g.emit(opDrop)
	}
}

// local returns a local of the type that statements may change.
func (g *generator) local(t byte) (int, bool) {
	for k := range g.locals[:len(g.locals)-2] {
		if at := (k + g.pick(2)) % (len(g.locals) - 2); g.locals[at] == t {
			return at, true
		}
	}
	return 0, false
}

// value leaves one value of the type.
func (g *generator) value(t byte, depth int) {
	if g.size--; g.size < 0 || depth <= 0 {
		g.leaf(t)
		return
	}
	switch g.pick(9) {
	case 0, 1:
		g.leaf(t)
	case 2, 3, 4:
		g.operation(t, depth)
	case 5:
		g.address()
		g.emit(map[byte]int{typeI32: 0x28, typeI64: 0x29, typeF32: 0x2a, typeF64: 0x2b}[t], 0, u32(g.pick(100)))
	case 6:
		g.value(typeI32, depth-1)
		g.emit(opIf, t)
		g.inside([]byte{t}, func() { g.statements(depth - 1); g.value(t, depth-1) })
		g.emit(opElse)
		g.inside([]byte{t}, func() { g.value(t, depth-1) })
		g.emit(opEnd)
	case 7:
		g.emit(opBlock, t)
		g.inside([]byte{t}, func() {
			g.value(t, depth-1)
			g.value(typeI32, depth-1)
			g.emit(opBrIf, 0)
			if g.pick(6) == 1 {
				g.emit(opBr, 0) // what follows is never reached
				g.statements(depth - 1)
			}
		})
		g.emit(opEnd)
	case 8:
		g.value(t, depth-1)
		g.value(t, depth-1)
		g.value(typeI32, depth-1)
		g.emit(opSelect)
	}
}

// operation is any instruction of the table of shapes that leaves the type.
func (g *generator) operation(t byte, depth int) {
	for op, at := g.pick(256), 0; at < 256; op, at = (op+1)%256, at+1 {
		if s := shapes[op]; s.known && !s.memory && s.out == string(t) {
			for k := range len(s.in) {
				g.value(s.in[k], depth-1)
			}
			g.emit(op)
			return
		}
	}
}

func (g *generator) leaf(t byte) {
	if l, ok := g.local(t); ok && g.pick(2) == 1 {
		g.emit(opLocalGet, l)
		return
	}
	if g.pick(3) == 1 {
		g.emit(opGlobalGet, 2+int(typeI32-t))
		return
	}
	n := int64(g.pick(256)) - 100
	switch t {
	case typeI32:
		g.emit(i32c(int32(n * 77)))
	case typeI64:
		g.emit(i64c(n * 7_777_777_777))
	case typeF32:
		g.emit(opF32Const, 0, g.pick(256), g.pick(256), 0x40+g.pick(3))
	case typeF64:
		g.emit(opF64Const, 0, 0, 0, 0, 0, g.pick(256), g.pick(256), 0x40+g.pick(3))
	}
}
