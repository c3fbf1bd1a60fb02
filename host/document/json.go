package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ParseJSON reads b as one JSON value. A syntax fault ends the reading, so there is at most one of them; repeated names
// are all reported. The tree is nil when there is any fault. file is only the name that faults carry.
func ParseJSON(file string, b []byte) (*Node, []Fault) {
	r := &jsonReader{file: file, src: b, line: 1, column: 1}
	if len(b) > MaxBytes {
		r.fail(fmt.Sprintf("is larger than %d bytes", MaxBytes))
		return nil, r.faults
	}
	n := r.value("", 0)
	r.space()
	if !r.failed && r.at < len(r.src) {
		r.fail("has text after its end")
	}
	if len(r.faults) > 0 {
		return nil, sorted(r.faults)
	}
	return n, nil
}

// jsonReader walks the text once and keeps the place of the next byte.
type jsonReader struct {
	file         string
	src          []byte
	at           int
	line, column int
	values       int
	failed       bool // a syntax fault was found; everything unwinds
	faults       []Fault
}

func (r *jsonReader) fail(message string) {
	if r.failed {
		return
	}
	r.failed = true
	r.faults = append(r.faults, Fault{File: r.file, Message: message, Line: r.line, Column: r.column})
}

// skip moves over n bytes.
func (r *jsonReader) skip(n int) {
	for _, c := range r.src[r.at : r.at+n] {
		switch {
		case c == '\n':
			r.line, r.column = r.line+1, 1
		case utf8.RuneStart(c):
			r.column++
		}
	}
	r.at += n
}

func (r *jsonReader) space() {
	n := 0
	for r.at+n < len(r.src) && strings.IndexByte(" \t\r\n", r.src[r.at+n]) >= 0 {
		n++
	}
	r.skip(n)
}

func (r *jsonReader) peek() byte {
	r.space()
	if r.at >= len(r.src) {
		return 0
	}
	return r.src[r.at]
}

// take skips c and blanks before it, or fails.
func (r *jsonReader) take(c byte, message string) bool {
	if r.peek() != c || r.at >= len(r.src) {
		r.fail(message)
		return false
	}
	r.skip(1)
	return true
}

func (r *jsonReader) value(path string, depth int) *Node {
	c := r.peek()
	r.values++
	switch {
	case r.failed:
		return nil
	case depth > MaxDepth:
		r.fail(fmt.Sprintf("is nested deeper than %d", MaxDepth))
		return nil
	case r.values > MaxValues:
		r.fail(fmt.Sprintf("has more than %d values", MaxValues))
		return nil
	case r.at >= len(r.src):
		r.fail("ends too early: a value is missing")
		return nil
	}
	n := &Node{Line: r.line, Column: r.column, File: r.file}
	switch c {
	case '{':
		r.object(n, path, depth)
	case '[':
		r.list(n, path, depth)
	case '"':
		n.Kind = Text
		n.Text = r.text()
	default:
		r.word(n)
	}
	return n
}

func (r *jsonReader) object(n *Node, path string, depth int) {
	n.Kind = Map
	r.skip(1)
	if r.peek() == '}' {
		r.skip(1)
		return
	}
	seen := map[string]bool{}
	for !r.failed {
		if r.peek() != '"' {
			r.fail("is not valid JSON: a name in double quotes is missing")
			return
		}
		m := Member{Line: r.line, Column: r.column}
		m.Name = r.text()
		at := Join(path, m.Name)
		if seen[m.Name] {
			r.faults = append(r.faults, Fault{File: r.file, Path: at, Message: "is given twice", Line: m.Line, Column: m.Column})
		}
		if !r.take(':', "is not valid JSON: a colon is missing") {
			return
		}
		m.Value = r.value(at, depth+1)
		if !seen[m.Name] {
			n.Members = append(n.Members, m)
		}
		seen[m.Name] = true
		if r.peek() == '}' {
			r.skip(1)
			return
		}
		r.take(',', "is not valid JSON: a comma or a closing brace is missing")
	}
}

func (r *jsonReader) list(n *Node, path string, depth int) {
	n.Kind = List
	r.skip(1)
	if r.peek() == ']' {
		r.skip(1)
		return
	}
	for !r.failed {
		n.Items = append(n.Items, r.value(At(path, len(n.Items)), depth+1))
		if r.peek() == ']' {
			r.skip(1)
			return
		}
		r.take(',', "is not valid JSON: a comma or a closing bracket is missing")
	}
}

// text reads a string. The quote is the next byte.
func (r *jsonReader) text() string {
	end := r.at + 1
	for end < len(r.src) && r.src[end] != '"' {
		if r.src[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(r.src) {
		r.fail("is not valid JSON: a text does not end")
		return ""
	}
	raw := r.src[r.at : end+1]
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || !utf8.Valid(raw) {
		r.fail("is not valid JSON: a text has a bad escape or a control character, or is not UTF-8")
		return ""
	}
	r.skip(len(raw))
	return s
}

func (r *jsonReader) word(n *Node) {
	end := bytes.IndexAny(r.src[r.at:], " \t\r\n,:]}[{\"")
	if end < 0 {
		end = len(r.src) - r.at
	}
	n.Text = string(r.src[r.at : r.at+end])
	switch {
	case n.Text == "null":
		n.Kind, n.Text = Null, ""
	case n.Text == "true", n.Text == "false":
		n.Kind = Bool
	case validNumber(n.Text):
		n.Kind = Number
	default:
		r.fail("is not valid JSON: a value is missing or misspelt")
		return
	}
	r.skip(end)
}

// validNumber says whether s is a number as JSON writes it.
func validNumber(s string) bool {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false
	}
	return json.Valid([]byte(s))
}
