package host_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// far is an upstream that costs next to nothing: it answers every request on a connection with the same bytes.
func far(b *testing.B, answer []byte) string {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed below
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go serveFar(conn, answer)
		}
	}()
	return "http://" + ln.Addr().String()
}

func serveFar(conn net.Conn, answer []byte) {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		length := 0
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if rest, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				length, _ = strconv.Atoi(string(bytes.TrimSpace(rest)))
			}
			if len(line) <= 2 {
				break
			}
		}
		if _, err := r.Discard(length); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// sinkhole is a client that reads everything and keeps nothing.
type sinkhole struct {
	header http.Header
	status int
	n      int
}

func (s *sinkhole) Header() http.Header         { return s.header }
func (s *sinkhole) WriteHeader(status int)      { s.status = status }
func (s *sinkhole) Write(p []byte) (int, error) { s.n += len(p); return len(p), nil }
func (s *sinkhole) Flush()                      {}

func (s *sinkhole) SetReadDeadline(time.Time) error  { return nil }
func (s *sinkhole) SetWriteDeadline(time.Time) error { return nil }

func plainAnswer() []byte {
	body := `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("word ", 150) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":150,"total_tokens":159}}`
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func streamAnswer(events int) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := func(text string) { fmt.Fprintf(&b, "%x\r\n%s\r\n", len(text), text) }
	for range events {
		chunk(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n")
	}
	chunk(`data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n")
	chunk("data: [DONE]\n\n")
	b.WriteString("0\r\n\r\n")
	return b.Bytes()
}

// BenchmarkRequest is the whole way of a request inside the process: handler, dispatch, standard transport, and back. The
// client's connection and the server's loop are not in it.
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct {
		name   string
		prompt int
		stream bool
		answer []byte
	}{
		{"plain1k", 900, false, plainAnswer()},
		{"plain100k", 100_000, false, plainAnswer()},
		{"stream100", 900, true, streamAnswer(100)},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := start(b, options(b, far(b, c.answer)))
			body := fmt.Sprintf(`{"model":"mock/m","stream":%v,"messages":[{"role":"user","content":"%s"}]}`, c.stream, strings.Repeat("x", c.prompt))
			template := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8787/v1/chat/completions", nil)
			template.RemoteAddr = "127.0.0.1:9"
			template.ContentLength = int64(len(body))
			w := &sinkhole{header: http.Header{}}
			text := strings.NewReader(body)
			b.ReportAllocs()
			for b.Loop() {
				r := *template
				text.Reset(body)
				r.Body = io.NopCloser(text)
				clear(w.header)
				h.Handler().ServeHTTP(w, &r)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// BenchmarkCombo is a combo of four targets whose first one answers, by strategy: what its ordering and its memory add.
func BenchmarkCombo(b *testing.B) {
	for _, strategy := range []string{"priority", "weighted", "round-robin", "p2c", "lkgp"} {
		b.Run(strategy, func(b *testing.B) {
			o := options(b, far(b, plainAnswer()))
			text, err := os.ReadFile(o.ConfigFile)
			if err != nil {
				b.Fatal(err)
			}
			text = fmt.Appendf(text, "  - {id: c2, provider: mock, api_key: sk-upstream-9876543210}\ncombos:\n  - {id: best, strategy: %s, targets: [mock/m, "+
				"{model: mock/m, connection_id: c1}, {model: mock/m, connection_id: c2}, {model: mock/m, prompt: brief}]}\n", strategy)
			if err := os.WriteFile(o.ConfigFile, text, 0o600); err != nil {
				b.Fatal(err)
			}
			h := start(b, o)
			body := fmt.Sprintf(`{"model":"best","messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("x", 900))
			template := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8787/v1/chat/completions", nil)
			template.RemoteAddr, template.ContentLength = "127.0.0.1:9", int64(len(body))
			w, reader := &sinkhole{header: http.Header{}}, strings.NewReader(body)
			b.ReportAllocs()
			for b.Loop() {
				r := *template
				reader.Reset(body)
				r.Body = io.NopCloser(reader)
				clear(w.header)
				h.Handler().ServeHTTP(w, &r)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
			}
		})
	}
}
