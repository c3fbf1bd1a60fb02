package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// delta is an event of messages that adds to the block.
func blockDelta(kind, member, text string) frame {
	return named("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"`+kind+`","`+member+`":"`+text+`"}}`)
}

// activities are events that show that the model works, though the user sees nothing of it (STM-22).
var activities = map[wire.Dialect]map[string]frame{
	wire.AnthropicMessages: {
		"thinking start":   named("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`),
		"redacted start":   named("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"x"}}`),
		"thinking":         blockDelta("thinking_delta", "thinking", "hm"),
		"empty thinking":   blockDelta("thinking_delta", "thinking", ""),
		"signature":        blockDelta("signature_delta", "signature", "abc"),
		"by its JSON type": data(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":""}}`),
	},
	wire.OpenAIResponses: {
		"reasoning item":      named("response.output_item.added", `{"type":"response.output_item.added","item":{"type":"reasoning","encrypted_content":"x"}}`),
		"empty delta":         named("response.reasoning_summary_text.delta", `{"type":"response.reasoning_summary_text.delta","delta":""}`),
		"by the event header": named("response.reasoning_text.delta", `{"delta":""}`),
	},
	wire.OpenAIChat: {
		"empty reasoning":  data(`{"choices":[{"index":0,"delta":{"reasoning_content":""}}]}`),
		"details":          data(`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}}]}`),
		"error with delta": data(`{"error":{"message":"hiccup"},"choices":[{"index":0,"delta":{"reasoning_content":"a"}}]}`),
	},
	wire.GeminiGenerate: {
		"signature": data(`{"candidates":[{"content":{"parts":[{"thought":true,"text":"","thoughtSignature":"x"}],"role":"model"},"index":0}]}`),
	},
}

// passive are events that do not (STM-23).
var passive = map[wire.Dialect]map[string]frame{
	wire.AnthropicMessages: {
		"message_start": openings[wire.AnthropicMessages][0], "ping": named("ping", `{"type":"ping"}`),
	},
	wire.OpenAIResponses: {
		"created":     named("response.created", `{"type":"response.created","response":{"id":"r"}}`),
		"in progress": named("response.in_progress", `{"type":"response.in_progress","response":{"id":"r"}}`),
	},
	wire.OpenAIChat: {
		"role": roleChunk, "heartbeat": named("heartbeat", `{}`), "usage": data(`{"choices":[],"usage":null}`),
	},
	wire.GeminiGenerate: {
		"empty": data(`{"candidates":[],"responseId":"x"}`),
	},
}

// STM-20, STM-22, STM-23, STM-24: what restarts the stall budget, and what does not, in each dialect.
func TestStallBudget(t *testing.T) {
	for d, events := range activities {
		for name, e := range events {
			inLab(t, func(t *testing.T, l *lab) {
				l.plan.Dialect = d
				l.snap.Settings.ContentStall, l.snap.Settings.ReadinessTimeout, l.snap.Settings.StreamIdleTimeout = 20*time.Second, time.Hour, time.Hour
				beat := after(7*time.Second, passiveOf(d))
				l.film(map[string][][]frame{"a": {{after(15*time.Second, e), after(15*time.Second, e), beat, beat, beat, beat, silence}}})
				v, trail := l.watch(t.Context(), d, direct(l.provider("acme", "a")), "")
				if took := trail.Attempts[0].Took; took != 50*time.Second {
					t.Errorf("%s %s: ended after %s", d, name, took)
				}
				if f := trail.Failure; f == nil || f.Status != 502 || f.Code != "stream_content_stall" || f.Type != "stream_error" || !strings.Contains(f.Message, "20s") {
					t.Errorf("%s %s: %+v %q", d, name, f, v.body.String())
				}
			})
		}
	}
	for d, events := range passive {
		for name, e := range events {
			inLab(t, func(t *testing.T, l *lab) {
				l.plan.Dialect = d
				l.snap.Settings.ContentStall, l.snap.Settings.ReadinessTimeout, l.snap.Settings.StreamIdleTimeout = 20*time.Second, time.Hour, time.Hour
				l.film(map[string][][]frame{"a": {{e, after(6*time.Second, e), after(6*time.Second, e), after(6*time.Second, e), after(6*time.Second, e)}}})
				_, trail := l.watch(t.Context(), d, direct(l.provider("acme", "a")), "")
				if took := trail.Attempts[0].Took; took != 20*time.Second || trail.Failure.Code != "stream_content_stall" {
					t.Errorf("%s %s: ended after %s: %+v", d, name, took, trail.Failure)
				}
			})
		}
	}
}

func passiveOf(d wire.Dialect) frame {
	for _, e := range passive[d] {
		return e
	}
	return frame{}
}

// STM-27, COOL-32: a stall falls back when nothing was sent, cools and locks nothing, and counts for no breaker. Bytes without a word
// of the model do not keep it alive (SCN-12, STM-28).
func TestStallFallsBack(t *testing.T) {
	for _, kind := range []string{"direct", "combo"} {
		inLab(t, func(t *testing.T, l *lab) {
			l.snap.Settings.ContentStall, l.snap.Settings.ReadinessTimeout, l.snap.Settings.StreamIdleTimeout = 5*time.Second, time.Hour, time.Hour
			p, q := l.provider("acme", "a"), l.provider("other", "b")
			beat := after(time.Second, named("ping", `{}`))
			l.film(map[string][][]frame{"a": {{roleChunk, beat, beat, beat, beat, beat, beat, beat}}, "b": {{content("hello"), stopChunk, doneMark}}})
			rt := combo("priority", p, q)
			if kind == "direct" {
				p.Connections = append(p.Connections, q.Connections...)
				rt = direct(p)
			}
			v, trail := l.watch(t.Context(), wire.OpenAIChat, rt, "")
			if v.texts() != "hello" || len(trail.Attempts) != 2 || trail.Attempts[0].Status != 502 || trail.Attempts[0].Took != 5*time.Second || strings.Contains(v.body.String(), "ping") {
				t.Errorf("%s: %q %+v", kind, v.body.String(), trail)
			}
			for _, e := range l.events {
				if e.Kind == "connection.cooldown" && strings.Contains(string(e.Data), "rateLimitedUntil") || strings.HasPrefix(e.Kind, "lockout") || strings.HasPrefix(e.Kind, "breaker") {
					t.Errorf("%s: %s %s", kind, e.Kind, e.Data)
				}
			}
		})
	}
}

// STM-21, CMB-26: output disarms the watchdog, unless the route says stallTimeoutMs; then the stream ends with the error event.
func TestStallBehindOutput(t *testing.T) {
	for name, c := range map[string]struct {
		route, general time.Duration
		ends           float64
	}{
		"without": {0, 0, 100}, "route": {5 * time.Second, 0, 5}, "general": {0, 7 * time.Second, 7}, "route wins": {5 * time.Second, 7 * time.Second, 5},
	} {
		inLab(t, func(t *testing.T, l *lab) {
			l.snap.Settings.ContentStall, l.snap.Settings.StreamIdleTimeout, l.snap.Settings.RouteDefaults.StallTimeout = 3*time.Second, time.Hour, c.general
			l.film(map[string][][]frame{"a": {{content("hello"), after(100*time.Second, stopChunk), doneMark}}})
			rt := direct(l.provider("acme", "a"))
			if c.route > 0 {
				rt.Config = catalog.ComboConfig{StallTimeout: &c.route}
			}
			v, trail := l.watch(t.Context(), wire.OpenAIChat, rt, "")
			if trail.Took.Seconds() != c.ends || trail.Partial != (c.ends < 100) {
				t.Errorf("%s: %s %+v", name, trail.Took, trail)
			}
			if trail.Partial && (!strings.Contains(v.body.String(), `"code":"stream_content_stall"`) || strings.Contains(v.body.String(), "[DONE]")) {
				t.Errorf("FLT-9: %s: %q", name, v.body.String())
			}
		})
	}
}

// STM-26: 0 switches the watchdog off, and the time to the first useful event remains.
func TestNoStallWatchdog(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.ContentStall, l.snap.Settings.ReadinessTimeout, l.snap.Settings.StreamIdleTimeout = 0, 30*time.Second, time.Hour
		l.film(map[string][][]frame{"a": {{roleChunk, silence}}})
		_, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
		if f := trail.Failure; trail.Attempts[0].Took != 30*time.Second || f.Status != 504 || f.Code != "STREAM_READINESS_TIMEOUT" || f.Type != "stream_timeout" {
			t.Errorf("STM-11: %+v after %s", f, trail.Attempts[0].Took)
		}
	})
}

// STM-12, STM-1: the time to the first useful event grows with the prompt, and is all there is for a request that asks for reasoning.
// STM-20: it is the stall budget, too, where nothing else is said.
func TestAdaptiveReadiness(t *testing.T) {
	prompt := func(tokens int, more string) string {
		return `{"model":"x","stream":true` + more + `,"messages":[{"role":"user","content":"` + strings.Repeat("word", tokens) + `"}]}`
	}
	for name, c := range map[string]struct {
		d    wire.Dialect
		text string
		want int
	}{
		"small": {wire.OpenAIChat, prompt(10, ""), 80}, "large": {wire.OpenAIChat, prompt(20_000, ""), 90}, "huge": {wire.OpenAIChat, prompt(900_000, ""), 180},
		"chat effort": {wire.OpenAIChat, prompt(1, `,"reasoning_effort":"high"`), 180}, "no effort": {wire.OpenAIChat, prompt(1, `,"reasoning_effort":"none"`), 80},
		"thinking": {wire.AnthropicMessages, prompt(1, `,"max_tokens":9,"thinking":{"type":"enabled","budget_tokens":2000}`), 180},
		"none":     {wire.AnthropicMessages, prompt(1, `,"max_tokens":9,"thinking":{"type":"disabled"}`), 80},
		"effort":   {wire.OpenAIResponses, `{"model":"x","stream":true,"input":"hi","reasoning":{"effort":"low"}}`, 180},
		"budget":   {wire.GeminiGenerate, `{"contents":[],"generationConfig":{"thinkingConfig":{"thinkingBudget":-1}}}`, 180},
		"budget 0": {wire.GeminiGenerate, `{"contents":[],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`, 80},
	} {
		inLab(t, func(t *testing.T, l *lab) {
			l.plan.Dialect = c.d
			s := l.snap.Settings
			s.ReadinessTimeout, s.ReadinessMax, s.StreamIdleTimeout = 80*time.Second, 180*time.Second, time.Hour
			l.film(map[string][][]frame{"a": {{silence}}})
			_, trail := l.watch(t.Context(), c.d, direct(l.provider("acme", "a")), c.text)
			if got := int(trail.Attempts[0].Took.Seconds()); got != c.want || trail.Failure.Code != "STREAM_READINESS_TIMEOUT" {
				t.Errorf("%s: %d s, want %d: %+v", name, got, c.want, trail.Failure)
			}
		})
	}
}

// STM-30, STM-31, STM-33, STM-35: a stream that brings hardly any text is ended, also when nothing comes any more; STM-32: not while it
// reasons or calls a tool, and what is no text does not count.
func TestThroughput(t *testing.T) {
	think := data(`{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}`)
	call := data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}`)
	for name, c := range map[string]struct {
		events []frame
		ends   int // seconds; 0: it is let be for its hundred
	}{
		"silent":     {[]frame{content("hello"), after(100*time.Second, stopChunk), doneMark}, 20},
		"heartbeats": {[]frame{content("hello"), after(15*time.Second, named("ping", "{}")), after(85*time.Second, stopChunk), doneMark}, 20},
		"reasoning":  {[]frame{content("hello"), think, after(100*time.Second, stopChunk), doneMark}, 0},
		"tool call":  {[]frame{content("hello"), call, after(100*time.Second, stopChunk), doneMark}, 0},
		"text again": {[]frame{content("hello"), think, after(50*time.Second, content("x")), after(50*time.Second, stopChunk), doneMark}, 60},
		"fast":       {[]frame{content("hello"), after(10*time.Second, content(strings.Repeat("x", 100))), after(9*time.Second, stopChunk), doneMark}, 0},
	} {
		inLab(t, func(t *testing.T, l *lab) {
			l.snap.Settings.StreamIdleTimeout = time.Hour
			dog := &l.snap.Settings.StreamRecovery.Throughput
			dog.Enabled, dog.Warmup, dog.Window, dog.MinRate, dog.MinBytes = true, 10*time.Second, 10*time.Second, 4, 1
			l.film(map[string][][]frame{"a": {c.events}})
			v, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
			if c.ends == 0 {
				if trail.Partial || !strings.HasSuffix(v.body.String(), "[DONE]\n\n") {
					t.Errorf("%s: %q after %s", name, v.body.String(), trail.Took)
				}
				return
			}
			f := trail.Failure
			if int(trail.Took.Seconds()) != c.ends || !trail.Partial || f.Status != 502 || f.Code != "STREAM_THROUGHPUT_TOO_LOW" || f.Type != "stream_error" {
				t.Errorf("%s: %+v after %s", name, f, trail.Took)
			}
		})
	}
}

// FLT-6, FLT-7, CMB-15, CMB-26: a target that never answers costs its start timeout, one whose first word is late costs
// firstContentTimeoutMs, whether its head came or not; without a limit the late answer is delivered whole.
func TestLateFirstWord(t *testing.T) {
	good := []frame{content("good"), stopChunk, doneMark}
	slow := []frame{after(20*time.Second, content("late")), stopChunk, doneMark}
	for name, c := range map[string]struct {
		config catalog.ComboConfig
		head   time.Duration // before the head of the first target
		want   string
		took   time.Duration
	}{
		"hangs":                {catalog.ComboConfig{TargetTimeout: ptr(30 * time.Second)}, 120 * time.Second, "good", 30 * time.Second},
		"late head":            {catalog.ComboConfig{FirstContentTimeout: ptr(5 * time.Second)}, 20 * time.Second, "good", 5 * time.Second},
		"late word":            {catalog.ComboConfig{FirstContentTimeout: ptr(5 * time.Second)}, 0, "good", 5 * time.Second},
		"head, then late word": {catalog.ComboConfig{FirstContentTimeout: ptr(5 * time.Second)}, 3 * time.Second, "good", 5 * time.Second},
		"no limit":             {catalog.ComboConfig{}, 0, "late", 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				s := l.snap.Settings
				s.FetchTimeout, s.StreamIdleTimeout, s.ReadinessTimeout = time.Hour, time.Hour, time.Hour
				asked := l.film(map[string][][]frame{"a": {slow}, "b": {good}})
				show := l.guest.respond
				l.guest.respond = func(ctx context.Context, f wire.RequestFacts) (*wire.Answer, error) {
					answer, err := show(ctx, f)
					if f.Connection.ID == "a" {
						select {
						case <-time.After(c.head):
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					}
					return answer, err
				}
				rt := combo("priority", l.provider("acme", "a"), l.provider("other", "b"))
				rt.Config = c.config
				v, trail := l.watch(t.Context(), wire.OpenAIChat, rt, "")
				if v.texts() != c.want || trail.Took != c.took || trail.Partial || strings.Count(strings.Join(*asked, " "), "a@") != 1 {
					t.Errorf("%q after %s, asked %v: %+v", v.texts(), trail.Took, *asked, trail.Attempts)
				}
			})
		})
	}
}

// COOL-32: streamStallCooldown.enabled has a stall cool its connection as other failures do.
func TestStallMayCool(t *testing.T) {
	for _, cools := range []bool{false, true} {
		inLab(t, func(t *testing.T, l *lab) {
			l.snap.Settings.ContentStall, l.snap.Settings.ReadinessTimeout, l.snap.Settings.StreamStallCooldown = 5*time.Second, time.Hour, cools
			l.snap.Settings.StreamIdleTimeout = time.Hour
			l.film(map[string][][]frame{"a": {{roleChunk, silence}}})
			_, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
			if (l.cooled() > 0) != cools || trail.Failure.Code != "stream_content_stall" {
				t.Errorf("%t: %d %+v", cools, l.cooled(), trail.Failure)
			}
		})
	}
}
