package mend_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/translate/mend"
	"github.com/weirgate/weir/sdk/wire"
)

// play sends events through a mender, one run each, as a pump does.
func play(d wire.Dialect, o mend.Options, events ...string) string {
	m := mend.New(d, o)
	var out []byte
	for _, raw := range events {
		if m.Passes([]byte(raw)) {
			out = append(out, raw...)
			continue
		}
		name, data := "", ""
		for line := range strings.Lines(raw) {
			line = strings.TrimRight(line, "\r\n")
			if v, ok := strings.CutPrefix(line, "event:"); ok {
				name = strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "data:"); ok {
				data = strings.TrimSpace(v)
			}
		}
		out = m.Event(out, []byte(raw), name, []byte(data))
	}
	return string(m.End(out))
}

func TestMend(t *testing.T) {
	const start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[]}}\n\n"
	const word = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"twelve bytes\"}}\n\n"
	const odd = "event: gateway.note\ndata: {\"type\":\"gateway.note\"}\n\n"
	for _, c := range []struct {
		name    string
		dialect wire.Dialect
		o       mend.Options
		in      []string
		want    []string
	}{
		{"INF-22 usage of messages", wire.AnthropicMessages, mend.Options{Prompt: 7},
			[]string{start, word, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n"},
			[]string{"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n",
				word, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n"}},
		{"INF-22 usage null", wire.AnthropicMessages, mend.Options{},
			[]string{"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":null,\"id\":\"m\"}}\n\n"},
			[]string{"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":1},\"id\":\"m\"}}\n\n"}},
		{"INF-21 names of events", wire.AnthropicMessages, mend.Options{},
			[]string{"data: {\"type\":\"message_stop\"}\n\n"}, []string{"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"}},
		{"INF-23 unknown type", wire.AnthropicMessages, mend.Options{}, []string{odd, word}, []string{word}},
		{"INF-23 unknown type that was asked for", wire.AnthropicMessages, mend.Options{Beta: true}, []string{odd, word}, []string{odd, word}},
		{"INF-23 responses", wire.OpenAIResponses, mend.Options{}, []string{odd}, nil},
		{"INF-23 chat", wire.OpenAIChat, mend.Options{}, []string{odd, "data: {\"choices\":[]}\n\n"}, []string{"data: {\"choices\":[]}\n\n"}},
		{"INF-22 usage of responses", wire.OpenAIResponses, mend.Options{Prompt: 5},
			[]string{"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"text\":\"eight by\"}]}]}}\n\n"},
			[]string{"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"text\":\"eight by\"}]}],\"usage\":" +
				"{\"input_tokens\":5,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":2,\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":7}}}\n\n"}},
		{"INF-25 comments for gemini", wire.GeminiGenerate, mend.Options{},
			[]string{": keep-alive\n\n", ": x\r\ndata: {\"candidates\":[]}\r\n\r\n", "data: {\"candidates\":[]}\n\n", "data: [DONE]\n\n"},
			[]string{"data: {\"candidates\":[]}\n\n", "data: {\"candidates\":[]}\n\n"}},
		{"INF-25 one ending of lines for gemini", wire.GeminiGenerate, mend.Options{},
			[]string{"data: {\"candidates\":[]}\r\n\r\n", "data: {\"candidates\":[1]}\r\n\r\n"}, []string{"data: {\"candidates\":[]}\n\n", "data: {\"candidates\":[1]}\n\n"}},
		{"INF-22 usage of gemini", wire.GeminiGenerate, mend.Options{Prompt: 9},
			[]string{"data: {\"candidates\":[{\"text\":\"sixteen bytes, \\\"\"}]}\n\n", "data: {\"candidates\":[{\"text\":\"four\",\"args\":{\"a\":12},\"finishReason\":\"STOP\"}]}\n\n"},
			[]string{"data: {\"candidates\":[{\"text\":\"sixteen bytes, \\\"\"}]}\n\n", "data: {\"candidates\":[{\"text\":\"four\",\"args\":{\"a\":12},\"finishReason\":\"STOP\"}]," +
				"\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":7,\"totalTokenCount\":16}}\n\n"}},
		{"INF-22 the words of chat are counted, not its chunks", wire.OpenAIChat, mend.Options{Usage: true, Prompt: 3},
			[]string{"data: {\"id\":\"c\",\"created\":4,\"model\":\"m\",\"fat\":\"" + strings.Repeat("x", 200) + "\",\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n",
				"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"twenty bytes of text\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"twenty bytes of text\"}}]}\n\n", "data: [DONE]\n\n"},
			[]string{"data: {\"id\":\"c\",\"created\":4,\"model\":\"m\",\"fat\":\"" + strings.Repeat("x", 200) + "\",\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n",
				"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"twenty bytes of text\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"twenty bytes of text\"}}]}\n\n",
				"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":4,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":10,\"total_tokens\":13}}\n\n",
				"data: [DONE]\n\n"}},
		{"INF-22 usage chunk of chat", wire.OpenAIChat, mend.Options{Usage: true, Prompt: 3},
			[]string{"data: {\"id\":\"c\",\"created\":4,\"model\":\"m\",\"choices\":[]}\n\n", "data: [DONE]\n\n"},
			[]string{"data: {\"id\":\"c\",\"created\":4,\"model\":\"m\",\"choices\":[]}\n\n",
				"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":4,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"total_tokens\":4}}\n\n",
				"data: [DONE]\n\n"}},
		{"a chat stream that states usage", wire.OpenAIChat, mend.Options{Usage: true},
			[]string{"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n", "data: [DONE]\n\n"},
			[]string{"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n", "data: [DONE]\n\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Join(c.want, ""), play(c.dialect, c.o, c.in...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A usual stream passes without being looked into but for its first and last events.
func TestUsualPasses(t *testing.T) {
	m := mend.New(wire.AnthropicMessages, mend.Options{})
	run := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n")
	if !m.Passes(run) {
		t.Error("a usual run does not pass")
	}
	if n := testing.AllocsPerRun(100, func() { m.Passes(run) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
