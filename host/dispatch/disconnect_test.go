package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/cooldown"
)

// leaver is a client that goes away at a write.
type leaver struct {
	client
	at    int
	leave func()
}

func (l *leaver) Write(p []byte) error {
	if l.at--; l.at < 0 {
		l.leave()
		return io.ErrClosedPipe
	}
	return l.client.Write(p)
}

// stalls answers as far as told and then waits for the end of the request.
func stalls(status int, kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if status == 0 {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, text)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// OV-3, OV-4, COOL-34: wherever a client goes away, its attempt ends once, says nothing about the target, and is the last.
func TestClientLeavesAnywhere(t *testing.T) {
	long := `{"choices":["` + strings.Repeat("x", 100<<10)
	for name, c := range map[string]struct {
		upstream http.HandlerFunc
		stream   bool
		at       int // the write at which the client goes; -1: while the upstream stalls
	}{
		"before the head":          {stalls(0, "", ""), false, -1},
		"in an error body":         {stalls(500, "application/json", `{"error":`), false, -1},
		"in a plain answer":        {stalls(200, "application/json", `{"choices":`), false, -1},
		"in a long plain answer":   {stalls(200, "application/json", long), false, -1},
		"at its first write":       {stalls(200, "application/json", long), false, 0},
		"at its second write":      {stalls(200, "application/json", long), false, 1},
		"before the first event":   {stalls(200, "text/event-stream", ": x\n\n"), true, -1},
		"at the first event":       {stalls(200, "text/event-stream", word+"\n\n"), true, 0},
		"behind the first event":   {stalls(200, "text/event-stream", word+"\n\n"), true, -1},
		"at the replay":            {stalls(200, "text/event-stream", ": x\n\n"+word+"\n\n"), true, 0},
		"at an error in midstream": {stalls(200, "text/event-stream", word+"\n\n"+`data: {"error":{"message":"x"}}`+"\n\n"), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t).with("a", c.upstream).with("b", answers)
			gate := &countingGate{Gate: cooldown.New(account.NewBook(nil))}
			b.d.Ladder = resilience.NewLadder(gate)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			l := &leaver{at: c.at, leave: leave}
			if c.at < 0 {
				l.at = 1 << 30
				time.AfterFunc(100*time.Millisecond, leave)
			}
			trail := b.send(ctx, b.direct(), c.stream, l)
			if !trail.Cancelled || trail.Failure != nil || len(b.seen()) != 1 {
				t.Errorf("%+v", trail)
			}
			if gate.admitted != 1 || gate.ended != 1 || len(b.events) != 0 {
				t.Errorf("%d admitted, %d ended, %v", gate.admitted, gate.ended, b.events)
			}
		})
	}
}

var _ dispatch.Sink = (*leaver)(nil)
