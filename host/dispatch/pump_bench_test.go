package dispatch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

// longStream is a stream of n events with a word each.
func longStream(d wire.Dialect, n int) []byte {
	var b strings.Builder
	switch d {
	case wire.AnthropicMessages:
		b.WriteString("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_up\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"up\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n")
		b.WriteString("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
		for i := range n {
			fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" token%d\"}}\n\n", i)
		}
		b.WriteString("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	default:
		for i := range n {
			fmt.Fprintf(&b, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token%d\"},\"finish_reason\":null}]}\n\n", i)
		}
		b.WriteString("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
	return []byte(b.String())
}

// oneEvent gives one event with each read, as a paced upstream does.
type oneEvent struct{ rest []byte }

func (r *oneEvent) Read(p []byte) (int, error) {
	i := bytes.Index(r.rest, []byte("\n\n"))
	if i < 0 {
		return (&bytes.Reader{}).Read(p)
	}
	n := copy(p, r.rest[:i+2])
	r.rest = r.rest[n:]
	return n, nil
}

// What one event costs in the pump, when it comes alone: passed on, and translated.
func BenchmarkPumpEvent(b *testing.B) {
	s := newStage()
	const n = 2000
	for _, c := range []struct{ from, to wire.Dialect }{
		{wire.OpenAIChat, wire.OpenAIChat}, {wire.AnthropicMessages, wire.AnthropicMessages}, {wire.OpenAIChat, wire.AnthropicMessages},
		{wire.AnthropicMessages, wire.OpenAIChat}, {wire.OpenAIChat, wire.OpenAIResponses}, {wire.OpenAIChat, wire.GeminiGenerate},
	} {
		b.Run(fmt.Sprintf("%s to %s", c.from, c.to), func(b *testing.B) {
			stream := longStream(c.from, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, trail := s.show(b, c.from, c.to, &oneEvent{stream}); trail.Partial {
					b.Fatal(trail.Failure)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
		})
	}
}
