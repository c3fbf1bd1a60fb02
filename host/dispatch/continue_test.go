package dispatch_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// model is an upstream that tells answer in pieces of a few bytes, is cut behind cut bytes of its stream, and goes on with what it is
// told to have said.
type model struct {
	d       wire.Dialect
	answer  string
	cut     int  // 0: never
	restart bool // it begins anew, whatever it is told to have said
	refuses bool // it takes no beginning
	asked   *[]string
}

func (m model) serve(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []struct{ Role, Content string }
	}
	_ = json.NewDecoder(r.Body).Decode(&q)
	prefix := ""
	if last := q.Messages[len(q.Messages)-1]; last.Role == "assistant" {
		prefix = last.Content
	}
	*m.asked = append(*m.asked, prefix)
	if m.refuses && prefix != "" {
		fails(400, `{"error":{"message":"no prefill here","type":"invalid_request_error"}}`)(w, r)
		return
	}
	rest := m.answer
	if !m.restart {
		rest = strings.TrimPrefix(m.answer, prefix)
	}
	stream := m.stream(rest)
	w.Header().Set("Content-Type", "text/event-stream")
	if m.cut > 0 {
		_, _ = fmt.Fprint(w, stream[:m.cut])
		w.(http.Flusher).Flush()
		resets(w, r)
		return
	}
	_, _ = fmt.Fprint(w, stream)
}

// stream is the answer as the upstream sends it.
func (m model) stream(text string) string {
	var b strings.Builder
	quoted := func(s string) string { q, _ := json.Marshal(s); return string(q) }
	var pieces []string
	for word := range strings.SplitAfterSeq(text, " ") {
		if half := len(word) / 2; half > 0 && word[half] < 0x80 && word[half-1] < 0x80 {
			pieces = append(pieces, word[:half], word[half:])
		} else {
			pieces = append(pieces, word)
		}
	}
	if m.d == wire.AnthropicMessages {
		b.WriteString(start + "\n\n" + opened + "\n\n")
		for _, p := range pieces {
			b.WriteString("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":" + quoted(p) + "}}\n\n")
		}
		return b.String() + closed + "\n\n" + stopped + "\n\n" + stop + "\n\n"
	}
	b.WriteString(role + "\n\n")
	for _, p := range pieces {
		b.WriteString(`data: {"id":"c7","created":5,"model":"up","choices":[{"index":0,"delta":{"content":` + quoted(p) + "}}]}\n\n")
	}
	return b.String() + finish + "\n\n" + done + "\n\n"
}

// two is a combo of a first model and a second one, each with a provider of its own.
func (b *bench) two(d wire.Dialect, mode string, first, second http.HandlerFunc, prefill *bool) *catalog.Route {
	b.by = map[string]http.HandlerFunc{"a": first, "b": second}
	rt := &catalog.Route{Kind: catalog.KindCombo, Name: "best", Strategy: catalog.Priority}
	rt.Config.StreamRecovery = mode
	zero := 0
	rt.Config.MaxRetries = &zero
	for _, id := range []string{"a", "b"} {
		p := *b.prov
		p.ID, p.Prefill = "acme-"+id, prefill
		p.Connections = []*catalog.Connection{{ID: id, Provider: p.ID, AuthType: wire.AuthAPIKey, Active: true, Priority: 1,
			Secrets: map[string]catalog.Secret{"api_key": catalog.NewSecret(id)}}}
		if id == "a" && prefill != nil { // the first one takes beginnings, so that the second one decides
			p.Prefill = ptr(true)
		}
		rt.Targets = append(rt.Targets, catalog.RouteTarget{Key: p.ID + "/m", Provider: &p, Model: "m", Weight: 1})
	}
	return rt
}

// askTo sends a streaming request of a dialect along a route over HTTP.
func (b *bench) askTo(d wire.Dialect, rt *catalog.Route) (*client, *trailed) {
	l := &lab{bench: b}
	c := &client{}
	t := l.watchAs(b.t.Context(), c, d, rt, "")
	return c, &trailed{t.Partial, strings.Join(t.Notes, "\n"), len(t.Attempts), t.Usage.Input, t.Usage.Output}
}

type trailed struct {
	partial       bool
	notes         string
	attempts      int
	input, output int64
}

const fixed = "The weir holds the water back: 42 liters of it, \"quoted\", და ქართული, 🌊 waves, letters like tt and ll, and a last line."

