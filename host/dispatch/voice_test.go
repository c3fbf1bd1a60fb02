package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/sdk/wire"
)

// beats are the only signs of life that every client of a dialect survives (INF-24, INF-25).
var beats = map[wire.Dialect]string{
	wire.OpenAIChat: ": keep-alive", wire.OpenAIResponses: ": keep-alive", wire.AnthropicMessages: "event: ping\ndata: {\"type\":\"ping\"}",
	wire.GeminiGenerate: `data: {"candidates":[],"modelVersion":"acme/m","responseId":"req1"}`,
}

// openings are what an upstream of a dialect answers with: a word, and a proper end.
var openings = map[wire.Dialect][]frame{
	wire.OpenAIChat:        {content("hello"), stopChunk, doneMark},
	wire.AnthropicMessages: {named("message_start", `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}`), named("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`), named("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`), named("content_block_stop", `{"type":"content_block_stop","index":0}`), named("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`), named("message_stop", `{"type":"message_stop"}`)},
	wire.OpenAIResponses:   {named("response.created", `{"type":"response.created","response":{"id":"r"}}`), named("response.output_text.delta", `{"type":"response.output_text.delta","delta":"hello"}`), named("response.completed", `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`)},
	wire.GeminiGenerate:    {data(`{"candidates":[{"content":{"parts":[{"text":"hello"}],"role":"model"},"index":0}]}`), data(`{"candidates":[{"content":{"parts":[],"role":"model"},"finishReason":"STOP","index":0}]}`)},
}

// STM-13: a streaming client that waits gets 200 and signs of life of its dialect, and then the answer. The head and the keepalives
// come on time although an opening is held (STM-47).
func TestEarlyKeepalives(t *testing.T) {
	for d, beat := range beats {
		for _, early := range []bool{false, true} {
			inLab(t, func(t *testing.T, l *lab) {
				l.plan.Dialect = d
				l.snap.Settings.Streams.EarlyKeepalive, l.snap.Settings.Heartbeat = 15*time.Second, 5*time.Second
				l.snap.Settings.ReadinessTimeout, l.snap.Settings.StreamIdleTimeout = time.Hour, time.Hour
				l.snap.Settings.StreamRecovery.Enabled = early
				events := append([]frame{after(27*time.Second, openings[d][0])}, openings[d][1:]...)
				l.film(map[string][][]frame{"a": {events}})
				v, trail := l.watch(t.Context(), d, direct(l.provider("acme", "a")), "")
				want := []string{"15 head 200", "15 " + beat, "20 " + beat, "25 " + beat}
				if diff := cmp.Diff(want, v.notes[:min(4, len(v.notes))]); diff != "" {
					t.Fatalf("%s: %s\n%q", d, diff, v.notes)
				}
				if len(v.notes) < 5 || !strings.HasPrefix(v.notes[4], "27") || !strings.Contains(v.body.String(), "hello") || !trail.Attempts[0].OK || trail.Partial {
					t.Errorf("%s: %q %+v", d, v.notes, trail)
				}
				if v.header.Get("Content-Type") != "text/event-stream" || v.header.Get("Cache-Control") != "no-cache" {
					t.Errorf("INF-20: %v", v.header)
				}
			})
		}
	}
}

// STM-13: between whole events a silent stream is kept alive in each dialect too, and an interval of 0 is none.
func TestHeartbeatsInMidStream(t *testing.T) {
	for d, beat := range beats {
		for _, every := range []time.Duration{5 * time.Second, 0} {
			inLab(t, func(t *testing.T, l *lab) {
				l.plan.Dialect = d
				l.snap.Settings.Heartbeat, l.snap.Settings.StreamIdleTimeout = every, time.Hour
				n := len(openings[d])
				events := append([]frame{}, openings[d]...)
				events[n-1] = after(12*time.Second, events[n-1])
				l.film(map[string][][]frame{"a": {events}})
				v, _ := l.watch(t.Context(), d, direct(l.provider("acme", "a")), "")
				got := []string{}
				for _, n := range v.notes {
					if strings.HasSuffix(n, " "+beat) {
						got = append(got, strings.TrimSuffix(n, " "+beat))
					}
				}
				want := []string{"5", "10"}
				if every == 0 {
					want = []string{}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s\n%q", d, diff, v.notes)
				}
			})
		}
	}
}

