package upstream

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// onePiece is a body that counts how often it is written out whole.
type onePiece struct {
	bytes.Reader
	written int
}

func (p *onePiece) WriteTo(w io.Writer) (int64, error) {
	p.written++
	return p.Reader.WriteTo(w)
}

// A body in memory goes out in one piece, and arrives as it was.
func TestBodyGoesOutInOnePiece(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	got := make(chan []byte, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		got <- b
	}()
	c, err := dialer(new(net.Dialer))(context.Background(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789"), 20_000)
	body := &onePiece{}
	body.Reset(want)
	n, err := io.Copy(c, io.LimitReader(body, int64(len(want))))
	c.Close()
	if err != nil || n != int64(len(want)) || body.written != 1 {
		t.Errorf("%d bytes in %d pieces: %v", n, body.written, err)
	}
	if b := <-got; !bytes.Equal(b, want) {
		t.Errorf("%d bytes arrived", len(b))
	}
}

// ABI-3: a plan's connect_ms bounds the wait for a connection.
func TestConnectTimeout(t *testing.T) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	c := &Client{open: &http.Transport{DialContext: dialer(&net.Dialer{Resolver: resolver, Timeout: time.Minute})}}
	p := &Prepared{Method: "POST", Private: true, Connect: 30 * time.Millisecond, url: &url.URL{Scheme: "http", Host: "slow.example:80"}, header: http.Header{}}
	began := time.Now()
	_, err := c.Send(t.Context(), p, Moment{}, http.NoBody, 0) //nolint:bodyclose // no answer comes
	if err == nil || TransportCode(err) != wire.TransportTimeout || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}
