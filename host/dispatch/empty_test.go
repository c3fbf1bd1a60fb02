package dispatch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

// emptyStream is a stream of a dialect with nothing for the user, and a reason to end.
func emptyStream(d wire.Dialect, reason string) []string {
	switch d {
	case wire.AnthropicMessages:
		return []string{start, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" + reason + "\"},\"usage\":{\"output_tokens\":0}}", stop}
	case wire.OpenAIResponses:
		if reason != "response.completed" {
			return []string{"event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{\"id\":\"r\",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"" + reason + "\"},\"output\":[]}}"}
		}
		return []string{"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}", "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[]}}"}
	case wire.GeminiGenerate:
		return []string{`data: {"candidates":[{"content":{"parts":[],"role":"model"},"finishReason":"` + reason + `","index":0}]}`}
	default:
		return []string{role, `data: {"choices":[{"delta":{},"finish_reason":"` + reason + `"}]}`, done}
	}
}

// emptyDocument is the same as one document.
func emptyDocument(d wire.Dialect, reason string) string {
	switch d {
	case wire.AnthropicMessages:
		return `{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm"}],"stop_reason":"` + reason + `","usage":{"input_tokens":1,"output_tokens":0}}`
	case wire.OpenAIResponses:
		if reason != "response.completed" {
			return `{"id":"r","status":"incomplete","incomplete_details":{"reason":"` + reason + `"},"output":[]}`
		}
		return `{"id":"r","status":"completed","output":[{"type":"reasoning","summary":[]}]}`
	case wire.GeminiGenerate:
		return `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"},"finishReason":"` + reason + `"}]}`
	default:
		return `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"","reasoning_content":"hm"},"finish_reason":"` + reason + `"}]}`
	}
}

// STM-60, STM-61, STM-24: an answer without anything for the user is a failure of the exact model alone, and the next target answers; a
// reason that explains it, or a normal end of a native endpoint, makes it an answer.
func TestEmptyAnswers(t *testing.T) {
	normal := map[wire.Dialect]string{
		wire.OpenAIChat: "stop", wire.AnthropicMessages: "end_turn", wire.OpenAIResponses: "response.completed", wire.GeminiGenerate: "STOP",
	}
	legitimate := map[wire.Dialect][]string{
		wire.OpenAIChat: {"length", "content_filter", "tool_calls"}, wire.AnthropicMessages: {"max_tokens", "tool_use"},
		wire.OpenAIResponses: {"max_output_tokens", "content_filter"}, wire.GeminiGenerate: {"MAX_TOKENS", "SAFETY"},
	}
	try := func(d wire.Dialect, reason string, native, stream bool) (c *client, attempts, cooled int) {
		t.Helper()
		b := newBench(t).speaks(d, paths[d], "/x")
		b.plan.Response.Native = native
		b.with("a", func(w http.ResponseWriter, r *http.Request) {
			if stream {
				streams(emptyStream(d, reason)...)(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, emptyDocument(d, reason))
		}).with("b", fails(400, `{"error":{"message":"the second"}}`))
		c, trail := b.ask(d, paths[d], bodies[d], stream)
		for _, e := range b.events {
			if e.Kind == "connection.cooldown" || strings.HasPrefix(e.Kind, "breaker") {
				cooled++
			}
		}
		if !trail.Attempts[0].OK {
			v := trail.Attempts[0].Verdict
			if trail.Attempts[0].Status != 502 || v.Scope != wire.ScopeModel || !v.Exact || v.Breaker || !v.Fallback {
				t.Errorf("%s %s: %+v", d, reason, trail.Attempts[0])
			}
		}
		return c, len(trail.Attempts), cooled
	}
	for d, reason := range normal {
		for _, stream := range []bool{false, true} {
			if c, n, cooled := try(d, reason, false, stream); n != 2 || cooled > 0 || c.status == 200 {
				t.Errorf("STM-60: %s %s stream=%t: %d attempts, %d events, %q", d, reason, stream, n, cooled, c.body.String())
			}
			if c, n, _ := try(d, reason, true, stream); n != 1 || c.status != 200 {
				t.Errorf("STM-61: %s %s stream=%t native: %d attempts, %d %q", d, reason, stream, n, c.status, c.body.String())
			}
			for _, why := range legitimate[d] {
				if c, n, _ := try(d, why, false, stream); n != 1 || c.status != 200 {
					t.Errorf("STM-61: %s %s stream=%t: %d attempts, %d %q", d, why, stream, n, c.status, c.body.String())
				}
			}
		}
	}
}

// STM-24, STM-60: a stream of reasoning alone has begun for the client, so it ends with an error event.
func TestReasoningIsNoAnswer(t *testing.T) {
	b := newBench(t).with("a", streams(role, `data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}`, finish, done))
	c, trail := b.do(b.direct(), true)
	if text := c.body.String(); !trail.Partial || !strings.Contains(text, "empty_content") || strings.Contains(text, "[DONE]") || trail.Attempts[0].OK || b.cooled() > 0 {
		t.Errorf("%q %+v", text, trail)
	}
}

// STM-62, INF-27: a document on a streaming request is told as a stream.
func TestDocumentOnAStream(t *testing.T) {
	b := newBench(t).with("a", answers)
	c, trail := b.do(b.direct(), true)
	if c.texts() != "hello" || c.header.Get("Content-Type") != "text/event-stream" || !strings.HasSuffix(c.body.String(), "[DONE]\n\n") || !trail.Attempts[0].OK {
		t.Errorf("%v %q", c.header, c.body.String())
	}
}
