package gateway

import (
	"bytes"
	"net/http"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/upstream"
)

// arraySink writes a stream of events as one JSON array, element by element: what streamGenerateContent is without alt=sse
// (INF-1). Events that are cut over writes are put together again. An answer that is no stream passes as it is.
type arraySink struct {
	*sink
	stream bool
	begun  bool
	rest   []byte // of an event that is not whole yet
	out    []byte
}

// Commit sends the head; a stream becomes a document.
func (s *arraySink) Commit(status int, h http.Header, t *dispatch.Trail) {
	if ct := h["Content-Type"]; len(ct) > 0 && ct[0] == "text/event-stream" {
		s.stream = true
		h["Content-Type"] = []string{"application/json"}
	}
	s.sink.Commit(status, h, t)
}

// Write takes whole or partial events.
func (s *arraySink) Write(p []byte) error {
	if !s.stream {
		return s.sink.Write(p)
	}
	s.rest = append(s.rest, p...)
	end := wholeEvents(s.rest)
	if end == 0 {
		return nil
	}
	s.out = s.out[:0]
	upstream.Events(s.rest[:end], func(e upstream.Event) bool {
		if data := bytes.TrimSpace(e.Data); len(data) > 0 {
			s.element(data)
		}
		return true
	})
	s.rest = append(s.rest[:0], s.rest[end:]...)
	if len(s.out) == 0 {
		return nil
	}
	return s.sink.Write(s.out)
}

// Beat sends a sign of life: white space between elements (INF-24).
func (s *arraySink) Beat() error {
	if err := s.sink.Write([]byte{' '}); err != nil {
		return err
	}
	return s.sink.Flush()
}

func (s *arraySink) element(data []byte) {
	if s.begun {
		s.out = append(s.out, ",\n"...)
	} else {
		s.out = append(s.out, '[')
	}
	s.begun = true
	s.out = append(s.out, data...)
}

// end closes the array, unless the answer broke off without a word: then it must not look whole.
func (s *arraySink) end(t *dispatch.Trail) {
	if !s.stream || t.Cancelled || t.Cut {
		return
	}
	tail := "]"
	if !s.begun {
		tail = "[]"
	}
	if s.sink.Write([]byte(tail)) == nil {
		_ = s.sink.Flush() // a client that left needs no end
	}
}

// wholeEvents is how much of b are events with their blank lines.
func wholeEvents(b []byte) int {
	end := 0
	for _, sep := range [...]string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.LastIndex(b, []byte(sep)); i >= 0 {
			end = max(end, i+len(sep))
		}
	}
	return end
}

var _ dispatch.Sink = (*arraySink)(nil)
