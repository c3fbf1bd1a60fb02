package fuel

// Fuel counts (ABI-7, step 3).
const (
	initialFuel  = 20_000_000 // what a start section runs on
	lengthShift  = 6          // length / 64
	entriesShift = 3          // entries / 8
	fuelPerPage  = 1_000
	fuelExport   = "weir_fuel"
	spentExport  = "weir_fuel_spent"
)

// meter writes the metered form of one body: the original in runs, with charges between.
type meter struct {
	fuel    []byte // the index of the fuel global, encoded
	one     []byte // the charge of 1
	code    []byte
	from    int // what of the original is not yet written
	checks  int
	edges   int    // of the control flow that a compiler will see, roughly
	merged  int    // values of locals that a compiler has to join
	moved   int    // values that calls and branches pass, with the globals that are loaded again after a call
	since   int    // weight of the longest line to here since something was charged
	spare   bool   // a local is needed to look at a length
	spareAt []byte // its index, encoded
	head    []byte
}

func newMeter(global int) meter {
	m := meter{fuel: appendU32(nil, uint32(global))}
	m.one = append(m.one, opGlobalGet)
	m.one = append(m.one, m.fuel...)
	m.one = append(m.one, opI64Const, 1)
	m.one = m.spend(m.one)
	return m
}

// spend appends "subtract what is on top of the stack from what is below it, store that as the fuel, trap if it is negative".
func (m *meter) spend(b []byte) []byte {
	b = append(b, opI64Sub, opGlobalSet)
	b = append(b, m.fuel...)
	b = append(b, opGlobalGet)
	b = append(b, m.fuel...)
	return append(b, opI64Const, 0, opI64LtS, opIf, typeEmpty, opUnreachable, opEnd)
}

func (w *walker) begin(r *reader) {
	w.code, w.from, w.checks, w.edges, w.moved, w.merged, w.spare = w.code[:0], r.at, 0, 0, 0, 0, false
	w.spareAt = appendU32(w.spareAt[:0], uint32(len(w.locals)))
}

// flush copies the original up to that offset.
func (w *walker) flush(to int) {
	w.code = append(w.code, w.r.b[w.from:to]...)
	w.from = to
	w.checks++
	w.edges += edges[opIf]
}

func (w *walker) chargeOne() {
	w.flush(w.r.at)
	w.code = append(w.code, w.one...)
	w.since = 0
}

// line adds the instruction at start to the straight line, and charges before it when that gets too long.
func (w *walker) line(start, weight int) {
	if w.since += weight; w.since <= w.m.o.longestLine() {
		return
	}
	w.flush(start)
	w.code = append(w.code, w.one...)
	w.since = weight
}

// join makes the line after a block that of the longest way to its end.
func (w *walker) join(f *frame) {
	if f.unreachable {
		w.since = 0
	}
	switch f.op {
	case opLoop: // branches lead to its head, which charges
		return
	case opIf:
		f.joined = max(f.joined, f.entered)
	}
	w.since = max(w.since, f.joined)
}

// chargeLength charges for the bytes or entries on top of the stack, before the instruction at start.
func (w *walker) chargeLength(start int) {
	w.charge(start, opI32Const, lengthShift, opI32ShrU, opI64ExtendU)
}

// chargeEntries charges for growing a table.
func (w *walker) chargeEntries(start int) {
	w.charge(start, opI32Const, entriesShift, opI32ShrU, opI64ExtendU)
}

// chargeGrowth charges for growing memory.
func (w *walker) chargeGrowth(start int) {
	w.charge(start, append(appendS64([]byte{opI64ExtendU, opI64Const}, fuelPerPage), opI64Mul)...)
}

// charge keeps the i32 on top of the stack and spends what price makes of it.
func (w *walker) charge(start int, price ...byte) {
	w.flush(start)
	w.spare = true
	b := append(w.code, opLocalTee)
	b = append(b, w.spareAt...)
	b = append(b, opGlobalGet)
	b = append(b, w.fuel...)
	b = append(b, opLocalGet)
	b = append(b, w.spareAt...)
	b = append(b, price...)
	w.code = w.spend(b)
}

// finish appends the size, the locals and the metered code of the body.
func (w *walker) finish(to []byte, r *reader, groups uint32, declarations []byte) []byte {
	w.code = append(w.code, r.b[w.from:]...)
	w.report.Checks += w.checks
	extra := 0
	if w.spare {
		groups++
		extra = 2
	}
	head := appendU32(w.head[:0], groups)
	w.head = head
	to = appendU32(to, uint32(len(head)+len(declarations)+extra+len(w.code)))
	to = append(to, head...)
	to = append(to, declarations...)
	if w.spare {
		to = append(to, 1, typeI32)
	}
	return append(to, w.code...)
}
