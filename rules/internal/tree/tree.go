// Package tree reads JSON that strangers wrote: it never fails, it is bounded in depth and in number of values, and of a
// text that was cut off it keeps what came before the cut. Package rules looks at error bodies through it.
package tree

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxDepth  = 32
	maxValues = 4096
)

// Kind is the type of a Value.
type Kind uint8

// The kinds. None is the zero Value: nothing was there.
const (
	None Kind = iota
	Null
	Bool
	Number
	String
	Object
	Array
)

// Value is one JSON value. Text is a string decoded, or a number or boolean as it was written. Keys go with the Items of
// an object; a key that comes twice is there twice.
type Value struct {
	Kind  Kind
	Text  string
	Keys  []string
	Items []Value
}

// Parse reads the first JSON value of s. whole says that the value ended before s did, and size how much of s it took.
// What is not JSON gives a Value of kind None.
func Parse(s string) (v Value, size int, whole bool) {
	p := parser{s: s, left: maxValues}
	v, whole = p.value(0)
	return v, p.at, whole
}

// Scalar reports whether v has a text: a string, a number or a boolean.
func (v Value) Scalar() bool { return v.Kind == String || v.Kind == Number || v.Kind == Bool }

// Key returns the first member with one of the names, in the order of the names and in any letter case. A null does not
// count.
func (v Value) Key(names ...string) Value {
	if v.Kind != Object {
		return Value{}
	}
	for _, name := range names {
		for i, k := range v.Keys {
			if strings.EqualFold(k, name) && v.Items[i].Kind != Null {
				return v.Items[i]
			}
		}
	}
	return Value{}
}

// Strings calls f with every string in v, in the order of the text.
func (v Value) Strings(f func(string)) {
	if v.Kind == String {
		f(v.Text)
	}
	for _, item := range v.Items {
		item.Strings(f)
	}
}

type parser struct {
	s    string
	at   int
	left int // values that may still be made

	// The members of the objects and arrays that are open, and the room where those of closed ones go.
	keys  []string
	items []Value
	names room[string]
	room  room[Value]
}

// room gives out slices of few large ones, since most objects have few members.
type room[T any] struct {
	free []T
	next int // size of the next large one
}

const (
	leastRoom = 8
	mostRoom  = 512
)

// keep returns a copy of list that shares room with others but not its end.
func (r *room[T]) keep(list []T) []T {
	n := len(list)
	if n == 0 {
		return nil
	}
	if n > len(r.free) {
		r.next = min(max(leastRoom, 2*r.next), mostRoom)
		r.free = make([]T, max(n, r.next))
	}
	kept := r.free[:n:n]
	r.free = r.free[n:]
	copy(kept, list)
	return kept
}

