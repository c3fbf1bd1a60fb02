package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/cmd/bench/report"
)

func server(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func opts(url string) options {
	return options{base: url, path: "/chat/completions", model: "m", key: "k", body: 256, conns: 4, duration: 400 * time.Millisecond, warm: 50 * time.Millisecond, timeout: 5 * time.Second}
}

func must(t *testing.T, o options) report.Row {
	t.Helper()
	r, err := run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestClosedLoop(t *testing.T) {
	n := 0
	r := must(t, func() options {
		o := opts(server(t, func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 256 {
				t.Errorf("body of %d bytes", r.ContentLength)
			}
			time.Sleep(10 * time.Millisecond)
			w.Write([]byte("{}"))
		}))
		o.conns = 1
		return o
	}())
	n = r.OK
	if n < 20 || n > 41 || r.Errors != 0 {
		t.Errorf("%+v", r)
	}
	if p := r.Latency["p50"]; p < 10000 || p > 20000 {
		t.Errorf("p50 %v", p)
	}
}

// One stall of the server must show in the latencies of all requests that were due meanwhile.
func TestOpenLoopCountsStalls(t *testing.T) {
	start := time.Now()
	o := opts(server(t, func(w http.ResponseWriter, r *http.Request) {
		if d := time.Since(start); d > 150*time.Millisecond && d < 350*time.Millisecond {
			time.Sleep(350*time.Millisecond - d)
		}
		w.Write([]byte("{}"))
	}))
	o.rate, o.conns = 200, 1
	q := must(t, o).Latency
	if q["p90"] < 100000 {
		t.Errorf("a stall of 200 ms in 400 ms is hidden: %v", q)
	}
}

// untilCounted runs longer and longer until a busy machine has brought a request to its end.
func untilCounted(t *testing.T, o options) report.Row {
	t.Helper()
	for o.duration = 100 * time.Millisecond; ; o.duration *= 4 {
		if r := must(t, o); int64(r.OK)+int64(r.Errors) > 0 || o.duration > 20*time.Second {
			return r
		}
	}
}

func TestStreams(t *testing.T) {
	stamp := func() string { return fmt.Sprintf("data: {\"x\":\"@%d a\"}\n\n", time.Now().UnixNano()) }
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"good": {func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				w.Write([]byte(stamp()))
				w.(http.Flusher).Flush()
			}
			w.Write([]byte("data: [DONE]\n\n"))
		}, ""},
		"unfinished": {func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(stamp())) }, "stream_unfinished"},
		"error": {func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte("data: {\"error\":{}}\n\ndata: [DONE]\n\n"))
		}, "stream_error"},
		"status": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503); w.Write([]byte("x")) }, "http_503"},
		"cut": {func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(stamp()))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "body_eof"},
	} {
		o := opts(server(t, c.h))
		o.stream = true
		r := untilCounted(t, o)
		kinds := r.ErrorKinds
		if c.want == "" {
			if r.Errors != 0 || r.Events != int64(3*r.OK) || r.Delay == nil {
				t.Errorf("%s: %+v", name, r)
			}
		} else if kinds[c.want] == 0 || r.OK != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// The clock of a cold start runs from the start of the command to its first answer.
func TestColdStart(t *testing.T) {
	begin := time.Now()
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		if time.Since(begin) < 100*time.Millisecond {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		w.Write([]byte("{}"))
	})
	o := opts(url)
	o.start = "sleep 60"
	r, err := coldStart(o)
	if err != nil || r.FirstReply < 50 || r.FirstReply > 5000 || r.Listening >= r.FirstReply || r.OK != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if time.Since(begin) > 5*time.Second {
		t.Error("the command was not ended")
	}
}

// Each request carries its own number, and the body has the size asked for.
func TestRequests(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	o := opts(server(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if seen[string(b)] || !json.Valid(b) || len(b) != 300 {
			t.Errorf("odd body %s", b)
		}
		seen[string(b)] = true
		w.Write([]byte("{}"))
	}))
	o.body, o.duration = 300, 100*time.Millisecond
	if r := must(t, o); r.OK == 0 || r.OK > len(seen) {
		t.Errorf("%d answers to %d bodies", r.OK, len(seen))
	}
}