// STM-13, INF-34: what fails behind the first keepalive is told in the stream, in the client's dialect, and without a proper end.
// STM-14: what fails before it keeps its status.
func TestFailureBehindAKeepalive(t *testing.T) {
	ends := map[wire.Dialect]string{
		wire.OpenAIChat: `data: {"error":{`, wire.OpenAIResponses: "event: response.failed", wire.AnthropicMessages: "event: error", wire.GeminiGenerate: `data: {"error":{`,
	}
	for d, end := range ends {
		inLab(t, func(t *testing.T, l *lab) {
			l.plan.Dialect = d
			l.snap.Settings.Streams.EarlyKeepalive = 5 * time.Second
			l.script["a"] = []reply{says(503, "the river is dry")}
			v, trail := l.watch(t.Context(), d, direct(l.provider("acme", "a")), "")
			if v.status != 0 || trail.Committed || trail.Failure == nil || trail.Failure.Status != 503 || v.body.Len() > 0 {
				t.Errorf("STM-14: %s: %d %q %+v", d, v.status, v.body.String(), trail.Failure)
			}

			l.snap.Settings.Heartbeat, l.snap.Settings.ReadinessTimeout, l.snap.Settings.StreamIdleTimeout = 15*time.Second, 8*time.Second, time.Hour
			l.film(map[string][][]frame{"b": {{silence}}})
			v, trail = l.watch(t.Context(), d, direct(l.provider("acme2", "b")), "")
			text := v.body.String()
			if v.status != 200 || !trail.Committed || !trail.Partial || trail.Status != 200 || !strings.Contains(text, end) || strings.Contains(text, "[DONE]") ||
				strings.Contains(text, "message_stop") || !strings.HasPrefix(text, beats[d]) {
				t.Errorf("%s: %d %q %+v", d, v.status, text, trail)
			}
		})
	}
}

// STM-13: 0 is never; and a client that wants one document is never kept alive.
func TestNoEarlyKeepalive(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.Heartbeat, l.snap.Settings.ReadinessTimeout, l.snap.Settings.StreamIdleTimeout = time.Second, time.Minute, time.Hour
		l.film(map[string][][]frame{"a": {{after(40*time.Second, content("hello")), stopChunk, doneMark}}})
		v, _ := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
		if v.notes[0] != "40 head 200" {
			t.Errorf("%q", v.notes)
		}
		l.snap.Settings.Streams.EarlyKeepalive = time.Second
		c, trail := l.do(direct(l.provider("acme", "a")), false)
		if !strings.Contains(c.body.String(), "hello") || strings.Contains(c.body.String(), "keep-alive") || c.header.Get("Content-Type") != "application/json" {
			t.Errorf("%q %+v", c.body.String(), trail)
		}
	})
}

// CMB-48: a streaming client that waits for a cooldown gets keepalives; when it leaves meanwhile, the wait is over.
func TestKeepalivesWhileWaiting(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.Streams.EarlyKeepalive, l.snap.Settings.Heartbeat = 5*time.Second, 5*time.Second
		l.waits(90*time.Second, 300*time.Second, 5)
		l.says("a", says(429, "slow down", 18), ok())
		v, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
		if len(v.notes) < 5 || v.notes[0] != "5 head 200" || v.notes[3] != "15 : keep-alive" || v.texts() != "hello" || len(trail.Attempts) != 2 || trail.Partial {
			t.Errorf("%q %+v", v.notes, trail)
		}

		l.says("b", says(429, "slow down", 60))
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(12*time.Second, leave)
		v, trail = l.watch(ctx, wire.OpenAIChat, direct(l.provider("acme2", "b")), "")
		if !trail.Cancelled || trail.Took != 12*time.Second || strings.Contains(v.body.String(), "error") {
			t.Errorf("%q %+v", v.notes, trail)
		}
	})
}

// STM-13: a document that cannot be told as a stream is a failure in the stream that was promised, and an answer where none was.
func TestDocumentBehindAKeepalive(t *testing.T) {
	for _, early := range []time.Duration{0, time.Second} {
		inLab(t, func(t *testing.T, l *lab) {
			l.snap.Settings.Streams.EarlyKeepalive = early
			l.guest.respond = func(ctx context.Context, _ wire.RequestFacts) (*wire.Answer, error) {
				time.Sleep(3 * time.Second)
				return &wire.Answer{Status: 200, Body: wire.Raw(`{"choices":[{"message":{"content":"hello"}}]}`)}, ctx.Err()
			}
			odd := `{"model":"x","stream":true,"messages":"no list"}` // what the upstream takes, and we cannot read
			v, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), odd)
			text := v.body.String()
			if early == 0 && (!strings.HasPrefix(text, `{"choices"`) || trail.Partial) || early > 0 && (!strings.HasPrefix(text, ": keep-alive") || !strings.Contains(text, `data: {"error"`)) {
				t.Errorf("%v: %q %+v", early, text, trail)
			}
		})
	}
}
