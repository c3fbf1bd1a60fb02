package sdk

import (
	"strconv"
	"unicode/utf8"
)

// Writer writes one JSON value by hand. Commas come by themselves. The zero Writer is ready to use.
type Writer struct {
	b     []byte
	comma bool
}

// Bytes is what was written so far.
func (w *Writer) Bytes() []byte { return w.b }

// Reset empties w and keeps its room: what Bytes returned before is then overwritten.
func (w *Writer) Reset() { w.b, w.comma = w.b[:0], false }

func (w *Writer) next() {
	if w.comma {
		w.b = append(w.b, ',')
	}
	w.comma = true
}

// Object writes an object; f writes its members.
func (w *Writer) Object(f func()) { w.nested('{', '}', f) }

// List writes a list; f writes its items.
func (w *Writer) List(f func()) { w.nested('[', ']', f) }

func (w *Writer) nested(open, shut byte, f func()) {
	w.next()
	w.b, w.comma = append(w.b, open), false
	f()
	w.b, w.comma = append(w.b, shut), true
}

// Key begins a member; a value must follow.
func (w *Writer) Key(name string) *Writer {
	w.Text(name)
	w.b, w.comma = append(w.b, ':'), false
	return w
}

// Int writes a whole number.
func (w *Writer) Int(n int64) {
	w.next()
	w.b = strconv.AppendInt(w.b, n, 10)
}

// milliseconds writes a length as tables have it: 60s, 1500ms.
func (w *Writer) milliseconds(ms int64) {
	unit := "ms"
	if ms%1000 == 0 {
		ms, unit = ms/1000, "s"
	}
	w.Text(strconv.FormatInt(ms, 10) + unit)
}

// Float writes a number.
func (w *Writer) Float(f float64) {
	w.next()
	w.b = strconv.AppendFloat(w.b, f, 'g', -1, 64)
}

// Bool writes true or false.
func (w *Writer) Bool(v bool) {
	w.next()
	w.b = strconv.AppendBool(w.b, v)
}

// Raw writes a value that is JSON already; null when it is empty.
func (w *Writer) Raw(raw []byte) {
	w.next()
	if len(raw) == 0 {
		raw = []byte("null")
	}
	w.b = append(w.b, raw...)
}

// Text writes a string. Bytes that are not UTF-8 become U+FFFD.
func (w *Writer) Text(s string) {
	w.next()
	const hexDigits = "0123456789abcdef"
	w.b = append(w.b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			w.b = append(w.b, '\\', c)
		case c == '\n':
			w.b = append(w.b, '\\', 'n')
		case c < 0x20 || c == 0x7f:
			w.b = append(w.b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			w.b = append(w.b, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			w.b = utf8.AppendRune(w.b, r)
			i += n
			continue
		}
		i++
	}
	w.b = append(w.b, '"')
}

// any writes a value of one of the types that it names; false: it is of another.
func (w *Writer) any(value any) bool {
	switch v := value.(type) {
	case nil:
		w.Raw(nil)
	case bool:
		w.Bool(v)
	case string:
		w.Text(v)
	case int:
		w.Int(int64(v))
	case int64:
		w.Int(v)
	case float64:
		w.Float(v)
	case []string:
		w.List(func() {
			for _, s := range v {
				w.Text(s)
			}
		})
	case Raw:
		w.Raw(v)
	case Value:
		w.Raw(v.Raw())
	default:
		return false
	}
	return true
}

// The members below are left out when they are empty, as in most documents of the ABI.

func (w *Writer) text(name, s string) {
	if s != "" {
		w.Key(name).Text(s)
	}
}

func (w *Writer) int(name string, n int64) {
	if n != 0 {
		w.Key(name).Int(n)
	}
}

func (w *Writer) bool(name string, v bool) {
	if v {
		w.Key(name).Bool(true)
	}
}

func (w *Writer) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	w.Key(name).List(func() {
		for _, s := range list {
			w.Text(s)
		}
	})
}

func (w *Writer) object(name string, has bool, f func()) {
	if has {
		w.Key(name).Object(f)
	}
}

func (w *Writer) mapping(name string, m map[string]string) {
	w.object(name, len(m) > 0, func() {
		for _, k := range sorted(m) {
			w.Key(k).Text(m[k])
		}
	})
}

// sorted is the keys in order: describe must answer the same bytes each time.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		at := len(keys)
		for at > 0 && keys[at-1] > k {
			at--
		}
		keys = append(keys, "")
		copy(keys[at+1:], keys[at:])
		keys[at] = k
	}
	return keys
}
