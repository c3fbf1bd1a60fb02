package body

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// block is the memory of a body. Pooled ones count who uses them: the buffer and each payload. Small ones are left to the
// garbage collector, so that their payloads can be handed out as a bare bytes.Reader.
type block struct {
	buf    []byte
	class  int // index into pools, or -1
	refs   atomic.Int32
	shared bool // a small block was handed out: nobody will say when it has been read
}

// Pooled blocks come in powers of two from 32 KiB to 2 MiB; larger ones are made and dropped, since one of them would
// keep more memory than many others together.
const (
	firstClassBits = 15
	classes        = 7
)

// pools hold memory only, no state: what they keep never differs from what make returns, but for its content.
var pools [classes]sync.Pool

// acquire returns a block for n bytes of body and the room around it: b itself when n is small, else one with a
// reference for the caller.
func (b *block) acquire(n int) *block {
	if n <= smallMax {
		b.buf, b.class = make([]byte, frontRoom+n+backRoom), -1
		return b
	}
	size := frontRoom + n + backRoom
	class := bits.Len(uint(size-1)) - firstClassBits
	if class < 0 {
		class = 0
	}
	if class >= classes {
		big := &block{buf: make([]byte, size), class: classes}
		big.refs.Store(1)
		return big
	}
	p, _ := pools[class].Get().(*block)
	if p == nil {
		p = &block{buf: make([]byte, 1<<(class+firstClassBits)), class: class}
	}
	p.refs.Store(1)
	return p
}

// hold adds the reference of one payload.
func (b *block) hold() {
	if b.class < 0 {
		b.shared = true
		return
	}
	b.refs.Add(1)
}

func (b *block) release() {
	if b.class < 0 || b.refs.Add(-1) > 0 {
		return
	}
	if b.class < classes {
		pools[b.class].Put(b)
	}
}

// exclusive tells whether no payload can still be read, so that the owner may write.
func (b *block) exclusive() bool {
	if b.class < 0 {
		return !b.shared
	}
	return b.refs.Load() == 1
}

// kidsPool holds the lists of top-level members that Apply works on; they are cleared before they go back.
var kidsPool = sync.Pool{New: func() any { k := make([]kid, 0, 2*inlineMembers); return &k }}
