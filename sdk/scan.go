package sdk

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Value is a JSON value, read where it lies: nothing is decoded before it is asked for. The zero Value does not exist. What
// is not JSON reads as not existing.
type Value struct{ raw []byte }

// Parse returns the first JSON value of b, which must not change while the Value is used.
func Parse(b []byte) Value {
	i := space(b, 0)
	end := skip(b, i, 0)
	if end < 0 {
		return Value{}
	}
	return Value{b[i:end]}
}

// loose is the value of b without a look at whether it is JSON: reading it twice would cost as much as the rest of a call. In
// what is no JSON, or was cut off, a path may find what looks like a value up to there; nothing ever fails.
func loose(b []byte) Value {
	if b = b[space(b, 0):]; len(b) == 0 {
		return Value{}
	}
	return Value{b}
}

// Exists says whether there is a value; null is one.
func (v Value) Exists() bool { return len(v.raw) > 0 }

func (v Value) isObject() bool { return len(v.raw) > 0 && v.raw[0] == '{' }

// Raw is the JSON text; nil when there is no value.
func (v Value) Raw() []byte { return v.raw }

// Get follows a path of member names and item numbers, parted by dots: error.details.0.reason. A dot in a name is written
// as \. there.
func (v Value) Get(path string) Value {
	for path != "" && v.Exists() {
		var name string
		name, path = segment(path)
		v = v.step(name)
	}
	return v
}

// segment cuts the first name off a path.
func segment(path string) (name, rest string) {
	for i := range len(path) {
		switch path[i] {
		case '.':
			return path[:i], path[i+1:]
		case '\\':
			return escapedSegment(path)
		}
	}
	return path, ""
}

func escapedSegment(path string) (string, string) {
	var name []byte
	for path != "" && path[0] != '.' {
		if path[0] == '\\' && len(path) > 1 {
			path = path[1:]
		}
		name, path = append(name, path[0]), path[1:]
	}
	if path != "" {
		path = path[1:]
	}
	return string(name), path
}

// step is the member of that name, or the item of that number. It looks at the bytes as they lie: v was checked when it was
// parsed.
func (v Value) step(name string) Value {
	if len(v.raw) == 0 || v.raw[0] != '{' && v.raw[0] != '[' {
		return Value{}
	}
	object := v.raw[0] == '{'
	item := itemNumber(name)
	if !object && item < 0 {
		return Value{}
	}
	for i := space(v.raw, 1); i < len(v.raw) && v.raw[i] != '}' && v.raw[i] != ']'; i = space(v.raw, i) {
		if v.raw[i] == ',' {
			i = space(v.raw, i+1)
		}
		found := item == 0
		item--
		if object {
			end := skipText(v.raw, i+1)
			if end < 0 {
				return Value{}
			}
			found = named(v.raw[i:end], name)
			i = space(v.raw, space(v.raw, end)+1)
		}
		end := pass(v.raw, i)
		if end < 0 {
			return Value{}
		}
		if found {
			return Value{v.raw[i:end]}
		}
		i = end
	}
	return Value{}
}

// named says whether a member's name, with its quotes, is that name.
func named(quoted []byte, name string) bool {
	for _, c := range quoted {
		if c == '\\' {
			s, _ := Value{quoted}.Text()
			return s == name
		}
	}
	return string(quoted[1:len(quoted)-1]) == name
}

// itemNumber is the number that name writes, -1 when it writes none.
func itemNumber(name string) int {
	if name == "" || len(name) > 7 || name[0] == '0' && len(name) > 1 {
		return -1
	}
	n := 0
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return -1
		}
		n = n*10 + int(name[i]-'0')
	}
	return n
}

// pass is skip for what was parsed before: it counts brackets and looks at nothing else.
func pass(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	if b[i] == '"' {
		return skipText(b, i+1)
	}
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			if i = skipText(b, i+1); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of a word or number that was last
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}

// Member returns the member of that exact name; dots and digits in it have no meaning.
func (v Value) Member(name string) Value {
	if v.Exists() && v.raw[0] == '{' {
		return v.step(name)
	}
	return Value{}
}

