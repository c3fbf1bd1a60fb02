package binary

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// reader walks over bytes and keeps its first error; after one, everything it returns is zero.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.at = len(r.b)
}

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail("cut off at byte %d", len(r.b))
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.fail("number too large at byte %d", r.at)
	return 0
}

func (r *reader) take(n uint32) []byte {
	if r.err != nil || int64(n) > int64(len(r.b)-r.at) {
		r.fail("cut off: %d bytes announced, %d there", n, len(r.b)-r.at)
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at]
}

func (r *reader) name() string {
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		r.fail("name is not UTF-8")
		return ""
	}
	return string(b)
}

// each reads a count and calls f that often, or until something is wrong.
func (r *reader) each(f func()) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		f()
	}
}

// limits reads the limits of a table or memory and returns the least size.
func (r *reader) limits() uint32 {
	flags := r.byte()
	least := r.u32()
	if flags&1 != 0 {
		r.u32()
	}
	if flags > 1 {
		r.fail("shared and 64-bit memories are not supported")
	}
	return least
}

func (r *reader) signature() Signature {
	if form := r.byte(); form != 0x60 {
		r.fail("unknown form of type 0x%02x", form)
		return ""
	}
	return Signature("(" + r.types() + ")->(" + r.types() + ")")
}

func (r *reader) types() string {
	var s []string
	r.each(func() { s = append(s, valueType(r.byte())) })
	return strings.Join(s, " ")
}

func valueType(b byte) string {
	switch b {
	case 0x7f:
		return "i32"
	case 0x7e:
		return "i64"
	case 0x7d:
		return "f32"
	case 0x7c:
		return "f64"
	case 0x7b:
		return "v128"
	case 0x70:
		return "funcref"
	case 0x6f:
		return "externref"
	}
	return fmt.Sprintf("0x%02x", b)
}
