package dispatch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
)

// writes sends the parts of a stream as they are, and then keeps the stream open for hold.
func writes(hold time.Duration, parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "Text/Event-Stream; charset")
		for _, p := range parts {
			_, _ = fmt.Fprint(w, p)
			w.(http.Flusher).Flush()
		}
		select {
		case <-time.After(hold):
		case <-r.Context().Done():
		}
	}
}

// INF-34, INF-26, INF-22: whether a stream is whole hangs on its events, not on how they are written or what texts say.
func TestWhatIsAWholeStream(t *testing.T) {
	const nn = "\n\n"
	spaced := `data: {"choices" : [{"delta" : {}, "finish_reason" : "stop"}]}`
	for name, c := range map[string]struct {
		parts []string
		end   string // what the client's stream ends with
		whole bool
	}{
		"text about done":           {[]string{word + nn, `data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}` + nn}, "", false},
		"text about a reason":       {[]string{`data: {"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""}}]}` + nn}, "", false},
		"empty reason":              {[]string{`data: {"choices":[{"delta":{"content":"a"},"finish_reason":""}]}` + nn}, "", false},
		"null reason":               {[]string{`data: {"choices":[{"delta":{"content":"a"},"finish_reason": null}]}` + nn}, "", false},
		"blanks":                    {[]string{word + nn, spaced + nn}, spaced + nn + done + nn, true},
		"last event open":           {[]string{word + nn, finish}, finish + nn + done + nn, true},
		"last event half":           {[]string{word + nn, `data: {"choices":[{"del`}, "", false},
		"last event half, but done": {[]string{word + nn, done + nn, "data: {"}, word + nn + done + nn, true},
		"done without a blank line": {[]string{word + nn, done}, word + nn + done + nn, true},
		"done without a space":      {[]string{word + nn, "data:[DONE]" + nn}, "data:[DONE]" + nn, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t).with("a", writes(0, c.parts...))
			got, trail := b.do(b.direct(), true)
			text := got.body.String()
			if !c.whole {
				if !trail.Partial || strings.Count(text, `data: {"error":`) != 1 || !strings.Contains(text, nn+`data: {"error":`) || strings.HasSuffix(text, done+nn) {
					t.Fatalf("%q", text)
				}
				return
			}
			if trail.Partial || !trail.Attempts[0].OK || !strings.HasSuffix(text, c.end) || strings.Contains(text, "error") {
				t.Fatalf("%q %+v", text, trail)
			}
		})
	}
}

// An upstream that does not close its stream behind the end marker holds nobody up, and is no failure.
func TestStreamThatStaysOpen(t *testing.T) {
	b := newBench(t).with("a", writes(time.Minute, word+"\n\n", done+"\n\n"))
	began := time.Now()
	_, trail := b.do(b.direct(), true)
	if took := time.Since(began); took > 5*time.Second || trail.Partial || !trail.Attempts[0].OK {
		t.Errorf("%s %+v", took, trail)
	}
}

// STM-10: signs of life in any form are no beginning.
func TestSignsOfLife(t *testing.T) {
	for _, beat := range []string{
		": ping", "event: ping\ndata: {}", "event: keepalive\ndata: {}", "event: heartbeat\ndata: x", `data: {"type": "ping"}`, `data: {"type":"keep-alive"}`, "data:", "id: 7",
	} {
		b := newBench(t).with("a", streams(beat)).with("b", streams(word, finish, done))
		if c, trail := b.do(b.direct(), true); len(trail.Attempts) != 2 || c.body.String() != word+"\n\n"+finish+"\n\n"+done+"\n\n" {
			t.Errorf("%q: %q", beat, c.body.String())
		}
	}
}

// STM-50: hubs send the error beside what was generated so far.
func TestErrorBesideAnAnswer(t *testing.T) {
	hub := `data: {"id":"gen-1","object":"chat.completion.chunk","created":1,"model":"some/long-model-name","error":{"code":502,"message":"gone"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`
	b := newBench(t).with("a", streams(word, hub, done))
	c, trail := b.do(b.direct(), true)
	if !trail.Partial || trail.Attempts[0].OK || strings.Contains(c.body.String(), "[DONE]") {
		t.Errorf("%q", c.body.String())
	}
}

// STM-11: the types and codes of streams that never began.
func TestStreamsThatNeverBegan(t *testing.T) {
	early := newBench(t).with("a", streams(": x"))
	_, trail := early.do(early.direct(), true)
	if f := trail.Failure; f == nil || f.Status != 502 || f.Type != "stream_early_eof" || f.Code != "STREAM_EARLY_EOF" {
		t.Errorf("%+v", f)
	}
	late := newBench(t).with("a", writes(time.Minute, ": x\n\n"))
	late.snap.Settings.ReadinessTimeout = 30 * time.Millisecond
	_, trail = late.do(late.direct(), true)
	if f := trail.Failure; f == nil || f.Status != 504 || f.Type != "stream_timeout" || f.Code != "STREAM_READINESS_TIMEOUT" {
		t.Errorf("%+v", f)
	}
}

// STM-1: a readiness budget of 0 is none.
func TestNoReadinessBudget(t *testing.T) {
	b := newBench(t).with("a", streams(word, finish, done))
	b.snap.Settings.ReadinessTimeout = 0
	if c, trail := b.do(b.direct(), true); c.status != 200 || trail.Partial {
		t.Errorf("%d %+v", c.status, trail.Failure)
	}
}

// CMB-16, INF-34: a combo's time that is over in mid-answer ends a stream with an error, and breaks a plain answer off.
func TestComboTimeoutInMidAnswer(t *testing.T) {
	limit := 100 * time.Millisecond
	route := func(b *bench) *catalog.Route {
		rt := b.direct()
		rt.Kind, rt.Config.ComboTimeout = catalog.KindCombo, &limit
		return rt
	}
	b := newBench(t).with("a", writes(time.Minute, word+"\n\n"))
	c, trail := b.do(route(b), true)
	if !strings.Contains(c.body.String(), "COMBO_TIMEOUT") || !trail.Partial || trail.Cancelled {
		t.Errorf("%q %+v", c.body.String(), trail)
	}
	b = newBench(t).with("a", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"choices":["`+strings.Repeat("x", 100<<10))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if _, trail = b.do(route(b), false); !trail.Cut || !trail.Partial {
		t.Errorf("%+v", trail)
	}
}

// STM-53: an upstream that streams though a plain answer was asked for is held to the same honesty.
func TestStreamNobodyAskedFor(t *testing.T) {
	b := newBench(t).with("a", streams(`data: {"error":{"message":"no","code":429}}`)).with("b", answers)
	if c, trail := b.do(b.direct(), false); !strings.Contains(c.body.String(), "hello") || trail.Attempts[0].OK {
		t.Errorf("%q", c.body.String())
	}
}
