package messages

import (
	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// Writer writes the events of a messages stream (INF-21). Not for concurrent use.
type Writer struct {
	told  neutral.Told
	begun bool
	ended bool
	block int64 // index of the open block, or of the next one
	open  bool
	said  int64
}

// NewWriter returns a writer for one stream.
func NewWriter(t neutral.Told) *Writer { return &Writer{told: t} }

// GoOn returns a writer for the rest of a stream that has begun: block is the index of its open block, or else of the next one.
func GoOn(t neutral.Told, block int64, open bool) *Writer {
	return &Writer{told: t, begun: true, block: block, open: open}
}

// Write appends the events of one neutral event.
func (w *Writer) Write(dst []byte, e *neutral.Event) []byte {
	switch e.Kind {
	case neutral.Begin:
		return w.begin(dst, e.Usage)
	case neutral.Open:
		return w.start(w.begin(dst, neutral.NoUsage()), e)
	case neutral.Delta:
		return w.delta(dst, e)
	case neutral.Close:
		return w.stop(dst, e)
	case neutral.Finished:
		return w.finish(w.begin(dst, neutral.NoUsage()), e)
	case neutral.Beat:
		return append(dst, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...) // INF-24
	case neutral.Sign, neutral.Counted, neutral.Failed, neutral.Foreign: // a signature comes with Close, whole
	}
	return dst
}

func event(dst []byte, kind string) jsonw.Writer {
	j := jsonw.Writer{B: append(append(append(dst, "event: "...), kind...), "\ndata: "...)}
	j.Open().Key("type").String(kind)
	return j
}

func end(j *jsonw.Writer) []byte { return append(j.Close().B, "\n\n"...) }

// begin sends message_start, once, with the usage that clients cannot do without (INF-22).
func (w *Writer) begin(dst []byte, u neutral.Usage) []byte {
	if w.begun {
		return dst
	}
	w.begun = true
	j := event(dst, "message_start")
	j.Key("message").Open().Key("id").String(w.told.ID).Key("type").String("message").Key("role").String("assistant").
		Key("model").String(w.told.Model).Key("content").List().End().Key("stop_reason").Null().Key("stop_sequence").Null().Key("usage")
	writeUsage(&j, stated(u, w.told.Prompt, 4))
	j.Close()
	return end(&j)
}

func (w *Writer) start(dst []byte, e *neutral.Event) []byte {
	if !written(e.Part.Kind) {
		return dst
	}
	w.open = true
	if e.Part.Signature.Redacted {
		return dst // it begins with its data, which comes as the signature
	}
	j := event(dst, "content_block_start")
	j.Key("index").Int(w.block).Key("content_block").Open()
	switch e.Part.Kind {
	case neutral.Thought:
		j.Key("type").String("thinking").Key("thinking").String("").Key("signature").String("")
	case neutral.Call:
		j.Key("type").String("tool_use").Key("id").String(e.Part.Call.ID).Key("name").String(e.Part.Call.Name).Key("input").Open().Close()
	default:
		j.Key("type").String("text").Key("text").String("")
	}
	j.Close()
	return end(&j)
}

func written(k neutral.Kind) bool {
	switch k {
	case neutral.Text, neutral.Refusal, neutral.Thought, neutral.Call:
		return true
	default:
		return false
	}
}

func (w *Writer) delta(dst []byte, e *neutral.Event) []byte {
	if !w.open || e.Text == "" {
		return dst
	}
	w.said += int64(len(e.Text))
	j := event(dst, "content_block_delta")
	j.Key("index").Int(w.block).Key("delta").Open()
	switch e.Part.Kind {
	case neutral.Thought:
		j.Key("type").String("thinking_delta").Key("thinking").String(e.Text)
	case neutral.Call:
		j.Key("type").String("input_json_delta").Key("partial_json").String(e.Text)
	default:
		j.Key("type").String("text_delta").Key("text").String(e.Text)
	}
	j.Close()
	return end(&j)
}

// sign sends the signature of a thought; one that is redacted is all signature.
func (w *Writer) sign(dst []byte, e *neutral.Event) []byte {
	if e.Part.Signature.Redacted {
		j := event(dst, "content_block_start")
		j.Key("index").Int(w.block).Key("content_block").Open().Key("type").String("redacted_thinking").Key("data").String(e.Part.Signature.Value).Close()
		return end(&j)
	}
	j := event(dst, "content_block_delta")
	j.Key("index").Int(w.block).Key("delta").Open().Key("type").String("signature_delta").Key("signature").String(e.Part.Signature.Value).Close()
	return end(&j)
}

// stop ends the open block. A thought ends with its signature, also one that has none (INF-21).
func (w *Writer) stop(dst []byte, e *neutral.Event) []byte {
	if !w.open {
		return dst
	}
	if e.Part.Kind == neutral.Thought {
		dst = w.sign(dst, e)
	}
	w.open = false
	j := event(dst, "content_block_stop")
	j.Key("index").Int(w.block)
	w.block++
	return end(&j)
}

func (w *Writer) finish(dst []byte, e *neutral.Event) []byte {
	if w.ended {
		return dst
	}
	w.ended = true
	j := event(dst, "message_delta")
	j.Key("delta").Open().Key("stop_reason").String(stopWord(e.Stop)).Key("stop_sequence")
	writeSequence(&j, e.Stop, e.StopText)
	j.Close().Key("usage")
	writeUsage(&j, stated(e.Usage, w.told.Prompt, w.said))
	j = event(end(&j), "message_stop")
	return end(&j)
}
