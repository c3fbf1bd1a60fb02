package chat

import (
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
)

// forced says whether structured output has to be had from one forced tool (TR-22).
func (w *requestWriter) forced() bool {
	return w.r.Format.Kind == neutral.FormatSchema && w.t.NoSchema && !w.own
}

// strict is whether a schema may be followed to the letter, as was asked for: one that breaks the rules for that would be refused
// (TR-12).
func (w *requestWriter) strict(asked *bool, schema []byte) bool {
	return *asked && (w.own || repair.Strict(schema))
}

func (w *requestWriter) tools() {
	r := w.r
	if len(r.Tools) > 0 || w.forced() {
		w.Key("tools").List()
		for i := range r.Tools {
			w.tool(&r.Tools[i])
		}
		if w.forced() {
			w.Open().Key("type").String("function").Key("function").Open().Key("name").String(repair.OutputTool).
				Key("description").String("Give the answer by calling this tool once.").Key("parameters").Raw(r.Format.Schema).Close().Close()
		}
		w.End()
	}
	if w.forced() {
		w.Key("tool_choice").Open().Key("type").String("function").Key("function").Open().Key("name").String(repair.OutputTool).Close().Close()
		return
	}
	switch r.Choice.Mode {
	case neutral.ChoiceAuto:
		w.Key("tool_choice").String("auto")
	case neutral.ChoiceNone:
		w.Key("tool_choice").String("none")
	case neutral.ChoiceAny:
		w.Key("tool_choice").String("required")
	case neutral.ChoiceNamed:
		kind := "function"
		for i := range r.Tools {
			if r.Tools[i].Name == r.Choice.Names[0] && r.Tools[i].Custom {
				kind = "custom"
			}
		}
		w.Key("tool_choice").Open().Key("type").String(kind).Key(kind).Open().Key("name").String(w.name(r.Choice.Names[0])).Close().Close()
	case neutral.ChoiceUnset:
	}
	if r.ParallelOff {
		w.Key("parallel_tool_calls").Bool(false)
	}
}

// noSchema is what an absent schema becomes (TR-12).
const noSchema = `{"type":"object","properties":{}}`

func (w *requestWriter) tool(t *neutral.Tool) {
	if t.Hosted != "" {
		if w.own {
			w.Raw(t.Raw)
		}
		return
	}
	kind := "function"
	if t.Custom {
		kind = "custom"
	}
	w.Open().Key("type").String(kind).Key(kind).Open().Key("name").String(w.name(t.Name))
	if t.Description != "" {
		w.Key("description").String(t.Description)
	}
	switch {
	case t.Custom && t.Format != nil:
		w.Key("format").Raw(t.Format)
	case t.Custom:
	case t.Schema != nil:
		w.Key("parameters").Raw(t.Schema)
	case !w.own:
		w.Key("parameters").Raw([]byte(noSchema))
	}
	if t.Strict != nil && !t.Custom {
		w.Key("strict").Bool(w.strict(t.Strict, t.Schema))
	}
	w.theirs(t.Extra)
	w.Close().Close()
	if t.CacheMark != nil {
		w.note(t.Path+".cache_control", "dropped")
	}
}

func (w *requestWriter) sampling() {
	r := w.r
	if r.MaxOutput != nil {
		name := "max_completion_tokens"
		if w.own && r.LimitName != "" {
			name = r.LimitName
		}
		w.Key(name).Int(*r.MaxOutput)
	}
	w.number("temperature", r.Temperature)
	w.number("top_p", r.TopP)
	if w.own {
		w.number("top_k", r.TopK)
	} else if r.TopK != "" {
		w.note("top_k", "dropped") // TR-20
	}
	w.number("seed", r.Seed)
	w.number("frequency_penalty", r.Frequency)
	w.number("presence_penalty", r.Presence)
	w.stop()
	if r.CacheKey != "" {
		w.Key("prompt_cache_key").String(r.CacheKey)
	}
	if r.User != "" {
		w.Key("user").String(r.User)
	}
}

func (w *requestWriter) number(name string, n neutral.Number) {
	if n != "" {
		w.Key(name).Raw([]byte(n))
	}
}

// maxStops is how many stop sequences chat takes (TR-20).
const maxStops = 4

func (w *requestWriter) stop() {
	stops := w.r.Stop
	if len(stops) == 0 {
		return
	}
	w.Key("stop")
	if w.r.StopPlain && w.own {
		w.String(stops[0])
		return
	}
	if len(stops) > maxStops && !w.own {
		stops = stops[:maxStops]
		w.note("stop", "cut")
	}
	w.List()
	for _, s := range stops {
		w.String(s)
	}
	w.End()
}

// thinking writes the effort (TR-17).
func (w *requestWriter) thinking() {
	r := w.r.Reasoning
	if w.own {
		if r.Effort != "" {
			w.Key("reasoning_effort").String(r.Effort)
		}
		return
	}
	effort := r.Level()
	switch {
	case effort == "":
	case !w.t.Thinks:
		w.note("reasoning", "dropped")
	default:
		w.Key("reasoning_effort").String(effort)
	}
}

func (w *requestWriter) format() {
	f := w.r.Format
	if w.forced() {
		return
	}
	switch f.Kind {
	case neutral.FormatJSON:
		w.Key("response_format").Open().Key("type").String("json_object").Close()
	case neutral.FormatSchema:
		name := f.Name
		if name == "" {
			name = "answer"
		}
		w.Key("response_format").Open().Key("type").String("json_schema").Key("json_schema").Open().Key("name").String(name).Key("schema").Raw(f.Schema)
		if f.Strict != nil {
			w.Key("strict").Bool(w.strict(f.Strict, f.Schema))
		}
		if w.own {
			w.extras(w.r.Extra, "response_format.json_schema")
		}
		w.Close().Close()
	case neutral.FormatText:
	}
}
