package body

import (
	"bytes"
	"slices"
)

// Apply runs the edits on the original body and returns the payload of one attempt; the original stays what it was, for
// the next one. A body that does not scan is a *SyntaxError; nothing else fails. Call it from the goroutine that owns b.
func (e *Editor) Apply(b *Buffer) (Payload, error) {
	s, err := b.Scan()
	if err != nil {
		return Payload{}, err
	}
	if len(e.steps) == 0 {
		return b.Payload(), nil
	}
	doc := b.Bytes()
	if e.lone {
		if p, ok := e.steps[0].direct(s, doc); ok {
			return b.emit(p[:]), nil
		}
	}
	room := kidsPool.Get().(*[]kid)
	root := s.root(doc, (*room)[:0])
	for i := range e.steps {
		e.steps[i].run(&root)
	}
	patches := root.patches(make([]patch, 0, 8))
	clear(root.kids)
	*room = root.kids[:0]
	kidsPool.Put(room)
	return b.emit(patches), nil
}

// direct finds the one patch of a lone set, when the member is there once: the usual case, a changed model.
func (s *step) direct(scan *Scan, doc []byte) (p [1]patch, ok bool) {
	name := s.path[0].name
	found := scan.find(doc, name)
	if found < 0 {
		return p, false
	}
	for i := range found {
		if scan.list[i].is(doc, name) {
			return p, false
		}
	}
	m := &scan.list[found]
	p[0] = patch{int(m.start), int(m.end), s.value}
	return p, true
}

// emit carries out patches, which are in order and do not overlap, and returns the payload.
func (b *Buffer) emit(patches []patch) Payload {
	doc := b.mem()
	patches = slices.DeleteFunc(patches, func(p patch) bool { return bytes.Equal(doc[p.start:p.end], p.text) })
	if len(patches) == 0 {
		return b.Payload()
	}
	if p, ok := b.emitInPlace(doc, patches); ok {
		return p
	}
	size := b.n
	for _, p := range patches {
		size += len(p.text) - (p.end - p.start)
	}
	blk := new(block).acquire(size)
	out := appendPatched(blk.buf[frontRoom:frontRoom], doc, patches, 0, b.n)
	return Payload{bytes: out, blk: blk, changed: true}
}

// emitInPlace leaves the longest untouched stretch where it is and writes what stands before and behind it into the room
// around the body. It refuses when somebody may be reading, when that is not much less work than a copy, or when there is
// not enough room.
func (b *Buffer) emitInPlace(doc []byte, patches []patch) (Payload, bool) {
	if !b.blk.exclusive() {
		return Payload{}, false
	}
	cut, from, to := longestStretch(patches, len(doc))
	if 2*(to-from) < len(doc) {
		return Payload{}, false
	}
	before, behind := patches[:cut], patches[cut:]
	start, end := frontRoom+from-patchedLen(before, 0, from), frontRoom+to+patchedLen(behind, to, len(doc))
	if start < 0 || end > len(b.blk.buf) {
		return Payload{}, false
	}
	b.head, b.tail = slices.Clone(doc[:from]), slices.Clone(doc[to:])
	b.edited = true
	mem := b.blk.buf
	appendPatched(mem[start:start], b.head, before, 0, from)
	for i := range behind {
		behind[i].start, behind[i].end = behind[i].start-to, behind[i].end-to
	}
	appendPatched(mem[frontRoom+to:frontRoom+to], b.tail, behind, 0, len(b.tail))
	b.blk.hold()
	return Payload{bytes: mem[start:end:end], blk: b.blk, changed: true}, true
}

// longestStretch returns the longest gap between patches and how many of them stand before it.
func longestStretch(patches []patch, n int) (cut, from, to int) {
	at := 0
	for i := range len(patches) + 1 {
		next := n
		if i < len(patches) {
			next = patches[i].start
		}
		if next-at > to-from || i == 0 {
			cut, from, to = i, at, next
		}
		if i < len(patches) {
			at = patches[i].end
		}
	}
	return cut, from, to
}

func patchedLen(patches []patch, from, to int) int {
	n := to - from
	for _, p := range patches {
		n += len(p.text) - (p.end - p.start)
	}
	return n
}

func appendPatched(dst, src []byte, patches []patch, from, to int) []byte {
	for _, p := range patches {
		dst = append(append(dst, src[from:p.start]...), p.text...)
		from = p.end
	}
	return append(dst, src[from:to]...)
}
