package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// STM-40, STM-41, STM-42: a cut within the opening is asked for again on the same account, at most four times and unseen; a stream that
// has its end mark is none. STM-46: what all of them took is counted once.
func TestEarlyRecovery(t *testing.T) {
	cut := []frame{roleChunk, content("he"), data(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`)}
	good := []frame{roleChunk, content("hello"), stopChunk, data(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`), doneMark}
	for name, c := range map[string]struct {
		films    [][]frame
		off      bool
		want     string
		asked    int
		partial  bool
		attempts int
	}{
		"twice":      {[][]frame{cut, cut, good}, false, "hello", 3, false, 1},
		"early end":  {[][]frame{{roleChunk}, good}, false, "hello", 2, false, 1},
		"five times": {[][]frame{cut, cut, cut, cut, cut, good}, false, "hello", 6, false, 2}, // four repeats, then the second account
		"off":        {[][]frame{cut, good}, true, "he", 1, true, 1},
		"no mark":    {[][]frame{{roleChunk, content("hello"), stopChunk}, good}, false, "hello", 1, false, 1},
		"late":       {[][]frame{{roleChunk, content("he"), after(751*time.Millisecond, content("l"))}, good}, false, "hel", 1, true, 1},
		"large":      {[][]frame{{content(strings.Repeat("x", 70_000)), content("y")}, good}, false, strings.Repeat("x", 70_000) + "y", 1, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				l.snap.Settings.StreamRecovery.Enabled = !c.off
				asked := l.film(map[string][][]frame{"a": c.films, "b": {good}})
				v, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a", "b")), "")
				if v.texts() != c.want || len(*asked) != c.asked || trail.Partial != c.partial || len(trail.Attempts) != c.attempts {
					t.Errorf("%q asked %v %+v", v.texts(), *asked, trail)
				}
				if name == "twice" && (trail.Usage.Input != 9 || trail.Usage.Output != 6 || len(trail.Notes) != 2) {
					t.Errorf("STM-46: %+v %q", trail.Usage, trail.Notes)
				}
				if got := strings.Count(v.body.String(), `"role"`); got > 1 {
					t.Errorf("%d beginnings", got)
				}
			})
		})
	}
}

// STM-40: the opening is let go after 750 ms although nothing more comes; STM-47: the client does not wait longer for it.
func TestOpeningIsLetGo(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.StreamRecovery.Enabled = true
		l.snap.Settings.StreamIdleTimeout = time.Hour
		l.film(map[string][][]frame{"a": {{roleChunk, after(time.Second, content("hello")), after(10*time.Second, stopChunk), doneMark}}})
		v, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
		if v.notes[0] != "1.75 head 200" || trail.Partial || !strings.HasSuffix(v.body.String(), "[DONE]\n\n") {
			t.Errorf("%q", v.notes)
		}
	})
}

// STM-41: an error status and an error event are never asked for again unseen.
func TestErrorsAreNotRepeated(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.StreamRecovery.Enabled = true
		asked := l.film(map[string][][]frame{"a": {{roleChunk, data(`{"error":{"message":"no","code":400}}`)}}})
		_, trail := l.watch(t.Context(), wire.OpenAIChat, direct(l.provider("acme", "a")), "")
		if len(*asked) != 1 || trail.Failure == nil || trail.Failure.Status != 400 {
			t.Errorf("%v %+v", *asked, trail.Failure)
		}
	})
}

// holds are the routes on which an answer is held back.
func holding(rt *catalog.Route, mode string) *catalog.Route {
	rt.Config.StreamRecovery = mode
	return rt
}

// STM-64, FLT-8, FLT-9: with hold a cut, an error and a stall are replaced by another target, and the client gets one whole answer;
// it is kept alive meanwhile. FLT-16: the attempts before are not billed.
func TestHold(t *testing.T) {
	good := []frame{roleChunk, content("whole "), after(3*time.Second, content("answer")), stopChunk, data(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`), doneMark}
	used := data(`{"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":900}}`)
	for name, bad := range map[string][]frame{
		"cut": {roleChunk, content("half"), used}, "stall": {roleChunk, content("half"), used, silence},
		"error": {roleChunk, content("half"), used, data(`{"error":{"message":"gone","code":502}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				l.snap.Settings.Streams.EarlyKeepalive, l.snap.Settings.Heartbeat = time.Second, time.Second
				l.film(map[string][][]frame{"a": {bad}, "b": {good}})
				rt := holding(combo("priority", l.provider("acme", "a"), l.provider("other", "b")), "hold")
				rt.Config.StallTimeout = ptr(5 * time.Second)
				v, trail := l.watch(t.Context(), wire.OpenAIChat, rt, "")
				text := v.body.String()
				if v.texts() != "whole answer" || len(trail.Attempts) != 2 || trail.Partial || !strings.HasSuffix(text, "[DONE]\n\n") || strings.Count(text, `"role"`) != 1 {
					t.Errorf("%q %+v", text, trail)
				}
				if !strings.HasPrefix(text, ": keep-alive") || trail.Usage.Input != 3 || trail.Usage.Output != 4 {
					t.Errorf("STM-13, FLT-16: %q %+v", text, trail.Usage)
				}
			})
		})
	}
}

// STM-64, STM-65: an answer above holdMaxBytes is let go, and is a usual stream from then on. A route that says off beats the defaults.
func TestHoldIsBounded(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.Streams.HoldMaxBytes = 65_536
		l.snap.Settings.RouteDefaults.StreamRecovery = "hold"
		piece := content(strings.Repeat("x", 30_000))
		l.film(map[string][][]frame{"a": {{piece, piece, piece, after(time.Second, content("end"))}}, "b": {{content("other"), stopChunk, doneMark}}})
		rt := combo("priority", l.provider("acme", "a"), l.provider("other", "b"))
		v, trail := l.watch(t.Context(), wire.OpenAIChat, rt, "")
		if v.notes[0] != "0 head 200" || !trail.Partial || v.texts() != strings.Repeat("x", 90_000)+"end" {
			t.Errorf("%.100q %+v", v.notes, trail)
		}
	})
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.RouteDefaults.StreamRecovery = "hold"
		l.film(map[string][][]frame{"a": {{content("ha"), after(time.Second, content("lf"))}}})
		v, trail := l.watch(t.Context(), wire.OpenAIChat, holding(combo("priority", l.provider("acme", "a")), "off"), "")
		if v.texts() != "half" || !trail.Partial {
			t.Errorf("off: %q", v.body.String())
		}
	})
}

// STM-64: one document for a client of another dialect, and a stream for one that asked for it, are held in the same way.
func TestHoldInAnotherDialect(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.plan.Dialect = wire.AnthropicMessages
		good := openings[wire.AnthropicMessages]
		l.film(map[string][][]frame{"a": {good[:3]}, "b": {good}})
		p, q := l.provider("acme", "a"), l.provider("other", "b")
		p.Dialects = map[string]wire.Dialect{"/v1/messages": wire.AnthropicMessages}
		q.Dialects = p.Dialects
		v, trail := l.watch(t.Context(), wire.OpenAIChat, holding(combo("priority", p, q), "hold"), "")
		if v.texts() != "hello" || trail.Partial || len(trail.Attempts) != 2 || !strings.HasSuffix(v.body.String(), "[DONE]\n\n") || strings.Count(v.body.String(), `"role"`) != 1 {
			t.Errorf("%q %+v", v.body.String(), trail)
		}
	})
}
