package gemini

import (
	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// readStop is finishReason in the neutral form. Calls come with STOP (TR-3, TR-4).
func readStop(word string, called bool) (neutral.StopReason, string) {
	switch word {
	case "MAX_TOKENS":
		return neutral.StopLimit, ""
	case "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT":
		return neutral.StopFiltered, ""
	case "MALFORMED_FUNCTION_CALL":
		return neutral.StopBadCall, ""
	}
	switch {
	case called:
		return neutral.StopToolCall, ""
	case word == "STOP", word == "":
		return neutral.StopEnd, ""
	}
	return neutral.StopEnd, word
}

// stopWord is a neutral reason as finishReason (TR-3).
func stopWord(s neutral.StopReason) string {
	switch s {
	case neutral.StopLimit, neutral.StopContextFull:
		return "MAX_TOKENS"
	case neutral.StopFiltered:
		return "SAFETY"
	case neutral.StopBadCall:
		return "MALFORMED_FUNCTION_CALL"
	default:
		return "STOP"
	}
}

// readUsage is usageMetadata in the neutral form: what was thought belongs to the output, what tools of the service read to the
// input (TR-5).
func readUsage(v gjson.Result) neutral.Usage {
	u := neutral.NoUsage()
	if !v.IsObject() {
		return u
	}
	take := func(path string) int64 {
		if m := v.Get(path); m.Type == gjson.Number && m.Num >= 0 {
			return m.Int()
		}
		return -1
	}
	if in := take("promptTokenCount"); in >= 0 {
		u.Input = in + max(take("toolUsePromptTokenCount"), 0)
	}
	u.CachedRead, u.Reasoning = take("cachedContentTokenCount"), take("thoughtsTokenCount")
	if out := take("candidatesTokenCount"); out >= 0 || u.Reasoning >= 0 {
		u.Output = max(out, 0) + max(u.Reasoning, 0)
	}
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

// writeUsage writes usageMetadata; totals are computed (TR-5).
func writeUsage(w *jsonw.Writer, u neutral.Usage) {
	w.Open().Key("promptTokenCount").Int(u.Input).Key("candidatesTokenCount").Int(max(u.Output-max(u.Reasoning, 0), 0)).
		Key("totalTokenCount").Int(u.Input + u.Output)
	if u.CachedRead >= 0 {
		w.Key("cachedContentTokenCount").Int(u.CachedRead)
	}
	if u.Reasoning >= 0 {
		w.Key("thoughtsTokenCount").Int(u.Reasoning)
	}
	w.Close()
}

// writePart writes one part of an answer.
func writePart(w *jsonw.Writer, p *neutral.Part) {
	switch p.Kind {
	case neutral.Thought:
		w.Open().Key("text").String(p.Text).Key("thought").Bool(true)
	case neutral.Call:
		raw, _ := object(p.Call.Arguments)
		w.Open().Key("functionCall").Open().Key("id").String(p.Call.ID).Key("name").String(p.Call.Name).Key("args").Raw(raw).Close()
	case neutral.Text, neutral.Refusal:
		w.Open().Key("text").String(p.Text)
	default:
		return
	}
	if p.Signature.Value != "" {
		w.Key("thoughtSignature").String(p.Signature.Value)
	}
	w.Close()
}

// Usage reads a usage object; what stands behind it is not looked at.
func Usage(object []byte) neutral.Usage { return readUsage(gjson.ParseBytes(object)) }
