package messages

import (
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
)

const (
	noSchema     = `{"type":"object","properties":{}}`                                               // TR-12
	customSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}` // a free-form tool (TR-2)
)

// forced says whether structured output has to be had from one forced tool (TR-22).
func (w *requestWriter) forced() bool {
	return w.r.Format.Kind == neutral.FormatSchema && w.t.NoSchema && !w.own
}

func (w *requestWriter) tools() {
	r := w.r
	if len(r.Tools) > 0 || w.forced() {
		w.Key("tools").List()
		for i := range r.Tools {
			w.tool(&r.Tools[i], i == len(r.Tools)-1)
		}
		if w.forced() {
			w.Open().Key("name").String(repair.OutputTool).Key("description").String("Give the answer by calling this tool once.").
				Key("input_schema").Raw(r.Format.Schema).Close()
		}
		w.End()
	}
	w.choice()
}

func (w *requestWriter) tool(t *neutral.Tool, last bool) {
	if t.Hosted != "" {
		if w.own {
			w.Raw(t.Raw)
		}
		return
	}
	name := t.Name
	if !w.own {
		name = repair.ToolNameMessages.Map(name)
	}
	w.Open().Key("name").String(name)
	if t.Description != "" {
		w.Key("description").String(t.Description)
	}
	switch {
	case t.Custom:
		w.Key("input_schema").Raw([]byte(customSchema))
	case t.Schema != nil:
		w.Key("input_schema").Raw(t.Schema)
	case !w.own:
		w.Key("input_schema").Raw([]byte(noSchema))
	}
	if t.Strict != nil && w.own {
		w.Key("strict").Bool(*t.Strict)
	}
	switch {
	case w.own && t.CacheMark != nil:
		w.Key("cache_control").Raw(t.CacheMark)
	case !w.own && last && w.t.Marks:
		w.mark()
	}
	w.theirs(t.Extra)
	w.Close()
}

// choice writes tool_choice. With thinking on, no call can be forced (TR-17).
func (w *requestWriter) choice() {
	c := w.r.Choice
	if w.forced() && w.budget == 0 {
		c = neutral.Choice{Mode: neutral.ChoiceNamed, Names: []string{repair.OutputTool}}
	}
	if w.budget > 0 && (c.Mode == neutral.ChoiceAny || c.Mode == neutral.ChoiceNamed) {
		w.note("tool_choice", "dropped beside thinking")
		c = neutral.Choice{Mode: neutral.ChoiceAuto}
	}
	kind := ""
	switch c.Mode {
	case neutral.ChoiceAuto:
		kind = "auto"
	case neutral.ChoiceNone:
		kind = "none"
	case neutral.ChoiceAny:
		kind = "any"
	case neutral.ChoiceNamed:
		kind = "tool"
	case neutral.ChoiceUnset:
		if w.r.ParallelOff && len(w.r.Tools) > 0 {
			kind = "auto"
		}
	}
	if kind == "" || len(w.r.Tools) == 0 && !w.forced() && !w.own {
		return
	}
	w.Key("tool_choice").Open().Key("type").String(kind)
	if kind == "tool" {
		name := c.Names[0]
		if !w.own {
			name = repair.ToolNameMessages.Map(name)
		}
		w.Key("name").String(name)
	}
	if w.r.ParallelOff && (kind != "none" || w.own) {
		w.Key("disable_parallel_tool_use").Bool(true)
	}
	w.extras("tool_choice")
	w.Close()
}

// sampling writes how the answer is to be made (TR-17, TR-20).
func (w *requestWriter) sampling() {
	r := w.r
	if r.Stream {
		w.Key("stream").Bool(true)
	}
	switch {
	case r.Temperature == "":
	case w.budget > 0:
		w.note("temperature", "dropped beside thinking")
	case !w.own && above(r.Temperature, 1):
		w.note("temperature", "capped at 1")
		w.Key("temperature").Int(1)
	default:
		w.Key("temperature").Raw([]byte(r.Temperature))
	}
	if r.TopP != "" {
		w.Key("top_p").Raw([]byte(r.TopP))
	}
	if r.TopK != "" && w.budget > 0 {
		w.note("top_k", "dropped beside thinking")
	} else if r.TopK != "" {
		w.Key("top_k").Raw([]byte(r.TopK))
	}
	for _, n := range []struct {
		name  string
		value neutral.Number
	}{{"seed", r.Seed}, {"frequency_penalty", r.Frequency}, {"presence_penalty", r.Presence}} {
		if n.value != "" {
			w.note(n.name, "dropped")
		}
	}
	if r.CacheKey != "" {
		w.note("prompt_cache_key", "dropped")
	}
	if len(r.Stop) > 0 {
		w.Key("stop_sequences").List()
		for _, s := range r.Stop {
			w.String(s)
		}
		w.End()
	}
}

// thinking writes thinking and output_config.
func (w *requestWriter) thinking() {
	r := w.r
	if w.own {
		w.ownThinking()
	} else if w.budget > 0 {
		w.Key("thinking").Open().Key("type").String("enabled").Key("budget_tokens").Int(w.budget).Close()
	}
	schema := r.Format.Kind == neutral.FormatSchema && !w.forced()
	if !schema && (!w.own || r.Reasoning.Effort == "" && !w.has("output_config")) {
		return
	}
	w.Key("output_config").Open()
	if w.own && r.Reasoning.Effort != "" {
		w.Key("effort").String(r.Reasoning.Effort)
	}
	if schema {
		w.Key("format").Open().Key("type").String("json_schema").Key("schema").Raw(r.Format.Schema).Close()
	}
	w.extras("output_config")
	w.Close()
}

func (w *requestWriter) ownThinking() {
	r := w.r.Reasoning
	kind := ""
	switch {
	case r.Off:
		kind = "disabled"
	case r.Adaptive:
		kind = "adaptive"
	case r.Budget != nil || r.Show != nil:
		kind = "enabled"
	}
	if kind == "" {
		return
	}
	w.Key("thinking").Open().Key("type").String(kind)
	if r.Budget != nil {
		w.Key("budget_tokens").Int(*r.Budget)
	}
	w.extras("thinking")
	w.Close()
}

func (w *requestWriter) metadata() {
	if w.r.User == "" && !w.has("metadata") {
		return
	}
	w.Key("metadata").Open()
	if w.r.User != "" {
		w.Key("user_id").String(w.r.User)
	}
	w.extras("metadata")
	w.Close()
}
