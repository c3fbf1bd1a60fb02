package gemini

import "github.com/weirgate/weir/host/translate/neutral"

const (
	noSchema     = `{"type":"object","properties":{}}`                                               // TR-12
	customSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}` // a free-form tool (TR-2)
)

func (w *requestWriter) tools() {
	declared := 0
	for i := range w.r.Tools {
		if w.r.Tools[i].Hosted == "" {
			declared++
		}
	}
	if declared == 0 && (len(w.r.Tools) == 0 || !w.own) {
		w.choice()
		return
	}
	w.Key("tools").List()
	if declared > 0 {
		w.Open().Key("functionDeclarations").List()
		for i := range w.r.Tools {
			if t := &w.r.Tools[i]; t.Hosted == "" {
				w.declaration(t)
			}
		}
		w.End().Close()
	}
	for i := range w.r.Tools {
		if t := &w.r.Tools[i]; t.Hosted != "" && w.own {
			w.Raw(t.Raw)
		}
	}
	w.End()
	w.choice()
}

func (w *requestWriter) declaration(t *neutral.Tool) {
	w.Open().Key("name").String(w.name(t.Name))
	if t.Description != "" {
		w.Key("description").String(t.Description)
	}
	schema := t.Schema
	if t.Custom {
		schema = []byte(customSchema)
	}
	switch {
	case w.own && t.SchemaName == "parameters":
		w.Key("parameters").Raw(t.Raw)
	case w.own && t.Schema == nil:
	case schema == nil:
		w.Key(w.schemaName()).Raw([]byte(noSchema))
	case w.t.Reduced && !w.own:
		w.Key("parameters").Raw(reduced(schema))
	default:
		w.Key("parametersJsonSchema").Raw(schema)
	}
	w.theirs(t.Extra)
	w.Close()
	if t.CacheMark != nil {
		w.note(t.Path+".cache_control", "dropped")
	}
}

func (w *requestWriter) schemaName() string {
	if w.t.Reduced {
		return "parameters"
	}
	return "parametersJsonSchema"
}

func (w *requestWriter) choice() {
	c := w.r.Choice
	mode := ""
	switch c.Mode {
	case neutral.ChoiceAuto:
		mode = "AUTO"
	case neutral.ChoiceNone:
		mode = "NONE"
	case neutral.ChoiceAny, neutral.ChoiceNamed:
		mode = "ANY"
	case neutral.ChoiceUnset:
	}
	if mode == "" && !w.has("toolConfig") || len(w.r.Tools) == 0 && !w.own {
		return
	}
	w.Key("toolConfig").Open()
	if mode != "" {
		w.Key("functionCallingConfig").Open()
		if !w.hasExtra("toolConfig.functionCallingConfig.mode") {
			w.Key("mode").String(mode)
		}
		if len(c.Names) > 0 {
			w.Key("allowedFunctionNames").List()
			for _, n := range c.Names {
				w.String(w.name(n))
			}
			w.End()
		}
		w.extras("toolConfig.functionCallingConfig")
		w.Close()
	}
	w.extras("toolConfig")
	w.Close()
}

func (w *requestWriter) hasExtra(path string) bool {
	for _, f := range w.r.Extra {
		if w.own && f.Path == path {
			return true
		}
	}
	return false
}

// maxStops is how many stop sequences gemini takes (TR-20).
const maxStops = 5

// generation writes generationConfig.
func (w *requestWriter) generation() {
	if w.hasExtra("generationConfig") { // it was empty
		return
	}
	at := len(w.B)
	w.Key("generationConfig").Open()
	from := len(w.B)
	w.sampling()
	w.format()
	w.thinking()
	w.extras("generationConfig")
	if len(w.B) == from {
		w.B = w.B[:at]
		return
	}
	w.Close()
}

func (w *requestWriter) sampling() {
	r := w.r
	for _, n := range []struct {
		name  string
		value neutral.Number
	}{
		{"temperature", r.Temperature},
		{"topP", r.TopP},
		{"topK", r.TopK},
		{"seed", r.Seed},
		{"presencePenalty", r.Presence},
		{"frequencyPenalty", r.Frequency},
	} {
		if n.value != "" {
			w.Key(n.name).Raw([]byte(n.value))
		}
	}
	if r.MaxOutput != nil {
		w.Key("maxOutputTokens").Int(*r.MaxOutput)
	}
	if stops := r.Stop; len(stops) > 0 {
		if len(stops) > maxStops && !w.own {
			stops = stops[:maxStops]
			w.note("stop", "cut")
		}
		w.Key("stopSequences").List()
		for _, s := range stops {
			w.String(s)
		}
		w.End()
	}
	if !w.own && r.CacheKey != "" {
		w.note("prompt_cache_key", "dropped")
	}
	if !w.own && r.User != "" {
		w.note("user", "dropped")
	}
}

func (w *requestWriter) format() {
	f := w.r.Format
	if f.Kind == neutral.FormatText {
		return
	}
	if !w.hasExtra("generationConfig.responseMimeType") {
		w.Key("responseMimeType").String("application/json")
	}
	switch {
	case f.Kind != neutral.FormatSchema:
	case w.own && f.Old != nil:
		w.Key("responseSchema").Raw(f.Old)
	case w.t.Reduced && !w.own:
		w.Key("responseSchema").Raw(reduced(f.Schema))
	default:
		w.Key("responseJsonSchema").Raw(f.Schema)
	}
}

// thinking writes the budget, or that the model chooses it (TR-17).
func (w *requestWriter) thinking() {
	r := w.r.Reasoning
	if w.own {
		if r.Show == nil && r.Budget == nil && r.Effort == "" && !w.has("generationConfig.thinkingConfig") {
			return
		}
		w.Key("thinkingConfig").Open()
		if r.Show != nil {
			w.Key("includeThoughts").Bool(*r.Show)
		}
		if r.Budget != nil {
			w.Key("thinkingBudget").Int(*r.Budget)
		}
		if r.Effort != "" {
			w.Key("thinkingLevel").String(r.Effort)
		}
		w.extras("generationConfig.thinkingConfig")
		w.Close()
		return
	}
	if r.Level() == "" {
		return
	}
	if !w.t.Thinks {
		w.note("reasoning", "dropped")
		return
	}
	budget, ok := r.Tokens(w.t.MaxOutput)
	if !ok {
		budget = -1
	}
	w.Key("thinkingConfig").Open().Key("thinkingBudget").Int(budget)
	if budget != 0 && (r.Show == nil || *r.Show) {
		w.Key("includeThoughts").Bool(true)
	}
	w.Close()
}
