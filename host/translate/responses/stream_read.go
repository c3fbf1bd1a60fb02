package responses

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// maxHeld bounds what a stream may keep of items that are not yet told.
const maxHeld = 16 << 20

// Reader reads the events of a Responses stream. Items that come interleaved are told one after the other (TR-27). Not for
// concurrent use.
type Reader struct {
	begun    bool
	finished bool
	next     int
	parts    []*part // not yet told whole, in the order in which they began; the first one is open
	held     int
	called   bool
	usage    neutral.Usage
	event    neutral.Event
}

// part is a part of the answer while it comes: a call, a thought, or one content of a message.
type part struct {
	item    int64 // output_index
	content int64 // content_index, of a message
	part    neutral.Part
	text    []byte
	told    int
	open    bool
	done    bool
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
	kind := v.Get("type").Str
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		r.begin(v.Get("response"), emit)
	case "response.completed", "response.incomplete":
		r.begin(v.Get("response"), emit)
		r.finish(v.Get("response"), emit)
	case "response.failed", "error":
		if !r.finished {
			r.finished = true
			r.send(emit, neutral.Event{Kind: neutral.Failed, Raw: data})
		}
	default:
		if !r.begun {
			r.begin(gjson.Result{}, emit)
		}
		r.piece(kind, v, emit)
		r.advance(emit)
	}
	if r.held > maxHeld {
		return fmt.Errorf("the items of one answer that are not yet told are larger than %d bytes", maxHeld)
	}
	return nil
}

// End does nothing: a Responses stream says when it is over, and one that did not was cut.
func (r *Reader) End(bool, func(*neutral.Event)) {}

func (r *Reader) begin(v gjson.Result, emit func(*neutral.Event)) {
	if r.begun {
		return
	}
	r.begun = true
	r.send(emit, neutral.Event{Kind: neutral.Begin, ID: v.Get("id").Str, Model: v.Get("model").Str, Usage: neutral.NoUsage()})
}

