// Package reader owns the checked reading of a client's body: types are what the dialect says or the fault names the path
// (TR-31), members keep their order, raw values their digits.
package reader

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// Reader keeps the first fault of a body; after it every read does nothing. Not for concurrent use.
type Reader struct {
	fault *neutral.Fault
	parts int
}

// Body returns the body as an object, or a fault: it is no JSON object, or nested deeper than neutral.MaxDepth.
func (r *Reader) Body(body []byte) gjson.Result {
	if !gjson.ValidBytes(body) {
		r.Fail("", "the body is not JSON")
		return gjson.Result{}
	}
	if depth(body) > neutral.MaxDepth {
		r.Fail("", "the body is nested deeper than %d levels", neutral.MaxDepth)
		return gjson.Result{}
	}
	v := gjson.ParseBytes(body)
	if !v.IsObject() {
		r.Fail("", "the body is not a JSON object")
		return gjson.Result{}
	}
	return v
}

// depth is how deep valid JSON is nested.
func depth(b []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if level++; level > deepest {
				deepest = level
			}
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// Err is the first fault, or nil.
func (r *Reader) Err() error {
	if r.fault == nil {
		return nil
	}
	return r.fault
}

// OK says whether there is no fault yet.
func (r *Reader) OK() bool { return r.fault == nil }

// Fail notes a fault unless there is one.
func (r *Reader) Fail(path, format string, args ...any) {
	if r.fault == nil {
		r.fault = neutral.Faultf(path, format, args...)
	}
}

// Count counts a part against neutral.MaxParts.
func (r *Reader) Count(path string) {
	if r.parts++; r.parts > neutral.MaxParts {
		r.Fail(path, "the body has more than %d parts", neutral.MaxParts)
	}
}

// Object calls each for the members of v in their order; one that is null counts as absent and is left out.
func (r *Reader) Object(path string, v gjson.Result, each func(name, path string, v gjson.Result)) {
	if !r.OK() {
		return
	}
	if !v.IsObject() {
		r.Fail(path, "must be an object")
		return
	}
	v.ForEach(func(k, m gjson.Result) bool {
		if m.Type != gjson.Null {
			each(k.Str, Join(path, k.Str), m)
		}
		return r.OK()
	})
}

// List calls each for the elements of v.
func (r *Reader) List(path string, v gjson.Result, each func(path string, v gjson.Result)) {
	if !r.OK() {
		return
	}
	if !v.IsArray() {
		r.Fail(path, "must be an array")
		return
	}
	i := 0
	v.ForEach(func(_, e gjson.Result) bool {
		each(path+"["+strconv.Itoa(i)+"]", e)
		i++
		return r.OK()
	})
}

// String is a text.
func (r *Reader) String(path string, v gjson.Result) string {
	if v.Type != gjson.String {
		r.Fail(path, "must be a string")
		return ""
	}
	return v.Str
}

// Bool is true or false.
func (r *Reader) Bool(path string, v gjson.Result) bool {
	if v.Type != gjson.True && v.Type != gjson.False {
		r.Fail(path, "must be true or false")
	}
	return v.Type == gjson.True
}

// Int is a whole number.
func (r *Reader) Int(path string, v gjson.Result) int64 {
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if v.Type == gjson.Number && err != nil && v.Num == float64(int64(v.Num)) { // 1e3, 8192.0
		return int64(v.Num)
	}
	if v.Type != gjson.Number || err != nil {
		r.Fail(path, "must be a whole number")
		return 0
	}
	return n
}

// Number is a number with its digits.
func (r *Reader) Number(path string, v gjson.Result) neutral.Number {
	if v.Type != gjson.Number {
		r.Fail(path, "must be a number")
		return ""
	}
	return neutral.Number(v.Raw)
}

// Extra is a member as it came.
func Extra(path string, v gjson.Result) neutral.Field {
	return neutral.Field{Path: path, Raw: []byte(v.Raw)}
}

// Join is the path of a member.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Member returns one member of v; absent and null are the same.
func Member(v gjson.Result, name string) (m gjson.Result, ok bool) {
	m = v.Get(escape(name))
	return m, m.Exists() && m.Type != gjson.Null
}

// escape makes a name a path of gjson.
func escape(name string) string {
	for i := range len(name) {
		switch name[i] {
		case '.', '*', '?', '|', '#', '@', '!', '\\', ':':
			out := make([]byte, 0, len(name)+4)
			for j := range len(name) {
				switch name[j] {
				case '.', '*', '?', '|', '#', '@', '!', '\\', ':':
					out = append(out, '\\')
				}
				out = append(out, name[j])
			}
			return string(out)
		}
	}
	return name
}
