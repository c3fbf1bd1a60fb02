// Package translate owns the dialects of generation and the way from one to another, through one neutral form: requests, whole
// answers and streams (TR-1 to TR-31). It does no I/O and knows no provider.
package translate

import (
	"github.com/weirgate/weir/host/translate/chat"
	"github.com/weirgate/weir/host/translate/gemini"
	"github.com/weirgate/weir/host/translate/messages"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/responses"
	"github.com/weirgate/weir/sdk/wire"
)

// Codec returns the reader and writer of a dialect; false: there is none, as for raw endpoints.
func Codec(d wire.Dialect) (neutral.Codec, bool) {
	switch d {
	case wire.OpenAIChat:
		return chat.Codec(), true
	case wire.AnthropicMessages:
		return messages.Codec(), true
	case wire.OpenAIResponses:
		return responses.Codec(), true
	case wire.GeminiGenerate:
		return gemini.Codec(), true
	default:
		return neutral.Codec{}, false
	}
}

// Usage reads the usage object of a dialect, at the beginning of data; false: the dialect is not known.
func Usage(d wire.Dialect, data []byte) (neutral.Usage, bool) {
	switch d {
	case wire.OpenAIChat:
		return chat.Usage(data), true
	case wire.AnthropicMessages:
		return messages.Usage(data), true
	case wire.OpenAIResponses:
		return responses.Usage(data), true
	case wire.GeminiGenerate:
		return gemini.Usage(data), true
	default:
		return neutral.NoUsage(), false
	}
}
