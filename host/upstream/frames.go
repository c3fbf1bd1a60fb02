package upstream

import (
	"bytes"
	"errors"
	"io"
)

// ErrFrameTooLarge: an event above the limit, or one that never ends.
var ErrFrameTooLarge = errors.New("stream frame too large")

// Frames cuts an event stream into runs of whole events, byte for byte as they came (INF-26). Not for concurrent use.
type Frames struct {
	r     io.Reader
	buf   []byte
	start int // of what was not handed out yet
	end   int // of what was read
	seen  int // no event ends before this
	limit int
	torn  bool // the run handed out last lacks its blank line
	err   error
}

// NewFrames reads from r with a buffer that starts at 4 KiB and grows up to limit bytes for one event.
func NewFrames(r io.Reader, limit int) *Frames {
	return &Frames{r: r, buf: make([]byte, 4<<10), limit: limit}
}

// Next returns all whole events that one read brought, as one slice that is valid until the next call. At the end of the
// stream it returns what is left, whole event or not, and then the error of the reader (io.EOF at a proper end).
func (f *Frames) Next() ([]byte, error) {
	for {
		if cut := lastEventEnd(f.buf[f.seen:f.end]); cut > 0 {
			out := f.buf[f.start : f.seen+cut]
			f.start, f.seen = f.seen+cut, f.seen+cut
			return out, nil
		}
		if f.err != nil {
			return f.rest()
		}
		f.seen = max(f.start, f.end-3) // an ending may be cut by the border of a read
		if err := f.read(); err != nil {
			return nil, err
		}
	}
}

func (f *Frames) rest() ([]byte, error) {
	if f.start == f.end {
		return nil, f.err
	}
	out := f.buf[f.start:f.end]
	f.start, f.seen, f.torn = f.end, f.end, true
	return out, nil
}

// Torn says that the stream ended within what Next returned last: the blank line behind it, or a part of it, never came.
func (f *Frames) Torn() bool { return f.torn }

func (f *Frames) read() error {
	if f.start == f.end {
		f.start, f.end, f.seen = 0, 0, 0
	}
	if f.end == len(f.buf) {
		if f.start > 0 {
			copy(f.buf, f.buf[f.start:f.end])
			f.end, f.seen, f.start = f.end-f.start, f.seen-f.start, 0
		} else if len(f.buf) >= f.limit {
			return ErrFrameTooLarge
		} else {
			f.buf = append(f.buf, make([]byte, min(len(f.buf), f.limit-len(f.buf)))...)
		}
	}
	n, err := f.r.Read(f.buf[f.end:])
	f.end += n
	f.err = err
	return nil
}

// lastEventEnd is the length of b up to and including its last blank line, or 0. Lines end with \n, \r\n or \r. A search
// from behind is fast only when it finds something, so those for \r are left out for streams that have none.
func lastEventEnd(b []byte) int {
	end := 0
	if lf := bytes.LastIndex(b, []byte("\n\n")); lf >= 0 {
		end = lf + 2
	}
	if bytes.IndexByte(b, '\r') < 0 {
		return end
	}
	if crlf := bytes.LastIndex(b, []byte("\n\r\n")); crlf >= 0 {
		end = max(end, crlf+3)
	}
	if cr := bytes.LastIndex(b, []byte("\r\r")); cr >= 0 {
		end = max(end, cr+2)
	}
	return end
}

// Event is one server-sent event: the name of its event line and its data lines, joined with \n.
type Event struct {
	Name string
	Data []byte
}

// Events calls yield for each event in a run of whole events, comments and empty ones left out, until it returns false.
func Events(run []byte, yield func(Event) bool) {
	var e Event
	has := false
	run = bytes.TrimPrefix(run, []byte("\xef\xbb\xbf"))
	for len(run) > 0 {
		var line []byte
		line, run = cutLine(run)
		switch {
		case len(line) == 0:
			if has && !yield(e) {
				return
			}
			e, has = Event{}, false
		case line[0] == ':':
		default:
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "data":
				if has {
					e.Data = append(append(e.Data[:len(e.Data):len(e.Data)], '\n'), value...)
				} else {
					e.Data, has = value, true
				}
			case "event":
				e.Name = nameOf(value)
			}
		}
	}
	if has {
		yield(e)
	}
}

// nameOf is the name of an event. The frequent ones cost no memory.
func nameOf(b []byte) string {
	switch string(b) {
	case "content_block_delta":
		return "content_block_delta"
	case "response.output_text.delta":
		return "response.output_text.delta"
	case "response.function_call_arguments.delta":
		return "response.function_call_arguments.delta"
	case "response.reasoning_summary_text.delta":
		return "response.reasoning_summary_text.delta"
	case "ping":
		return "ping"
	}
	return string(b)
}

func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	line = b
	if i >= 0 {
		line = b[:i]
	}
	if j := bytes.IndexByte(line, '\r'); j >= 0 {
		i = j
	}
	if i < 0 {
		return b, nil
	}
	if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
		return b[:i], b[i+2:]
	}
	return b[:i], b[i+1:]
}
