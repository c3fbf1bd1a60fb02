package body

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// The reasons why a body is not taken. The gateway answers them with 413, 415 and 400.
var (
	ErrTooLarge = errors.New("the request body is larger than the limit")
	ErrEncoding = errors.New("the Content-Encoding is not supported: send the body plain, gzip or zstd")
	ErrCorrupt  = errors.New("the request body does not fit its Content-Encoding")
)

const (
	frontRoom = 256 // before a body, for a longer model name
	backRoom  = 128 // behind it, for what edits append and for clients that send the model last
	smallMax  = 16 << 10
	firstPart = 1 << 20 // what a claimed length is trusted for before the bytes are there
)

// Buffer holds one request body as it came, from Read to Release. Except for the bodies of its payloads, which belong to
// the transport, it is used by one goroutine at a time.
type Buffer struct {
	blk  *block
	n    int
	scan Scan
	own  block // the memory of a small body, so that it costs no second allocation

	// While a payload edited in place is out, head and tail keep the original bytes that it replaced.
	head, tail []byte
	edited     bool
}

// Read reads a body of the given length, or to its end when contentLength is negative, and fails with ErrTooLarge as soon
// as it is known to exceed limit (INF-17). A body that ends early is an io.ErrUnexpectedEOF. Up to 16 KiB the memory is
// fresh; above, it comes from a pool and goes back when the buffer is released and every payload's Body is closed.
func Read(r io.Reader, contentLength, limit int64) (*Buffer, error) {
	limit = min(limit, math.MaxInt32-frontRoom-backRoom)
	if contentLength > limit {
		return nil, ErrTooLarge
	}
	b := new(Buffer)
	var err error
	if contentLength >= 0 && contentLength <= firstPart {
		err = b.readExact(r, int(contentLength))
	} else {
		err = b.readGrowing(r, contentLength, limit)
	}
	if err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

func (b *Buffer) readExact(r io.Reader, n int) error {
	b.blk, b.n = b.own.acquire(n), n
	got, err := io.ReadFull(r, b.mem())
	if err != nil {
		return readFault(err, got, int64(n))
	}
	return nil
}

// readGrowing reads up to a claimed length or the end, in memory that grows with what came, so that a claim alone costs
// nothing.
func (b *Buffer) readGrowing(r io.Reader, claimed, limit int64) error {
	size, most := 4<<10, limit+1
	if claimed >= 0 {
		size, most = firstPart, claimed
	}
	b.blk = b.own.acquire(size)
	for int64(b.n) < most {
		if b.n == size {
			size = int(min(int64(size)*2, most))
			b.grow(size)
		}
		got, err := r.Read(b.blk.buf[frontRoom+b.n : frontRoom+size])
		b.n += got
		if err == io.EOF {
			if claimed >= 0 && int64(b.n) < claimed {
				return readFault(io.ErrUnexpectedEOF, b.n, claimed)
			}
			break
		}
		if err != nil {
			return readFault(err, b.n, claimed)
		}
	}
	if int64(b.n) > limit {
		return ErrTooLarge
	}
	return nil
}

func (b *Buffer) grow(size int) {
	next := new(block).acquire(size)
	copy(next.buf[frontRoom:], b.mem())
	b.blk.release()
	b.blk = next
}

func readFault(err error, got int, want int64) error {
	if errors.Is(err, ErrCorrupt) {
		return err
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if want < 0 {
		return fmt.Errorf("read the request body after %d bytes: %w", got, err)
	}
	return fmt.Errorf("read the request body after %d of %d bytes: %w", got, want, err)
}

// mem is where the body lies; while edited, its edges are not the original.
func (b *Buffer) mem() []byte { return b.blk.buf[frontRoom : frontRoom+b.n] }

// Len returns the length of the original body.
func (b *Buffer) Len() int { return b.n }

// Bytes returns the original body. It must not be changed, and is valid until the next Apply or Release.
func (b *Buffer) Bytes() []byte {
	b.restore()
	return b.mem()
}

// restore makes the memory hold the original again. When a transport may still be reading the edited bytes, they are
// left alone and the original moves to other memory.
func (b *Buffer) restore() {
	if !b.edited {
		return
	}
	if !b.blk.exclusive() {
		next := new(block).acquire(b.n)
		copy(next.buf[frontRoom:], b.mem())
		b.blk.release()
		b.blk = next
	}
	mem := b.mem()
	copy(mem, b.head)
	copy(mem[len(mem)-len(b.tail):], b.tail)
	b.edited = false
}

// Scan validates the body and finds its top-level members, once; later calls return the same scan. The error is a
// *SyntaxError.
func (b *Buffer) Scan() (*Scan, error) {
	if b.scan.src != nil {
		return &b.scan, nil
	}
	if err := b.scan.run(b.Bytes()); err != nil {
		return nil, err
	}
	b.scan.src = b
	return &b.scan, nil
}

// Payload returns the original body for an attempt that edits nothing.
func (b *Buffer) Payload() Payload {
	b.restore()
	b.blk.hold()
	return Payload{bytes: b.mem(), blk: b.blk}
}

// Release gives up the buffer and its scan. Bodies that a transport still reads stay valid.
func (b *Buffer) Release() {
	if b.blk != nil {
		b.blk.release()
		b.blk = nil
	}
}
