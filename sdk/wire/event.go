package wire

// The binary forms of on_event (ABI-5): an event crosses the wall without being escaped. A list of bytes that is no such form
// reads as false; nothing is copied.

// Event is the input of on_event: one server-sent event of a stream.
type Event struct {
	Stream uint32
	Name   []byte // of the event; empty for most
	Data   []byte
}

// AppendEvent appends e as a guest reads it: u32le stream, u16le length of the name, name, data. A longer name than 65,535
// bytes is cut.
func AppendEvent(b []byte, e Event) []byte {
	name := e.Name[:min(len(e.Name), 1<<16-1)]
	b = append(b, byte(e.Stream), byte(e.Stream>>8), byte(e.Stream>>16), byte(e.Stream>>24), byte(len(name)), byte(len(name)>>8))
	b = append(b, name...)
	return append(b, e.Data...)
}

// ReadEvent is AppendEvent backwards. Name and Data lie in b.
func ReadEvent(b []byte) (Event, bool) {
	if len(b) < 6 {
		return Event{}, false
	}
	n := int(b[4]) | int(b[5])<<8
	if len(b) < 6+n {
		return Event{}, false
	}
	return Event{
		Stream: uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24,
		Name:   b[6 : 6+n], Data: b[6+n:],
	}, true
}

// EventAction is what on_event says about an event: the first byte of its output.
type EventAction byte

// The actions. An empty output is EventPass.
const (
	EventPass    EventAction = 0
	EventDrop    EventAction = 1
	EventReplace EventAction = 2
	EventEnd     EventAction = 3 // the stream ends as an error
)

// EventAnswer is the output of on_event.
type EventAnswer struct {
	Action EventAction
	Name   []byte // of EventReplace
	Data   []byte // of EventReplace; of EventEnd the JSON {"error": {"code", "message"}}, which the reader must still decode
}

// AppendEventAnswer appends a as the host reads it. A longer name than 65,535 bytes is cut.
func AppendEventAnswer(b []byte, a EventAnswer) []byte {
	b = append(b, byte(a.Action))
	switch a.Action {
	case EventReplace:
		name := a.Name[:min(len(a.Name), 1<<16-1)]
		b = append(b, byte(len(name)), byte(len(name)>>8))
		b = append(b, name...)
		b = append(b, a.Data...)
	case EventEnd:
		b = append(b, a.Data...)
	}
	return b
}

// ReadEventAnswer is AppendEventAnswer backwards; false: it is garbage. Name and Data lie in b. Bytes after EventPass or
// EventDrop are ignored, as unknown fields are.
func ReadEventAnswer(b []byte) (EventAnswer, bool) {
	if len(b) == 0 {
		return EventAnswer{}, true
	}
	a := EventAnswer{Action: EventAction(b[0])}
	switch a.Action {
	case EventPass, EventDrop:
	case EventReplace:
		if len(b) < 3 || len(b) < 3+int(b[1])+int(b[2])<<8 {
			return EventAnswer{}, false
		}
		n := int(b[1]) | int(b[2])<<8
		a.Name, a.Data = b[3:3+n], b[3+n:]
	case EventEnd:
		a.Data = b[1:]
	default:
		return EventAnswer{}, false
	}
	return a, true
}

// StreamEnd is the input of on_end.
type StreamEnd struct {
	StreamID uint32 `json:"stream_id"`
	Complete bool   `json:"complete"` // the upstream ended the stream properly
	NowMS    int64  `json:"now_ms"`
}

// ResponseFacts is the input of on_response (ABI-3): the declared headers, and fields when the answer was buffered.
type ResponseFacts struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Fields  map[string]Raw    `json:"fields,omitempty"`
	NowMS   int64             `json:"now_ms"`
}

// Edits is the output of on_request and on_response (ABI-3): headers to set and edits of the body, for this request only.
type Edits struct {
	Headers map[string]string `json:"headers,omitempty"`
	Body    []Edit            `json:"body,omitempty"`
}
