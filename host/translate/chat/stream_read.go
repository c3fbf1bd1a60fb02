package chat

import (
	"bytes"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// maxHeld bounds what a stream may keep of calls that are not yet told.
const maxHeld = 16 << 20

// Reader reads the chunks of a chat completion stream. Of calls that come interleaved the first is told as it comes and the
// others when it is complete, one after the other (TR-27). Not for concurrent use.
type Reader struct {
	begun    bool
	finished bool
	next     int // index of the next part
	open     *neutral.Part
	openAt   int     // its index
	text     []byte  // of the open part
	calls    []*call // in the order of their first delta
	telling  *call   // the call that is open
	late     []byte  // text that came behind the first call
	held     int
	finish   string
	stopped  bool // a finish reason was seen
	usage    neutral.Usage
	event    neutral.Event // used again
}

// call is one call of a tool while its pieces come.
type call struct {
	key  int64 // index
	part neutral.Part
	args []byte
	told int // bytes of args that were told
	done bool
}

// NewReader returns a reader for one stream.
func NewReader() *Reader { return &Reader{usage: neutral.NoUsage()} }

var doneMark = []byte("[DONE]")

// Read takes the data of one event.
func (r *Reader) Read(_, data []byte, emit func(*neutral.Event)) error {
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, doneMark) {
		r.finishUp(emit)
		return nil
	}
	if !gjson.ValidBytes(data) {
		return fmt.Errorf("a chunk of %d bytes is not JSON", len(data))
	}
	v := gjson.ParseBytes(data)
	choice := v.Get("choices.0")
	if e := v.Get("error"); e.Exists() && e.Type != gjson.Null && !choice.Exists() {
		r.send(emit, neutral.Event{Kind: neutral.Failed, Raw: data})
		r.finished = true
		return nil
	}
	if !r.begun {
		r.begun = true
		r.send(emit, neutral.Event{Kind: neutral.Begin, ID: v.Get("id").Str, Model: v.Get("model").Str, Usage: neutral.NoUsage()})
	}
	if u := v.Get("usage"); u.IsObject() {
		r.usage.Merge(readUsage(u))
		r.send(emit, neutral.Event{Kind: neutral.Counted, Usage: r.usage})
	}
	if choice.Exists() && choice.Get("index").Int() == 0 {
		r.delta(choice.Get("delta"), emit)
		if f := choice.Get("finish_reason"); f.Type == gjson.String && f.Str != "" {
			r.finish, r.stopped = f.Str, true
		}
	}
	if r.held > maxHeld {
		return fmt.Errorf("the calls of one answer are larger than %d bytes", maxHeld)
	}
	return nil
}

// End ends the stream: a finish reason that was seen is enough for a proper end (FLT-11), a cut without one is none.
func (r *Reader) End(_ bool, emit func(*neutral.Event)) {
	if r.stopped {
		r.finishUp(emit)
	}
}

func (r *Reader) send(emit func(*neutral.Event), e neutral.Event) {
	r.event = e
	emit(&r.event)
}

// delta tells what a chunk adds.
func (r *Reader) delta(d gjson.Result, emit func(*neutral.Event)) {
	if text := thought(d); text != "" {
		r.say(neutral.Thought, text, emit)
	}
	if c := d.Get("content"); c.Type == gjson.String && c.Str != "" {
		r.say(neutral.Text, c.Str, emit)
	}
	if c := d.Get("refusal"); c.Type == gjson.String && c.Str != "" {
		r.say(neutral.Refusal, c.Str, emit)
	}
	i := int64(0)
	d.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
		r.piece(c, i, emit)
		i++
		return true
	})
}

// say adds text to the open part of its kind, or opens one. Text behind a call waits until the calls are told.
func (r *Reader) say(kind neutral.Kind, text string, emit func(*neutral.Event)) {
	if len(r.calls) > 0 {
		if kind == neutral.Text {
			r.late = append(r.late, text...)
			r.held += len(text)
		}
		return
	}
	if r.open == nil || r.open.Kind != kind {
		r.close(emit)
		r.begin(neutral.Part{Kind: kind}, emit)
	}
	r.text = append(r.text, text...)
	r.send(emit, neutral.Event{Kind: neutral.Delta, Index: r.openAt, Part: neutral.Part{Kind: kind}, Text: text})
}

