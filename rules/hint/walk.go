package hint

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

const (
	maxDepth  = 12   // JSON inside JSON strings counts as depth
	maxFields = 4096 // values that are looked at
	maxTyped  = 256  // typed fields of either kind
	maxInner  = 8    // sets of headers inside a body
	maxPeriod = 512  // bytes of an object that is a length of time
)

// walker goes through a body once. Its document has what it found, the words come last.
type walker struct {
	document
	size  int // of the body
	words []byte
	said  bool // something, be it empty
	seen  int
	path  []place
}

// place is one step to a value: a name, or in an array a number.
type place struct {
	name   string
	number int
	inside bool // of an array
}

// documents walks a body that is JSON or an event stream of JSON, and says whether it was.
func (w *walker) documents(body string) bool {
	if body == "" {
		return true
	}
	if body[0] == '{' || body[0] == '[' {
		return w.json(body)
	}
	found := false
	if !strings.Contains(body, "data:") {
		return false
	}
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if data = strings.TrimSpace(data); ok && data != "" && data[0] == '{' && w.json(data) {
			found = true
		}
	}
	return found
}

// json walks s if it is JSON.
func (w *walker) json(s string) bool {
	if !gjson.Valid(s) {
		return false
	}
	w.value(s, 0, 0)
	return true
}

// value visits the value at i and everything below it, and returns where it ends.
func (w *walker) value(s string, i, depth int) int {
	if w.seen++; depth > maxDepth || w.seen > maxFields {
		return valueEnd(s, i)
	}
	switch s[i] {
	case '{':
		return w.object(s, i, depth)
	case '[':
		return members(s, i, func(_ string, number, at int) int {
			w.path = append(w.path, place{number: number, inside: true})
			defer w.leave()
			return w.value(s, at, depth+1)
		})
	case '"':
		end := stringEnd(s, i)
		w.str(decode(s[i:end]), depth)
		return end
	}
	return valueEnd(s, i)
}

func (w *walker) leave() { w.path = w.path[:len(w.path)-1] }

// object visits the members of an object. When it turns out to describe a window that is not used up, what was found in
// it is forgotten: its reset is no wait.
func (w *walker) object(s string, i, depth int) int {
	before, g := *w, gauge{}
	end := members(s, i, func(name string, _, at int) int {
		w.path = append(w.path, place{name: name})
		defer w.leave()
		end := w.member(name, s, at, depth)
		g.look(name, s[at:end])
		return end
	})
	if g.open() {
		*w = before
	}
	return end
}

// member visits one named value of an object.
func (w *walker) member(name, s string, i, depth int) int {
	is := meaningOf(name)
	switch {
	case is.output:
		return valueEnd(s, i)
	case is.headers && s[i] == '{':
		return w.inner(s, i)
	case is.absolute:
		if end, ok := w.typed(&w.absolute, s, i, is.unit); ok {
			return end
		}
	case is.unit > 0:
		if end, ok := w.typed(&w.relative, s, i, is.unit); ok {
			return end
		}
	}
	return w.value(s, i, depth+1)
}

// typed takes a typed field, also the form {"seconds": 5, "nanos": 1} of protobuf.
func (w *walker) typed(to *[]field, s string, i int, unit time.Duration) (end int, ok bool) {
	value := ""
	switch {
	case s[i] == '-' || isDigit(s[i]):
		end = valueEnd(s, i)
		value = s[i:end]
	case s[i] == '"':
		end = stringEnd(s, i)
		value = decode(s[i:end])
		if len(value) > 64 {
			return 0, false
		}
	case s[i] == '{':
		seconds := gjson.Result{}
		if end = nestEnd(s, i); end-i <= maxPeriod {
			seconds = gjson.Get(s[i:end], "seconds")
		}
		if !seconds.Exists() {
			return 0, false
		}
		value, unit = seconds.String(), time.Second
	default:
		return 0, false
	}
	if len(*to) < maxTyped {
		*to = append(*to, field{w.pathText(), value, unit})
	}
	return end, true
}

// inner takes headers that travel inside a body.
func (w *walker) inner(s string, i int) int {
	var list headers
	end := members(s, i, func(name string, _, at int) int {
		end := valueEnd(s, at)
		if name = strings.ToLower(name); telling(name) && len(list) < maxHeaders {
			if v := gjson.Parse(s[at:end]).String(); len(v) <= maxHeader {
				list = append(list, header{name, strings.TrimSpace(v)})
			}
		}
		return end
	})
	if len(list) > 0 && len(w.headers) < maxInner {
		w.headers = append(w.headers, list.sorted())
	}
	return end
}

// str takes a string, and the JSON that a relay put into it.
func (w *walker) str(s string, depth int) {
	if at := bracket(s); at >= 0 && len(s)-at > 1 {
		if inner := strings.TrimSpace(s[at:]); gjson.Valid(inner) {
			w.say(s[:at])
			w.value(inner, 0, depth+1)
			return
		}
	}
	w.say(s)
}

// bracket returns where the first { or [ stands, -1 for nowhere.
func bracket(s string) int {
	at := strings.IndexByte(s, '{')
	if at >= 0 {
		s = s[:at]
	}
	if list := strings.IndexByte(s, '['); list >= 0 {
		return list
	}
	return at
}

// say takes words; each say is a line of the text.
func (w *walker) say(s string) {
	if w.said {
		w.words = append(w.words, '\n')
	} else if w.words == nil {
		w.words = make([]byte, 0, w.size)
	}
	w.words, w.said = append(w.words, s...), true
}

// pathText is the path to the present value; of a path that is very long some steps are left out.
func (w *walker) pathText() string {
	path := ""
	for _, p := range w.path {
		name := p.name
		if p.inside {
			name = strconv.Itoa(p.number)
		}
		path = join(path, name)
	}
	return path
}

func join(path, name string) string {
	if len(path) > 200 || len(name) > 64 {
		return path
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// gauge is what an object says about how much of a window is used.
type gauge struct {
	had   [len(gauges)]bool
	found [len(gauges)]bool
	value [len(gauges)]float64
}

// gauges are the names of shares used, and last of what is left.
var gauges = [...]string{"used_percent", "usedPercent", "used_percentage", "remaining"}

// look notes a member, the first of each name.
func (g *gauge) look(name, raw string) {
	for i, n := range gauges {
		if name == n && !g.had[i] {
			g.had[i] = true
			if raw[0] == '-' || isDigit(raw[0]) {
				g.found[i] = true
				g.value[i], _ = strconv.ParseFloat(raw, 64)
			}
		}
	}
}

// open says that a window is not used up.
func (g *gauge) open() bool {
	for i := range len(gauges) - 1 {
		if g.found[i] {
			return g.value[i] < 100
		}
	}
	return g.found[len(gauges)-1] && g.value[len(gauges)-1] > 0
}
