package gemini

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// Reader reads the chunks of a streamGenerateContent answer. Not for concurrent use.
type Reader struct {
	begun    bool
	finished bool
	next     int
	open     bool
	part     neutral.Part // the open one
	text     []byte
	called   bool
	stop     string
	stopped  bool
	blocked  bool
	usage    neutral.Usage
	event    neutral.Event
}

// NewReader returns a reader for one stream.
func NewReader() *Reader { return &Reader{usage: neutral.NoUsage()} }

func (r *Reader) send(emit func(*neutral.Event), e neutral.Event) {
	r.event = e
	emit(&r.event)
}

// Read takes the data of one event: a whole GenerateContentResponse.
func (r *Reader) Read(_, data []byte, emit func(*neutral.Event)) error {
	if !gjson.ValidBytes(data) {
		return fmt.Errorf("a chunk of %d bytes is not JSON", len(data))
	}
	v := gjson.ParseBytes(data)
	candidate := v.Get("candidates.0")
	if e := v.Get("error"); e.IsObject() && !candidate.Exists() {
		r.finished = true
		r.send(emit, neutral.Event{Kind: neutral.Failed, Raw: data})
		return nil
	}
	if !r.begun {
		r.begun = true
		r.send(emit, neutral.Event{Kind: neutral.Begin, ID: v.Get("responseId").Str, Model: v.Get("modelVersion").Str, Usage: neutral.NoUsage()})
	}
	if u := v.Get("usageMetadata"); u.IsObject() { // the last chunk's wins (TR-6)
		r.usage.Merge(readUsage(u))
		r.send(emit, neutral.Event{Kind: neutral.Counted, Usage: r.usage})
	}
	candidate.Get("content.parts").ForEach(func(_, e gjson.Result) bool {
		r.take(e, emit)
		return true
	})
	if f := candidate.Get("finishReason").Str; f != "" && f != "FINISH_REASON_UNSPECIFIED" {
		r.stop, r.stopped = f, true
	}
	if v.Get("promptFeedback.blockReason").Str != "" {
		r.blocked, r.stopped = true, true
	}
	return nil
}

// take tells one part: text is added to an open part of its kind, a call comes whole.
func (r *Reader) take(e gjson.Result, emit func(*neutral.Event)) {
	p, _ := readPart(e)
	switch p.Kind {
	case neutral.Call:
		r.close(emit)
		if p.Call.ID == "" {
			p.Call.ID = callID(r.next, 0, p.Call.Name)
		}
		r.called = true
		head := p
		head.Call.Arguments, head.Signature = "", neutral.Signature{}
		r.send(emit, neutral.Event{Kind: neutral.Open, Index: r.next, Part: head})
		r.send(emit, neutral.Event{Kind: neutral.Delta, Index: r.next, Part: neutral.Part{Kind: neutral.Call}, Text: p.Call.Arguments})
		if p.Signature.Value != "" {
			r.send(emit, neutral.Event{Kind: neutral.Sign, Index: r.next, Part: neutral.Part{Kind: neutral.Call, Signature: p.Signature}})
		}
		r.send(emit, neutral.Event{Kind: neutral.Close, Index: r.next, Part: p})
		r.next++
	case neutral.Text, neutral.Thought:
		r.say(&p, emit)
	default:
		r.send(emit, neutral.Event{Kind: neutral.Foreign, Name: typeOf(e), Raw: []byte(e.Raw)})
	}
}

func (r *Reader) say(p *neutral.Part, emit func(*neutral.Event)) {
	if p.Text == "" && (p.Kind == neutral.Text || p.Signature.Value == "") {
		return // TR-28
	}
	again := p.Signature.Value != "" && r.part.Signature.Value != "" && p.Signature != r.part.Signature // of another thought
	if !r.open || r.part.Kind != p.Kind || again {
		r.close(emit)
		r.open, r.part, r.text = true, neutral.Part{Kind: p.Kind}, r.text[:0]
		r.send(emit, neutral.Event{Kind: neutral.Open, Index: r.next, Part: r.part})
	}
	if p.Text != "" {
		r.text = append(r.text, p.Text...)
		r.send(emit, neutral.Event{Kind: neutral.Delta, Index: r.next, Part: neutral.Part{Kind: p.Kind}, Text: p.Text})
	}
	if p.Signature.Value != "" {
		r.part.Signature = p.Signature
		r.send(emit, neutral.Event{Kind: neutral.Sign, Index: r.next, Part: neutral.Part{Kind: p.Kind, Signature: p.Signature}})
	}
}

func (r *Reader) close(emit func(*neutral.Event)) {
	if !r.open {
		return
	}
	r.open = false
	r.part.Text = string(r.text)
	r.send(emit, neutral.Event{Kind: neutral.Close, Index: r.next, Part: r.part})
	r.next++
}

// End ends the stream: the dialect has no end mark, the finish reason is one. Without it the stream was cut (FLT-11).
func (r *Reader) End(_ bool, emit func(*neutral.Event)) {
	if r.finished || !r.stopped {
		return
	}
	r.close(emit)
	r.finished = true
	stop, word := readStop(r.stop, r.called)
	if r.blocked {
		stop, word = neutral.StopFiltered, ""
	}
	r.send(emit, neutral.Event{Kind: neutral.Finished, Stop: stop, StopText: word, Usage: r.usage})
}
