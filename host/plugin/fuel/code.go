package fuel

// frame is one open block. Its height is where its operands begin on the stack.
type frame struct {
	op              byte
	unreachable     bool
	arm             bool // of a switch, see arms
	params, results []byte
	height          int
	uses, branches  int // of locals within it; to it
	entered, joined int // the line at an if; the longest line of the branches to its end
}

// label is what a branch to the frame carries.
func (f *frame) label() []byte {
	if f.op == opLoop {
		return f.params
	}
	return f.results
}

// walker reads one body after the other: it checks each instruction (index, type, nesting) and leaves the metered code in out.
type walker struct {
	m      *module
	r      *reader
	report *Report

	locals []byte // types of the parameters and locals
	all    int    // parameters and locals of all functions so far
	stack  []byte // types of the operands
	frames []frame
	levels int // of nesting that count
	arms   arms
	meter
}

// section reads all bodies and returns the content of the metered section, without its count.
func (w *walker) section(r *reader) (content []byte, n int) {
	start := r.at
	size := len(r.b) - r.at
	if size > maxCode {
		fail(CodeTooLarge, start, "the module has %d bytes of code, at most %d are allowed", size, maxCode)
	}
	n = r.count(maxFunctions, TooManyFunctions, "functions")
	if want := len(w.m.funcs) - w.m.importedFuncs; n != want {
		fail(Malformed, start, "the module declares %d functions and has the code of %d", want, n)
	}
	content = make([]byte, 0, size+size/8)
	for k := range n {
		content = w.function(content, r, w.m.importedFuncs+k)
	}
	r.end("the section of code")
	return content, n
}

// function appends one metered body. A fault in it is given the index of the function.
func (w *walker) function(to []byte, r *reader, index int) []byte {
	defer func() {
		if e := recover(); e != nil {
			if known, ok := e.(*Error); ok {
				known.Function = index
			}
			panic(e)
		}
	}()
	start := r.at
	size := r.u32()
	if most := uint32(w.m.o.bodyKiB()) << 10; size > most {
		fail(BodyTooLarge, start, "the function has %d bytes, at most %d are allowed", size, most)
	}
	w.r = r.part(size)
	w.report.Body = max(w.report.Body, int(size))
	t := w.m.typeOf(index)
	groups, declarations := w.declarations(t)
	w.begin(w.r)
	w.body(t)
	w.bounded(start)
	return w.finish(to, w.r, groups, declarations)
}

// bounded refuses a body that would take a compiler too long: its time grows with the square of the control flow, and
// with the locals that may have another value wherever branches join, its memory with the values that calls and branches pass.
func (w *walker) bounded(start int) {
	scale := max(1, w.m.o.bodyKiB()/64)
	if w.edges > maxEdges*scale {
		fail(BodyTooComplex, start, "the function has %d branches, loops and charges, at most %d are allowed", w.edges, maxEdges*scale)
	}
	if w.merged > maxMerged*scale {
		fail(BodyTooComplex, start, "branches of the function join %d values of locals, at most %d are allowed", w.merged, maxMerged*scale)
	}
	if w.moved > maxMoved*scale {
		fail(BodyTooComplex, start, "calls and branches of the function pass %d values, at most %d are allowed", w.moved, maxMoved*scale)
	}
}

// declarations reads the locals of a body.
func (w *walker) declarations(t funcType) (groups uint32, raw []byte) {
	w.locals = append(w.locals[:0], t.params...)
	r := w.r
	start := r.at
	groups = r.u32()
	from := r.at
	for range groups {
		n := r.u32()
		at := r.at
		value := valueType(r.byte(), at)
		if int64(n)+int64(len(w.locals)) > maxLocals {
			fail(TooManyLocals, start, "the function has more than %d parameters and locals", maxLocals)
		}
		for range n {
			w.locals = append(w.locals, value)
		}
	}
	if w.all += len(w.locals); w.all > allLocals {
		fail(TooManyLocals, start, "the functions up to here have more than %d parameters and locals", allLocals)
	}
	return groups, r.b[from:r.at]
}

// body walks from after the locals to the end of the function.
func (w *walker) body(t funcType) {
	w.stack, w.frames = w.stack[:0], append(w.frames[:0], frame{op: opBlock, results: t.results})
	w.levels, w.arms = 0, arms{}
	w.chargeOne()
	r := w.r
	for len(w.frames) > 0 {
		start := r.at
		op := r.byte()
		w.line(start, int(weights[op]))
		s := &shapes[op]
		if !s.known {
			w.special(op, start)
			continue
		}
		if s.memory {
			w.address(s, start)
		}
		w.apply(s.in, s.out)
	}
	r.end("the code of the function")
}

