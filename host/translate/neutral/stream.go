package neutral

// EventKind says what an event of a stream brings.
type EventKind uint8

// The kinds of events, in the order in which a stream has them: Begin, then parts, each opened, filled and closed before the next
// one opens (TR-27), Counted at any place, and one of Finished and Failed at the end. Readers keep this order whatever the
// upstream did: calls that came interleaved are buffered. Writers may rely on it.
const (
	// Begin opens the answer: ID, Model, Usage so far.
	Begin EventKind = iota
	// Open begins a part: Part has its kind, and of a call the id and the name. A text part opens with its first text (TR-28).
	Open
	// Delta adds to the open part: Text is text, thought, refusal or a piece of a call's arguments.
	Delta
	// Sign gives the open part its signature: Part.Signature.
	Sign
	// Close ends the open part; Part is the whole part, so that a writer that needs it whole has buffered nothing.
	Close
	// Counted states tokens: Usage.
	Counted
	// Finished ends the answer: Stop, StopText, Usage.
	Finished
	// Failed ends the answer with an error of the upstream: Raw is its payload.
	Failed
	// Beat is a sign of life without content.
	Beat
	// Foreign is an event that the neutral form has no word for: Name, Raw (TR-29).
	Foreign
)

// Event is one step of a streamed answer. It is valid until the next one is read.
type Event struct {
	Kind     EventKind
	Index    int // of the part in the answer, rising from 0
	ID       string
	Model    string
	Part     Part
	Text     string
	Stop     StopReason
	StopText string
	Usage    Usage
	Name     string
	Raw      []byte
}

// StreamReader turns the events of one upstream stream into neutral ones with bounded memory. Not for concurrent use.
type StreamReader interface {
	// Read takes one event of the upstream's dialect, its name (empty in chat and gemini) and data, and calls emit for each
	// neutral event. Data that does not parse is an error and emits nothing.
	Read(name, data []byte, emit func(*Event)) error
	// End is called when the upstream's stream is over: what is complete but unsaid is emitted, such as the Finished of a stream
	// whose end marker is missing although its finish reason was seen. whole is false when the stream was cut: then nothing is
	// made up (INF-35).
	End(whole bool, emit func(*Event))
}

// StreamWriter turns neutral events into those of a client's dialect in the order of INF-21. Not for concurrent use.
type StreamWriter interface {
	// Write appends what e is in the dialect to dst: whole events, or nothing.
	Write(dst []byte, e *Event) []byte
}

// Collector builds the answer that a stream is the telling of (TR-26, INF-27). The zero value is ready.
type Collector struct {
	answer Answer
	begun  bool
}

// Take adds an event.
func (c *Collector) Take(e *Event) {
	if !c.begun {
		c.begun, c.answer.Usage = true, NoUsage()
	}
	switch e.Kind {
	case Begin:
		c.answer.ID, c.answer.Model = e.ID, e.Model
		c.answer.Usage.Merge(e.Usage)
	case Close:
		c.answer.Parts = append(c.answer.Parts, e.Part)
	case Counted:
		c.answer.Usage.Merge(e.Usage)
	case Finished:
		c.answer.Stop, c.answer.StopText = e.Stop, e.StopText
		c.answer.Usage.Merge(e.Usage)
	case Open, Delta, Sign, Failed, Beat, Foreign:
	}
}

// Answer is what was told so far; Stop is StopNone until the stream has finished.
func (c *Collector) Answer() Answer { return c.answer }

// Play tells a whole answer as a stream (INF-27): the events that a reader of such a stream would emit.
func Play(a *Answer, emit func(*Event)) {
	emit(&Event{Kind: Begin, ID: a.ID, Model: a.Model, Usage: a.Usage})
	for i := range a.Parts {
		p := &a.Parts[i]
		head := Part{Kind: p.Kind, Type: p.Type, Call: ToolCall{ID: p.Call.ID, Name: p.Call.Name, Custom: p.Call.Custom}}
		emit(&Event{Kind: Open, Index: i, Part: head})
		if text := p.spoken(); text != "" {
			emit(&Event{Kind: Delta, Index: i, Part: head, Text: text})
		}
		if p.Signature.Value != "" {
			emit(&Event{Kind: Sign, Index: i, Part: Part{Kind: p.Kind, Signature: p.Signature}})
		}
		emit(&Event{Kind: Close, Index: i, Part: *p})
	}
	emit(&Event{Kind: Finished, Stop: a.Stop, StopText: a.StopText, Usage: a.Usage})
}

// spoken is what of a part is told by deltas.
func (p *Part) spoken() string {
	if p.Kind == Call {
		return p.Call.Arguments
	}
	return p.Text
}
