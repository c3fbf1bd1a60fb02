package translate

import (
	"fmt"
	"slices"

	"github.com/weirgate/weir/host/translate/chat"
	"github.com/weirgate/weir/host/translate/messages"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
	"github.com/weirgate/weir/sdk/wire"
)

// Read reads a client's body. An error is a *neutral.Fault, or says that the dialect has no codec.
func Read(from wire.Dialect, body []byte) (*neutral.Request, error) {
	c, ok := Codec(from)
	if !ok {
		return nil, fmt.Errorf("the dialect %q cannot be translated", from)
	}
	return c.ReadRequest(body)
}

// Way is the way of one request to an upstream of a dialect, and of its answer back. Not for concurrent use.
type Way struct {
	from, to wire.Dialect
	client   neutral.Codec
	upstream neutral.Codec
	request  *neutral.Request
	target   neutral.Target
	told     neutral.Told
	memory   Memory
	foreign  func(signature string) bool // nil: none is
}

// Memory keeps signatures of calls for clients that cannot carry them, by the call's id as the client knows it (TR-19).
type Memory interface {
	Keep(call, signature string)
	Find(call string) (signature string, ok bool)
}

// Remember has the way keep and find the signatures of calls in m.
func (w *Way) Remember(m Memory) { w.memory = m }

// Reject has the way drop thoughts whose signatures, as the upstream made them, are foreign to the account that is asked (TR-18).
func (w *Way) Reject(foreign func(signature string) bool) { w.foreign = foreign }

// recalled are the turns with the signatures of calls that the client could not carry.
func (w *Way) recalled(turns []neutral.Turn) []neutral.Turn {
	if w.memory == nil || w.to != wire.GeminiGenerate || w.from == wire.GeminiGenerate {
		return turns
	}
	out := slices.Clone(turns)
	for i := range out {
		copied := false
		for j := range out[i].Parts {
			p := &out[i].Parts[j]
			if p.Kind != neutral.Call || p.Signature.Value != "" {
				continue
			}
			sig, ok := w.memory.Find(p.Call.ID)
			if !ok {
				continue
			}
			if !copied {
				out[i].Parts, copied = slices.Clone(out[i].Parts), true
			}
			out[i].Parts[j].Signature.Value = sig
		}
	}
	return out
}

// NewWay finds the way of r, which Read made, to a dialect. r is not changed, so one request may go several ways.
func NewWay(r *neutral.Request, to wire.Dialect, t neutral.Target, told neutral.Told) (*Way, error) {
	w := &Way{from: r.From, to: to, request: r, target: t, told: told}
	var known, same bool
	w.client, known = Codec(r.From)
	w.upstream, same = Codec(to)
	if !known || !same {
		return nil, fmt.Errorf("there is no way from the dialect %q to %q", r.From, to)
	}
	w.told.Request = r
	return w, nil
}

// Body appends the request for the upstream. The notes say what was dropped or bent; a *neutral.Fault what cannot be (TR-9).
func (w *Way) Body(dst []byte) ([]byte, []neutral.Note, error) {
	r := *w.request
	turns, dropped := repair.Thoughts(w.recalled(r.Turns), w.target.Family, w.from == w.to)
	if w.foreign != nil {
		more := 0
		turns, more = repair.Without(turns, w.foreign)
		dropped += more
	}
	r.Turns = turns
	dst, notes, err := w.upstream.WriteRequest(dst, &r, w.target)
	if dropped > 0 {
		notes = append(notes, neutral.Note{Field: "reasoning", What: fmt.Sprintf("%d dropped: they belong to another model", dropped)})
	}
	return dst, notes, err
}

// Answer appends the upstream's whole answer in the client's dialect and returns what the upstream stated of it.
func (w *Way) Answer(dst, body []byte) ([]byte, *neutral.Answer, error) {
	a, err := w.upstream.ReadAnswer(body)
	if err != nil {
		return dst, nil, err
	}
	var into neutral.Collector
	b := w.back()
	neutral.Play(a, func(e *neutral.Event) { b.take(e, into.Take) })
	bent := into.Answer()
	bent.Created = a.Created
	return w.client.WriteAnswer(dst, &bent, w.told), &bent, nil
}

// Told appends the upstream's whole answer as a stream of the client's dialect (INF-27).
func (w *Way) Told(dst, body []byte) ([]byte, error) {
	a, err := w.upstream.ReadAnswer(body)
	if err != nil {
		return dst, err
	}
	out, b := w.client.NewWriter(w.told), w.back()
	neutral.Play(a, func(e *neutral.Event) {
		b.take(e, func(e *neutral.Event) { dst = out.Write(dst, e) })
	})
	return dst, nil
}