// STM-43, STM-45, FLT-8: cut anywhere in its stream (TestStitch does it at every byte of the text), the client reads the identical text, with one proper end; whether the other
// model goes on where the text ends or begins anew. Before the first word there is nothing to continue: the other one just answers.
func TestContinueAnywhere(t *testing.T) {
	for _, d := range []wire.Dialect{wire.OpenAIChat, wire.AnthropicMessages} {
		for _, restart := range []bool{false, true} {
			b := newBench(t)
			if d == wire.AnthropicMessages {
				b.messages()
			}
			var asked []string
			whole := model{d: d, answer: fixed, asked: &asked}
			const step = 41
			for cut := 1; cut < len(whole.stream(fixed)); cut += step {
				first, second := whole, whole
				first.cut, second.restart = cut, restart
				rt := b.two(d, "continue", first.serve, second.serve, ptr(true))
				asked = nil
				c, trail := b.askTo(d, rt)
				text := c.body.String()
				if got := c.texts(); got != fixed || trail.partial || strings.Contains(text, "error") {
					t.Fatalf("%s restart=%t cut at %d: %q %+v\n%s", d, restart, cut, got, trail, text)
				}
				ends := strings.Count(text, "[DONE]") + strings.Count(text, "event: message_stop")
				begins := strings.Count(text, `"role":"assistant"`) + strings.Count(text, "event: message_start")
				if reasons := strings.Count(text, `"finish_reason":"stop"`) + strings.Count(text, `"stop_reason":"end_turn"`); ends != 1 || begins > 1 || reasons != 1 {
					t.Fatalf("%s restart=%t cut at %d: %d ends, %d beginnings, %d reasons\n%s", d, restart, cut, ends, begins, reasons, text)
				}
				if len(asked) > 2 {
					t.Fatalf("asked %q", asked)
				}
			}
		}
	}
}

// STM-43, FLT-14: no target gets a beginning that its entry does not allow: messages only with assistant_prefill, chat unless it says
// false. Then the stream ends as if nothing was to be continued (STM-44).
func TestPrefillOnlyWhereAllowed(t *testing.T) {
	for _, c := range []struct {
		d       wire.Dialect
		prefill *bool
		goesOn  bool
	}{
		{wire.OpenAIChat, nil, true}, {wire.OpenAIChat, ptr(true), true}, {wire.OpenAIChat, ptr(false), false},
		{wire.AnthropicMessages, nil, false}, {wire.AnthropicMessages, ptr(true), true}, {wire.AnthropicMessages, ptr(false), false},
	} {
		b := newBench(t)
		if c.d == wire.AnthropicMessages {
			b.messages()
		}
		var asked, second []string
		first := model{d: c.d, answer: fixed, asked: &asked}
		first.cut = len(first.stream(fixed)) / 2
		rt := b.two(c.d, "continue", first.serve, model{d: c.d, answer: fixed, asked: &second}.serve, c.prefill)
		if c.prefill != nil && !*c.prefill {
			rt.Targets[0].Provider.Prefill = c.prefill
		}
		got, trail := b.askTo(c.d, rt)
		if c.goesOn {
			if got.texts() != fixed || len(second) != 1 || !strings.Contains(trail.notes, "continued by acme-b/m") || trail.attempts != 2 {
				t.Errorf("%s %v: %q %+v", c.d, c.prefill, got.texts(), trail)
			}
			continue
		}
		if len(second) > 0 || !trail.partial || !strings.HasPrefix(fixed, got.texts()) || !strings.Contains(got.body.String(), "error") || strings.Contains(got.body.String(), "message_stop\n") {
			t.Errorf("%s %v: %q %q %+v", c.d, c.prefill, second, got.body.String(), trail)
		}
	}
}

