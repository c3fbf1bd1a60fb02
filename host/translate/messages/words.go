package messages

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// above says whether a number is larger than limit.
func above(n neutral.Number, limit float64) bool {
	f, err := strconv.ParseFloat(string(n), 64)
	return err == nil && f > limit
}

// readStop is stop_reason in the neutral form (TR-3, TR-4).
func readStop(word, sequence string, called bool) (neutral.StopReason, string) {
	switch word {
	case "max_tokens":
		return neutral.StopLimit, ""
	case "model_context_window_exceeded":
		return neutral.StopContextFull, ""
	case "refusal":
		return neutral.StopFiltered, ""
	case "pause_turn":
		return neutral.StopPaused, ""
	case "tool_use":
		return neutral.StopToolCall, ""
	}
	switch {
	case called:
		return neutral.StopToolCall, ""
	case word == "stop_sequence":
		return neutral.StopSequence, sequence
	case word == "end_turn", word == "":
		return neutral.StopEnd, ""
	}
	return neutral.StopEnd, word
}

// stopWord is a neutral reason as stop_reason (TR-3).
func stopWord(s neutral.StopReason) string {
	switch s {
	case neutral.StopSequence:
		return "stop_sequence"
	case neutral.StopToolCall:
		return "tool_use"
	case neutral.StopLimit:
		return "max_tokens"
	case neutral.StopContextFull:
		return "model_context_window_exceeded"
	case neutral.StopFiltered:
		return "refusal"
	case neutral.StopPaused:
		return "pause_turn"
	case neutral.StopNone, neutral.StopEnd, neutral.StopBadCall:
	}
	return "end_turn"
}

// readUsage is the usage object in the neutral form: what was read from and written to the cache belongs to the input (TR-5).
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
	u.CachedRead, u.CacheWrite = take("cache_read_input_tokens"), take("cache_creation_input_tokens")
	if in := take("input_tokens"); in >= 0 {
		u.Input = in + max(u.CachedRead, 0) + max(u.CacheWrite, 0)
	}
	u.Output, u.Reasoning = take("output_tokens"), take("output_tokens_details.thinking_tokens")
	return u
}

// writeUsage writes the usage object.
func writeUsage(w *jsonw.Writer, u neutral.Usage) {
	w.Open().Key("input_tokens").Int(max(u.Input-max(u.CachedRead, 0)-max(u.CacheWrite, 0), 0))
	if u.CacheWrite >= 0 {
		w.Key("cache_creation_input_tokens").Int(u.CacheWrite)
	}
	if u.CachedRead >= 0 {
		w.Key("cache_read_input_tokens").Int(u.CachedRead)
	}
	w.Key("output_tokens").Int(u.Output)
	if u.Reasoning >= 0 {
		w.Key("output_tokens_details").Open().Key("thinking_tokens").Int(u.Reasoning).Close()
	}
	w.Close()
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
