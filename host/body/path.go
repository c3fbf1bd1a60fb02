package body

import (
	"errors"
	"strconv"
	"strings"
)

var errEmptyPart = errors.New("the path has an empty part: name a member between the dots")

// part is one step of a path: the name of a member, the number of an item, or every item.
type part struct {
	name string
	star bool
}

func isStar(p part) bool { return p.star }

// splitPath appends the parts of a dot-separated path to dst. A backslash takes the next character as it is, so `\*` is
// a name and a bare `*` every item.
func splitPath(dst []part, path string) ([]part, error) {
	for more := true; more; {
		var name string
		var escaped bool
		if name, path, escaped, more = cutPart(path); name == "" {
			return nil, errEmptyPart
		}
		dst = append(dst, part{name, name == "*" && !escaped})
	}
	return dst, nil
}

// cutPart takes the first part off a path; more is false when nothing follows it.
func cutPart(path string) (name, rest string, escaped, more bool) {
	i := strings.IndexAny(path, `.\`)
	if i < 0 {
		return path, "", false, false
	}
	if path[i] == '.' {
		return path[:i], path[i+1:], false, true
	}
	text := []byte(path[:i])
	for ; i < len(path); i++ {
		switch c := path[i]; {
		case c == '.':
			return string(text), path[i+1:], true, true
		case c == '\\' && i+1 < len(path):
			i++
			text = append(text, path[i])
		default:
			text = append(text, c)
		}
	}
	return string(text), "", true, false
}

// index reads a part as the number of an item among n; a negative one counts from the end.
func index(part string, n int) (int, bool) {
	i, err := strconv.Atoi(part)
	if err != nil || part[0] == '+' {
		return 0, false
	}
	if i < 0 {
		i += n
	}
	return i, i >= 0 && i < n
}

// inside returns the raw value of one member or item of raw, which passed the scanner; nil when there is none.
func inside(raw []byte, part string) []byte {
	var found []byte
	switch raw[0] {
	case '{':
		for m := range members(raw) {
			if m.is(raw, part) {
				found = raw[m.start:m.end]
			}
		}
	case '[':
		n := 0
		if part[0] == '-' {
			for range items(raw) {
				n++
			}
		} else {
			n = len(raw)
		}
		want, ok := index(part, n)
		if !ok {
			return nil
		}
		at := 0
		for m := range items(raw) {
			if at == want {
				return raw[m.start:m.end]
			}
			at++
		}
	}
	return found
}

// members yields the members of a valid object.
func members(raw []byte) func(func(member) bool) {
	return func(yield func(member) bool) {
		i := skipSpace(raw, 1)
		for raw[i] != '}' {
			m, next, err := scanMember(raw, i)
			if err != nil || !yield(m) {
				return
			}
			if i = skipSpace(raw, next); raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
	}
}

// items yields the items of a valid array, as members without a key.
func items(raw []byte) func(func(member) bool) {
	return func(yield func(member) bool) {
		i := skipSpace(raw, 1)
		for raw[i] != ']' {
			end, n, err := skipValue(raw, i, 1)
			if err != nil || !yield(member{start: int32(i), end: int32(end), items: int32(n), kind: kindOf(raw[i])}) {
				return
			}
			if i = skipSpace(raw, end); raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
	}
}
