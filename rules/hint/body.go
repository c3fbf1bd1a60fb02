package hint

import (
	"strings"
	"time"
)

// document is what a body says: typed fields, headers that travel inside it, and its words.
type document struct {
	relative, absolute []field
	headers            []headers
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
	"waitseconds": time.Second, "cooldownseconds": time.Second, "estimatedtime": time.Second, "secondsremaining": time.Second,
	"remainingseconds": time.Second, "clearsin": time.Second, "clearsinseconds": time.Second, "cooldownremaining": time.Second,
	"retryafterms": time.Millisecond, "retryaftermillis": time.Millisecond, "retrydelayms": time.Millisecond,
	"retryinms": time.Millisecond, "resetsinms": time.Millisecond, "resetinms": time.Millisecond,
	"resetafterms": time.Millisecond, "cooldownremainingms": time.Millisecond, "remainingms": time.Millisecond, "waitms": time.Millisecond, "cooldownms": time.Millisecond,
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

// meaning is what a member's name says about its value.
type meaning struct {
	unit     time.Duration // of a plain number
	absolute bool
	output   bool
	headers  bool
}

// meanings has all of these names in one map.
var meanings = func() map[string]meaning {
	all := map[string]meaning{"headers": {headers: true}}
	for name, unit := range relativeFields {
		all[name] = meaning{unit: unit}
	}
	for name := range absoluteFields {
		all[name] = meaning{unit: time.Second, absolute: true}
	}
	for name := range modelOutput {
		all[name] = meaning{output: true}
	}
	return all
}()

// meaningOf looks a name up without case, - and _.
func meaningOf(name string) meaning {
	var plain [24]byte // no name above is longer
	n := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_' || c == '-':
		case n == len(plain):
			return meaning{}
		default:
			plain[n] = lowerByte(c)
			n++
		}
	}
	return meanings[string(plain[:n])]
}

// readBody collects what can say a wait: from JSON, from the JSON of stream events, from JSON inside strings, else from
// the text as it is.
func readBody(body string) document {
	w := walker{size: len(body)}
	if w.documents(body) {
		w.text = string(w.words)
	} else {
		w.text = body
	}
	return w.document
}

// fields offers the longest wait of a list: until then some limit still holds.
func (p *pick) fields(list []field, absolute bool) bool {
	best, path, found := time.Duration(0), "", false
	for _, f := range list {
		d, relative, ok := value(f.value, f.unit, p.now)
		if !ok || absolute && relative && !strings.ContainsAny(f.value, "smh") {
			continue // a small number is no point in time
		}
		if !found || d > best {
			best, path, found = d, f.path, true
		}
	}
	return found && p.offer(best, "json:"+path)
}
