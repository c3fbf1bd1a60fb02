package hint

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// The reference: bodies as the first version of this package read them, which passed each byte once for each level above
// it and built every path.

type oldDocument struct {
	relative, absolute []field
	headers            []map[string]string
	text               string
}

// oldReadBody collects what can say a wait: from JSON, from the JSON of stream events, from JSON inside strings, else from
// the text as it is.
func oldReadBody(body []byte) oldDocument {
	w := oldWalker{}
	if !w.documents(body) {
		w.say(string(body))
	}
	w.text = strings.Join(w.words, "\n")
	return w.oldDocument
}

type oldWalker struct {
	oldDocument
	words []string
	seen  int
}

func (w *oldWalker) say(s string) { w.words = append(w.words, s) }

// documents walks a body that is JSON or an event stream of JSON, and says whether it was.
func (w *oldWalker) documents(body []byte) bool {
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
func (w *oldWalker) walk(v gjson.Result, path string, depth int) {
	if w.seen++; depth > maxDepth || w.seen > maxFields {
		return
	}
	switch {
	case v.IsObject():
		if oldRunning(v) {
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
func (w *oldWalker) member(name string, v gjson.Result, path string, depth int) {
	key := oldPlainName(name)
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
func (w *oldWalker) typed(to *[]field, v gjson.Result, path string, unit time.Duration) bool {
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
func (w *oldWalker) inner(v gjson.Result) {
	h := map[string]string{}
	v.ForEach(func(k, child gjson.Result) bool {
		if len(h) < 512 && len(child.String()) <= 512 {
			h[strings.ToLower(k.Str)] = strings.TrimSpace(child.String())
		}
		return true
	})
	w.headers = append(w.headers, h)
}

// str takes a string, and the JSON that a relay put into it.
func (w *oldWalker) str(s, path string, depth int) {
	if at := strings.IndexAny(s, "{["); at >= 0 && len(s)-at > 1 {
		if inner := strings.TrimSpace(s[at:]); gjson.Valid(inner) {
			w.say(s[:at])
			w.walk(gjson.Parse(inner), path, depth+1)
			return
		}
	}
	w.say(s)
}

// oldRunning says that an object describes a window that is not used up: its reset is no wait.
func oldRunning(v gjson.Result) bool {
	for _, used := range []string{"used_percent", "usedPercent", "used_percentage"} {
		if u := v.Get(used); u.Type == gjson.Number {
			return u.Num < 100
		}
	}
	left := v.Get("remaining")
	return left.Type == gjson.Number && left.Num > 0
}

func oldPlainName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}
