package messages

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// Reader reads the events of a messages stream. Not for concurrent use.
type Reader struct {
	begun    bool
	finished bool
	next     int
	open     bool // the upstream has a block open
	shown    bool // and it was told: a text block opens with its first text (TR-28)
	part     neutral.Part
	text     []byte // of the open block: its text or its arguments
	called   bool
	stop     string
	sequence string
	stopped  bool
	usage    neutral.Usage
	event    neutral.Event
	interleaving
}

// NewReader returns a reader for one stream.
func NewReader() *Reader { return &Reader{usage: neutral.NoUsage()} }

func (r *Reader) send(emit func(*neutral.Event), e neutral.Event) {
	r.event = e
	emit(&r.event)
}

// Read takes one event. Its kind is the type in the data; the name of the event is the same word.
func (r *Reader) Read(_, data []byte, emit func(*neutral.Event)) error {
	if !gjson.ValidBytes(data) {
		return fmt.Errorf("an event of %d bytes is not JSON", len(data))
	}
	v := gjson.ParseBytes(data)
	switch kind := v.Get("type").Str; kind {
	case "message_start":
		m := v.Get("message")
		r.usage.Merge(readUsage(m.Get("usage")))
		r.begin(m.Get("id").Str, m.Get("model").Str, emit)
	case blockStart, blockDelta, blockStop:
		r.block(kind, v, emit)
		if r.heldBytes > maxHeld {
			return fmt.Errorf("the calls of one answer that are not yet told are larger than %d bytes", maxHeld)
		}
	case "message_delta":
		r.usage.Merge(readUsage(v.Get("usage")))
		if s := v.Get("delta.stop_reason"); s.Type == gjson.String {
			r.stop, r.sequence, r.stopped = s.Str, v.Get("delta.stop_sequence").Str, true
		}
		r.send(emit, neutral.Event{Kind: neutral.Counted, Usage: r.usage})
	case "message_stop":
		r.finish(emit)
	case "ping":
		r.send(emit, neutral.Event{Kind: neutral.Beat})
	case "error":
		r.finished = true
		r.send(emit, neutral.Event{Kind: neutral.Failed, Raw: data})
	default:
		r.send(emit, neutral.Event{Kind: neutral.Foreign, Name: kind, Raw: data})
	}
	return nil
}

// End ends the stream: a stop reason that was seen is enough for a proper end (FLT-11), a cut without one is none.
func (r *Reader) End(_ bool, emit func(*neutral.Event)) {
	if r.stopped {
		r.finish(emit)
	}
}

func (r *Reader) begin(id, model string, emit func(*neutral.Event)) {
	if r.begun {
		return
	}
	r.begun = true
	r.send(emit, neutral.Event{Kind: neutral.Begin, ID: id, Model: model, Usage: r.usage})
}

// start opens a block. What the neutral form has no word for is told whole and nothing of it is kept.
func (r *Reader) start(b gjson.Result, emit func(*neutral.Event)) {
	r.part, r.text, r.open, r.shown = readBlock(b), r.text[:0], true, false
	switch r.part.Kind {
	case neutral.Unknown:
		r.open = false
		r.send(emit, neutral.Event{Kind: neutral.Foreign, Name: r.part.Type, Raw: r.part.Raw})
	case neutral.Call:
		r.called = true
		if r.part.Call.Arguments != "{}" { // all at once
			r.text = append(r.text, r.part.Call.Arguments...)
		}
		r.part.Call.Arguments = ""
		r.show(emit)
		r.say(string(r.text), emit)
	case neutral.Text:
		first := r.part.Text
		r.part.Text = ""
		r.add(first, emit)
	default:
		first := r.part.Text
		r.part.Text = ""
		r.show(emit)
		r.add(first, emit)
		if r.part.Signature.Value != "" {
			r.send(emit, neutral.Event{Kind: neutral.Sign, Index: r.next, Part: neutral.Part{Kind: r.part.Kind, Signature: r.part.Signature}})
		}
	}
}

func (r *Reader) show(emit func(*neutral.Event)) {
	if r.shown {
		return
	}
	r.shown = true
	head := neutral.Part{Kind: r.part.Kind, Call: r.part.Call, Signature: neutral.Signature{Redacted: r.part.Signature.Redacted}}
	r.send(emit, neutral.Event{Kind: neutral.Open, Index: r.next, Part: head})
}

// add keeps text and tells it.
func (r *Reader) add(text string, emit func(*neutral.Event)) {
	if text == "" {
		return
	}
	r.show(emit)
	r.text = append(r.text, text...)
	r.say(text, emit)
}

func (r *Reader) say(text string, emit func(*neutral.Event)) {
	if text != "" {
		r.send(emit, neutral.Event{Kind: neutral.Delta, Index: r.next, Part: neutral.Part{Kind: r.part.Kind}, Text: text})
	}
}

func (r *Reader) delta(d gjson.Result, emit func(*neutral.Event)) {
	if !r.open {
		return
	}
	switch d.Get("type").Str {
	case "text_delta":
		r.add(d.Get("text").Str, emit)
	case "thinking_delta":
		r.add(d.Get("thinking").Str, emit)
	case "input_json_delta":
		r.add(d.Get("partial_json").Str, emit)
	case "signature_delta":
		r.part.Signature.Value += d.Get("signature").Str
		r.send(emit, neutral.Event{Kind: neutral.Sign, Index: r.next, Part: neutral.Part{Kind: r.part.Kind, Signature: r.part.Signature}})
	}
}

func (r *Reader) close(emit func(*neutral.Event)) {
	if !r.open {
		return
	}
	r.open = false
	if !r.shown {
		return
	}
	p := r.part
	p.Type = ""
	switch text := string(r.text); p.Kind {
	case neutral.Call:
		if text == "" {
			text = "{}"
		}
		p.Call.Arguments = compact(text)
	default:
		p.Text = text
	}
	r.send(emit, neutral.Event{Kind: neutral.Close, Index: r.next, Part: p})
	r.next++
}

func (r *Reader) finish(emit func(*neutral.Event)) {
	if r.finished || !r.begun {
		return
	}
	r.closeAll(emit)
	r.finished = true
	stop, text := readStop(r.stop, r.sequence, r.called)
	r.send(emit, neutral.Event{Kind: neutral.Finished, Stop: stop, StopText: text, Usage: r.usage})
}
