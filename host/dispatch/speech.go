package dispatch

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// begins says whether an event only opens an answer in the dialect, without a word of it: a stream that then fails has brought
// nothing, and its failure keeps a true status (SCN-8, SCN-10, STM-23).
func begins(d wire.Dialect, data []byte) bool {
	switch d {
	case wire.AnthropicMessages:
		switch gjson.GetBytes(data, "type").Str {
		case "message_start":
			return true
		case "content_block_start":
			b := gjson.GetBytes(data, "content_block")
			return b.Get("type").Str == "text" && b.Get("text").Str == ""
		}
	case wire.OpenAIResponses:
		switch gjson.GetBytes(data, "type").Str {
		case "response.created", "response.in_progress", "response.queued":
			return true
		}
	case wire.OpenAIChat:
		return roleOnly(data)
	default:
	}
	return false
}

// roleOnly says whether a chunk of chat names the role and nothing else.
func roleOnly(data []byte) bool {
	if !bytes.Contains(data, []byte(`"role"`)) {
		return false
	}
	choice := gjson.GetBytes(data, "choices.0")
	if f := choice.Get("finish_reason"); f.Type == gjson.String && f.Str != "" {
		return false
	}
	only := choice.Exists()
	choice.Get("delta").ForEach(func(k, v gjson.Result) bool {
		switch {
		case k.Str == "role", v.Type == gjson.Null, v.Type == gjson.String && v.Str == "", v.IsArray() && len(v.Array()) == 0:
		default:
			only = false
		}
		return only
	})
	return only
}

// Words as marksEnd and finishes look for them.
var (
	doneMark      = []byte("[DONE]")
	messageStop   = []byte("message_stop")
	stopReason    = []byte(`stop_reason"`)
	geminiReason  = []byte(`finishReason"`)
	responsesEnds = [...][]byte{[]byte("response.completed"), []byte("response.incomplete")}
)

// marksEnd says whether an event of run is the dialect's end marker. A text that speaks of it is not.
func marksEnd(d wire.Dialect, run []byte) bool {
	switch d {
	case wire.AnthropicMessages:
		return bytes.Contains(run, messageStop) && typed(run, "message_stop")
	case wire.OpenAIResponses:
		for _, end := range responsesEnds {
			if bytes.Contains(run, end) && typed(run, string(end)) {
				return true
			}
		}
		return false
	case wire.GeminiGenerate:
		return false // it has none; the finish reason is the end
	default:
	}
	if !bytes.Contains(run, doneMark) {
		return false
	}
	found := false
	upstream.Events(run, func(e upstream.Event) bool {
		found = bytes.Equal(bytes.TrimSpace(e.Data), doneMark)
		return !found
	})
	return found
}

// typed says whether an event of run has a type.
func typed(run []byte, kind string) (found bool) {
	upstream.Events(run, func(e upstream.Event) bool {
		found = e.Name == kind || gjson.GetBytes(e.Data, "type").Str == kind
		return !found
	})
	return found
}

// finishes says whether a run states why the answer ended: a text that is not empty, since some providers send an empty one with
// every chunk.
func finishes(d wire.Dialect, run []byte) bool {
	name := finishReason
	switch d {
	case wire.AnthropicMessages:
		name = stopReason
	case wire.GeminiGenerate:
		name = geminiReason
	case wire.OpenAIResponses:
		return false
	default:
	}
	for v := member(run, name); v != nil; v = member(v, name) {
		if len(v) > 1 && v[0] == '"' && v[1] != '"' {
			return true
		}
	}
	return false
}

// properEnd is the end marker that an upstream left out, for a client of the same dialect (INF-22).
func properEnd(d wire.Dialect) string {
	switch d {
	case wire.OpenAIChat:
		return "data: [DONE]\n\n"
	case wire.AnthropicMessages:
		return "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	default:
		return ""
	}
}
