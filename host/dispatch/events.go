package dispatch

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// endsEvent says whether the last event of b has its blank line.
func endsEvent(b []byte) bool {
	return bytes.HasSuffix(b, []byte("\n\n")) || bytes.HasSuffix(b, []byte("\n\r\n")) || bytes.HasSuffix(b, []byte("\r\r"))
}

// useful says whether a run has an event with a word for the client: one that is not a comment, a sign of life, empty or
// [DONE] (STM-10), and that does more than open an answer. Errors were looked for before.
func useful(d wire.Dialect, run []byte) (found bool) {
	upstream.Events(run, func(e upstream.Event) bool {
		data := bytes.TrimSpace(e.Data)
		found = len(data) > 0 && string(data) != "[DONE]" && !isBeat(e.Name) && !isBeatObject(data) && !begins(d, data)
		return !found
	})
	return found
}

// isBeat says whether a word names a sign of life.
func isBeat(word string) bool {
	switch strings.ToLower(word) {
	case "ping", "keepalive", "keep-alive", "keep_alive", "heartbeat":
		return true
	}
	return false
}

func isBeatObject(data []byte) bool {
	if len(data) > 128 || !bytes.Contains(data, []byte(`"type"`)) {
		return false
	}
	return isBeat(gjson.GetBytes(data, "type").Str)
}

// parses says whether an event without its blank line is whole all the same (INF-26).
func parses(run []byte) bool {
	whole := false
	upstream.Events(run, func(e upstream.Event) bool {
		data := bytes.TrimSpace(e.Data)
		whole = string(data) == "[DONE]" || json.Valid(data)
		return whole
	})
	return whole
}

// usageIn returns b from the last usage object on, or nil; many chunks say null. Answers state their usage behind the text, so it is
// looked for from the end: a walk through a long answer costs more than all gates.
func usageIn(d wire.Dialect, b []byte) []byte {
	name := usageName
	if d == wire.GeminiGenerate {
		name = usageMeta
	}
	if len(b) < 4<<10 && !bytes.Contains(b, name) { // of an event, which a search from the front is through with sooner
		return nil
	}
	for end := len(b); ; {
		i := bytes.LastIndex(b[:end], name)
		if i < 1 {
			return nil
		}
		if v := member(b[i-1:], name); len(v) > 0 && v[0] == '{' && b[i-1] == '"' {
			return v
		}
		end = i
	}
}

// Names as member and mayFail look for them, without their first quote: a search runs from one place of its first byte to the
// next, and quotes are everywhere.
var (
	finishReason = []byte(`finish_reason"`)
	usageName    = []byte(`usage"`)
	usageMeta    = []byte(`usageMetadata"`)
	errorName    = []byte(`error"`)
	baseResp     = []byte(`base_resp"`)
)

// member returns b from the value of the next member of that name on, or nil. Inside of JSON texts quotes are escaped, so a text
// that speaks of a member is not taken for one.
func member(b, name []byte) []byte {
	for {
		i := bytes.Index(b, name)
		if i < 0 {
			return nil
		}
		quoted := i > 0 && b[i-1] == '"'
		b = b[i+len(name):]
		if v := bytes.TrimLeft(b, " \t"); quoted && len(v) > 0 && v[0] == ':' {
			return bytes.TrimLeft(v[1:], " \t")
		}
	}
}

// mayFail is a quick look whether a run can hold an error at all.
func (p *pump) mayFail(run []byte) bool {
	return bytes.Contains(run, errorName) || bytes.Contains(run, baseResp) || bytes.Contains(run, []byte("event:"))
}

// errorEvent is the event that the plan names as an error, or empty.
func (p *pump) errorEvent() string {
	if in := p.a.prep.Error; in != nil && in.InStream != nil {
		return in.InStream.Event
	}
	return ""
}

// findError returns the payload of the first event that is an error, and what stands before it.
func (p *pump) findError(run []byte) (failure, before []byte) {
	rest := run
	for len(rest) > 0 {
		n := eventLength(rest)
		upstream.Events(rest[:n], func(e upstream.Event) bool {
			failure = p.errorIn(e.Name, bytes.TrimSpace(e.Data))
			return false
		})
		if failure != nil {
			return failure, run[:len(run)-len(rest)]
		}
		rest = rest[n:]
	}
	return nil, nil
}

// eventLength is the length of the first event of b with the blank line behind it.
func eventLength(b []byte) int {
	end := len(b)
	for _, sep := range []string{"\n\n", "\n\r\n", "\r\r"} {
		if i := bytes.Index(b[:end], []byte(sep)); i >= 0 {
			end = i + len(sep)
		}
	}
	return end
}

// errorIn returns the payload of an event that is an error: named so, or an error object without an answer beside it.
func (p *pump) errorIn(name string, data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	if name == "error" || name != "" && name == p.errorEvent() {
		return bytes.Clone(data)
	}
	if !bytes.Contains(data, errorName) && !bytes.Contains(data, baseResp) {
		return nil
	}
	if failed, _ := failedDocument(data); failed {
		return bytes.Clone(data)
	}
	return nil
}

// sound is a run without the events whose data is no JSON, which no client of a known dialect survives (FLT-10). It is the run itself
// while all are whole.
func (p *pump) sound(run []byte) []byte {
	if !p.known || p.hooked.hook != nil || !malformed(run) { // what a guest writes is its own affair
		return run
	}
	out := make([]byte, 0, len(run))
	for rest := run; len(rest) > 0; {
		n := eventLength(rest)
		if malformed(rest[:n]) {
			p.a.r.t.note("stream: a malformed event was left out")
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

// malformed says whether an event of run has data that is no JSON and no end mark.
func malformed(run []byte) (found bool) {
	upstream.Events(run, func(e upstream.Event) bool {
		data := bytes.TrimSpace(e.Data)
		found = len(data) > 0 && !gjson.ValidBytes(data) && !bytes.Equal(data, doneMark) && !isBeat(e.Name)
		return !found
	})
	return found
}
