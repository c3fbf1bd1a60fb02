package gemini

import (
	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// ReadAnswer reads a whole GenerateContentResponse: its first candidate. A body that is none is an error; a prompt that was blocked
// is an answer without content.
func ReadAnswer(body []byte) (*neutral.Answer, error) {
	if !gjson.ValidBytes(body) {
		return nil, neutral.Faultf("", "the answer is not JSON")
	}
	v := gjson.ParseBytes(body)
	candidate := v.Get("candidates.0")
	blocked := v.Get("promptFeedback.blockReason").Str
	if !candidate.IsObject() && blocked == "" {
		return nil, neutral.Faultf("candidates", "the answer holds no candidate")
	}
	a := &neutral.Answer{ID: v.Get("responseId").Str, Model: v.Get("modelVersion").Str, Usage: readUsage(v.Get("usageMetadata"))}
	called := false
	candidate.Get("content.parts").ForEach(func(_, e gjson.Result) bool {
		p, _ := readPart(e)
		switch {
		case p.Kind == neutral.Call:
			called = true
			if p.Call.ID == "" {
				p.Call.ID = callID(len(a.Parts), 0, p.Call.Name)
			}
		case p.Kind == neutral.Text && p.Text == "":
			return true // TR-28
		case p.Kind != neutral.Text && p.Kind != neutral.Thought:
			p = neutral.Part{Kind: neutral.Unknown, Type: typeOf(e), Raw: []byte(e.Raw)}
		}
		if n := len(a.Parts); n > 0 && a.Parts[n-1].Kind == p.Kind && (p.Kind == neutral.Text || p.Kind == neutral.Thought) {
			a.Parts[n-1].Text += p.Text
			if p.Signature.Value != "" {
				a.Parts[n-1].Signature = p.Signature
			}
			return true
		}
		a.Parts = append(a.Parts, p)
		return true
	})
	if a.Stop, a.StopText = readStop(candidate.Get("finishReason").Str, called); blocked != "" {
		a.Stop = neutral.StopFiltered
	}
	return a, nil
}

// WriteAnswer appends a whole GenerateContentResponse.
func WriteAnswer(dst []byte, a *neutral.Answer, t neutral.Told) []byte {
	w := jsonw.Writer{B: dst}
	said := int64(0)
	w.Open().Key("candidates").List().Open().Key("content").Open().Key("parts").List()
	for i := range a.Parts {
		said += int64(len(a.Parts[i].Text) + len(a.Parts[i].Call.Arguments))
		writePart(&w, &a.Parts[i])
	}
	w.End().Key("role").String("model").Close().Key("finishReason").String(stopWord(a.Stop)).Key("index").Int(0).Close().End()
	w.Key("usageMetadata")
	writeUsage(&w, stated(a.Usage, t.Prompt, said))
	w.Key("modelVersion").String(t.Model).Key("responseId").String(t.ID)
	return w.Close().B
}