// address reads the immediate of a load or store.
func (w *walker) address(s *shape, start int) {
	if w.m.memories == 0 {
		fail(IndexOutOfRange, start, "memory 0 does not exist, the module has 0")
	}
	align := w.r.u32()
	if align >= 0x40 {
		fail(Unsupported, start, "the module uses several memories")
	}
	if align > uint32(s.align) {
		fail(Malformed, start, "an alignment is wider than its access")
	}
	w.r.u32()
}

func (w *walker) top() *frame { return &w.frames[len(w.frames)-1] }

func (w *walker) push(t byte) { w.stack = append(w.stack, t) }

func (w *walker) pushAll(ts []byte) { w.stack = append(w.stack, ts...) }

// pop takes one operand of the wanted type, or of any.
func (w *walker) pop(want byte) byte {
	f := w.top()
	n := len(w.stack)
	if n == f.height {
		if !f.unreachable {
			fail(TypeMismatch, w.r.at, "an instruction lacks an operand")
		}
		return want
	}
	has := w.stack[n-1]
	w.stack = w.stack[:n-1]
	switch {
	case has == want || want == unknown:
		return has
	case has == unknown:
		return want
	}
	fail(TypeMismatch, w.r.at, "an operand has the type 0x%02x instead of 0x%02x", has, want)
	return 0
}

func (w *walker) popAll(ts []byte) {
	for k := len(ts) - 1; k >= 0; k-- {
		w.pop(ts[k])
	}
}

func (w *walker) apply(in, out string) {
	for k := len(in) - 1; k >= 0; k-- {
		w.pop(in[k])
	}
	if out != "" {
		w.push(out[0])
	}
}

// unreachable ends the straight line: what follows never runs until the block ends.
func (w *walker) unreachable() {
	f := w.top()
	f.unreachable = true
	w.stack = w.stack[:f.height]
}

func (w *walker) open(op byte, start int, params, results []byte) {
	arm := op == opBlock && w.arms.has(w.r.b, start)
	if !arm {
		w.levels++
	}
	if w.levels > maxNesting || len(w.frames) > maxArms {
		fail(NestingTooDeep, start, "blocks are nested more than %d deep", maxNesting)
	}
	w.moved += len(params) + len(results)
	w.popAll(params)
	w.frames = append(w.frames, frame{op: op, arm: arm, params: params, results: results, height: len(w.stack), entered: w.since})
	w.pushAll(params)
}

// leave checks that exactly the results of the innermost block are there, and takes them.
func (w *walker) leave() *frame {
	f := w.top()
	w.popAll(f.results)
	if len(w.stack) != f.height {
		fail(TypeMismatch, w.r.at, "a block leaves more values than it says")
	}
	return f
}

// arms knows the blocks that only make the arms of one switch: a row of blocks that opens right before the br_table that
// chooses among them. The row counts as one level of nesting. A switch is written so in WebAssembly, each arm costs the
// compiler the same, and every function of a Go guest is such a switch, one of the runtime with 549 arms.
type arms struct {
	seen int // up to where rows were looked for
	end  int // of the last row
}

// has tells whether the block that begins at start is an arm other than the first.
func (a *arms) has(b []byte, start int) bool {
	if start < a.seen {
		return start < a.end
	}
	at := start
	for at+1 < len(b) && b[at] == opBlock && b[at+1] == typeEmpty {
		at += 2
	}
	a.seen = at
	if at++; at >= len(b) || b[at-1] != opLocalGet {
		return false
	}
	for at < len(b) && b[at] >= 0x80 {
		at++
	}
	if at+1 < len(b) && b[at+1] == opBrTable {
		a.end = a.seen
	}
	return false
}

func (w *walker) end() {
	f := w.leave()
	if f.op == opIf && string(f.params) != string(f.results) {
		fail(TypeMismatch, w.r.at, "an if without else has other results than parameters")
	}
	if !f.arm {
		w.levels--
	}
	w.join(f)
	uses, results := f.uses, f.results
	w.merged += min(uses, len(w.locals)) * (f.branches + 1)
	if w.frames = w.frames[:len(w.frames)-1]; len(w.frames) > 0 {
		w.top().uses += uses
	}
	w.pushAll(results)
}

// target reads the index of a label.
func (w *walker) target() *frame {
	f := &w.frames[len(w.frames)-1-w.r.index(len(w.frames), "label")]
	f.branches++
	f.joined = max(f.joined, w.since)
	return f
}

func (w *walker) blockType() (params, results []byte) {
	r := w.r
	start := r.at
	if b := r.byte(); b == typeEmpty {
		return nil, nil
	} else if b < 0x80 && b >= 0x40 { // a negative number of one byte: a value type
		valueType(b, start)
		return nil, r.b[start : start+1]
	}
	r.at = start
	n := r.signed(33)
	if n < 0 {
		fail(Malformed, start, "there is no type of block %d", n)
	}
	if n >= int64(len(w.m.types)) {
		fail(IndexOutOfRange, start, "type %d does not exist, the module has %d", n, len(w.m.types))
	}
	t := w.m.types[n]
	return t.params, t.results
}
