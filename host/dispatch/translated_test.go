package dispatch_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

const (
	messagesAnswer = `{"id":"msg_up","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}`
	start          = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_up\",\"model\":\"up\",\"content\":[],\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}"
	opened         = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}"
	delta          = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}"
	closed         = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}"
	stopped        = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}"
	stop           = "event: message_stop\ndata: {\"type\":\"message_stop\"}"
	overloaded     = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}"
	ping           = "event: ping\ndata: {\"type\":\"ping\"}"
)

// speaks makes the upstream one of the messages dialect.
func (b *bench) speaks(d wire.Dialect, endpoint, path string) *bench {
	b.prov.Dialects = map[string]wire.Dialect{endpoint: d}
	b.plan.Dialect, b.plan.URL = d, "{{connection.base_url}}"+path
	return b
}

func (b *bench) messages() *bench {
	return b.speaks(wire.AnthropicMessages, "/v1/messages", "/messages")
}

// ask sends a request of any dialect.
func (b *bench) ask(d wire.Dialect, endpoint, text string, stream bool, header ...string) (*client, *dispatch.Trail) {
	b.t.Helper()
	buf, err := body.Read(strings.NewReader(text), int64(len(text)), 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		b.t.Fatal(err)
	}
	c := &client{}
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return c, b.d.Do(b.t.Context(), &dispatch.Call{
		RequestID: "req-1", Endpoint: endpoint, Dialect: d, Catalog: b.snap, Route: b.direct(), Model: "acme/large", Stream: stream,
		Body: buf, Scan: scan, Header: h, Key: b.key,
	}, c)
}

const hi = `{"model":"acme/large","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`

// ABI-2, TR-8, TR-26: a client of chat is answered by an upstream of messages, plain and streamed, under the name that it asked for.
func TestAnotherDialect(t *testing.T) {
	b := newBench(t).messages().with("a", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/messages" {
			t.Errorf("asked at %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(messagesAnswer))
	})
	c, trail := b.ask(wire.OpenAIChat, "/v1/chat/completions", strings.Replace(hi, `"stream":true,`, "", 1), false)
	var plain struct {
		Model   string
		Choices []struct {
			Message      struct{ Content string }
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(c.body.String()), &plain); err != nil || c.status != 200 {
		t.Fatalf("%d %v %s", c.status, err, c.body.String())
	}
	if plain.Model != "acme/large" || plain.Choices[0].Message.Content != "hello" || plain.Choices[0].FinishReason != "stop" || plain.Usage.Prompt != 5 {
		t.Errorf("%s", c.body.String())
	}
	var sent struct {
		System    string
		Model     string
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.Unmarshal([]byte(b.bodies[0]), &sent); err != nil || sent.System != "be brief" || sent.Model != "m" || sent.MaxTokens == 0 {
		t.Errorf("%v %s", err, b.bodies[0])
	}
	if trail.Usage.Input != 5 || trail.Usage.Output != 2 || !trail.Attempts[0].OK {
		t.Errorf("%+v", trail)
	}

	b = newBench(t).messages().with("a", streams(start, ping, opened, delta, closed, stopped, stop))
	c, trail = b.ask(wire.OpenAIChat, "/v1/chat/completions", hi, true)
	text := c.body.String()
	if c.status != 200 || !strings.Contains(text, `"content":"hello"`) || !strings.HasSuffix(text, "data: [DONE]\n\n") || !strings.Contains(text, `"prompt_tokens":5`) || strings.Contains(text, "message_start") {
		t.Errorf("%d %s", c.status, text)
	}
	if c.header.Get("Content-Type") != "text/event-stream" || !trail.Attempts[0].OK || trail.Usage.Output != 2 {
		t.Errorf("%v %+v", c.header, trail)
	}
}

// SCN-10, SCN-8: what only opens an answer promises nothing: an overload behind it is a failure with a true status, and the next
// connection answers with one beginning.
func TestOpeningIsNoAnswer(t *testing.T) {
	for _, d := range []struct {
		client   wire.Dialect
		endpoint string
		body     string
	}{
		{wire.AnthropicMessages, "/v1/messages", `{"model":"acme/large","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true}`},
		{wire.OpenAIChat, "/v1/chat/completions", hi},
	} {
		b := newBench(t).messages().with("a", streams(start, ping, overloaded)).with("b", streams(start, opened, delta, closed, stopped, stop))
		c, trail := b.ask(d.client, d.endpoint, d.body, true)
		text := c.body.String()
		if c.status != 200 || len(trail.Attempts) != 2 || strings.Contains(text, "verloaded") || strings.Count(text, "message_start\n")+strings.Count(text, `"role":"assistant"`) > 1 {
			t.Errorf("%s: %d %+v %s", d.client, c.status, trail.Attempts, text)
		}
		b = newBench(t).messages().with("a", streams(start, ping, overloaded))
		c, trail = b.ask(d.client, d.endpoint, d.body, true)
		if c.status != 0 || trail.Failure == nil || trail.Failure.Status != 529 {
			t.Errorf("%s alone: %d %+v", d.client, c.status, trail.Failure)
		}
	}
}

// INF-22, INF-34, FLT-11: a messages stream without its last event gets one, and one that is cut ends with an error event of the
// client's dialect, never with a proper end.
func TestEndsOfAnotherDialect(t *testing.T) {
	own := `{"model":"acme/large","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true}`
	b := newBench(t).messages().with("a", streams(start, opened, delta, closed, stopped))
	c, trail := b.ask(wire.AnthropicMessages, "/v1/messages", own, true)
	if text := c.body.String(); !strings.HasSuffix(text, stop+"\n\n") || trail.Partial || trail.Usage.Output != 2 {
		t.Errorf("no end: %s", text)
	}
	c, _ = b.ask(wire.OpenAIChat, "/v1/chat/completions", hi, true)
	if text := c.body.String(); !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("no end for chat: %s", text)
	}
	b = newBench(t).messages().with("a", streams(start, opened, delta))
	c, trail = b.ask(wire.AnthropicMessages, "/v1/messages", own, true)
	if text := c.body.String(); strings.Contains(text, "message_stop") || strings.Count(text, "event: error") != 1 || !trail.Partial {
		t.Errorf("cut: %s", text)
	}
	b = newBench(t).messages().with("a", streams(start, opened, delta))
	c, trail = b.ask(wire.OpenAIChat, "/v1/chat/completions", hi, true)
	if text := c.body.String(); strings.Contains(text, "[DONE]") || strings.Count(text, `"error"`) != 1 || !trail.Partial {
		t.Errorf("cut for chat: %s", text)
	}
}

// INF-27: a client that asked for a document gets one although the upstream streams, and the other way round, in its own dialect and
// in another.
func TestOneDocumentAndStream(t *testing.T) {
	ask := strings.Replace(hi, `"stream":true,`, "", 1)
	for name, b := range map[string]*bench{
		"chat":     newBench(t).with("a", streams(role, word, finish, usage, done)),
		"messages": newBench(t).messages().with("a", streams(start, opened, delta, closed, stopped, stop)),
	} {
		c, trail := b.ask(wire.OpenAIChat, "/v1/chat/completions", ask, false)
		var d struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(c.body.String()), &d); err != nil || len(d.Choices) != 1 || d.Choices[0].Message.Content == "" || c.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v %s", name, err, c.body.String())
		}
		if trail.Usage.Input != 5 || !trail.Attempts[0].OK {
			t.Errorf("%s: %+v", name, trail)
		}
	}
	b := newBench(t).with("a", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":6}}`))
	})
	c, _ := b.ask(wire.OpenAIChat, "/v1/chat/completions", hi, true)
	if text := c.body.String(); c.header.Get("Content-Type") != "text/event-stream" || !strings.HasSuffix(text, "data: [DONE]\n\n") || !strings.Contains(text, `"content":"hi"`) {
		t.Errorf("as a stream: %s", text)
	}
}