func (p *parser) blank() {
	for p.at < len(p.s) {
		switch p.s[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// value reads one value; false means that the text ended, broke or became too large inside it.
func (p *parser) value(depth int) (Value, bool) {
	p.blank()
	if p.at >= len(p.s) || p.left == 0 {
		return Value{}, false
	}
	p.left--
	switch c := p.s[p.at]; {
	case c == '{' || c == '[':
		if depth == maxDepth {
			return Value{}, false
		}
		p.at++
		if c == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case c == '"':
		text, ok := p.text()
		return Value{Kind: String, Text: text}, ok
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for _, word := range [...]Value{{Kind: Bool, Text: "true"}, {Kind: Bool, Text: "false"}, {Kind: Null, Text: "null"}} {
		if strings.HasPrefix(p.s[p.at:], word.Text) {
			p.at += len(word.Text)
			return word, true
		}
	}
	return Value{}, false
}

func (p *parser) object(depth int) (v Value, ok bool) {
	keys, items := len(p.keys), len(p.items)
	ok = p.members(depth)
	v = Value{Kind: Object, Keys: p.names.keep(p.keys[keys:]), Items: p.room.keep(p.items[items:])}
	p.keys, p.items = p.keys[:keys], p.items[:items]
	return v, ok
}

// members reads the members of an object up to its end, which false says is missing.
func (p *parser) members(depth int) bool {
	for first := true; ; first = false {
		done, ok := p.separator('}', first)
		if done || !ok {
			return ok
		}
		if p.at >= len(p.s) || p.s[p.at] != '"' {
			return false
		}
		key, ok := p.text()
		if !ok {
			return false
		}
		p.blank()
		if p.at >= len(p.s) || p.s[p.at] != ':' {
			return false
		}
		p.at++
		item, ok := p.value(depth + 1)
		if item.Kind != None {
			p.keys, p.items = append(p.keys, key), append(p.items, item)
		}
		if !ok {
			return false
		}
	}
}

func (p *parser) array(depth int) (v Value, ok bool) {
	items := len(p.items)
	for first := true; ; first = false {
		done := false
		if done, ok = p.separator(']', first); done || !ok {
			break
		}
		item := Value{}
		if item, ok = p.value(depth + 1); item.Kind != None {
			p.items = append(p.items, item)
		}
		if !ok {
			break
		}
	}
	v = Value{Kind: Array, Items: p.room.keep(p.items[items:])}
	p.items = p.items[:items]
	return v, ok
}

// separator moves to the next member: over a comma, except before the first one. done means that the end was there.
func (p *parser) separator(end byte, first bool) (done, ok bool) {
	p.blank()
	if p.at >= len(p.s) {
		return false, false
	}
	if p.s[p.at] == end {
		p.at++
		return true, true
	}
	if first {
		return false, true
	}
	if p.s[p.at] != ',' {
		return false, false
	}
	p.at++
	p.blank()
	return false, p.at < len(p.s)
}

func (p *parser) number() (Value, bool) {
	start := p.at
	for p.at < len(p.s) && strings.IndexByte("+-.0123456789eE", p.s[p.at]) >= 0 {
		p.at++
	}
	return Value{Kind: Number, Text: p.s[start:p.at]}, true
}

// text reads a string; of one that was cut off it returns the part that is there. Raw control characters, which JSON
// forbids, are kept: relays send them.
func (p *parser) text() (string, bool) {
	p.at++
	rest := p.s[p.at:]
	end := strings.IndexByte(rest, '"')
	if end < 0 {
		end = len(rest)
	}
	if slash := strings.IndexByte(rest[:end], '\\'); slash >= 0 {
		return p.escaped(slash)
	}
	p.at = min(p.at+end+1, len(p.s))
	return rest[:end], end < len(rest)
}

// escaped reads a string from p.at on whose first escape is slash bytes away.
func (p *parser) escaped(slash int) (string, bool) {
	var b strings.Builder
	for {
		b.WriteString(p.s[p.at : p.at+slash])
		p.at += slash
		switch {
		case p.at >= len(p.s):
			return b.String(), false
		case p.s[p.at] == '"':
			p.at++
			return b.String(), true
		case p.at+1 >= len(p.s):
			p.at++
			return b.String(), false
		}
		p.escape(&b)
		slash = 0
		for p.at+slash < len(p.s) && p.s[p.at+slash] != '"' && p.s[p.at+slash] != '\\' {
			slash++
		}
	}
}

// escape decodes the escape at p.at, which has at least two bytes.
func (p *parser) escape(b *strings.Builder) {
	c := p.s[p.at+1]
	if c == 'u' {
		r, size := p.unicode()
		b.WriteRune(r)
		p.at += size
		return
	}
	p.at += 2
	switch c {
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	}
	b.WriteByte(c)
}

// unicode decodes \uXXXX, and two of them that make one character. A lone half becomes U+FFFD.
func (p *parser) unicode() (rune, int) {
	r, ok := hex(p.s, p.at)
	if !ok {
		return utf8.RuneError, 2
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := hex(p.s, p.at+6); ok {
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, 12
		}
	}
	return utf8.RuneError, 6
}

func hex(s string, at int) (rune, bool) {
	if at+6 > len(s) || s[at] != '\\' || s[at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[at+2 : at+6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
