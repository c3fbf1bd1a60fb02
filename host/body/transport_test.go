package body

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A small payload leaves in one write together with the headers; a large one costs no write more than a bare
// bytes.Reader. Seen at the connection of a real transport.
func TestTransportWrites(t *testing.T) {
	var got atomic.Pointer[string]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		text := string(b)
		got.Store(&text)
	}))
	defer srv.Close()
	var writes atomic.Int32
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &writeCounter{c, &writes}, err
	}}
	defer tr.CloseIdleConnections()
	send := func(body io.ReadCloser, n int64) int32 {
		t.Helper()
		before := writes.Load()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
		req.Body, req.ContentLength = body, n
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return writes.Load() - before
	}
	for name, text := range map[string]string{"small": `{"model":"a"}`, "large": large("a")} {
		b := read(t, text)
		p, err := compile(t, set("model", `"b"`)).Apply(b)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(text, `"a"`, `"b"`, 1)
		bare := send(io.NopCloser(strings.NewReader(want)), int64(len(want)))
		ours := send(p.Body(), p.Len())
		t.Logf("%s: %d writes, bare reader %d", name, ours, bare)
		if *got.Load() != want {
			t.Errorf("%s: other bytes arrived", name)
		}
		if name == "small" && ours != 1 || ours > bare {
			t.Errorf("%s: %d writes, a bare reader takes %d", name, ours, bare)
		}
		if name == "large" && !b.blk.exclusive() {
			t.Error("the transport did not close the body")
		}
	}
}

type writeCounter struct {
	net.Conn
	n *atomic.Int32
}

func (c *writeCounter) Write(p []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(p)
}
