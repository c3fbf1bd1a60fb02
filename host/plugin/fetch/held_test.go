package fetch

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestHeldAnswers(t *testing.T) { // ABI-6: a request is not sent twice for a larger buffer, and nothing outlives its call
	synctest.Test(t, func(t *testing.T) {
		l := NewClient(Options{}).Lane()
		call, end := context.WithCancel(t.Context())
		other, endOther := context.WithCancel(t.Context())
		defer endOther()
		request := []byte("request")
		l.Hold(call, request, []byte("answer"))
		request[0] = 'R' // the guest's memory is its own
		if b := l.Held(other, []byte("request")); b != nil {
			t.Errorf("another call gets %q", b)
		}
		if b := l.Held(call, []byte("request")); string(b) != "answer" {
			t.Errorf("%q", b)
		}
		if b := l.Held(call, []byte("request")); b != nil {
			t.Errorf("given twice: %q", b)
		}
		l.Hold(call, []byte("request"), []byte("answer"))
		l.Held(call, []byte("another"))
		if b := l.Held(call, []byte("request")); b != nil {
			t.Errorf("given up, and given: %q", b)
		}
		l.Hold(call, []byte("request"), []byte("answer"))
		end()
		synctest.Wait()
		if len(l.held) != 0 {
			t.Errorf("%d answers outlive their call", len(l.held))
		}
		for range 2 * maxHeld {
			l.Hold(other, []byte("request"), []byte("answer"))
		}
		l.Hold(context.Background(), []byte("request"), []byte("answer")) // a call without an end
		if len(l.held) != maxHeld {
			t.Errorf("%d answers are held", len(l.held))
		}
	})
}
