package dispatch

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// Beater is a sink that has a sign of life of its own, in place of the one of its dialect.
type Beater interface {
	Beat() error
}

// voice is the sink of a client that streams. While nothing comes for it the client gets signs of life in its dialect: first, with
// the head, when it has heard nothing for a while, and then whenever the stream is silent, between whole events only (STM-13, INF-24).
// Attempts and their failures do not see it: until one of them commits, only an error in the stream differs from what it would
// have been.
type voice struct {
	out   Sink
	c     *Call
	first time.Duration // to the head; 0: never on its own
	every time.Duration // between signs of life; 0: none

	mu    sync.Mutex
	timer *time.Timer // guarded by mu
	last  time.Time   // of the last bytes; guarded by mu
	open  bool        // within an event; guarded by mu
	head  bool        // the head is out; guarded by mu
	early bool        // it was sent before there was an answer; guarded by mu
	over  bool        // guarded by mu
	err   error       // of a write; guarded by mu
}

// voice makes the sink of a streaming client; nil for any other one.
func (d *Dispatcher) voice(c *Call, out Sink) *voice {
	if !c.Stream {
		return nil
	}
	if _, known := translate.Codec(c.Dialect); !known {
		return nil
	}
	s := c.Catalog.Settings
	v := &voice{out: out, c: c, first: s.Streams.EarlyKeepalive, every: s.Heartbeat}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.first > 0 {
		v.timer = time.AfterFunc(v.first, v.beat)
	}
	return v
}

// Commit sends the head, unless it is out already.
func (v *voice) Commit(status int, h http.Header, t *Trail) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.head {
		return
	}
	v.head = true
	v.out.Commit(status, h, t)
	v.last = time.Now()
	switch {
	case v.every <= 0 && v.timer != nil:
		v.timer.Stop()
	case v.every <= 0:
	case v.timer == nil:
		v.timer = time.AfterFunc(v.every, v.beat)
	default:
		v.timer.Reset(v.every)
	}
}

// Write passes an answer's bytes on.
func (v *voice) Write(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		return v.err
	}
	v.last, v.open = time.Now(), !endsEvent(p)
	return v.out.Write(p)
}

// Flush sends what was written.
func (v *voice) Flush() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.out.Flush()
}

// quiet says whether the client was told nothing yet, and keeps it so until an answer is committed.
func (v *voice) quiet() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.head {
		v.first = 0
	}
	return !v.early
}

// quiet says whether a client that streams was told nothing yet.
func (r *run) quiet() bool {
	out := r.out
	if l, races := out.(*leg); races {
		out = l.judge.out
	}
	v, ok := out.(*voice)
	return !ok || v.quiet()
}

// beat sends a sign of life when the client has heard nothing for long enough.
func (v *voice) beat() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	switch {
	case v.over || v.err != nil || !v.head && v.first <= 0:
		return
	case !v.head:
		v.head, v.early = true, true
		v.out.Commit(http.StatusOK, http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache"}}, &Trail{})
	case now.Sub(v.last) < v.every:
		v.timer.Reset(v.every - now.Sub(v.last))
		return
	case v.open:
		v.timer.Reset(v.every)
		return
	}
	if v.err = v.sign(); v.err != nil {
		return
	}
	if v.last = now; v.every > 0 {
		v.timer.Reset(v.every)
	}
}

func (v *voice) sign() error {
	if b, own := v.out.(Beater); own {
		return b.Beat()
	}
	if err := v.out.Write(beatOf(v.c)); err != nil {
		return err
	}
	return v.out.Flush()
}

// beatOf is a sign of life in the dialect of a call (INF-24, INF-25).
func beatOf(c *Call) []byte {
	codec, _ := translate.Codec(c.Dialect)
	return codec.NewWriter(neutral.Told{ID: toldID(c), Model: c.Model}).Write(nil, &neutral.Event{Kind: neutral.Beat})
}

// end is called when the request is over. A client that was promised a stream, and then got no answer, is told so in it (INF-34).
func (v *voice) end(t *Trail) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	if v.timer != nil {
		v.timer.Stop()
	}
	if !v.early || t.Committed {
		return
	}
	t.Committed, t.Status = true, http.StatusOK
	if t.Cancelled || t.Failure == nil || v.err != nil {
		return
	}
	t.Partial = true
	f := *t.Failure
	f.RequestID = v.c.RequestID
	if v.err = v.out.Write(dialect.StreamError(v.c.Dialect, f, placeOf(v.c, t))); v.err == nil {
		v.err = v.out.Flush()
	}
}

// toldID is the id of the answer to a call, as the client is told (TR-8).
func toldID(c *Call) string { return idPrefix(c.Dialect) + strings.ReplaceAll(c.RequestID, "-", "") }

// idPrefix is the beginning of the ids of a dialect's answers.
func idPrefix(d wire.Dialect) string {
	switch d {
	case wire.OpenAIChat:
		return "chatcmpl-"
	case wire.OpenAIResponses:
		return "resp_"
	case wire.AnthropicMessages:
		return "msg_"
	default:
		return ""
	}
}
