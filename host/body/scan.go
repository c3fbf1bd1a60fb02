package body

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MaxDepth is how deep objects and arrays of a body may nest.
const MaxDepth = 512

// Kind is the type of a JSON value, told by its first byte.
type Kind byte

// The kinds of values.
const (
	Object Kind = '{'
	Array  Kind = '['
	String Kind = '"'
	Number Kind = '0'
	True   Kind = 't'
	False  Kind = 'f'
	Null   Kind = 'n'
)

// SyntaxError says where a body stops being the JSON object that it has to be.
type SyntaxError struct {
	Offset int
	What   string
}

// Error names the fault and its place; never a byte of the body.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("request body is not valid JSON: %s at byte %d", e.What, e.Offset)
}

// member is one top-level member. Offsets are 32 bits wide since Read refuses larger bodies.
type member struct {
	keyStart, keyEnd int32 // the key without its quotes
	start, end       int32 // the value
	items            int32 // direct members or items of the value
	kind             Kind
	escaped          bool // the key holds escapes
}

// inlineMembers is how many members a Scan holds without allocating. The fullest request seen has fourteen.
const inlineMembers = 20

// Scan knows where the top-level members of a body stand. It belongs to the goroutine that handles the request, and
// reads through to the body it was made from.
type Scan struct {
	src    interface{ Bytes() []byte }
	list   []member
	inline [inlineMembers]member
	open   int // just after the opening brace
	model  int // index of the last member of that name, or -1
	stream int
}

type plainBytes []byte

func (b plainBytes) Bytes() []byte { return b }

// ScanBytes validates b as one JSON object and finds its top-level members in one pass. It accepts what encoding/json
// accepts, down to a nesting of MaxDepth; the error is a *SyntaxError. The scan refers to b, which must not change.
func ScanBytes(b []byte) (*Scan, error) {
	s := new(Scan)
	s.src = plainBytes(b)
	if err := s.run(b); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Scan) run(b []byte) error {
	s.list, s.model, s.stream = s.inline[:0], -1, -1
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return &SyntaxError{i, "an object is expected"}
	}
	i++
	s.open = i
	i = skipSpace(b, i)
	if i < len(b) && b[i] == '}' {
		return ended(b, i+1)
	}
	for {
		m, next, err := scanMember(b, i)
		if err != nil {
			return err
		}
		s.note(b, m)
		i = skipSpace(b, next)
		if i >= len(b) {
			return &SyntaxError{i, "the object does not end"}
		}
		switch b[i] {
		case ',':
			i = skipSpace(b, i+1)
		case '}':
			return ended(b, i+1)
		default:
			return &SyntaxError{i, "a comma or the end of the object is expected"}
		}
	}
}

func scanMember(b []byte, i int) (m member, next int, err error) {
	if i >= len(b) || b[i] != '"' {
		return m, i, &SyntaxError{i, "a key in quotes is expected"}
	}
	end, escaped, err := skipString(b, i)
	if err != nil {
		return m, i, err
	}
	m.keyStart, m.keyEnd, m.escaped = int32(i+1), int32(end-1), escaped
	if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
		return m, i, &SyntaxError{i, "a colon after the key is expected"}
	}
	i = skipSpace(b, i+1)
	end, items, err := skipValue(b, i, 1)
	if err != nil {
		return m, i, err
	}
	m.start, m.end, m.items, m.kind = int32(i), int32(end), int32(items), kindOf(b[i])
	return m, end, nil
}

func (s *Scan) note(b []byte, m member) {
	switch key := b[m.keyStart:m.keyEnd]; {
	case m.escaped:
		switch unquote(b[m.keyStart-1 : m.keyEnd+1]) {
		case "model":
			s.model = len(s.list)
		case "stream":
			s.stream = len(s.list)
		}
	case string(key) == "model":
		s.model = len(s.list)
	case string(key) == "stream":
		s.stream = len(s.list)
	}
	s.list = append(s.list, m)
}

func ended(b []byte, i int) error {
	if i = skipSpace(b, i); i < len(b) {
		return &SyntaxError{i, "something follows the object"}
	}
	return nil
}

func kindOf(c byte) Kind {
	switch c {
	case '{', '[', '"', 't', 'f', 'n':
		return Kind(c)
	}
	return Number
}

// key returns the decoded name of m.
func (m *member) key(b []byte) string {
	if m.escaped {
		return unquote(b[m.keyStart-1 : m.keyEnd+1])
	}
	return string(b[m.keyStart:m.keyEnd])
}

// is tells whether m has that name, without allocating for names without escapes.
func (m *member) is(b []byte, name string) bool {
	if m.escaped {
		return m.key(b) == name
	}
	return string(b[m.keyStart:m.keyEnd]) == name
}

// find returns the index of the last member of that name, or -1: with duplicates the last one counts, as for
// encoding/json.
func (s *Scan) find(b []byte, name string) int {
	switch name {
	case "model":
		return s.model
	case "stream":
		return s.stream
	}
	for i := len(s.list) - 1; i >= 0; i-- {
		if s.list[i].is(b, name) {
			return i
		}
	}
	return -1
}

// Model returns the value of the top-level string "model"; false when it is missing or not a string.
func (s *Scan) Model() (string, bool) {
	if s.model < 0 || s.list[s.model].kind != String {
		return "", false
	}
	m := s.list[s.model]
	return unquote(s.src.Bytes()[m.start:m.end]), true
}

// Stream tells whether the top-level "stream" is true.
func (s *Scan) Stream() bool { return s.stream >= 0 && s.list[s.stream].kind == True }

// Messages returns the number of turns: the items of "messages", else of "input" (where one string is one turn), else of
// "contents"; 0 when there is none of them.
func (s *Scan) Messages() int {
	b := s.src.Bytes()
	for _, name := range [...]string{"messages", "input", "contents"} {
		i := s.find(b, name)
		if i < 0 {
			continue
		}
		switch m := s.list[i]; {
		case m.kind == Array:
			return int(m.items)
		case m.kind == String && name == "input":
			return 1
		}
	}
	return 0
}

// Has tells whether a top-level member of that name is there, whatever its value.
func (s *Scan) Has(name string) bool { return s.find(s.src.Bytes(), name) >= 0 }

// Get returns the raw JSON at a dot-separated path, and false when there is nothing. Items of arrays are chosen by
// number; a negative one counts from the end (messages.-1.content); `\.` is a dot in a name (ABI-3). The result lies in
// the body: it must not be changed, and is valid until the next Apply or Release.
func (s *Scan) Get(path string) (raw []byte, ok bool) {
	var room [8]part
	parts, err := splitPath(room[:0], path)
	if err != nil {
		return nil, false
	}
	b := s.src.Bytes()
	i := s.find(b, parts[0].name)
	if i < 0 {
		return nil, false
	}
	raw = b[s.list[i].start:s.list[i].end]
	for _, p := range parts[1:] {
		if raw = inside(raw, p.name); raw == nil {
			return nil, false
		}
	}
	return raw, true
}

// Kind returns the kind of the last top-level member of that name; false when it is missing.
func (s *Scan) Kind(name string) (Kind, bool) {
	i := s.find(s.src.Bytes(), name)
	if i < 0 {
		return 0, false
	}
	return s.list[i].kind, true
}

// Keys yields the decoded names of the top-level members in their order, duplicates included.
func (s *Scan) Keys(yield func(string) bool) {
	b := s.src.Bytes()
	for i := range s.list {
		if !yield(s.list[i].key(b)) {
			return
		}
	}
}

// unquote decodes a valid JSON string with its quotes.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && isASCII(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // raw passed the scanner
	return s
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
