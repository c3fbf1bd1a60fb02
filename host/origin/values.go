package origin

import (
	"bytes"
	"encoding/json"
	"iter"
)

// mark is the member that holds an account's state in the dialect responses. In a text that speaks of it the quotes are escaped, so
// that it is not found there.
var mark = []byte(`"encrypted_content"`)

// Holds says whether a document, or a run of events, may hold such state.
func Holds(b []byte) bool { return bytes.Contains(b, mark) }

// Values yields the texts of all members encrypted_content in a document or a run of events, without reading the rest. A value may be
// a part of b.
func Values(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			i := bytes.Index(b, mark)
			if i < 0 {
				return
			}
			b = b[i+len(mark):]
			value, n := text(b)
			b = b[n:]
			if len(value) > 0 && !yield(value) {
				return
			}
		}
	}
}

// text is the JSON string behind a colon, and how long both are together; nothing where there is none, or not all of it.
func text(b []byte) (value []byte, n int) {
	for n < len(b) && (b[n] == ':' || b[n] == ' ' || b[n] == '\t' || b[n] == '\r' || b[n] == '\n') {
		n++
	}
	if n == len(b) || b[n] != '"' {
		return nil, n
	}
	start, escaped := n, false
	for n++; n < len(b) && b[n] != '"'; n++ {
		if b[n] == '\\' {
			escaped = true
			n++
		}
	}
	if n >= len(b) {
		return nil, len(b)
	}
	n++
	if !escaped {
		return b[start+1 : n-1], n
	}
	var s string
	if json.Unmarshal(b[start:n], &s) != nil {
		return nil, n
	}
	return []byte(s), n
}

// maxValue bounds what a Reader keeps of an unfinished value.
const maxValue = 1 << 20

// Reader finds the values of a document that comes in pieces. The zero value is ready. Not for concurrent use.
type Reader struct{ rest []byte }

// Values yields the texts of all members encrypted_content that end in this piece.
func (r *Reader) Values(piece []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		b := piece
		if len(r.rest) > 0 {
			b = append(r.rest, piece...)
		}
		keep := max(len(b)-len(mark)+1, 0)
		for at := 0; ; {
			i := bytes.Index(b[at:], mark)
			if i < 0 {
				keep = max(keep, at)
				break
			}
			begins := at + i
			value, n := text(b[begins+len(mark):])
			at = begins + len(mark) + n
			if at == len(b) && value == nil { // it goes on in the next piece
				keep = begins
				break
			}
			if len(value) > 0 && !yield(value) {
				break
			}
		}
		if len(b)-keep > maxValue {
			keep = len(b)
		}
		r.rest = append(r.rest[:0:0], b[keep:]...)
	}
}
