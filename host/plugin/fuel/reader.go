package fuel

import (
	"encoding/binary"
	"unicode/utf8"
)

// reader walks over a part of the file; at is an offset in the whole file. Its methods fail at the end of the part.
type reader struct {
	b  []byte // the file up to the end of the part
	at int
}

func (r *reader) done() bool { return r.at >= len(r.b) }

func (r *reader) cut() {
	fail(Truncated, len(r.b), "the module is cut off or announces more than it holds")
}

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.cut()
	}
	r.at++
	return r.b[r.at-1]
}

// u32 reads an unsigned LEB128 number of at most 5 bytes and 32 bits.
func (r *reader) u32() uint32 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		r.at++
		return uint32(r.b[r.at-1])
	}
	return uint32(r.unsigned())
}

func (r *reader) unsigned() (v uint64) {
	start := r.at
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v>>32 != 0 {
				break
			}
			return v
		}
	}
	fail(NumberInvalid, start, "a number does not fit its 32 bits")
	return 0
}

// signed reads a signed LEB128 number of at most that many bits.
func (r *reader) signed(bits int) (v int64) {
	start := r.at
	for shift := 0; shift < bits; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c >= 0x80 {
			continue
		}
		if left := bits - shift; left < 7 { // what is beyond the width must repeat the sign
			if top := int8(c<<1) >> left; top != 0 && top != -1 {
				break
			}
		}
		if shift+7 < 64 {
			v = v << (64 - shift - 7) >> (64 - shift - 7)
		}
		return v
	}
	fail(NumberInvalid, start, "a number does not fit its %d bits", bits)
	return 0
}

// take returns the next n bytes.
func (r *reader) take(n uint32) []byte {
	if int64(n) > int64(len(r.b)-r.at) {
		r.cut()
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at]
}

// part returns a reader over the next n bytes and steps over them.
func (r *reader) part(n uint32) *reader {
	start := r.at
	r.take(n)
	return &reader{b: r.b[:r.at:r.at], at: start}
}

// count reads the length of a vector whose items have at least one byte each.
func (r *reader) count(most int, code Code, what string) int {
	start := r.at
	n := int64(r.u32())
	if n > int64(most) {
		fail(code, start, "the module has %d %s, at most %d are allowed", n, what, most)
	}
	if n > int64(len(r.b)-r.at) {
		r.cut()
	}
	return int(n)
}

func (r *reader) name() string {
	start := r.at
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		fail(Malformed, start, "a name is not UTF-8")
	}
	return string(b)
}

// end fails unless all of the part was read.
func (r *reader) end(what string) {
	if !r.done() {
		fail(Malformed, r.at, "%s is longer than what it holds", what)
	}
}

// appendU32 writes an unsigned LEB128 number.
func appendU32(b []byte, v uint32) []byte { return binary.AppendUvarint(b, uint64(v)) }

// appendS64 writes a signed LEB128 number.
func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c < 0x40 || v == -1 && c >= 0x40 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
