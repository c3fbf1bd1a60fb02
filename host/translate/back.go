package translate

import (
	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
	"github.com/weirgate/weir/sdk/wire"
)

// back bends the events of an answer back to what the client knows: the names of its tools, its free-form tools, structured output
// that came as a call, signatures that must find their way home. Within a dialect it changes nothing but sealed names.
type back struct {
	way    *Way
	next   int     // index of the next part for the client
	mode   mode    // of the open part
	calls  int     // told to the client
	output bool    // structured output was told as text
	no     bool    // the model declined, and said so in a part of its own (TR-23)
	cut    *cutter // at stop sequences that the upstream does not know; nil: it does
	event  neutral.Event
}

// mode is what becomes of the open part.
type mode uint8

const (
	passed  mode = iota
	left         // left out
	spoken       // a call that is told as text (TR-22)
	custom       // a call of a free-form tool, told when it is whole (TR-2)
	wrapped      // a free-form call for a client whose dialect has none: its text becomes an object
)

func (w *Way) back() *back {
	b := &back{way: w}
	if w.to == wire.OpenAIResponses && w.from != w.to {
		b.cut = newCutter(w.request.Stop)
	}
	return b
}

// take bends one event and hands it on.
func (b *back) take(e *neutral.Event, emit func(*neutral.Event)) {
	if b.way.from == b.way.to {
		emit(e)
		return
	}
	if b.cut == nil {
		b.bent(e, emit)
		return
	}
	own := *e
	if !b.cut.take(&own, func(e *neutral.Event) { b.bent(e, emit) }) {
		b.bent(&own, emit)
	}
}

func (b *back) bent(e *neutral.Event, emit func(*neutral.Event)) {
	b.event = *e
	out := &b.event
	switch e.Kind {
	case neutral.Open:
		b.open(out, emit)
	case neutral.Delta:
		out.Index = b.next
		switch b.mode {
		case left, custom, wrapped:
		case spoken:
			out.Part = neutral.Part{}
			emit(out)
		case passed:
			emit(out)
		}
	case neutral.Sign:
		if out.Index = b.next; b.mode == passed {
			out.Part.Signature = b.sealed(&e.Part)
			emit(out)
		}
	case neutral.Close:
		b.close(out, emit)
	case neutral.Finished:
		switch {
		case out.Stop == neutral.StopToolCall && b.calls == 0 && b.output:
			out.Stop = neutral.StopEnd
		case out.Stop == neutral.StopEnd && b.no && (b.way.from == wire.AnthropicMessages || b.way.from == wire.GeminiGenerate):
			out.Stop = neutral.StopFiltered // their clients have no part that says it
		}
		emit(out)
	default:
		emit(out)
	}
}

func (b *back) open(out *neutral.Event, emit func(*neutral.Event)) {
	out.Index, b.mode = b.next, passed
	b.no = b.no || out.Part.Kind == neutral.Refusal
	if out.Part.Kind == neutral.Call {
		free := out.Part.Call.Custom
		b.bend(&out.Part)
		switch {
		case out.Part.Call.Name == repair.OutputTool && b.way.request.Format.Kind == neutral.FormatSchema && b.way.target.NoSchema:
			b.mode, b.output = spoken, true
			out.Part = neutral.Part{}
		case b.calls > 0 && b.way.request.ParallelOff && b.way.to == wire.GeminiGenerate:
			b.mode = left // the dialect cannot be told to call one tool at a time, so the others are left out (TR-9)
		case free && !out.Part.Call.Custom:
			b.mode = wrapped
			b.calls++
		case !free && out.Part.Call.Custom:
			b.mode = custom
			b.calls++
		default:
			b.calls++
		}
	}
	if b.mode != left {
		emit(out)
	}
}

func (b *back) close(out *neutral.Event, emit func(*neutral.Event)) {
	out.Index = b.next
	switch b.mode {
	case left:
		return
	case spoken:
		out.Part = neutral.Part{Text: out.Part.Call.Arguments}
	case custom:
		text := out.Part.Call.Arguments
		if in := gjson.Get(text, "input"); in.Type == gjson.String {
			text = in.Str
		}
		b.whole(out, text, emit)
	case wrapped:
		var w jsonw.Writer
		w.Open().Key("input").String(out.Part.Call.Arguments).Close()
		b.whole(out, string(w.B), emit)
	case passed:
		if out.Part.Kind == neutral.Call {
			b.bend(&out.Part)
		}
	}
	if out.Part.Signature.Value != "" || out.Part.Kind == neutral.Thought {
		out.Part.Signature = b.sealed(&out.Part)
		if b.way.memory != nil && out.Part.Kind == neutral.Call && b.way.from != wire.GeminiGenerate {
			b.way.memory.Keep(out.Part.Call.ID, out.Part.Signature.Value)
		}
	}
	emit(out)
	b.next++
	b.mode = passed
}

// whole tells the arguments of a call at once, before its end.
func (b *back) whole(out *neutral.Event, args string, emit func(*neutral.Event)) {
	b.bend(&out.Part)
	out.Part.Call.Arguments = args
	end := *out
	out.Kind, out.Text = neutral.Delta, args
	out.Part = neutral.Part{Kind: neutral.Call, Call: neutral.ToolCall{Custom: end.Part.Call.Custom}}
	emit(out)
	*out = end
}

// bend gives a call the name that the client knows, and an id that its dialect allows (TR-7, TR-13).
func (b *back) bend(p *neutral.Part) {
	tools := b.way.request.Tools
	p.Call.Name = repair.Back(tools, alphabet(b.way.to), p.Call.Name)
	p.Call.ID = ids(b.way.from).Map(p.Call.ID)
	p.Call.Custom = false
	for i := range tools {
		if tools[i].Name == p.Call.Name {
			p.Call.Custom = tools[i].Custom
		}
	}
}

// sealed names where a signature belongs, so that it is known when the client sends it back (TR-18). A thought without one is sealed
// too where the client's dialect has a place for it: it belongs nowhere else.
func (b *back) sealed(p *neutral.Part) neutral.Signature {
	return neutral.Signature{Value: repair.Seal(p.Signature, b.way.target.Family), Redacted: p.Signature.Redacted && b.way.from == wire.AnthropicMessages}
}

func alphabet(d wire.Dialect) repair.Alphabet {
	switch d {
	case wire.AnthropicMessages:
		return repair.ToolNameMessages
	case wire.GeminiGenerate:
		return repair.ToolNameGemini
	default:
		return repair.ToolName
	}
}

func ids(d wire.Dialect) repair.Alphabet {
	switch d {
	case wire.AnthropicMessages:
		return repair.CallID
	default:
		return repair.CallIDOpenAI
	}
}
