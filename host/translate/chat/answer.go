package chat

import (
	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// ReadAnswer reads a whole chat completion: its first choice. A body that is none is an error.
func ReadAnswer(body []byte) (*neutral.Answer, error) {
	if !gjson.ValidBytes(body) {
		return nil, neutral.Faultf("", "the answer is not JSON")
	}
	v := gjson.ParseBytes(body)
	choice := v.Get("choices.0")
	if !choice.IsObject() {
		return nil, neutral.Faultf("choices", "the answer holds no choice")
	}
	a := &neutral.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Created: v.Get("created").Int(), Usage: readUsage(v.Get("usage"))}
	m := choice.Get("message")
	if text := thought(m); text != "" {
		a.Parts = append(a.Parts, neutral.Part{Kind: neutral.Thought, Text: text})
	}
	a.Parts = append(a.Parts, spoken(m.Get("content"))...)
	if text := m.Get("refusal").Str; text != "" {
		a.Parts = append(a.Parts, neutral.Part{Kind: neutral.Refusal, Text: text})
	}
	called := false
	m.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
		called = true
		a.Parts = append(a.Parts, readCall(c))
		return true
	})
	a.Stop, a.StopText = readStop(choice.Get("finish_reason").Str, called)
	return a, nil
}

// thought is the reasoning of a message or delta, under the names that providers give it.
func thought(m gjson.Result) string {
	if v := m.Get("reasoning_content"); v.Type == gjson.String {
		return v.Str
	}
	if v := m.Get("reasoning"); v.Type == gjson.String {
		return v.Str
	}
	return ""
}

// spoken is a message's content: a text, or parts of which the text counts.
func spoken(v gjson.Result) (parts []neutral.Part) {
	if v.Type == gjson.String {
		if v.Str != "" {
			parts = append(parts, neutral.Part{Text: v.Str})
		}
		return parts
	}
	if !v.IsArray() {
		return nil
	}
	v.ForEach(func(_, p gjson.Result) bool {
		switch kind := p.Get("type").Str; {
		case kind == "text" && p.Get("text").Str != "":
			parts = append(parts, neutral.Part{Text: p.Get("text").Str})
		case kind != "text":
			parts = append(parts, neutral.Part{Kind: neutral.Unknown, Type: kind, Raw: []byte(p.Raw)})
		}
		return true
	})
	return parts
}

func readCall(c gjson.Result) neutral.Part {
	call := neutral.ToolCall{ID: c.Get("id").Str, Name: c.Get("function.name").Str, Arguments: arguments(c.Get("function.arguments"))}
	if c.Get("type").Str == "custom" {
		call.Name, call.Arguments, call.Custom = c.Get("custom.name").Str, c.Get("custom.input").Str, true
	}
	return neutral.Part{Kind: neutral.Call, Call: call}
}

// arguments are a text; some providers send the object itself.
func arguments(v gjson.Result) string {
	if v.IsObject() {
		return v.Raw
	}
	return v.Str
}

// WriteAnswer appends a whole chat completion.
func WriteAnswer(dst []byte, a *neutral.Answer, t neutral.Told) []byte {
	w := jsonw.Writer{B: dst}
	w.Open().Key("id").String(t.ID).Key("object").String("chat.completion").Key("created").Int(t.Created).Key("model").String(t.Model)
	w.Key("choices").List().Open().Key("index").Int(0).Key("message").Open().Key("role").String("assistant")
	text, refusal, reasoning := "", "", ""
	has, said := false, int64(0)
	var calls []*neutral.Part
	for i := range a.Parts {
		p := &a.Parts[i]
		said += int64(len(p.Text) + len(p.Call.Arguments))
		switch p.Kind {
		case neutral.Text:
			text, has = text+p.Text, true
		case neutral.Refusal:
			refusal += p.Text
		case neutral.Thought:
			reasoning += p.Text
		case neutral.Call:
			calls = append(calls, p)
		default:
		}
	}
	w.Key("content")
	if has {
		w.String(text)
	} else {
		w.Null()
	}
	w.Key("refusal")
	if refusal != "" {
		w.String(refusal)
	} else {
		w.Null()
	}
	if reasoning != "" {
		w.Key("reasoning_content").String(reasoning)
	}
	if len(calls) > 0 {
		w.Key("tool_calls").List()
		for _, p := range calls {
			writeCall(&w, &p.Call)
		}
		w.End()
	}
	w.Close().Key("logprobs").Null().Key("finish_reason").String(stopWord(a.Stop)).Close().End()
	w.Key("usage")
	writeUsage(&w, stated(a.Usage, t.Prompt, said))
	return w.Close().B
}

func writeCall(w *jsonw.Writer, c *neutral.ToolCall) {
	kind, text := "function", "arguments"
	if c.Custom {
		kind, text = "custom", "input"
	}
	args := c.Arguments
	if args == "" && !c.Custom {
		args = "{}" // TR-14
	}
	w.Open().Key("id").String(c.ID).Key("type").String(kind).Key(kind).Open().Key("name").String(c.Name).Key(text).String(args).Close().Close()
}

// writeUsage writes the usage object; totals are computed (TR-5).
func writeUsage(w *jsonw.Writer, u neutral.Usage) {
	w.Open().Key("prompt_tokens").Int(u.Input).Key("completion_tokens").Int(u.Output).Key("total_tokens").Int(u.Input + u.Output)
	if u.CachedRead >= 0 {
		w.Key("prompt_tokens_details").Open().Key("cached_tokens").Int(u.CachedRead).Close()
	}
	if u.Reasoning >= 0 {
		w.Key("completion_tokens_details").Open().Key("reasoning_tokens").Int(u.Reasoning).Close()
	}
	w.Close()
}
