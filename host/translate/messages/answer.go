package messages

import (
	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// ReadAnswer reads a whole message. A body that is none is an error.
func ReadAnswer(body []byte) (*neutral.Answer, error) {
	if !gjson.ValidBytes(body) {
		return nil, neutral.Faultf("", "the answer is not JSON")
	}
	v := gjson.ParseBytes(body)
	content := v.Get("content")
	if !content.IsArray() {
		return nil, neutral.Faultf("content", "the answer holds no content")
	}
	a := &neutral.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Usage: readUsage(v.Get("usage"))}
	called := false
	content.ForEach(func(_, b gjson.Result) bool {
		p := readBlock(b)
		called = called || p.Kind == neutral.Call
		if p.Kind == neutral.Text && p.Text == "" {
			return true // TR-28
		}
		if p.Kind != neutral.Unknown {
			p.Type = ""
		}
		a.Parts = append(a.Parts, p)
		return true
	})
	a.Stop, a.StopText = readStop(v.Get("stop_reason").Str, v.Get("stop_sequence").Str, called)
	return a, nil
}

// WriteAnswer appends a whole message.
func WriteAnswer(dst []byte, a *neutral.Answer, t neutral.Told) []byte {
	w := jsonw.Writer{B: dst}
	w.Open().Key("id").String(t.ID).Key("type").String("message").Key("role").String("assistant").Key("model").String(t.Model)
	w.Key("content").List()
	said := int64(0)
	for i := range a.Parts {
		said += int64(len(a.Parts[i].Text) + len(a.Parts[i].Call.Arguments))
		writeBlock(&w, &a.Parts[i])
	}
	w.End().Key("stop_reason").String(stopWord(a.Stop)).Key("stop_sequence")
	writeSequence(&w, a.Stop, a.StopText)
	w.Key("usage")
	writeUsage(&w, stated(a.Usage, t.Prompt, said))
	return w.Close().B
}

func writeSequence(w *jsonw.Writer, s neutral.StopReason, text string) {
	if s == neutral.StopSequence {
		w.String(text)
		return
	}
	w.Null()
}

func writeBlock(w *jsonw.Writer, p *neutral.Part) {
	switch p.Kind {
	case neutral.Text, neutral.Refusal:
		if p.Text != "" {
			w.Open().Key("type").String("text").Key("text").String(p.Text).Close()
		}
	case neutral.Thought:
		if p.Signature.Redacted {
			w.Open().Key("type").String("redacted_thinking").Key("data").String(p.Signature.Value).Close()
			return
		}
		w.Open().Key("type").String("thinking").Key("thinking").String(p.Text).Key("signature").String(p.Signature.Value).Close()
	case neutral.Call:
		raw, _ := object(p.Call.Arguments)
		w.Open().Key("type").String("tool_use").Key("id").String(p.Call.ID).Key("name").String(p.Call.Name).Key("input").Raw(raw).Close()
	default:
	}
}