// Stream begins the translation of a streamed answer.
func (w *Way) Stream() *Stream {
	s := w.read()
	s.writer = w.client.NewWriter(w.told)
	return s
}

// Collect begins the reading of a streamed answer for a client that wants one document (INF-27): its events become nothing, and
// Document tells the whole.
func (w *Way) Collect() *Stream {
	s := w.read()
	s.into = &neutral.Collector{}
	return s
}

// GoOn begins the reading of an answer that goes on with one that the client has begun to hear: its events pass through filter to the
// writer that knows what was told.
func (w *Way) GoOn(out neutral.StreamWriter, filter func(e *neutral.Event, emit func(*neutral.Event))) *Stream {
	s := w.read()
	s.writer = out
	s.emit = func(e *neutral.Event) {
		s.back.take(e, func(e *neutral.Event) { filter(e, s.write) })
	}
	return s
}

// GoOn is a writer for the rest of a stream of chat or messages that somebody else began: block is the index of its open block, or
// else of the next one.
func GoOn(d wire.Dialect, told neutral.Told, block int64, open bool) neutral.StreamWriter {
	if d == wire.AnthropicMessages {
		return messages.GoOn(told, block, open)
	}
	return chat.GoOn(told)
}

func (w *Way) read() *Stream {
	s := &Stream{way: w, reader: w.upstream.NewReader(), back: w.back()}
	s.usage = neutral.NoUsage()
	s.emit = func(e *neutral.Event) { s.back.take(e, s.write) }
	return s
}

// Stream translates one streamed answer, event by event. Not for concurrent use.
type Stream struct {
	way      *Way
	reader   neutral.StreamReader
	writer   neutral.StreamWriter // nil: it is collected
	into     *neutral.Collector
	back     *back
	emit     func(*neutral.Event)
	dst      []byte
	usage    neutral.Usage
	useful   bool
	finished bool
	stop     neutral.StopReason
	failed   []byte
	dropped  map[string]int
}

// Event appends what an event of the upstream, its name and data, becomes for the client.
func (s *Stream) Event(dst, name, data []byte) ([]byte, error) {
	s.dst = dst
	err := s.reader.Read(name, data, s.emit)
	dst, s.dst = s.dst, nil
	return dst, err
}

// End appends what is left when the upstream's stream is over: a proper end, if the upstream gave a reason to end (INF-22, FLT-11).
// whole is false when it was cut.
func (s *Stream) End(dst []byte, whole bool) []byte {
	s.dst = dst
	s.reader.End(whole, s.emit)
	dst, s.dst = s.dst, nil
	return dst
}

// Writer is what writes for the client; nil: the answer is collected.
func (s *Stream) Writer() neutral.StreamWriter { return s.writer }

// Beat appends a sign of life in the client's dialect (INF-24).
func (s *Stream) Beat(dst []byte) []byte {
	return s.writer.Write(dst, &neutral.Event{Kind: neutral.Beat})
}

func (s *Stream) write(e *neutral.Event) {
	switch e.Kind {
	case neutral.Open, neutral.Delta:
		s.useful = true
	case neutral.Counted:
		s.usage.Merge(e.Usage)
	case neutral.Finished:
		s.usage.Merge(e.Usage)
		s.finished, s.stop = true, e.Stop
	case neutral.Failed:
		s.failed = append([]byte{}, e.Raw...)
	case neutral.Foreign:
		if s.dropped == nil {
			s.dropped = map[string]int{}
		}
		if len(s.dropped) < 64 { // their names come from outside
			s.dropped[e.Name]++
		}
	default:
	}
	if s.into != nil {
		s.into.Take(e)
		return
	}
	s.dst = s.writer.Write(s.dst, e)
}

// Document appends the collected answer in the client's dialect.
func (s *Stream) Document(dst []byte) []byte {
	a := s.into.Answer()
	return s.way.client.WriteAnswer(dst, &a, s.way.told)
}

// Finished says whether the answer has ended properly, and why.
func (s *Stream) Finished() (neutral.StopReason, bool) { return s.stop, s.finished }

// Failed is the payload of the upstream's error event, nil when there was none.
func (s *Stream) Failed() []byte { return s.failed }

// Useful says whether any part of an answer came (TR-28).
func (s *Stream) Useful() bool { return s.useful }

// Usage are the tokens that the upstream stated so far.
func (s *Stream) Usage() neutral.Usage { return s.usage }

// Dropped counts, by type, what the client's dialect has no word for (TR-29).
func (s *Stream) Dropped() map[string]int { return s.dropped }
