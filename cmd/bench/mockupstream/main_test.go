package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func startMock(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := newMock(plan{size: 64, chunks: 5, chunkSize: 24, failCode: 500, retryIn: "7"})
	go m.serveListener(ln)
	t.Cleanup(func() { ln.Close() })
	return "http://" + ln.Addr().String()
}

func post(t *testing.T, url, key, body string, chunked bool) (*http.Response, error) {
	t.Helper()
	var rd io.Reader = strings.NewReader(body)
	if chunked {
		rd = io.MultiReader(rd) // hides the length
	}
	req, _ := http.NewRequest("POST", url, rd)
	req.Header.Set("Authorization", "Bearer "+key)
	return http.DefaultClient.Do(req)
}

func TestReplies(t *testing.T) {
	u := startMock(t)
	for _, c := range []struct {
		path, key, want string
		status          int
	}{
		{"/v1/chat/completions", "k-ok", `"chat.completion"`, 200},
		{"/v1/messages", "k-ok", `"end_turn"`, 200},
		{"/v1beta/models/g:generateContent", "k-ok", `"usageMetadata"`, 200},
		{"/v1/chat/completions", "k-429", "rate_limit_error", 429},
		{"/v1/messages", "k-529-x", `"type":"error"`, 529},
		{"/v1/messages", "k-ok", "invalid_request_error", 400},
		{"/v1/chat/completions?status=503", "k-ok", "server_error", 503},
	} {
		for _, chunked := range []bool{false, true} {
			body := `{"model":"m1","messages":[]}`
			if c.status == 400 {
				body = `{"model":"m1","messages":[{"role":"user","content":"x [mock:status=400;latency=1ms] y"}]}`
			}
			r, err := post(t, u+c.path, c.key, body, chunked)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(r.Body)
			if r.StatusCode != c.status || !strings.Contains(string(b), c.want) || !json.Valid(b) {
				t.Errorf("%s %s: %d %s", c.path, c.key, r.StatusCode, b)
			}
			if c.status == 429 && r.Header.Get("Retry-After") != "7" {
				t.Errorf("no Retry-After")
			}
		}
	}
	r, _ := http.Get(u + "/__stats")
	b, _ := io.ReadAll(r.Body)
	if !strings.Contains(string(b), `"k-429":{"total":2`) || !strings.Contains(string(b), `"m1":`) {
		t.Errorf("stats: %s", b)
	}
}

func TestStream(t *testing.T) {
	u := startMock(t)
	r, err := post(t, u+"/v1/chat/completions", "k-ok", `{"model":"m","stream":true}`, false)
	if err != nil {
		t.Fatal(err)
	}
	n, done := 0, false
	for sc := bufio.NewScanner(r.Body); sc.Scan(); {
		if strings.Contains(sc.Text(), `"content":"@1`) {
			n++
		}
		done = done || sc.Text() == "data: [DONE]"
	}
	if n != 5 || !done {
		t.Errorf("%d chunks, done %v", n, done)
	}
}

func TestBrokenConnections(t *testing.T) {
	u := startMock(t)
	if _, err := post(t, u+"/v1/chat/completions", "k-reset", `{}`, false); err == nil {
		t.Error("k-reset answered")
	}
	r, err := post(t, u+"/v1/chat/completions", "k-cut-2", `{"stream":true}`, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r.Body); err == nil {
		t.Error("k-cut-2 ended cleanly")
	}
	c := http.Client{Timeout: 100 * time.Millisecond}
	req, _ := http.NewRequest("POST", u+"/v1/chat/completions", strings.NewReader(`{}`))
	req.Header.Set("X-Api-Key", "k-hang")
	if _, err := c.Do(req); err == nil {
		t.Error("k-hang answered")
	}
}
