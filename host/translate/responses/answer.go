package responses

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

func itoa(n int) string { return strconv.Itoa(n) }

// ReadAnswer reads a whole response. A body that is none is an error.
func ReadAnswer(body []byte) (*neutral.Answer, error) {
	if !gjson.ValidBytes(body) {
		return nil, neutral.Faultf("", "the answer is not JSON")
	}
	v := gjson.ParseBytes(body)
	output := v.Get("output")
	if !output.IsArray() {
		return nil, neutral.Faultf("output", "the answer holds no output")
	}
	a := &neutral.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Created: v.Get("created_at").Int(), Usage: readUsage(v.Get("usage"))}
	called := false
	output.ForEach(func(_, i gjson.Result) bool {
		switch kind := i.Get("type").Str; kind {
		case "message":
			i.Get("content").ForEach(func(_, c gjson.Result) bool {
				if p, ok := readContent(c); ok {
					a.Parts = append(a.Parts, p)
				}
				return true
			})
		case "function_call", "custom_tool_call":
			called = true
			a.Parts = append(a.Parts, readCall(i))
		case "reasoning":
			a.Parts = append(a.Parts, readThought(i))
		default:
			a.Parts = append(a.Parts, neutral.Part{Kind: neutral.Unknown, Type: kind, Raw: []byte(i.Raw)})
		}
		return true
	})
	a.Stop, a.StopText = readStop(v, called)
	return a, nil
}

// readContent reads a part of a message; an empty text is none (TR-28).
func readContent(c gjson.Result) (neutral.Part, bool) {
	switch kind := c.Get("type").Str; kind {
	case "output_text":
		text := c.Get("text").Str
		return neutral.Part{Text: text}, text != ""
	case "refusal":
		return neutral.Part{Kind: neutral.Refusal, Text: c.Get("refusal").Str}, true
	default:
		return neutral.Part{Kind: neutral.Unknown, Type: kind, Raw: []byte(c.Raw)}, true
	}
}

// WriteAnswer appends a whole response.
func WriteAnswer(dst []byte, a *neutral.Answer, t neutral.Told) []byte {
	var items jsonw.Writer
	said := int64(0)
	n := 0
	for i := range a.Parts {
		p := &a.Parts[i]
		said += int64(len(p.Text) + len(p.Call.Arguments))
		if written(p) {
			item(&items, idOf(&t, p, n), p)
			n++
		}
	}
	usage := stated(a.Usage, t.Prompt, said)
	whole := response{items: items.B, usage: &usage}
	whole.status, whole.reason = status(a.Stop)
	w := jsonw.Writer{B: dst}
	whole.write(&w, &t)
	return w.B
}
