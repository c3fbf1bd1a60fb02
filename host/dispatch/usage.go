package dispatch

import (
	"bytes"

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
	in, out := number(b, u.InputTokens), number(b, u.OutputTokens)
	if in >= 0 {
		a.r.t.Usage.Input = in
	}
	if out >= 0 {
		a.r.t.Usage.Output = out
	}
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