// TR-9, TR-31, CMB-18: a request that cannot be said in the dialect of the target is answered with 400 and the path, nothing is asked
// and nothing cools; with another target it goes there.
func TestUntranslatable(t *testing.T) {
	b := newBench(t).messages().with("a", answers)
	c, trail := b.ask(wire.OpenAIChat, "/v1/chat/completions", `{"model":"acme/large","messages":[{"role":"user","content":"hi"}],"n":2}`, false)
	if c.status != 0 || trail.Failure == nil || trail.Failure.Status != 400 || !strings.Contains(trail.Failure.Message, "n:") || len(b.seen()) != 0 || b.cooled() != 0 {
		t.Errorf("%d %+v %v", c.status, trail.Failure, b.seen())
	}
	c, trail = b.ask(wire.OpenAIChat, "/v1/chat/completions", `{"model":"acme/large","messages":[{"role":"user","content":"hi"}],"seed":2}`, false, "X-Weir-Strict", "true")
	if trail.Failure == nil || trail.Failure.Status != 400 || c.status != 0 {
		t.Errorf("strict: %+v", trail.Failure)
	}
}

// TR-9: what was dropped on the way stands in the trail.
func TestNotes(t *testing.T) {
	b := newBench(t).messages().with("a", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(messagesAnswer))
	})
	_, trail := b.ask(wire.OpenAIChat, "/v1/chat/completions", `{"model":"acme/large","messages":[{"role":"user","content":"hi"}],"seed":2,"temperature":1.5}`, false)
	notes := strings.Join(trail.Notes, "; ")
	if !strings.Contains(notes, "seed dropped") || !strings.Contains(notes, "temperature capped at 1") {
		t.Error(notes)
	}
}

// ABI-2, ABI-3: what a guest hears of a request is what its provider is asked, in the provider's own dialect.
func TestGuestsHearTheTranslation(t *testing.T) {
	b := newBench(t)
	b.prov.Dialects = map[string]wire.Dialect{"/v1/chat/completions": wire.OpenAIChat}
	b.plan = wire.Plan{Upstream: "none", Dialect: wire.OpenAIChat}
	b.guest.fields = []string{"messages.-1.content"}
	var heard wire.RequestFacts
	b.guest.respond = func(_ context.Context, f wire.RequestFacts) (*wire.Answer, error) {
		heard = f
		return &wire.Answer{Status: 200, Body: []byte(`{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)}, nil
	}
	b.with("a", answers)
	c, _ := b.ask(wire.GeminiGenerate, "/v1beta/models:generateContent", `{"contents":[{"parts":[{"text":"hi there"}]}]}`, false)
	if c.status != 200 || !strings.Contains(c.body.String(), `"text":"ok"`) {
		t.Errorf("%d %s", c.status, c.body.String())
	}
	if string(heard.Fields["messages.-1.content"]) != `"hi there"` || heard.Endpoint != "/v1/chat/completions" || heard.MessageCount != 1 {
		t.Errorf("heard %+v", heard)
	}
}
