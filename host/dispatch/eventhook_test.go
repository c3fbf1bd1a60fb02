package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

func hooked(t *testing.T, onEvent func(name, data string) (wire.EventAnswer, error)) *bench {
	t.Helper()
	b := newBench(t)
	b.plan.Response.Events, b.plan.Response.Stateful, b.plan.Hooks = "hook", true, []string{"on_event", "on_end"}
	b.guest.onEvent = onEvent
	return b
}

func passes(string, string) (wire.EventAnswer, error) { return wire.EventAnswer{}, nil }

// ABI-5: what on_event says is done to the event, and to nothing else of the stream.
func TestOnEvent(t *testing.T) {
	b := hooked(t, func(name, data string) (wire.EventAnswer, error) {
		switch {
		case name == "noise":
			return wire.EventAnswer{Action: wire.EventDrop}, nil
		case name == "two":
			return wire.EventAnswer{Action: wire.EventReplace, Name: []byte("n"), Data: []byte("a\nb\r\n\rc")}, nil
		case data == "forged":
			return wire.EventAnswer{Action: wire.EventReplace, Name: []byte("x\ndata: y"), Data: []byte("z")}, nil
		}
		return wire.EventAnswer{}, nil
	}).with("a", streams(": beat", "event: noise\ndata: 1", word, "event: two\ndata: x\ndata: y", "data: forged", "id: 7\r\nevent: noise\r\ndata: 2\r", finish, done))
	c, trail := b.do(b.direct(), true)
	want := strings.Join([]string{": beat", word, "event: n\ndata: a\ndata: b\ndata: \ndata: c", "data: forged", finish, done}, "\n\n") + "\n\n"
	if got := c.body.String(); got != want {
		t.Errorf("%q\n%q", got, want)
	}
	if !slices.Contains(b.guest.events, "two|x\ny") || len(b.guest.events) != 7 || !slices.Equal(b.guest.ends, []bool{true}) || !trail.Attempts[0].OK {
		t.Errorf("%q %v", b.guest.events, b.guest.ends)
	}
	if want := (upstream.Calls{Events: true, Stateful: true, End: true}); b.guest.calls != want {
		t.Errorf("%+v", b.guest.calls)
	}
}

// ABI-5: a stream may be written anew from its first to its last event, usage and end marker too.
func TestOnEventTranslates(t *testing.T) {
	b := hooked(t, func(_, data string) (wire.EventAnswer, error) {
		switch {
		case data == "[DONE]":
			return wire.EventAnswer{Action: wire.EventDrop}, nil
		case strings.HasPrefix(data, "t:"):
			return wire.EventAnswer{Action: wire.EventReplace, Data: fmt.Appendf(nil, `{"choices":[{"delta":{"content":%q}}]}`, data[2:])}, nil
		}
		return wire.EventAnswer{Action: wire.EventReplace, Data: []byte(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)}, nil
	}).with("a", streams("data: t:hi", "data: sum", done))
	c, trail := b.do(b.direct(), true)
	if !strings.HasPrefix(c.body.String(), word+"\n\n") || !strings.HasSuffix(c.body.String(), "\n\n"+done+"\n\n") || trail.Usage.Output != 2 || trail.Partial {
		t.Errorf("%q %+v", c.body.String(), trail)
	}
}

// ABI-5, STM-51, INF-34: a guest that ends the stream is judged like an upstream's error: before the first useful event the next
// connection answers, after it the client gets one error event.
func TestOnEventEnds(t *testing.T) {
	ends := func(_, data string) (wire.EventAnswer, error) {
		if data == "bad" {
			return wire.EventAnswer{Action: wire.EventEnd, Data: []byte(`{"error":{"code":"429","message":"enough"}}`)}, nil
		}
		return wire.EventAnswer{}, nil
	}
	b := hooked(t, ends).with("a", streams(": beat", "data: bad", word)).with("b", streams(role, word, finish, done))
	c, trail := b.do(b.direct(), true)
	if c.status != 200 || len(trail.Attempts) != 2 || trail.Attempts[0].Status != 429 || strings.Contains(c.body.String(), "error") || !slices.Equal(b.guest.ends, []bool{false, true}) {
		t.Errorf("%q %+v %v", c.body.String(), trail.Attempts, b.guest.ends)
	}
	late := hooked(t, ends).with("a", streams(word, "data: bad", word, done)).with("b", answers)
	c, trail = late.do(late.direct(), true)
	text := c.body.String()
	if !strings.HasPrefix(text, word+"\n\n") || strings.Count(text, "data: ") != 2 || !strings.Contains(text, "enough") || strings.Contains(text, "[DONE]") || !trail.Partial || len(trail.Attempts) != 1 {
		t.Errorf("%q %+v", text, trail)
	}
	if len(late.events) == 0 || !slices.Equal(late.guest.ends, []bool{false}) {
		t.Error("the verdict is applied all the same:", late.events, late.guest.ends)
	}
}

