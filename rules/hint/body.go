package hint

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

const (
	maxDepth  = 12   // JSON inside JSON strings counts as depth
	maxFields = 4096 // values that are looked at
)

// document is what a body says: typed fields, headers that travel inside it, and its words.
type document struct {
	relative, absolute []field
	headers            []map[string]string
	text               string
}

// field is a typed field and how its value is read.
type field struct {
	path  string
	value string
	unit  time.Duration
}

// relativeFields are names of lengths, without case, - and _, with the unit of a plain number.
var relativeFields = map[string]time.Duration{
	"retrydelay": time.Second, "quotaresetdelay": time.Second, "retryafter": time.Second, "retryafterseconds": time.Second,
	"retryaftersecs": time.Second, "retryaftersec": time.Second, "retryin": time.Second, "retryinseconds": time.Second,
	"resetsinseconds": time.Second, "resetinseconds": time.Second, "resetseconds": time.Second, "resetsin": time.Second,
	"resetin": time.Second, "resetafter": time.Second, "resetafterseconds": time.Second, "secondsuntilreset": time.Second,
	"waitseconds": time.Second, "cooldownseconds": time.Second, "estimatedtime": time.Second,
	"retryafterms": time.Millisecond, "retryaftermillis": time.Millisecond, "retrydelayms": time.Millisecond,
	"retryinms": time.Millisecond, "resetsinms": time.Millisecond, "resetinms": time.Millisecond,
	"resetafterms": time.Millisecond, "waitms": time.Millisecond, "cooldownms": time.Millisecond,
	"retryafterminutes": time.Minute, "resetinminutes": time.Minute, "resetsinminutes": time.Minute,
}

// absoluteFields are names of points in time; a plain number there is an epoch.
var absoluteFields = map[string]bool{
	"resetsat": true, "resetat": true, "resettime": true, "resetstime": true, "resettimestamp": true, "resetdate": true,
	"quotaresettimestamp": true, "quotaresettime": true, "quotaresetat": true, "nextreset": true, "nextresettime": true,
	"nextresetat": true, "retryat": true, "availableat": true, "unlockat": true, "reset": true, "resets": true,
	"ratelimitreset": true, "cooldownuntil": true, "blockeduntil": true, "lockeduntil": true,
}

// modelOutput are names under which a body holds what a model or a caller wrote: never evidence (corpus rule 6).
var modelOutput = map[string]bool{
	"choices": true, "candidates": true, "output": true, "content": true, "arguments": true, "messages": true, "input": true,
}

// readBody collects what can say a wait: from JSON, from the JSON of stream events, from JSON inside strings, else from
// the text as it is.
func readBody(body []byte) document {
	w := walker{}
	if !w.documents(body) {
		w.say(string(body))
	}
	w.text = strings.Join(w.words, "\n")
	return w.document
}

type walker struct {
	document
	words []string
	seen  int
}

func (w *walker) say(s string) { w.words = append(w.words, s) }

// documents walks a body that is JSON or an event stream of JSON, and says whether it was.
func (w *walker) documents(body []byte) bool {
	if len(body) == 0 {
		return true
	}
	if body[0] == '{' || body[0] == '[' {
		if !gjson.ValidBytes(body) {
			return false
		}
		w.walk(gjson.ParseBytes(body), "", 0)
		return true
	}
	found := false
	for line := range bytes.Lines(body) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if data = bytes.TrimSpace(data); ok && len(data) > 0 && data[0] == '{' && gjson.ValidBytes(data) {
			w.walk(gjson.ParseBytes(data), "", 0)
			found = true
		}
	}
	return found
}

// walk visits v and everything below it.
func (w *walker) walk(v gjson.Result, path string, depth int) {
	if w.seen++; depth > maxDepth || w.seen > maxFields {
		return
	}
	switch {
	case v.IsObject():
		if running(v) {
			return
		}
		v.ForEach(func(k, child gjson.Result) bool {
			w.member(k.Str, child, join(path, k.Str), depth)
			return true
		})
	case v.IsArray():
		i := 0
		v.ForEach(func(_, child gjson.Result) bool {
			w.walk(child, join(path, strconv.Itoa(i)), depth+1)
			i++
			return true
		})
	case v.Type == gjson.String:
		w.str(v.Str, path, depth)
	}
}

// member visits one named value of an object.
func (w *walker) member(name string, v gjson.Result, path string, depth int) {
	key := plainName(name)
	if modelOutput[key] {
		return
	}
	if key == "headers" && v.IsObject() {
		w.inner(v)
		return
	}
	if unit, ok := relativeFields[key]; ok && w.typed(&w.relative, v, path, unit) {
		return
	}
	if absoluteFields[key] && w.typed(&w.absolute, v, path, time.Second) {
		return
	}
	w.walk(v, path, depth+1)
}

// typed takes a typed field, also the form {"seconds": 5, "nanos": 1} of protobuf.
func (w *walker) typed(to *[]field, v gjson.Result, path string, unit time.Duration) bool {
	switch {
	case v.Type == gjson.Number:
		*to = append(*to, field{path, v.Raw, unit})
	case v.Type == gjson.String && len(v.Str) <= 64:
		*to = append(*to, field{path, v.Str, unit})
	case v.IsObject() && v.Get("seconds").Exists():
		*to = append(*to, field{path, v.Get("seconds").String(), time.Second})
	default:
		return false
	}
	return true
}

// inner takes headers that travel inside a body.
func (w *walker) inner(v gjson.Result) {
	h := map[string]string{}
	v.ForEach(func(k, child gjson.Result) bool {
		if len(h) < maxHeaders && len(child.String()) <= 512 {
			h[strings.ToLower(k.Str)] = strings.TrimSpace(child.String())
		}
		return true
	})
	w.headers = append(w.headers, h)
}

// str takes a string, and the JSON that a relay put into it.
func (w *walker) str(s, path string, depth int) {
	if at := strings.IndexAny(s, "{["); at >= 0 && len(s)-at > 1 {
		if inner := strings.TrimSpace(s[at:]); gjson.Valid(inner) {
			w.say(s[:at])
			w.walk(gjson.Parse(inner), path, depth+1)
			return
		}
	}
	w.say(s)
}

// running says that an object describes a window that is not used up: its reset is no wait.
func running(v gjson.Result) bool {
	for _, used := range []string{"used_percent", "usedPercent", "used_percentage"} {
		if u := v.Get(used); u.Type == gjson.Number {
			return u.Num < 100
		}
	}
	left := v.Get("remaining")
	return left.Type == gjson.Number && left.Num > 0
}

func plainName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
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

// fields offers the longest wait of a list: until then some limit still holds.
func (p *pick) fields(list []field) bool {
	best, path, found := time.Duration(0), "", false
	for _, f := range list {
		d, relative, ok := value(f.value, f.unit, p.now)
		if !ok || relative && absoluteFields[plainName(lastName(f.path))] && !strings.ContainsAny(f.value, "smh") {
			continue
		}
		if !found || d > best {
			best, path, found = d, f.path, true
		}
	}
	return found && p.offer(best, "json:"+path)
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