// STM-44: what is never continued: a tool call, a stream that has its end, no text, another dialect, an answer that begins anew and
// differently, one that refuses, and one that was continued already. STM-46: usage is the sum.
func TestNotContinued(t *testing.T) {
	tool := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}}]}`
	cut := func(events ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			streams(events...)(w, r)
			resets(w, r)
		}
	}
	var asked []string
	long := `data: {"choices":[{"index":0,"delta":{"content":"It was a dark and stormy night in the old mill."}}]}`
	other := `data: {"choices":[{"index":0,"delta":{"content":"It was a dark and stormy day, and so on."}}]}`
	for name, c := range map[string]struct {
		first, second http.HandlerFunc
		asks          bool // the second one is asked
	}{
		"tool call": {cut(word, tool), streams(word, finish, done), false},
		"reasoning": {cut(role, `data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}`), streams(word, finish, done), false},
		"anew":      {cut(long), streams(other, finish, done), true},
		"refused":   {cut(long), model{answer: fixed, refuses: true, asked: &asked}.serve, true},
		"cut again": {cut(long), cut(`data: {"choices":[{"index":0,"delta":{"content":" And"}}]}`), true},
		"document":  {cut(long), answers, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			heard := 0
			rt := b.two(wire.OpenAIChat, "continue", c.first, func(w http.ResponseWriter, r *http.Request) { heard++; c.second(w, r) }, ptr(true))
			got, trail := b.askTo(wire.OpenAIChat, rt)
			text := got.body.String()
			if !trail.partial || strings.Count(text, `data: {"error":`) != 1 || strings.Contains(text, "[DONE]") || heard != map[bool]int{true: 1}[c.asks] {
				t.Errorf("%d %+v %s", heard, trail, text)
			}
		})
	}
	t.Run("another dialect", func(t *testing.T) {
		b := newBench(t).speaks(wire.OpenAIResponses, "/v1/responses", "/responses")
		heard := 0
		rt := b.two(wire.OpenAIResponses, "continue", cut("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"half\"}"),
			func(http.ResponseWriter, *http.Request) { heard++ }, ptr(true))
		if got, trail := b.askTo(wire.OpenAIResponses, rt); heard > 0 || !trail.partial || !strings.Contains(got.body.String(), "response.failed") {
			t.Errorf("%d %+v %s", heard, trail, got.body.String())
		}
	})
	t.Run("usage", func(t *testing.T) {
		b := newBench(t)
		rt := b.two(wire.OpenAIChat, "continue", cut(long, usage), streams(`data: {"choices":[{"index":0,"delta":{"content":" The end."}}]}`, finish, usage, done), ptr(true))
		got, trail := b.askTo(wire.OpenAIChat, rt)
		if trail.input != 10 || trail.output != 12 || trail.partial || !strings.HasSuffix(got.texts(), "mill. The end.") {
			t.Errorf("STM-46: %+v %q", trail, got.texts())
		}
	})
}

// STM-43, STM-46: a request that goes nowhere else is continued by the same account, whose slot is held through it and given back once.
func TestContinuedByTheSame(t *testing.T) {
	b := newBench(t)
	var asked []string
	m := model{d: wire.OpenAIChat, answer: fixed, asked: &asked}
	cutting := m
	cutting.cut = len(m.stream(fixed)) / 2
	turn := 0
	b.with("a", func(w http.ResponseWriter, r *http.Request) {
		if turn++; turn == 1 {
			cutting.serve(w, r)
			return
		}
		m.serve(w, r)
	})
	rt := b.direct()
	b.snap.Settings.StreamRecovery.Continue = true
	got, trail := b.askTo(wire.OpenAIChat, rt)
	if got.texts() != fixed || trail.partial || trail.attempts != 1 || !strings.Contains(trail.notes, "continued by acme/m") || b.cooled() > 0 {
		t.Errorf("%q %+v", got.texts(), trail)
	}
	if len(asked) != 2 || asked[0] != "" || !strings.HasPrefix(fixed, asked[1]) {
		t.Errorf("asked %q", asked)
	}
}

// STM-43: the client's dialect counts, not the upstream's: a chat client of an upstream of messages is continued too.
func TestContinueAcrossDialects(t *testing.T) {
	b := newBench(t).messages()
	var asked []string
	m := model{d: wire.AnthropicMessages, answer: fixed, asked: &asked}
	first := m
	first.cut = len(m.stream(fixed)) / 2
	rt := b.two(wire.OpenAIChat, "continue", first.serve, m.serve, ptr(true))
	got, trail := b.askTo(wire.OpenAIChat, rt)
	if got.texts() != fixed || trail.partial || strings.Count(got.body.String(), `"role"`) != 1 || !strings.HasSuffix(got.body.String(), "[DONE]\n\n") {
		t.Errorf("%q %+v %s", got.texts(), trail, got.body.String())
	}
}
