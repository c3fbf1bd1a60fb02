package dispatch

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// readUsage notes the tokens that a plain answer states at the plan's paths. Of a long answer only its last part is looked at
// by the stream reader; here it must be whole.
func (a *attempt) readUsage(b []byte, whole bool) {
	if !whole || a.prep.Usage == nil || !bytes.Contains(b, []byte(`"usage`)) {
		return
	}
	a.noteUsage(b)
}

func (a *attempt) noteUsage(b []byte) {
	u := a.prep.Usage
	in, out := stated(b, u.InputTokens), stated(b, u.OutputTokens)
	if in >= 0 {
		a.r.t.Usage.Input = in
	}
	if out >= 0 {
		a.r.t.Usage.Output = out
	}
}

// stated is the number at path. Answers state their usage behind the text, so it is looked for from the end first: a walk
// through a long answer costs more than all gates.
func stated(b []byte, path string) int64 {
	if head, rest, ok := strings.Cut(path, "."); ok {
		if i := bytes.LastIndex(b, []byte(`"`+head+`"`)); i >= 0 {
			if v := member(b[i:], []byte(head+`"`)); len(v) > 0 && v[0] == '{' {
				if n := number(v, rest); n >= 0 {
					return n
				}
			}
		}
	}
	return number(b, path)
}

func number(b []byte, path string) int64 {
	if path == "" {
		return -1
	}
	if r := gjson.GetBytes(b, path); r.Type == gjson.Number && r.Int() >= 0 {
		return r.Int()
	}
	return -1
}
