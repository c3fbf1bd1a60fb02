package responses

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
)

// itemID is an id of an item that is the same whenever seed is.
func itemID(prefix, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return prefix + "_" + hex.EncodeToString(sum[:12])
}

const noSchema = `{"type":"object","properties":{}}` // TR-12

func (w *requestWriter) tools() {
	r := w.r
	if len(r.Tools) > 0 {
		w.Key("tools").List()
		for i := range r.Tools {
			w.tool(&r.Tools[i])
		}
		w.End()
	}
	switch r.Choice.Mode {
	case neutral.ChoiceAuto:
		w.Key("tool_choice").String("auto")
	case neutral.ChoiceNone:
		w.Key("tool_choice").String("none")
	case neutral.ChoiceAny:
		w.Key("tool_choice").String("required")
	case neutral.ChoiceNamed:
		w.named(r.Choice.Names[0])
	case neutral.ChoiceUnset:
		w.ownChoice()
	}
	if r.ParallelOff {
		w.Key("parallel_tool_calls").Bool(false)
	}
}

func (w *requestWriter) named(name string) {
	if w.ownChoice() {
		return
	}
	kind := "function"
	for i := range w.r.Tools {
		if w.r.Tools[i].Name == name && w.r.Tools[i].Custom {
			kind = "custom"
		}
	}
	w.Key("tool_choice").Open().Key("type").String(kind).Key("name").String(w.name(name)).Close()
}

// ownChoice writes a choice that only this dialect knows.
func (w *requestWriter) ownChoice() bool {
	for _, f := range w.r.Extra {
		if w.own && f.Path == "tool_choice" {
			w.Key("tool_choice").Raw(f.Raw)
			return true
		}
	}
	return false
}

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
	w.Open().Key("type").String(kind).Key("name").String(w.name(t.Name))
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
	switch {
	case t.Custom:
	case t.Strict != nil:
		w.Key("strict").Bool(*t.Strict && (w.own || repair.Strict(t.Schema)))
	case !w.own:
		w.Key("strict").Bool(false) // the dialect's default is true, the others' is not
	}
	w.theirs(t.Extra)
	w.Close()
	if t.CacheMark != nil {
		w.note(t.Path+".cache_control", "dropped")
	}
}

func (w *requestWriter) sampling() {
	r := w.r
	if r.Stream {
		w.Key("stream").Bool(true)
	}
	if r.MaxOutput != nil {
		w.Key("max_output_tokens").Int(*r.MaxOutput)
	}
	if r.Temperature != "" {
		w.Key("temperature").Raw([]byte(r.Temperature))
	}
	if r.TopP != "" {
		w.Key("top_p").Raw([]byte(r.TopP))
	}
	for _, n := range []struct {
		name  string
		value neutral.Number
	}{{"top_k", r.TopK}, {"seed", r.Seed}, {"frequency_penalty", r.Frequency}, {"presence_penalty", r.Presence}} {
		if n.value != "" {
			w.note(n.name, "dropped")
		}
	}
	if len(r.Stop) > 0 && !w.own { // TR-9
		w.notes = append(w.notes, neutral.Note{Field: "stop", What: "watched for by the gateway"})
	}
	if r.CacheKey != "" {
		w.Key("prompt_cache_key").String(r.CacheKey)
	}
	if r.User != "" {
		w.Key("user").String(r.User)
	}
}

// reasoning writes the effort and asks for what a later turn needs to go on thinking (TR-17, TR-18).
func (w *requestWriter) reasoning() {
	r := w.r.Reasoning
	effort := r.Effort
	if !w.own {
		effort = r.Level()
		if effort != "" && !w.t.Thinks {
			w.note("reasoning", "dropped")
			return
		}
		if w.t.Thinks {
			w.Key("include").List().String("reasoning.encrypted_content").End()
		}
	}
	summary := r.Summary
	if summary == "" && !w.own && r.Show != nil && *r.Show {
		summary = "auto"
	}
	has := false
	for _, f := range w.r.Extra {
		has = has || w.own && len(f.Path) > 10 && f.Path[:10] == "reasoning."
	}
	if effort == "" && summary == "" && !has {
		return
	}
	w.Key("reasoning").Open()
	if effort != "" {
		w.Key("effort").String(effort)
	}
	if summary != "" {
		w.Key("summary").String(summary)
	}
	w.extras("reasoning")
	w.Close()
}

// text writes the form of the answer.
func (w *requestWriter) text() {
	f := w.r.Format
	has := false
	for _, x := range w.r.Extra {
		has = has || w.own && len(x.Path) > 5 && x.Path[:5] == "text."
	}
	if f.Kind == neutral.FormatText && !has {
		return
	}
	w.Key("text").Open()
	switch f.Kind {
	case neutral.FormatJSON:
		w.Key("format").Open().Key("type").String("json_object").Close()
	case neutral.FormatSchema:
		name := f.Name
		if name == "" {
			name = "answer"
		}
		w.Key("format").Open().Key("type").String("json_schema").Key("name").String(name).Key("schema").Raw(f.Schema)
		if f.Strict != nil {
			w.Key("strict").Bool(*f.Strict && (w.own || repair.Strict(f.Schema)))
		} else if !w.own {
			w.Key("strict").Bool(false)
		}
		w.extras("text.format")
		w.Close()
	case neutral.FormatText:
	}
	w.extras("text")
	w.Close()
}
