package dispatch_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/settings"
)

const (
	role   = `data: {"choices":[{"delta":{"role":"assistant"}}]}`
	word   = `data: {"choices":[{"delta":{"content":"hi"}}]}`
	finish = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`
	usage  = `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}`
	done   = `data: [DONE]`
)

// A good stream passes byte for byte and states its usage.
func TestStreamPasses(t *testing.T) {
	b := newBench(t).with("a", streams(": hello", role, word, finish, usage, done))
	c, trail := b.do(b.direct(), true)
	want := ": hello\n\n" + strings.Join([]string{role, word, finish, usage, done}, "\n\n") + "\n\n"
	if c.status != 200 || c.body.String() != want {
		t.Errorf("%d %q", c.status, c.body.String())
	}
	if c.header.Get("Content-Type") != "text/event-stream" || c.header.Get("Cache-Control") != "no-cache" || c.header.Get("Content-Length") != "" {
		t.Error("INF-20:", c.header)
	}
	if trail.Usage.Input != 5 || trail.Usage.Output != 6 || !trail.Attempts[0].OK {
		t.Errorf("%+v", trail)
	}
}

// STM-10, STM-51: nothing is promised before the first useful event, so an early error goes to the next connection.
func TestErrorBeforeTheFirstEvent(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"error object": streams(": ping", `data: {"error":{"message":"overloaded","type":"overloaded_error"}}`),
		"error event":  streams("event: error\ndata: {\"message\":\"no\"}"),
		"early end":    streams(": ping"),
		"only done":    streams(done),
		"reset":        func(w http.ResponseWriter, r *http.Request) { streams(": x")(w, r); resets(w, r) },
	} {
		b := newBench(t).with("a", h).with("b", streams(role, word, finish, done))
		c, trail := b.do(b.direct(), true)
		if c.status != 200 || len(trail.Attempts) != 2 || strings.Contains(c.body.String(), "error") || strings.Contains(c.body.String(), "ping") {
			t.Errorf("%s: %d %q %+v", name, c.status, c.body.String(), trail.Attempts)
		}
	}
	alone := newBench(t).with("a", streams(`data: {"error":{"message":"overloaded","type":"overloaded_error"}}`))
	c, trail := alone.do(alone.direct(), true)
	if c.status != 0 || trail.Failure == nil || trail.Failure.Status != 529 {
		t.Errorf("a true status is still possible: %d %+v", c.status, trail.Failure)
	}
}

// INF-34, STM-52: after the first event the stream ends with one error event and without [DONE], and the verdict is applied.
func TestFailureInMidStream(t *testing.T) {
	cut := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100000")
		streams(role, word)(w, r)
	}
	for name, h := range map[string]http.HandlerFunc{
		"error event": streams(role, word, `data: {"error":{"message":"quota","code":429}}`, word, done),
		"cut":         cut,
		"early end":   streams(role, word),
	} {
		b := newBench(t).with("a", h).with("b", answers)
		c, trail := b.do(b.direct(), true)
		text := c.body.String()
		if !strings.HasPrefix(text, role+"\n\n"+word+"\n\n") || strings.Contains(text, "[DONE]") || strings.Count(text, `data: {"error":`) != 1 {
			t.Errorf("%s: %q", name, text)
		}
		if !trail.Partial || len(trail.Attempts) != 1 || trail.Attempts[0].OK || len(b.events) == 0 || !slices.Equal(b.seen(), []string{"a"}) {
			t.Errorf("%s: %+v", name, trail)
		}
	}
}

// INF-22: a missing [DONE] after a finish reason is added; the stream is a success.
func TestMissingDone(t *testing.T) {
	b := newBench(t).with("a", streams(role, word, finish))
	c, trail := b.do(b.direct(), true)
	if !strings.HasSuffix(c.body.String(), finish+"\n\n"+done+"\n\n") || trail.Partial || !trail.Attempts[0].OK {
		t.Errorf("%q", c.body.String())
	}
}

// The words of an answer are never evidence of an error.
func TestTextThatSpeaksOfErrors(t *testing.T) {
	talk := `data: {"choices":[{"delta":{"content":"{\"error\": 1} event: error"}}]}`
	b := newBench(t).with("a", streams(role, talk, finish, done))
	c, trail := b.do(b.direct(), true)
	if trail.Partial || !strings.Contains(c.body.String(), talk) {
		t.Errorf("%q", c.body.String())
	}
}

// A stream that stops without an end is cut by the idle timeout; one that never begins is a timeout of ours (STM-11).
func TestSilentStreams(t *testing.T) {
	silent := func(first ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			streams(first...)(w, r)
			<-r.Context().Done()
		}
	}
	b := newBench(t).with("a", silent(role, word))
	b.snap.Settings.StreamIdleTimeout = 40 * time.Millisecond
	c, trail := b.do(b.direct(), true)
	if !trail.Partial || !strings.Contains(c.body.String(), `data: {"error":`) {
		t.Errorf("%q", c.body.String())
	}
	late := newBench(t).with("a", silent(": beat"))
	late.snap.Settings.ReadinessTimeout = 40 * time.Millisecond
	_, trail = late.do(late.direct(), true)
	if trail.Failure == nil || trail.Failure.Status != 504 || trail.Failure.Code != "STREAM_READINESS_TIMEOUT" {
		t.Errorf("%+v", trail.Failure)
	}
}

// CMB-15, CMB-26: a head without a word of an answer has not begun; the start timeout of the route goes to the next connection.
// What has begun may take its time.
func TestSilentPlainAnswers(t *testing.T) {
	silent := func(first string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, first)
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(200 * time.Millisecond):
				answers(w, r)
			}
		}
	}
	for name, set := range map[string]func(*settings.RouteDefaults){
		"target":        func(d *settings.RouteDefaults) { d.TargetTimeout = 50 * time.Millisecond },
		"first content": func(d *settings.RouteDefaults) { d.FirstContentTimeout = 50 * time.Millisecond },
	} {
		b := newBench(t).with("a", silent("")).with("b", answers)
		set(&b.snap.Settings.RouteDefaults)
		c, trail := b.do(b.direct(), false)
		if c.status != 200 || len(trail.Attempts) != 2 || trail.Attempts[0].Status != 504 || b.cooled() != 0 {
			t.Errorf("%s: %d %+v", name, c.status, trail.Attempts)
		}
		slow := newBench(t).with("a", silent(" "))
		set(&slow.snap.Settings.RouteDefaults)
		if c, trail := slow.do(slow.direct(), false); c.status != 200 || len(trail.Attempts) != 1 {
			t.Errorf("%s: an answer that has begun was cut: %d %+v", name, c.status, trail.Attempts)
		}
	}
}

// STM-63: the border of a read changes nothing.
func TestEverySplitOfAStream(t *testing.T) {
	plain := strings.Join([]string{": hello", role, word, usage, finish, done}, "\n\n") + "\n\n"
	for name, whole := range map[string]string{
		"LF":    plain,
		"CRLF":  "\ufeff" + strings.ReplaceAll(strings.ReplaceAll(plain, "hi", "გამარჯობა"), "\n", "\r\n"),
		"error": strings.Join([]string{word, `data: {"error":{"message":"gone","code":502}}`, done}, "\n\n") + "\n\n",
		"torn":  word + "\n\n" + finish + "\n",
	} {
		send := func(parts ...string) (string, *dispatch.Trail) {
			b := newBench(t).with("a", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for _, p := range parts {
					fmt.Fprint(w, p)
					w.(http.Flusher).Flush()
					time.Sleep(time.Millisecond)
				}
			})
			c, trail := b.do(b.direct(), true)
			return c.body.String(), trail
		}
		want, first := send(whole)
		for i := 1; i < len(whole); i += 7 {
			got, trail := send(whole[:i], whole[i:])
			if got != want || trail.Partial != first.Partial || trail.Usage != first.Usage || trail.Attempts[0].Status != first.Attempts[0].Status {
				t.Fatalf("%s split at %d: %q, not %q", name, i, got, want)
			}
		}
	}
}

// A client that leaves in mid-stream counts against nobody (OV-4).
func TestClientLeavesStream(t *testing.T) {
	b := newBench(t).with("a", streams(role, word, finish, done))
	trail := b.doWith(&client{broken: true}, true)
	if !trail.Cancelled || len(b.events) != 0 {
		t.Errorf("%+v %v", trail, b.events)
	}
}
