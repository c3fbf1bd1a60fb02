// Package loss owns what becomes of a field that has no counterpart in another dialect (TR-9): dropped and noted, or refused by
// name. The classes are a table, so that a change of mind is a change of data.
package loss

import (
	"strings"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

type class uint8

const (
	harmless class = iota // dropped and counted; also what the table does not name
	meaning               // the answer would be another one: refused unless a writer emulates it
	hosted                // the provider's own machinery: refused
	silent                // says what is so anyway
)

// table is by the name of a top-level member. A row with a dialect holds only towards that one.
var table = map[string]class{
	"n": meaning, "prediction": meaning, "audio": meaning, "modalities": meaning, "logit_bias": meaning, "candidateCount": meaning,
	"web_search_options": hosted, "previous_response_id": hosted, "conversation": hosted, "background": hosted, "mcp_servers": hosted,
	"container": hosted, "prompt": hosted, "cachedContent": hosted,
	"max_tokens": silent, "parallel_tool_calls": silent, "stream_options": silent, "stream": silent,
}

// trivial are values that ask for nothing, by member.
var trivial = map[string][]string{
	"n": {"1"}, "candidateCount": {"1"}, "background": {"false"}, "modalities": {`["text"]`}, "logit_bias": {"{}"}, "store": {"false"},
	"mcp_servers": {"[]"}, "logprobs": {"false"}, "truncation": {`"disabled"`},
}

// Fields says what becomes of the members of r that the neutral form has no word for, on the way to another dialect: notes for
// those that are dropped, a *neutral.Fault for those that may not be (with strict: for any).
func Fields(r *neutral.Request, to wire.Dialect, strict bool) ([]neutral.Note, error) {
	if r.From == to {
		return nil, nil
	}
	var notes []neutral.Note
	for _, f := range r.Extra {
		name, _, nested := strings.Cut(f.Path, ".")
		raw := strings.Join(strings.Fields(string(f.Raw)), "")
		if isTrivial(name, raw) {
			continue
		}
		kind := table[name]
		switch {
		case kind == silent:
			continue
		case kind == hosted && !nested:
			return notes, neutral.Faultf(f.Path, "is something that only the provider's own API has; leave it out, or ask for a model that is served in that dialect")
		case kind == meaning && !nested:
			return notes, neutral.Faultf(f.Path, "has no counterpart in the dialect of this model; leave it out, or ask for another model")
		case strict:
			return notes, neutral.Faultf(f.Path, "has no counterpart in the dialect of this model, and x-weir-strict asks for every field to be kept")
		}
		notes = append(notes, neutral.Note{Field: f.Path, What: "dropped"})
	}
	return notes, nil
}

func isTrivial(name, raw string) bool {
	for _, v := range trivial[name] {
		if v == raw {
			return true
		}
	}
	return false
}

// Hosted says what becomes of tools that the provider runs itself, towards another dialect. One that the model may use or not is
// dropped and noted, since agents offer such tools with every request; a request that has no other tool, or chooses it, is refused by
// name, and so is every one with strict.
func Hosted(r *neutral.Request, to wire.Dialect, strict bool) ([]neutral.Note, error) {
	if r.From == to {
		return nil, nil
	}
	others := 0
	for i := range r.Tools {
		if r.Tools[i].Hosted == "" {
			others++
		}
	}
	var notes []neutral.Note
	for i := range r.Tools {
		t := &r.Tools[i]
		if t.Hosted == "" {
			continue
		}
		chosen := r.Choice.Mode == neutral.ChoiceNamed && (r.Choice.Names[0] == t.Name || r.Choice.Names[0] == t.Hosted)
		if strict || others == 0 || chosen {
			return notes, neutral.Faultf(t.Path, "the tool %q is run by the provider itself and has no counterpart in the dialect of this model; leave it out, or ask for another model", t.Hosted)
		}
		notes = append(notes, neutral.Note{Field: t.Path, What: "dropped: the tool " + t.Hosted + " is the provider's own"})
	}
	return notes, nil
}
