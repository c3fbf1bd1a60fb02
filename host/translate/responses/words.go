package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// readStop is the status of a response in the neutral form (TR-3, TR-4).
func readStop(v gjson.Result, called bool) (neutral.StopReason, string) {
	if v.Get("status").Str == "incomplete" {
		switch reason := v.Get("incomplete_details.reason").Str; reason {
		case "max_output_tokens":
			return neutral.StopLimit, ""
		case "content_filter":
			return neutral.StopFiltered, ""
		default:
			return neutral.StopLimit, reason
		}
	}
	if called {
		return neutral.StopToolCall, ""
	}
	return neutral.StopEnd, ""
}

// status is a neutral reason as the status of a response and, when that is incomplete, why.
func status(s neutral.StopReason) (status, reason string) {
	switch s {
	case neutral.StopLimit, neutral.StopContextFull:
		return "incomplete", "max_output_tokens"
	case neutral.StopFiltered:
		return "incomplete", "content_filter"
	default:
		return "completed", ""
	}
}

// readUsage is the usage object in the neutral form (TR-5).
func readUsage(v gjson.Result) neutral.Usage {
	u := neutral.NoUsage()
	if !v.IsObject() {
		return u
	}
	take := func(to *int64, path string) {
		if m := v.Get(path); m.Type == gjson.Number && m.Num >= 0 {
			*to = m.Int()
		}
	}
	take(&u.Input, "input_tokens")
	take(&u.Output, "output_tokens")
	take(&u.CachedRead, "input_tokens_details.cached_tokens")
	take(&u.Reasoning, "output_tokens_details.reasoning_tokens")
	return u
}

// stated fills in what nobody stated: the prompt's estimate and the bytes of the answer divided by four (INF-22).
func stated(u neutral.Usage, prompt, said int64) neutral.Usage {
	if u.Input < 0 {
		u.Input = max(prompt, 1)
	}
	if u.Output < 0 {
		u.Output = max((said+3)/4, 1)
	}
	return u
}

// writeUsage writes the usage object; totals are computed (TR-5). The SDKs want the details to be there.
func writeUsage(w *jsonw.Writer, u neutral.Usage) {
	w.Open().Key("input_tokens").Int(u.Input).Key("input_tokens_details").Open().Key("cached_tokens").Int(max(u.CachedRead, 0)).Close()
	w.Key("output_tokens").Int(u.Output).Key("output_tokens_details").Open().Key("reasoning_tokens").Int(max(u.Reasoning, 0)).Close()
	w.Key("total_tokens").Int(u.Input + u.Output).Close()
}

// response is what of the whole response is written.
type response struct {
	status string
	reason string         // of an incomplete one
	items  []byte         // the output items, with commas between
	usage  *neutral.Usage // nil: null
}

// write writes the whole response object.
func (r *response) write(w *jsonw.Writer, t *neutral.Told) {
	w.Open().Key("id").String(t.ID).Key("object").String("response").Key("created_at").Int(t.Created).Key("status").String(r.status)
	w.Key("background").Bool(false).Key("error").Null().Key("incomplete_details")
	if r.reason != "" {
		w.Open().Key("reason").String(r.reason).Close()
	} else {
		w.Null()
	}
	w.Key("instructions").Null().Key("max_output_tokens").Null().Key("model").String(t.Model)
	w.Key("output").List()
	w.B = append(w.B, r.items...)
	w.End()
	off := t.Request != nil && t.Request.ParallelOff
	w.Key("parallel_tool_calls").Bool(!off).Key("previous_response_id").Null()
	w.Key("reasoning").Open().Key("effort").Null().Key("summary").Null().Close()
	w.Key("store").Bool(false).Key("temperature").Null().Key("text").Open().Key("format").Open().Key("type").String("text").Close().Close()
	w.Key("tool_choice").String("auto").Key("tools").List().End().Key("top_p").Null().Key("truncation").String("disabled")
	w.Key("usage")
	if r.usage != nil {
		writeUsage(w, *r.usage)
	} else {
		w.Null()
	}
	w.Key("metadata").Open().Close().Close()
}

// item writes one whole output item.
func item(w *jsonw.Writer, id string, p *neutral.Part) {
	w.Open().Key("id").String(id)
	switch p.Kind {
	case neutral.Call:
		kind, text, args := "function_call", "arguments", p.Call.Arguments
		if p.Call.Custom {
			kind, text = "custom_tool_call", "input"
		} else if args == "" {
			args = "{}"
		}
		w.Key("type").String(kind).Key("status").String("completed").Key(text).String(args).Key("call_id").String(p.Call.ID).Key("name").String(p.Call.Name)
	case neutral.Thought:
		w.Key("type").String("reasoning").Key("summary").List()
		if p.Text != "" {
			w.Open().Key("type").String("summary_text").Key("text").String(p.Text).Close()
		}
		w.End()
		if p.Signature.Value != "" {
			w.Key("encrypted_content").String(p.Signature.Value)
		}
		w.Key("status").String("completed")
	default:
		w.Key("type").String("message").Key("status").String("completed").Key("role").String("assistant").Key("content").List()
		content(w, p)
		w.End()
	}
	w.Close()
}

// content writes the part of a message.
func content(w *jsonw.Writer, p *neutral.Part) {
	if p.Kind == neutral.Refusal {
		w.Open().Key("type").String("refusal").Key("refusal").String(p.Text).Close()
		return
	}
	w.Open().Key("type").String("output_text").Key("text").String(p.Text).Key("annotations").List().End().Key("logprobs").List().End().Close()
}

// written says whether a part becomes an item.
func written(p *neutral.Part) bool {
	switch p.Kind {
	case neutral.Call, neutral.Thought:
		return true
	case neutral.Text, neutral.Refusal:
		return true
	default:
		return false
	}
}

// idOf is the id of the item at an index: the response's own, with the kind in front.
func idOf(t *neutral.Told, p *neutral.Part, index int) string {
	prefix := "msg_"
	switch {
	case p.Kind == neutral.Call && p.Call.Custom:
		prefix = "ctc_"
	case p.Kind == neutral.Call:
		prefix = "fc_"
	case p.Kind == neutral.Thought:
		prefix = "rs_"
	}
	return prefix + strings.TrimPrefix(t.ID, "resp_") + "_" + itoa(index)
}

// Usage reads a usage object; what stands behind it is not looked at.
func Usage(object []byte) neutral.Usage { return readUsage(gjson.ParseBytes(object)) }
