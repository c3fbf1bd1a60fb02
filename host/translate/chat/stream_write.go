package chat

import (
	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// Writer writes the chunks of a chat completion stream (INF-21). Not for concurrent use.
type Writer struct {
	told  neutral.Told
	begun bool
	call  int64 // index of the next call
	said  int64 // bytes told, for an estimate
	ended bool
	empty bool // the open call has told no arguments yet
}

// NewWriter returns a writer for one stream.
func NewWriter(t neutral.Told) *Writer { return &Writer{told: t} }

// GoOn returns a writer for the rest of a stream that has begun.
func GoOn(t neutral.Told) *Writer { return &Writer{told: t, begun: true} }

// Write appends the chunks of one event.
func (w *Writer) Write(dst []byte, e *neutral.Event) []byte {
	switch e.Kind {
	case neutral.Begin:
		return w.begin(dst)
	case neutral.Open:
		return w.open(w.begin(dst), e)
	case neutral.Delta:
		return w.delta(w.begin(dst), e)
	case neutral.Close:
		if e.Part.Kind == neutral.Call && w.empty && !e.Part.Call.Custom {
			w.empty = false
			return w.arguments(dst, "{}", false) // TR-14
		}
	case neutral.Finished:
		return w.finish(w.begin(dst), e)
	case neutral.Beat:
		return append(dst, ": keep-alive\n\n"...) // INF-24
	case neutral.Sign, neutral.Counted, neutral.Failed, neutral.Foreign:
	}
	return dst
}

// chunk begins an event up to the place of its choices.
func (w *Writer) chunk(dst []byte) jsonw.Writer {
	j := jsonw.Writer{B: append(dst, "data: "...)}
	j.Open().Key("id").String(w.told.ID).Key("object").String("chat.completion.chunk").Key("created").Int(w.told.Created).Key("model").String(w.told.Model)
	return j
}

// choice begins an event up to the members of its delta.
func (w *Writer) choice(dst []byte) jsonw.Writer {
	j := w.chunk(dst)
	j.Key("choices").List().Open().Key("index").Int(0).Key("delta").Open()
	return j
}

// close ends what choice began.
func closed(j *jsonw.Writer, reason string) []byte {
	j.Close().Key("logprobs").Null().Key("finish_reason")
	if reason == "" {
		j.Null()
	} else {
		j.String(reason)
	}
	j.Close().End().Close()
	return append(j.B, "\n\n"...)
}

// begin sends the chunk with the role, once.
func (w *Writer) begin(dst []byte) []byte {
	if w.begun {
		return dst
	}
	w.begun = true
	j := w.choice(dst)
	j.Key("role").String("assistant").Key("content").String("")
	return closed(&j, "")
}

func (w *Writer) open(dst []byte, e *neutral.Event) []byte {
	if e.Part.Kind != neutral.Call {
		return dst
	}
	c := &e.Part.Call
	j := w.choice(dst)
	kind, text := "function", "arguments"
	if c.Custom {
		kind, text = "custom", "input"
	}
	j.Key("tool_calls").List().Open().Key("index").Int(w.call).Key("id").String(c.ID).Key("type").String(kind)
	j.Key(kind).Open().Key("name").String(c.Name).Key(text).String("").Close().Close().End()
	w.call++
	w.empty = true
	return closed(&j, "")
}

func (w *Writer) delta(dst []byte, e *neutral.Event) []byte {
	w.said += int64(len(e.Text))
	switch e.Part.Kind {
	case neutral.Call:
		w.empty = false
		return w.arguments(dst, e.Text, e.Part.Call.Custom)
	case neutral.Thought:
		j := w.choice(dst)
		j.Key("reasoning_content").String(e.Text)
		return closed(&j, "")
	case neutral.Refusal:
		j := w.choice(dst)
		j.Key("refusal").String(e.Text)
		return closed(&j, "")
	case neutral.Text:
		j := w.choice(dst)
		j.Key("content").String(e.Text)
		return closed(&j, "")
	default:
		return dst
	}
}

func (w *Writer) arguments(dst []byte, text string, custom bool) []byte {
	j := w.choice(dst)
	kind, name := "function", "arguments"
	if custom {
		kind, name = "custom", "input"
	}
	j.Key("tool_calls").List().Open().Key("index").Int(w.call - 1).Key(kind).Open().Key(name).String(text).Close().Close().End()
	return closed(&j, "")
}

// finish sends the reason, the usage where it was asked for, and the end mark.
func (w *Writer) finish(dst []byte, e *neutral.Event) []byte {
	if w.ended {
		return dst
	}
	w.ended = true
	j := w.choice(dst)
	dst = closed(&j, stopWord(e.Stop))
	if w.told.Usage {
		j = w.chunk(dst)
		j.Key("choices").List().End().Key("usage")
		writeUsage(&j, stated(e.Usage, w.told.Prompt, w.said))
		j.Close()
		dst = append(j.B, "\n\n"...)
	}
	return append(dst, "data: [DONE]\n\n"...)
}
