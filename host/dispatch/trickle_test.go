package dispatch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// SCN-12, STM-28: a stream whose bytes come one at a time is alive, and then its silence is found although signs of life go down; those
// stand only between whole records.
func TestTrickle(t *testing.T) {
	for d, beat := range beats {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			var whole strings.Builder
			for _, e := range openings[d][:len(openings[d])-1] {
				if e.Event != "" {
					whole.WriteString("event: " + e.Event + "\n")
				}
				whole.WriteString("data: " + e.Data + "\n\n")
			}
			text := whole.String()[:whole.Len()-len("\n")] // the last one lacks its blank line for now
			if d == wire.GeminiGenerate || d == wire.OpenAIChat {
				text = whole.String() // behind the reason or the first word alone
			}
			b := newBench(t).speaks(d, paths[d], "/x")
			s := b.snap.Settings
			s.StreamIdleTimeout, s.ReadinessTimeout, s.Heartbeat, s.Streams.EarlyKeepalive = 800*time.Millisecond, time.Minute, 30*time.Millisecond, 30*time.Millisecond
			trickled := make(chan time.Time, 1)
			b.with("a", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range len(text) {
					_, _ = fmt.Fprint(w, text[i:i+1])
					w.(http.Flusher).Flush()
					time.Sleep(time.Millisecond)
				}
				trickled <- time.Now()
				<-r.Context().Done()
			})
			l := &lab{bench: b}
			v := &viewer{began: time.Now()}
			trail := l.watchAs(t.Context(), v, d, b.direct(), "")
			silent := time.Since(<-trickled)
			if !trail.Partial || silent < 700*time.Millisecond || silent > 5*time.Second {
				t.Errorf("%s: ended after %s of silence: %+v", d, silent, trail)
			}
			out := v.body.String()
			if n := strings.Count(out, beat); n < 3 {
				t.Errorf("%s: %d signs of life in %q", d, n, out)
			}
			upstream.Events([]byte(strings.ReplaceAll(out, beat+"\n\n", "")), func(e upstream.Event) bool {
				if !strings.HasPrefix(string(e.Data), "{") || strings.Contains(string(e.Data), ": keep-alive") {
					t.Errorf("%s: a record is broken by a sign of life: %q", d, e.Data)
				}
				return true
			})
		})
	}
}
