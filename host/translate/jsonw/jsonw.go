// Package jsonw owns the writing of JSON text piece by piece, for bodies and events that are put together from parts of others
// and so have no Go type: raw values keep their digits and the order of their keys. It allocates nothing but the text.
package jsonw

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Writer appends one JSON text to B. Commas come by themselves; braces and brackets are the caller's to balance. Not for
// concurrent use.
type Writer struct {
	B []byte
}

// comma puts one when a value stands before this place.
func (w *Writer) comma() {
	if n := len(w.B); n > 0 {
		switch w.B[n-1] {
		case '{', '[', ':', ',', '\n', ' ':
		default:
			w.B = append(w.B, ',')
		}
	}
}

// Open begins an object.
func (w *Writer) Open() *Writer { w.comma(); w.B = append(w.B, '{'); return w }

// Close ends an object.
func (w *Writer) Close() *Writer { w.B = append(w.B, '}'); return w }

// List begins an array.
func (w *Writer) List() *Writer { w.comma(); w.B = append(w.B, '['); return w }

// End ends an array.
func (w *Writer) End() *Writer { w.B = append(w.B, ']'); return w }

// Key writes a member's name; its value comes next.
func (w *Writer) Key(name string) *Writer {
	w.comma()
	w.B = append(AppendString(w.B, name), ':')
	return w
}

// String writes a text.
func (w *Writer) String(s string) *Writer { w.comma(); w.B = AppendString(w.B, s); return w }

// Int writes a whole number.
func (w *Writer) Int(n int64) *Writer { w.comma(); w.B = strconv.AppendInt(w.B, n, 10); return w }

// Bool writes true or false.
func (w *Writer) Bool(b bool) *Writer { w.comma(); w.B = strconv.AppendBool(w.B, b); return w }

// Null writes null.
func (w *Writer) Null() *Writer { w.comma(); w.B = append(w.B, "null"...); return w }

// Raw writes a value that is JSON already; nothing is written as null.
func (w *Writer) Raw(v []byte) *Writer {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return w.Null()
	}
	w.comma()
	w.B = append(w.B, v...)
	return w
}

const hex = "0123456789abcdef"

// AppendString appends s as a JSON string. Only what JSON asks for is escaped, so that text keeps its bytes; what is no UTF-8
// becomes the replacement character.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}
