package dispatch_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// cuts sends a part of a plain answer without a length and then breaks the connection.
func cuts(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, text)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// An answer in chunks that is cut before its end is no answer: the next connection is tried, and the client sees none of it.
func TestCutAnswerWithoutLength(t *testing.T) {
	b := newBench(t).with("cut", cuts(`{"choices":[{"message":{"content":"hel`)).with("good", answers)
	c, trail := b.do(b.direct(), false)
	if c.status != 200 || len(trail.Attempts) != 2 || trail.Attempts[0].OK || !trail.Attempts[1].OK {
		t.Fatalf("%d %q %+v", c.status, c.body.String(), trail.Attempts)
	}
}

// packs answers with gzip, though nobody asked for it.
func packs(status int, kind string, parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		z := gzip.NewWriter(w)
		for _, p := range parts {
			_, _ = fmt.Fprint(z, p)
			_ = z.Flush()
			w.(http.Flusher).Flush()
		}
		_ = z.Close()
	}
}

// Packed answers are read and passed on plain: errors, streams and documents.
func TestPackedAnswers(t *testing.T) {
	b := newBench(t).with("a", packs(429, "application/json", `{"error":{"message":"slow down"}}`))
	if _, trail := b.do(b.direct(), false); trail.Failure == nil || !strings.Contains(trail.Failure.Message, "slow down") {
		t.Errorf("%+v", trail.Failure)
	}
	b = newBench(t).with("a", packs(200, "text/event-stream", word+"\n\n", finish+"\n\n", done+"\n\n"))
	if c, trail := b.do(b.direct(), true); c.body.String() != word+"\n\n"+finish+"\n\n"+done+"\n\n" || trail.Partial || c.header.Get("Content-Encoding") != "" {
		t.Errorf("%q %v", c.body.String(), c.header)
	}
	b = newBench(t).with("a", packs(200, "application/json", `{"choices":[1],"usage":{"prompt_tokens":3}}`))
	if c, trail := b.do(b.direct(), false); c.header.Get("Content-Length") != "43" || trail.Usage.Input != 3 {
		t.Errorf("%q %v", c.body.String(), c.header)
	}
	b = newBench(t).with("a", fails(200, "no gzip", "Content-Encoding", "gzip")).with("b", answers)
	if c, trail := b.do(b.direct(), false); c.status != 200 || len(trail.Attempts) != 2 {
		t.Errorf("%d %+v", c.status, trail.Attempts)
	}
}
