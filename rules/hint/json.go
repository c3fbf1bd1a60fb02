package hint

import (
	"strings"

	"github.com/tidwall/gjson"
)

// The functions of this file walk over JSON that gjson has found valid. Each byte is passed once, however deep it lies;
// gjson's own ForEach passes it once for each level.

// members calls f with each member of the object or array at i, in order: its name (empty in an array), its number, and
// where its value begins; f returns where that ends. members returns the end of the whole.
func members(s string, i int, f func(name string, number, at int) int) int {
	object := s[i] == '{'
	i = blank(s, i+1)
	for number := 0; s[i] != '}' && s[i] != ']'; number++ {
		if s[i] == ',' {
			i = blank(s, i+1)
		}
		name := ""
		if object {
			end := stringEnd(s, i)
			name = decode(s[i:end])
			i = blank(s, blank(s, end)+1) // over the colon
		}
		i = blank(s, f(name, number, i))
	}
	return i + 1
}

// valueEnd returns where the value at i ends.
func valueEnd(s string, i int) int {
	switch s[i] {
	case '"':
		return stringEnd(s, i)
	case '{', '[':
		return nestEnd(s, i)
	}
	for i < len(s) && !isBlank(s[i]) && s[i] != ',' && s[i] != '}' && s[i] != ']' {
		i++
	}
	return i
}

// nestEnd returns where the object or array at i ends.
func nestEnd(s string, i int) int {
	for depth := 0; ; {
		switch s[i] {
		case '"':
			i = stringEnd(s, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
}

// stringEnd returns where the string at i ends.
func stringEnd(s string, i int) int {
	for i++; ; i++ {
		i += strings.IndexByte(s[i:], '"')
		slashes := 0
		for s[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// decode returns the text of a string.
func decode(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	return gjson.Parse(quoted).Str
}

func blank(s string, i int) int {
	for i < len(s) && isBlank(s[i]) {
		i++
	}
	return i
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }
