package body

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// Payload is the body of one attempt. It stays valid, whatever happens to the buffer, until its Body is closed or it is
// discarded. One that is neither is left to the garbage collector.
type Payload struct {
	bytes   []byte
	blk     *block
	changed bool
}

// Bytes returns what will be sent. It must not be changed.
func (p Payload) Bytes() []byte { return p.bytes }

// Len returns the Content-Length.
func (p Payload) Len() int64 { return int64(len(p.bytes)) }

// Changed tells whether the payload differs from the original body.
func (p Payload) Changed() bool { return p.changed }

// Discard gives the payload up in place of Body, for an attempt that is not made after all.
func (p Payload) Discard() { p.blk.release() }

// Body returns the body for one http.Request; call it once. A small one is a bare bytes.Reader in io.NopCloser, which the
// standard transport writes together with the headers. A large one returns its memory when it is closed.
func (p Payload) Body() io.ReadCloser {
	if p.blk.class < 0 {
		return io.NopCloser(bytes.NewReader(p.bytes))
	}
	b := &pooledBody{blk: p.blk}
	b.r.Reset(p.bytes)
	return b
}

var errClosedBody = errors.New("the request body was read after it was closed")

// pooledBody gives its block back once it is closed and no read is under way: HTTP/2 closes a body while another
// goroutine may still read it.
type pooledBody struct {
	mu     sync.Mutex
	r      bytes.Reader
	blk    *block // nil once given back
	busy   bool   // WriteTo runs
	closed bool
}

func (b *pooledBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, errClosedBody
	}
	return b.r.Read(p)
}

// WriteTo hands the rest of the body over in one piece.
func (b *pooledBody) WriteTo(w io.Writer) (int64, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return 0, errClosedBody
	}
	b.busy = true
	b.mu.Unlock()
	n, err := b.r.WriteTo(w)
	b.mu.Lock()
	b.busy = false
	b.giveBack()
	b.mu.Unlock()
	return n, err
}

func (b *pooledBody) Close() error {
	b.mu.Lock()
	b.closed = true
	b.giveBack()
	b.mu.Unlock()
	return nil
}

func (b *pooledBody) giveBack() {
	if b.closed && !b.busy && b.blk != nil {
		b.blk.release()
		b.blk = nil
	}
}
