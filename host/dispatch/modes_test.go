package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// INF-28, OV-4, SCN-15: a client that leaves ends its request at once in every mode, before the first event and in mid-stream, and it
// counts against nobody. A goroutine that stayed behind would keep the bubble from ending.
func TestClientLeavesInEveryMode(t *testing.T) {
	for _, mode := range []string{"off", "early", "hold", "continue", "kept alive", "throughput"} {
		for name, events := range map[string][]frame{
			"before the first event": {roleChunk, silence}, "in mid-stream": {content("hello"), silence}, "while words come": {content("a"), after(4*time.Second, content("b")), silence},
		} {
			t.Run(mode+" "+name, func(t *testing.T) {
				inLab(t, func(t *testing.T, l *lab) {
					s := l.snap.Settings
					s.ReadinessTimeout, s.StreamIdleTimeout = time.Hour, time.Hour
					rt := direct(l.provider("acme", "a", "b"))
					switch mode {
					case "early":
						s.StreamRecovery.Enabled = true
					case "kept alive":
						s.Streams.EarlyKeepalive, s.Heartbeat = time.Second, time.Second
					case "throughput":
						s.StreamRecovery.Throughput.Enabled, s.StreamRecovery.Throughput.Warmup, s.StreamRecovery.Throughput.Window = true, time.Minute, time.Minute
					default:
						rt.Config.StreamRecovery = mode
					}
					asked := l.film(map[string][][]frame{"a": {events}, "b": {{content("other"), stopChunk, doneMark}}})
					ctx, leave := context.WithCancel(t.Context())
					time.AfterFunc(7*time.Second, leave)
					v, trail := l.watch(ctx, wire.OpenAIChat, rt, "")
					if !trail.Cancelled || trail.Took != 7*time.Second || len(*asked) != 1 || len(l.events) > 0 {
						t.Errorf("%+v asked %v, %d events", trail, *asked, len(l.events))
					}
					if strings.Contains(v.body.String(), "[DONE]") || strings.Contains(v.body.String(), "error") {
						t.Errorf("%q", v.body.String())
					}
				})
			})
		}
	}
}

// STM-2: the hard deadline ends an attempt whatever it brings, in the words of a stream that has begun.
func TestHardDeadline(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.AttemptDeadline = 10 * time.Second
		var events []frame
		for range 30 {
			events = append(events, after(time.Second, content("word ")))
		}
		l.film(map[string][][]frame{"a": {events}})
		v, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
		if trail.Took != 10*time.Second || !trail.Partial || !strings.Contains(v.body.String(), `"error"`) || strings.Contains(v.body.String(), "[DONE]") || l.cooled() > 0 {
			t.Errorf("%s %+v %q", trail.Took, trail.Attempts, v.body.String())
		}
	})
}

// STM-34: before the client has a word, a stream that is too slow is opened again on the same account; after it, it ends, and nothing
// is told twice.
func TestTooSlowIsOpenedAgain(t *testing.T) {
	good := []frame{content("hello"), stopChunk, doneMark}
	for name, c := range map[string]struct {
		slow    []frame
		asked   int
		partial bool
		text    string
	}{
		"before": {[]frame{roleChunk, silence}, 2, false, "hello"}, "after": {[]frame{content("hel"), silence}, 1, true, "hel"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				s := l.snap.Settings
				s.StreamRecovery.Enabled, s.StreamIdleTimeout, s.ReadinessTimeout = true, time.Hour, time.Hour
				dog := &s.StreamRecovery.Throughput
				dog.Enabled, dog.Window, dog.MinRate, dog.MinBytes = true, 2*time.Second, 4, 1
				asked := l.film(map[string][][]frame{"a": {c.slow, good}})
				v, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
				if len(*asked) != c.asked || trail.Partial != c.partial || v.texts() != c.text {
					t.Errorf("asked %v %+v %q", *asked, trail, v.body.String())
				}
			})
		})
	}
}

// STM-54, COOL-66: signals of a ban are looked for in the payload of an error, never in what the model says. STM-50, STM-52: an error in
// mid-stream is judged as an error status would be.
func TestBanSignalsInStreams(t *testing.T) {
	for name, c := range map[string]struct {
		events []frame
		banned bool
	}{
		"the model says it":               {[]frame{content("your account is suspended for ever")}, false},
		"beside an error":                 {[]frame{content("your account is suspended for ever"), data(`{"error":{"message":"oops","code":500}}`)}, false},
		"the error says it":               {[]frame{data(`{"error":{"message":"your account is suspended for ever","code":403}}`)}, true},
		"the error in mid-stream says it": {[]frame{content("hi"), data(`{"error":{"message":"your account is suspended for ever","code":403}}`)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				l.snap.Settings.CustomBannedSignals = []string{"suspended for ever"}
				l.film(map[string][][]frame{"a": {c.events}})
				_, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
				if got := trail.Attempts[0].Verdict; (got.Reason == wire.ReasonBanned) != c.banned {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}
