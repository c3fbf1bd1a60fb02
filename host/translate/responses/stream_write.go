package responses

import (
	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// Writer writes the events of a Responses stream (INF-21). It keeps the finished items, since the last event holds them all. Not
// for concurrent use.
type Writer struct {
	told  neutral.Told
	begun bool
	ended bool
	seq   int64
	index int // of the open item, or of the next one
	open  bool
	id    string
	part  neutral.Part // the open one, as it began
	shown bool         // of a thought: its summary part is open
	items jsonw.Writer
	said  int64
}

// NewWriter returns a writer for one stream.
func NewWriter(t neutral.Told) *Writer { return &Writer{told: t} }

// Write appends the events of one neutral event.
func (w *Writer) Write(dst []byte, e *neutral.Event) []byte {
	switch e.Kind {
	case neutral.Begin:
		return w.begin(dst)
	case neutral.Open:
		return w.start(w.begin(dst), e)
	case neutral.Delta:
		return w.delta(dst, e)
	case neutral.Close:
		return w.stop(dst, e)
	case neutral.Finished:
		return w.finish(w.begin(dst), e)
	case neutral.Beat:
		return append(dst, ": keep-alive\n\n"...) // INF-24
	case neutral.Sign, neutral.Counted, neutral.Failed, neutral.Foreign:
	}
	return dst
}

// event begins an event; its number follows the last one's.
func (w *Writer) event(dst []byte, kind string) jsonw.Writer {
	j := jsonw.Writer{B: append(append(append(dst, "event: "...), kind...), "\ndata: "...)}
	j.Open().Key("type").String(kind).Key("sequence_number").Int(w.seq)
	w.seq++
	return j
}

func end(j *jsonw.Writer) []byte { return append(j.Close().B, "\n\n"...) }

// place writes where in the answer an event belongs.
func (w *Writer) place(j *jsonw.Writer) *jsonw.Writer {
	return j.Key("item_id").String(w.id).Key("output_index").Int(int64(w.index))
}

func (w *Writer) begin(dst []byte) []byte {
	if w.begun {
		return dst
	}
	w.begun = true
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		j := w.event(dst, kind)
		j.Key("response")
		(&response{status: "in_progress"}).write(&j, &w.told)
		dst = end(&j)
	}
	return dst
}

func (w *Writer) start(dst []byte, e *neutral.Event) []byte {
	if !written(&e.Part) {
		return dst
	}
	w.open, w.shown, w.part = true, false, e.Part
	w.id = idOf(&w.told, &e.Part, w.index)
	j := w.event(dst, "response.output_item.added")
	j.Key("output_index").Int(int64(w.index)).Key("item").Open().Key("id").String(w.id)
	switch e.Part.Kind {
	case neutral.Call:
		kind, text := "function_call", "arguments"
		if e.Part.Call.Custom {
			kind, text = "custom_tool_call", "input"
		}
		j.Key("type").String(kind).Key("status").String("in_progress").Key(text).String("").
			Key("call_id").String(e.Part.Call.ID).Key("name").String(e.Part.Call.Name).Close()
		return end(&j)
	case neutral.Thought:
		j.Key("type").String("reasoning").Key("summary").List().End().Key("status").String("in_progress").Close()
		return end(&j)
	default:
		j.Key("type").String("message").Key("status").String("in_progress").Key("role").String("assistant").Key("content").List().End().Close()
		dst = end(&j)
		j = w.event(dst, "response.content_part.added")
		w.place(&j).Key("content_index").Int(0).Key("part")
		content(&j, &neutral.Part{Kind: e.Part.Kind})
		return end(&j)
	}
}

