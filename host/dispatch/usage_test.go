package dispatch

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// TR-5, TR-6: the usage of a document or an event is found in the words of its dialect, behind however long a text; a text that
// speaks of usage is none.
func TestUsageIsFound(t *testing.T) {
	text := strings.Repeat(`a \"usage\":{\"prompt_tokens\":9} `, 100)
	none := neutral.NoUsage()
	for _, c := range []struct {
		d    wire.Dialect
		doc  string
		want neutral.Usage
	}{
		{wire.OpenAIChat, `{"content":"` + text + `","usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":1}}}`, neutral.Usage{Input: 3, CachedRead: 1, CacheWrite: -1, Output: 4, Reasoning: -1}},
		{wire.OpenAIChat, `{"usage" : {"prompt_tokens" : 3}, "content":"` + text + `"}`, neutral.Usage{Input: 3, CachedRead: -1, CacheWrite: -1, Output: -1, Reasoning: -1}},
		{wire.OpenAIChat, `{"usage":{"prompt_tokens":3},"last":"usage"}`, neutral.Usage{Input: 3, CachedRead: -1, CacheWrite: -1, Output: -1, Reasoning: -1}},
		{wire.OpenAIChat, `{"usage":null,"choices":[]}`, none},
		{wire.OpenAIChat, `{"usage":{"prompt_tokens":"7"}}`, none},
		{wire.OpenAIChat, `{"usage":{"prompt_tokens":-1}}`, none},
		{wire.OpenAIChat, `{}`, none},
		{wire.AnthropicMessages, `{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":10,"output_tokens":1}}}`, neutral.Usage{Input: 15, CachedRead: 10, CacheWrite: -1, Output: 1, Reasoning: -1}},
		{wire.OpenAIResponses, `{"type":"response.completed","response":{"usage":{"input_tokens":5,"output_tokens":1}}}`, neutral.Usage{Input: 5, CachedRead: -1, CacheWrite: -1, Output: 1, Reasoning: -1}},
		{wire.GeminiGenerate, `{"candidates":[],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1,"thoughtsTokenCount":2}}`, neutral.Usage{Input: 5, CachedRead: -1, CacheWrite: -1, Output: 3, Reasoning: 2}},
	} {
		if !gjson.Valid(c.doc) {
			t.Fatal(c.doc)
		}
		got := none
		if v := usageIn(c.d, []byte(c.doc)); v != nil {
			got, _ = translate.Usage(c.d, v)
		}
		if got != c.want {
			t.Errorf("%s %.80s: %+v", c.d, c.doc, got)
		}
	}
}
