package dispatch_test

import (
	"fmt"
	"net/http"
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