// piece takes one event of an item.
func (r *Reader) piece(kind string, v gjson.Result, emit func(*neutral.Event)) {
	at, content := v.Get("output_index").Int(), v.Get("content_index").Int()
	switch kind {
	case "response.output_item.added":
		r.added(at, v.Get("item"), emit)
	case "response.output_item.done":
		r.itemDone(at, v.Get("item"), emit)
	case "response.output_text.delta":
		r.add(r.of(at, content, neutral.Text), v.Get("delta").Str)
	case "response.refusal.delta":
		r.add(r.of(at, content, neutral.Refusal), v.Get("delta").Str)
	case "response.content_part.done":
		r.contentDone(at, content, v.Get("part"))
	case "response.reasoning_summary_part.added":
		if v.Get("summary_index").Int() > 0 {
			r.add(r.of(at, 0, neutral.Thought), "\n\n")
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.add(r.of(at, 0, neutral.Thought), v.Get("delta").Str)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		r.add(r.of(at, 0, neutral.Call), v.Get("delta").Str)
	default:
		if !strings.HasPrefix(kind, "response.") {
			r.send(emit, neutral.Event{Kind: neutral.Foreign, Name: kind, Raw: []byte(v.Raw)})
		}
	}
}

// of finds the part at a place, or begins it.
func (r *Reader) of(item, content int64, kind neutral.Kind) *part {
	for _, p := range r.parts {
		if p.item == item && p.content == content && p.part.Kind == kind {
			return p
		}
	}
	p := &part{item: item, content: content, part: neutral.Part{Kind: kind}}
	r.parts = append(r.parts, p)
	return p
}

func (r *Reader) add(p *part, text string) {
	p.text = append(p.text, text...)
	r.held += len(text)
}

func (r *Reader) added(at int64, v gjson.Result, emit func(*neutral.Event)) {
	switch kind := v.Get("type").Str; kind {
	case "function_call", "custom_tool_call":
		r.called = true
		p := r.of(at, 0, neutral.Call)
		p.part = readCall(v)
		r.add(p, p.part.Call.Arguments)
		p.part.Call.Arguments = ""
	case "reasoning":
		r.of(at, 0, neutral.Thought)
	case "message":
	default:
		r.send(emit, neutral.Event{Kind: neutral.Foreign, Name: kind, Raw: []byte(v.Raw)})
	}
}

// contentDone ends one content of a message. What no delta told is told now.
func (r *Reader) contentDone(at, content int64, v gjson.Result) {
	p, ok := readContent(v)
	if !ok || p.Kind == neutral.Unknown {
		return
	}
	part := r.of(at, content, p.Kind)
	if len(part.text) == 0 {
		r.add(part, p.Text)
	}
	part.done = true
}

// itemDone ends an item: it says whole what the deltas told, and the signature of a thought.
func (r *Reader) itemDone(at int64, v gjson.Result, emit func(*neutral.Event)) {
	switch v.Get("type").Str {
	case "function_call", "custom_tool_call":
		r.called = true
		whole := readCall(v)
		p := r.of(at, 0, neutral.Call)
		if len(p.text) == 0 {
			r.add(p, whole.Call.Arguments)
		}
		whole.Call.Arguments = ""
		p.part, p.done = whole, true
	case "reasoning":
		whole := readThought(v)
		p := r.of(at, 0, neutral.Thought)
		if len(p.text) == 0 {
			r.add(p, whole.Text)
		}
		p.part.Signature, p.done = whole.Signature, true
	case "message":
		for _, p := range r.parts {
			p.done = p.done || p.item == at
		}
	}
	r.advance(emit)
}

// advance tells what can be told: the first part as it comes, the ones behind it when it is done.
func (r *Reader) advance(emit func(*neutral.Event)) {
	for len(r.parts) > 0 {
		p := r.parts[0]
		if !p.open {
			if p.part.Kind == neutral.Call && p.part.Call.Name == "" || text(p) && len(p.text) == 0 {
				if !p.done {
					return
				}
				r.parts = r.parts[1:] // nothing to tell (TR-28)
				continue
			}
			p.open = true
			r.send(emit, neutral.Event{Kind: neutral.Open, Index: r.next, Part: p.part})
		}
		if p.told < len(p.text) {
			said := string(p.text[p.told:])
			r.held -= len(said)
			p.told = len(p.text)
			head := neutral.Part{Kind: p.part.Kind, Call: neutral.ToolCall{Custom: p.part.Call.Custom}}
			r.send(emit, neutral.Event{Kind: neutral.Delta, Index: r.next, Part: head, Text: said})
		}
		if !p.done {
			return
		}
		r.close(p, emit)
	}
}

// text says whether a part opens with its first text.
func text(p *part) bool { return p.part.Kind == neutral.Text }

func (r *Reader) close(p *part, emit func(*neutral.Event)) {
	if p.part.Kind == neutral.Call {
		p.part.Call.Arguments = string(p.text)
	} else {
		p.part.Text = string(p.text)
	}
	if p.part.Signature.Value != "" {
		r.send(emit, neutral.Event{Kind: neutral.Sign, Index: r.next, Part: neutral.Part{Kind: p.part.Kind, Signature: p.part.Signature}})
	}
	r.send(emit, neutral.Event{Kind: neutral.Close, Index: r.next, Part: p.part})
	r.next++
	r.parts = r.parts[1:]
}

func (r *Reader) finish(v gjson.Result, emit func(*neutral.Event)) {
	if r.finished {
		return
	}
	for _, p := range r.parts {
		p.done = true
	}
	r.advance(emit)
	r.finished = true
	r.usage.Merge(readUsage(v.Get("usage")))
	stop, word := readStop(v, r.called)
	r.send(emit, neutral.Event{Kind: neutral.Finished, Stop: stop, StopText: word, Usage: r.usage})
}
