package chat

import (
	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// readStop is finish_reason in the neutral form (TR-3). A word that is not known is an end, kept as it came (TR-4).
func readStop(word string, called bool) (neutral.StopReason, string) {
	switch word {
	case "tool_calls", "function_call":
		return neutral.StopToolCall, ""
	case "length":
		return neutral.StopLimit, ""
	case "content_filter":
		return neutral.StopFiltered, ""
	case "stop", "":
		if called {
			return neutral.StopToolCall, ""
		}
		return neutral.StopEnd, ""
	}
	if called {
		return neutral.StopToolCall, word
	}
	return neutral.StopEnd, word
}

// stopWord is a neutral reason as finish_reason (TR-3).
func stopWord(s neutral.StopReason) string {
	switch s {
	case neutral.StopToolCall:
		return "tool_calls"
	case neutral.StopLimit, neutral.StopContextFull:
		return "length"
	case neutral.StopFiltered:
		return "content_filter"
	case neutral.StopNone, neutral.StopEnd, neutral.StopSequence, neutral.StopPaused, neutral.StopBadCall:
	}
	return "stop"
}

// readUsage is the usage object in the neutral form (TR-5). What is not stated stays negative.
func readUsage(v gjson.Result) neutral.Usage {
	u := neutral.NoUsage()
	if !v.IsObject() {
		return u
	}
	v.ForEach(func(k, m gjson.Result) bool { // in one walk: it is done for every answer
		switch k.Str {
		case "prompt_tokens":
			take(&u.Input, m)
		case "completion_tokens":
			take(&u.Output, m)
		case "prompt_tokens_details":
			take(&u.CachedRead, m.Get("cached_tokens"))
		case "completion_tokens_details":
			take(&u.Reasoning, m.Get("reasoning_tokens"))
		}
		return true
	})
	return u
}

func take(to *int64, m gjson.Result) {
	if m.Type == gjson.Number && m.Num >= 0 {
		*to = m.Int()
	}
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

// Usage reads a usage object; what stands behind it is not looked at.
func Usage(object []byte) neutral.Usage { return readUsage(gjson.ParseBytes(object)) }