// Each calls f for the items of a list (with key "") or the members of an object, until f returns false.
func (v Value) Each(f func(key string, item Value) bool) {
	b := v.raw
	if len(b) == 0 || b[0] != '{' && b[0] != '[' {
		return
	}
	for i := space(b, 1); i < len(b) && b[i] != '}' && b[i] != ']'; i = space(b, i) {
		if b[i] == ',' {
			i = space(b, i+1)
		}
		key := ""
		if b[0] == '{' {
			end := skip(b, i, 0)
			if end < 0 {
				return
			}
			key, _ = Value{b[i:end]}.Text()
			if i = space(b, end); i >= len(b) || b[i] != ':' {
				return
			}
			i = space(b, i+1)
		}
		end := skip(b, i, 0)
		if end < 0 || !f(key, Value{b[i:end]}) {
			return
		}
		i = end
	}
}

// Text returns the text of a JSON string, false for any other value.
func (v Value) Text() (string, bool) {
	if len(v.raw) < 2 || v.raw[0] != '"' {
		return "", false
	}
	return string(v.text()), true
}

// text is the text of a JSON string; its bytes may be those of the value itself.
func (v Value) text() []byte {
	if len(v.raw) < 2 || v.raw[0] != '"' {
		return nil
	}
	in := v.raw[1 : len(v.raw)-1]
	plain := escape(in, 0)
	if plain == len(in) {
		return in
	}
	out := make([]byte, 0, len(in))
	for i := 0; ; {
		out = append(out, in[i:plain]...)
		if i = plain + 1; i >= len(in) {
			return append(out, in[min(plain, len(in)):]...)
		}
		switch c := in[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, n := unicodeEscape(in[i+1:])
			out = utf8.AppendRune(out, r)
			i += n
		default:
			out = append(out, c)
		}
		i++
		plain = escape(in, i)
	}
}

// escape is the place of the next backslash, or the end.
func escape(b []byte, i int) int {
	for i < len(b) && b[i] != '\\' {
		i++
	}
	return i
}

// unicodeEscape reads what follows \u, with the second half of a pair, and returns how many bytes that were.
func unicodeEscape(b []byte) (rune, int) {
	first, ok := hex4(b)
	if !ok {
		return utf8.RuneError, 0
	}
	if utf16.IsSurrogate(first) && len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if second, ok := hex4(b[6:]); ok {
			if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
				return r, 10
			}
		}
	}
	return first, 4 // a lone half becomes U+FFFD when it is encoded
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}

// Int returns a whole number.
func (v Value) Int() (int64, bool) {
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err == nil {
		return n, true
	}
	if f, ok := v.Float(); ok && f == float64(int64(f)) {
		return int64(f), true
	}
	return 0, false
}

// Float returns a number.
func (v Value) Float() (float64, bool) {
	if len(v.raw) == 0 || v.raw[0] != '-' && (v.raw[0] < '0' || v.raw[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	return f, err == nil
}

// Bool says whether the value is true.
func (v Value) Bool() bool { return string(v.raw) == "true" }

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// maxDepth bounds nesting, since a guest's stack is small.
const maxDepth = 200

// skip returns the end of the value that starts at i, or -1.
func skip(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		return skipText(b, i+1)
	case c == '{' || c == '[':
		return skipNested(b, i, depth)
	case c == 't':
		return word(b, i, "true")
	case c == 'f':
		return word(b, i, "false")
	case c == 'n':
		return word(b, i, "null")
	case c == '-' || c >= '0' && c <= '9':
		for i++; i < len(b) && (b[i] == '.' || b[i] == '-' || b[i] == '+' || b[i]|0x20 == 'e' || b[i] >= '0' && b[i] <= '9'); i++ {
		}
		return i
	}
	return -1
}

func word(b []byte, i int, w string) int {
	if len(b)-i < len(w) || string(b[i:i+len(w)]) != w {
		return -1
	}
	return i + len(w)
}

func skipText(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

func skipNested(b []byte, i, depth int) int {
	object := b[i] == '{'
	shut := byte(']')
	if object {
		shut = '}'
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == shut {
		return i + 1
	}
	for i < len(b) {
		if object {
			if b[i] != '"' {
				return -1
			}
			if i = skipText(b, i+1); i < 0 {
				return -1
			}
			if i = space(b, i); i >= len(b) || b[i] != ':' {
				return -1
			}
			i = space(b, i+1)
		}
		if i = skip(b, i, depth+1); i < 0 {
			return -1
		}
		i = space(b, i)
		switch {
		case i >= len(b):
			return -1
		case b[i] == shut:
			return i + 1
		case b[i] != ',':
			return -1
		}
		i = space(b, i+1)
	}
	return -1
}
