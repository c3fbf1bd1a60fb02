package document

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Kind is the shape of a Node.
type Kind uint8

// The shapes.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Map
)

// String is the word that faults use.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case Text:
		return "text"
	case List:
		return "a list"
	case Map:
		return "an object"
	}
	return "unknown"
}

// Node is one value of a document with its place. The tree of a document is not changed after parsing, except by
// ExpandEnv; reading it from several goroutines is safe.
type Node struct {
	Kind    Kind
	Text    string   // Text: the text; Number: a JSON number as written; Bool: true or false
	Items   []*Node  // of a List
	Members []Member // of a Map, in the order of the document, names unique
	Line    int      // from 1
	Column  int      // from 1, in characters
	File    string

	expanded bool // Text came from the environment, so that it may stand for a number or a boolean
}

// Member is one entry of a Map, with the place of its name.
type Member struct {
	Name         string
	Value        *Node
	Line, Column int
}

// Member returns the value of name, or nil when n is no map or has no such entry.
func (n *Node) Member(name string) *Node {
	if n == nil || n.Kind != Map {
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Name == name {
			return n.Members[i].Value
		}
	}
	return nil
}

// JSON returns the value as compact JSON: entries in the order of the document, numbers as written.
func (n *Node) JSON() []byte { return n.appendJSON(nil) }

func (n *Node) appendJSON(b []byte) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	switch n.Kind {
	case Bool, Number:
		return append(b, n.Text...)
	case Text:
		return appendString(b, n.Text)
	case List:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		for i := range n.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, n.Members[i].Name)
			b = append(b, ':')
			b = n.Members[i].Value.appendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// appendString writes s as a JSON string. Marshal of a string cannot fail; bad bytes become U+FFFD.
func appendString(b []byte, s string) []byte {
	var w strings.Builder
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return append(b, `""`...)
	}
	return append(b, strings.TrimSuffix(w.String(), "\n")...)
}

// Position returns the place of the value at path, as faults write paths (connections[0].api_key, aliases["a.b"]). When
// there is no such value it is the place of the nearest one above it, so that a fault about something missing has one too.
func (n *Node) Position(path string) (line, column int) {
	if n == nil {
		return 0, 0
	}
	line, column = n.Line, n.Column
	at := n
	for path != "" {
		name, index, rest, ok := nextStep(path)
		if !ok {
			return line, column
		}
		if index >= 0 {
			if at.Kind != List || index >= len(at.Items) {
				return line, column
			}
			at = at.Items[index]
			line, column = at.Line, at.Column
		} else {
			m := at.entry(name)
			if m == nil {
				return line, column
			}
			at = m.Value
			line, column = m.Line, m.Column
		}
		path = rest
	}
	return line, column
}

func (n *Node) entry(name string) *Member {
	if n.Kind != Map {
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Name == name {
			return &n.Members[i]
		}
	}
	return nil
}

// Fault makes a Fault about the value at path, with its place.
func (n *Node) Fault(path, message string) Fault {
	f := Fault{Path: path, Message: message}
	if n != nil {
		f.File = n.File
		f.Line, f.Column = n.Position(path)
	}
	return f
}

// nextStep cuts the first step from a path: a name, or an index of 0 and more.
func nextStep(path string) (name string, index int, rest string, ok bool) {
	path = strings.TrimPrefix(path, ".")
	if strings.HasPrefix(path, `["`) {
		quoted, err := strconv.QuotedPrefix(path[1:])
		if err != nil || !strings.HasPrefix(path[1+len(quoted):], "]") {
			return "", -1, "", false
		}
		name, err = strconv.Unquote(quoted)
		return name, -1, path[len(quoted)+2:], err == nil
	}
	if strings.HasPrefix(path, "[") {
		inner, after, found := strings.Cut(path[1:], "]")
		i, err := strconv.Atoi(inner)
		return "", i, after, found && err == nil && i >= 0
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	return path[:end], -1, path[end:], end > 0
}

// Join adds the name of an entry to a path. A name that is not a plain word is quoted.
func Join(path, name string) string {
	if !plainName(name) {
		return path + "[" + strconv.Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// At adds an index to a path.
func At(path string, index int) string { return path + "[" + strconv.Itoa(index) + "]" }

func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != ""
}