func (w *Writer) delta(dst []byte, e *neutral.Event) []byte {
	if !w.open || e.Text == "" {
		return dst
	}
	w.said += int64(len(e.Text))
	kind := "response.output_text.delta"
	switch e.Part.Kind {
	case neutral.Call:
		kind = "response.function_call_arguments.delta"
		if w.part.Call.Custom {
			kind = "response.custom_tool_call_input.delta"
		}
	case neutral.Refusal:
		kind = "response.refusal.delta"
	case neutral.Thought:
		dst = w.summary(dst)
		kind = "response.reasoning_summary_text.delta"
	default:
	}
	j := w.event(dst, kind)
	w.place(&j)
	switch e.Part.Kind {
	case neutral.Call:
	case neutral.Thought:
		j.Key("summary_index").Int(0)
	default:
		j.Key("content_index").Int(0)
	}
	j.Key("delta").String(e.Text)
	if e.Part.Kind == neutral.Text {
		j.Key("logprobs").List().End()
	}
	return end(&j)
}

// summary opens the summary of a thought with its first text.
func (w *Writer) summary(dst []byte) []byte {
	if w.shown {
		return dst
	}
	w.shown = true
	j := w.event(dst, "response.reasoning_summary_part.added")
	w.place(&j).Key("summary_index").Int(0).Key("part").Open().Key("type").String("summary_text").Key("text").String("").Close()
	return end(&j)
}

func (w *Writer) stop(dst []byte, e *neutral.Event) []byte {
	if !w.open {
		return dst
	}
	w.open = false
	p := &e.Part
	switch p.Kind {
	case neutral.Call:
		dst = w.callDone(dst, p)
	case neutral.Thought:
		dst = w.thoughtDone(dst, p)
	default:
		dst = w.messageDone(dst, p)
	}
	j := w.event(dst, "response.output_item.done")
	j.Key("output_index").Int(int64(w.index)).Key("item")
	from := len(j.B)
	item(&j, w.id, p)
	if len(w.items.B) > 0 {
		w.items.B = append(w.items.B, ',')
	}
	w.items.B = append(w.items.B, j.B[from:]...)
	w.index++
	return end(&j)
}

func (w *Writer) callDone(dst []byte, p *neutral.Part) []byte {
	if p.Call.Custom {
		j := w.event(dst, "response.custom_tool_call_input.done")
		w.place(&j).Key("input").String(p.Call.Arguments)
		return end(&j)
	}
	args := p.Call.Arguments
	if args == "" {
		args = "{}"
	}
	j := w.event(dst, "response.function_call_arguments.done")
	w.place(&j).Key("name").String(p.Call.Name).Key("arguments").String(args)
	return end(&j)
}

func (w *Writer) thoughtDone(dst []byte, p *neutral.Part) []byte {
	if !w.shown {
		return dst
	}
	j := w.event(dst, "response.reasoning_summary_text.done")
	w.place(&j).Key("summary_index").Int(0).Key("text").String(p.Text)
	j = w.event(end(&j), "response.reasoning_summary_part.done")
	w.place(&j).Key("summary_index").Int(0).Key("part").Open().Key("type").String("summary_text").Key("text").String(p.Text).Close()
	return end(&j)
}

func (w *Writer) messageDone(dst []byte, p *neutral.Part) []byte {
	kind, text := "response.output_text.done", "text"
	if p.Kind == neutral.Refusal {
		kind, text = "response.refusal.done", "refusal"
	}
	j := w.event(dst, kind)
	w.place(&j).Key("content_index").Int(0).Key(text).String(p.Text)
	if p.Kind == neutral.Text {
		j.Key("logprobs").List().End()
	}
	j = w.event(end(&j), "response.content_part.done")
	w.place(&j).Key("content_index").Int(0).Key("part")
	content(&j, p)
	return end(&j)
}

func (w *Writer) finish(dst []byte, e *neutral.Event) []byte {
	if w.ended {
		return dst
	}
	w.ended = true
	usage := stated(e.Usage, w.told.Prompt, w.said)
	whole := response{items: w.items.B, usage: &usage}
	whole.status, whole.reason = status(e.Stop)
	j := w.event(dst, "response."+whole.status)
	j.Key("response")
	whole.write(&j, &w.told)
	return end(&j)
}
