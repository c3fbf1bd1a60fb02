package fetch

import (
	"bytes"
	"context"
	"slices"
)

// maxHeld is how many answers of one lane wait for a larger buffer.
const maxHeld = 8

// held waits for a guest that asks again with a larger buffer, in the same call: a request must not be sent twice for that.
type held struct {
	call            context.Context //nolint:containedctx // tells calls apart; dropped when it ends
	request, answer []byte
}

// Hold keeps an answer until the call that asked for it is over.
func (l *Lane) Hold(call context.Context, request, answer []byte) {
	if call.Done() == nil {
		return // nothing would tell when to drop it
	}
	l.mu.Lock()
	l.held = append(l.held, held{call, bytes.Clone(request), answer})
	if len(l.held) > maxHeld {
		l.held = slices.Delete(l.held, 0, 1)
	}
	l.mu.Unlock()
	context.AfterFunc(call, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held = slices.DeleteFunc(l.held, func(h held) bool { return h.call == call })
	})
}

// Held returns the answer that waits for this request of the call, nil when there is none. It is given once, and an answer to
// another request is given up.
func (l *Lane) Held(call context.Context, request []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.held, func(h held) bool { return h.call == call })
	if i < 0 {
		return nil
	}
	h := l.held[i]
	l.held = slices.Delete(l.held, i, i+1)
	if !bytes.Equal(h.request, request) {
		return nil
	}
	return h.answer
}