// ABI-5, ABI-8: a hook that fails lets its event pass; one that is gone is not asked again, and the stream goes on.
func TestOnEventFails(t *testing.T) {
	whole := strings.Join([]string{role, word, finish, done}, "\n\n") + "\n\n"
	for name, c := range map[string]struct {
		fault error
		asked int
	}{
		"trap":     {errors.New("trap"), 4},
		"unhooked": {fmt.Errorf("%w: trap", dispatch.ErrUnhooked), 1},
	} {
		b := hooked(t, func(string, string) (wire.EventAnswer, error) {
			return wire.EventAnswer{Action: wire.EventDrop}, c.fault
		}).with("a", streams(role, word, finish, done))
		got, trail := b.do(b.direct(), true)
		if got.body.String() != whole || !trail.Attempts[0].OK || len(b.guest.events) != c.asked || !slices.Equal(b.guest.ends, []bool{true}) {
			t.Errorf("%s: %q asked %d, ended %v", name, got.body.String(), len(b.guest.events), b.guest.ends)
		}
	}
}

// ABI-8: with fail_closed nothing passes that the guest did not see: another connection answers, or the stream ends, and nothing is
// counted.
func TestOnEventFailsClosed(t *testing.T) {
	for _, after := range []int{0, 1} {
		left := after
		b := hooked(t, func(string, string) (wire.EventAnswer, error) {
			if left--; left < 0 {
				return wire.EventAnswer{}, fmt.Errorf("%w: trap", dispatch.ErrPluginUnavailable)
			}
			return wire.EventAnswer{}, nil
		}).with("a", func(w http.ResponseWriter, r *http.Request) {
			streams(word)(w, r)
			time.Sleep(50 * time.Millisecond)
			streams(`data: {"choices":[{"delta":{"content":"secret"}}]}`, finish, done)(w, r)
		})
		c, trail := b.do(b.direct(), true)
		text := c.body.String()
		if strings.Contains(text, "secret") || len(b.events) > 0 || trail.Excluded[0].Refusal.Reason != "plugin_unavailable" || trail.Failure == nil {
			t.Errorf("%d: %q %+v", after, text, trail)
		}
		if (after == 1) != (strings.HasPrefix(text, word) && strings.Contains(text, `"error"`) && trail.Partial) {
			t.Errorf("%d: %q", after, text)
		}
	}
}

// ABI-5: on_end comes once for each stream, also when the client leaves, the upstream breaks off, or nothing useful came.
func TestOnEnd(t *testing.T) {
	silent := func(w http.ResponseWriter, r *http.Request) {
		streams(role, word)(w, r)
		<-r.Context().Done()
	}
	for name, c := range map[string]struct {
		far      http.HandlerFunc
		sink     *client
		leave    bool
		complete bool
	}{
		"complete":     {far: streams(role, word, finish, done), complete: true},
		"cut":          {far: streams(role, word)},
		"nothing":      {far: streams(": beat")},
		"client broke": {far: streams(role, word, finish, done), sink: &client{broken: true}},
		"client left":  {far: silent, leave: true},
		"silence":      {far: silent},
	} {
		for _, events := range []string{"hook", ""} {
			b := hooked(t, passes).with("a", c.far)
			b.plan.Response.Events, b.plan.Hooks = events, []string{"on_end"}
			b.snap.Settings.StreamIdleTimeout = 50 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			if c.leave {
				b.snap.Settings.StreamIdleTimeout = 10 * time.Second
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			sink := c.sink
			if sink == nil {
				sink = &client{}
			}
			b.send(ctx, b.direct(), true, sink)
			cancel()
			if !slices.Equal(b.guest.ends, []bool{c.complete}) || (len(b.guest.events) > 0) != (events == "hook" && name != "nothing") {
				t.Errorf("%s %q: ended %v after %q", name, events, b.guest.ends, b.guest.events)
			}
		}
	}
	plain := newBench(t).with("a", answers)
	plain.plan.Hooks = []string{"on_end"}
	plain.do(plain.direct(), false)
	if len(plain.guest.ends) > 0 {
		t.Error("a plain answer is no stream")
	}
}

// STM-63, ABI-5: the border of a read changes nothing, whatever the guest does.
func TestEverySplitOfAHookedStream(t *testing.T) {
	whole := "\ufeff" + strings.Join([]string{": hello", "event: noise\ndata: 1", word, "data: a\ndata: b", finish, done}, "\r\n\r\n") + "\r\n\r\n"
	send := func(parts ...string) (string, []string) {
		b := hooked(t, func(name, data string) (wire.EventAnswer, error) {
			if name == "noise" {
				return wire.EventAnswer{Action: wire.EventDrop}, nil
			}
			if data == "a\nb" {
				return wire.EventAnswer{Action: wire.EventReplace, Data: []byte("{}")}, nil
			}
			return wire.EventAnswer{}, nil
		}).with("a", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, p := range parts {
				fmt.Fprint(w, p)
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		})
		c, _ := b.do(b.direct(), true)
		return c.body.String(), b.guest.events
	}
	want, seen := send(whole)
	if len(seen) != 5 || strings.Contains(want, "noise") {
		t.Fatalf("%q %q", want, seen)
	}
	for i := 1; i < len(whole); i += 5 {
		got, events := send(whole[:i], whole[i:])
		if got != want || !slices.Equal(events, seen) {
			t.Fatalf("split at %d: %q, not %q; %q", i, got, want, events)
		}
	}
}
