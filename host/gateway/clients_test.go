package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/gateway"
)

// OV-4: a client that left is recorded as 499, also after the commit.
func TestClientThatLeft(t *testing.T) {
	var seen []int
	d := open(t, func(o *gateway.Options) {
		o.Observe = func(_ *dispatch.Call, t *dispatch.Trail) { seen = append(seen, t.Status) }
	})
	for _, committed := range []bool{false, true} {
		d.do = func(_ *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
			tr := &dispatch.Trail{Committed: committed, Cancelled: true, Status: 200}
			if committed {
				out.Commit(200, http.Header{}, tr)
			}
			return tr
		}
		d.send("POST", "/v1/chat/completions", chat)
	}
	if !slices.Equal(seen, []int{499, 499}) {
		t.Error(seen)
	}
}

// patient is a client's connection that notes its write deadlines.
type patient struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (p *patient) SetWriteDeadline(t time.Time) error {
	p.deadlines = append(p.deadlines, t)
	return nil
}

// SEC-4: a client that stops reading a long answer is cut off at some time; the next request starts afresh.
func TestClientThatDoesNotRead(t *testing.T) {
	d := open(t, nil)
	writes := 0
	d.do = func(_ *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
		tr := &dispatch.Trail{Committed: true, Status: 200}
		out.Commit(200, http.Header{}, tr)
		for range writes {
			_ = out.Write([]byte("x"))
		}
		return tr
	}
	for n, want := range map[int]int{1: 0, 5: 2} {
		writes = n
		r := httptest.NewRequest("POST", "http://127.0.0.1:8787/v1/chat/completions", strings.NewReader(chat))
		w := &patient{ResponseRecorder: httptest.NewRecorder()}
		d.srv.Config.Handler.ServeHTTP(w, r)
		if len(w.deadlines) != want {
			t.Fatalf("%d writes: %v", n, w.deadlines)
		}
		if want > 0 && (time.Until(w.deadlines[0]) < time.Minute || !w.deadlines[1].IsZero()) {
			t.Error(w.deadlines)
		}
	}
}

// SEC-4: a client that sends no body is cut off, also one whose request is refused before that.
func TestSlowBody(t *testing.T) {
	d := open(t, func(o *gateway.Options) { o.BodyTime = 200 * time.Millisecond }, catalog.KeyInput{ID: "k", Key: clientKey})
	for key, want := range map[string]string{clientKey: "400", "wrong": "401"} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", d.srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: 1000\r\n\r\n{", key)
		b, err := io.ReadAll(conn) // until the server closes
		conn.Close()
		if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 "+want) {
			t.Errorf("%s: %q %v", key, b, err)
		}
	}
}