func (r *Reader) begin(p neutral.Part, emit func(*neutral.Event)) {
	r.open, r.openAt, r.text = &p, r.next, r.text[:0]
	r.next++
	r.send(emit, neutral.Event{Kind: neutral.Open, Index: r.openAt, Part: p})
}

func (r *Reader) close(emit func(*neutral.Event)) {
	if r.open == nil {
		return
	}
	if r.open.Kind != neutral.Call {
		r.open.Text = string(r.text)
	}
	r.send(emit, neutral.Event{Kind: neutral.Close, Index: r.openAt, Part: *r.open})
	r.open = nil
}

// piece adds a piece of a call. Its index is the key; where a provider leaves it out, an id that is new begins a call and
// everything else belongs to the last one.
func (r *Reader) piece(v gjson.Result, at int64, emit func(*neutral.Event)) {
	id, index := v.Get("id").Str, v.Get("index")
	c := r.find(id, index, at)
	if id != "" {
		c.part.Call.ID = id
	}
	text := v.Get("function.arguments")
	name := v.Get("function.name").Str
	if v.Get("type").Str == "custom" || v.Get("custom").Exists() {
		c.part.Call.Custom = true
		name, text = v.Get("custom.name").Str, v.Get("custom.input")
	}
	if name != "" {
		c.part.Call.Name = name
	}
	if s := arguments(text); s != "" {
		c.args = append(c.args, s...)
		r.held += len(s)
	}
	if r.telling == nil && c.part.Call.Name != "" && !c.done {
		r.close(emit)
		r.telling = c
		r.begin(c.part, emit)
	}
	if r.telling == c {
		r.tell(c, emit)
	}
}

func (r *Reader) find(id string, index gjson.Result, at int64) *call {
	if index.Type == gjson.Number {
		for _, c := range r.calls {
			if c.key == index.Int() {
				return c
			}
		}
		return r.add(index.Int())
	}
	if id == "" && len(r.calls) > 0 {
		return r.calls[min(int(at)+max(len(r.calls)-1, 0), len(r.calls)-1)]
	}
	for _, c := range r.calls {
		if id != "" && c.part.Call.ID == id {
			return c
		}
	}
	return r.add(int64(1<<32 + len(r.calls)))
}

func (r *Reader) add(key int64) *call {
	c := &call{key: key, part: neutral.Part{Kind: neutral.Call}}
	r.calls = append(r.calls, c)
	return c
}

// tell sends what of the open call was not sent yet.
func (r *Reader) tell(c *call, emit func(*neutral.Event)) {
	if c.told == len(c.args) {
		return
	}
	text := string(c.args[c.told:])
	c.told = len(c.args)
	kind := neutral.Part{Kind: neutral.Call, Call: neutral.ToolCall{Custom: c.part.Call.Custom}}
	r.send(emit, neutral.Event{Kind: neutral.Delta, Index: r.openAt, Part: kind, Text: text})
}

// finishUp tells what was held back and ends the answer.
func (r *Reader) finishUp(emit func(*neutral.Event)) {
	if r.finished || !r.begun {
		return
	}
	r.finished = true
	for _, c := range r.calls {
		if c.part.Call.Name == "" { // nobody can call it
			continue
		}
		if r.telling != c {
			r.close(emit)
			r.begin(c.part, emit)
		}
		r.tell(c, emit)
		c.part.Call.Arguments, c.done = string(c.args), true
		*r.open = c.part
		r.close(emit)
		r.telling = nil
	}
	r.close(emit)
	if len(r.late) > 0 {
		r.begin(neutral.Part{}, emit)
		r.text = append(r.text, r.late...)
		r.send(emit, neutral.Event{Kind: neutral.Delta, Index: r.openAt, Text: string(r.late)})
		r.close(emit)
	}
	stop, word := readStop(r.finish, len(r.calls) > 0)
	r.send(emit, neutral.Event{Kind: neutral.Finished, Stop: stop, StopText: word, Usage: r.usage})
}
