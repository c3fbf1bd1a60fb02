package dispatch

import (
	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/sdk/wire"
)

// spoken is the dialect of this attempt's upstream.
func (a *attempt) spoken() wire.Dialect {
	if a.prep.Dialect == "" {
		return a.r.c.Dialect
	}
	return a.prep.Dialect
}

// readUsage notes the tokens that a plain answer states. Only a whole one is looked at. The state that it issues is noted as well.
func (a *attempt) readUsage(b []byte, whole bool) {
	a.issued(b)
	a.answered(b, "id")
	if whole {
		a.noteUsage(b)
	}
}

// noteUsage notes what a document or an event states: in the words of the dialect, or else at the places that the plan names. What
// is not stated stays as it is; the last value wins (TR-6).
func (a *attempt) noteUsage(b []byte) {
	t, d := &a.usage, a.spoken()
	if v := usageIn(d, b); v != nil {
		if u, ok := translate.Usage(d, v); ok && u.Stated() {
			t.Merge(u)
			return
		}
	}
	if a.prep.Usage == nil {
		return
	}
	if n := number(b, a.prep.Usage.InputTokens); n >= 0 {
		t.Input = n
	}
	if n := number(b, a.prep.Usage.OutputTokens); n >= 0 {
		t.Output = n
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

// bill adds what this attempt took to what the request costs (STM-46).
func (a *attempt) bill() {
	a.r.t.Usage.Add(a.spent)
	a.r.t.Usage.Add(a.usage)
}
