// Package repair owns what makes the turns, names and ids of one dialect acceptable in another one (TR-7, TR-10, TR-11, TR-13). Every
// step is a pure function of the request, so that the same conversation becomes the same bytes on each turn (TR-25).
package repair

import (
	"slices"
	"strings"

	"github.com/weirgate/weir/host/translate/neutral"
)

// Alternating returns turns as dialects need them that know two roles which take turns, the user first (TR-10, TR-11): system turns in
// the midst become user text, empty texts go, neighbours of one role are merged, results stand right behind their calls.
func Alternating(turns []neutral.Turn) []neutral.Turn {
	out := merged(reminded(turns))
	out = paired(out)
	out = merged(out)
	if len(out) > 0 && out[0].Role != neutral.User {
		out = slices.Insert(out, 0, neutral.Turn{Parts: []neutral.Part{{Text: "."}}})
	}
	return out
}

// Called returns turns as dialects need them that know calls as part of one answer of the model: neighbours of that role are merged
// and results stand right behind their calls (TR-10).
func Called(turns []neutral.Turn) []neutral.Turn {
	out := make([]neutral.Turn, 0, len(turns))
	for _, t := range turns {
		if n := len(out); n > 0 && t.Role == neutral.Model && out[n-1].Role == neutral.Model {
			out[n-1].Parts = append(out[n-1].Parts[:len(out[n-1].Parts):len(out[n-1].Parts)], t.Parts...)
			out[n-1].Plain = false
			continue
		}
		out = append(out, t)
	}
	return paired(out)
}

// reminded turns system text in the midst of a conversation into user text (TR-11).
func reminded(turns []neutral.Turn) []neutral.Turn {
	out := make([]neutral.Turn, 0, len(turns))
	for _, t := range turns {
		if t.Role == neutral.System || t.Role == neutral.Developer {
			parts := slices.Clone(t.Parts)
			for i := range parts {
				if parts[i].Kind == neutral.Text && parts[i].Text != "" {
					parts[i].Text = "<system-reminder>\n" + parts[i].Text + "\n</system-reminder>"
				}
			}
			t.Role, t.Parts, t.Plain = neutral.User, parts, false
		}
		out = append(out, t)
	}
	return out
}

// merged joins neighbours of one role and leaves out empty texts and turns.
func merged(turns []neutral.Turn) []neutral.Turn {
	out := make([]neutral.Turn, 0, len(turns))
	for _, t := range turns {
		parts := make([]neutral.Part, 0, len(t.Parts))
		for _, p := range t.Parts {
			if p.Kind == neutral.Text && p.Text == "" {
				continue
			}
			parts = append(parts, p)
		}
		if len(parts) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == t.Role {
			out[n-1].Parts = append(out[n-1].Parts[:len(out[n-1].Parts):len(out[n-1].Parts)], parts...)
			out[n-1].Plain = false
			continue
		}
		t.Parts = parts
		out = append(out, t)
	}
	return out
}

// noResult stands in for what a tool never said.
const noResult = "(no result)"

// paired puts the results of a turn's calls at the head of the next user turn, makes up those that are missing, and turns results
// of which nobody asked for into text.
func paired(turns []neutral.Turn) []neutral.Turn {
	waiting := map[string]neutral.Part{} // results by the id of their call
	for _, t := range turns {
		for _, p := range t.Parts {
			if p.Kind == neutral.Result {
				if _, twice := waiting[p.Result.ID]; !twice {
					waiting[p.Result.ID] = p
				}
			}
		}
	}
	out := make([]neutral.Turn, 0, len(turns)+1)
	for i, t := range turns {
		if t.Role != neutral.Model {
			if rest := strays(t.Parts, waiting, out); len(rest) > 0 {
				t.Parts = rest
				out = append(out, t)
			}
			continue
		}
		out = append(out, t)
		results := answers(t.Parts, waiting, i == len(turns)-1)
		if len(results) > 0 {
			out = append(out, neutral.Turn{Role: neutral.User, Parts: results})
		}
	}
	return out
}

// answers takes the results of the calls among parts out of waiting. In the last turn a call may still be open.
func answers(parts []neutral.Part, waiting map[string]neutral.Part, last bool) (results []neutral.Part) {
	for i := range parts {
		if parts[i].Kind != neutral.Call {
			continue
		}
		id := parts[i].Call.ID
		p, known := waiting[id]
		delete(waiting, id)
		switch {
		case known:
			p.Result.Name = parts[i].Call.Name
			results = append(results, p)
		case !last:
			results = append(results, neutral.Part{Kind: neutral.Result, Result: neutral.ToolResult{
				ID: id, Name: parts[i].Call.Name, Error: true, Plain: true, Parts: []neutral.Part{{Text: noResult}},
			}})
		}
	}
	return results
}

// strays are the parts of a user turn without the results that stand behind their calls by now; a result that nobody asked for
// becomes text.
func strays(parts []neutral.Part, waiting map[string]neutral.Part, before []neutral.Turn) []neutral.Part {
	asked := map[string]bool{}
	for _, t := range before {
		for i := range t.Parts {
			if t.Parts[i].Kind == neutral.Call {
				asked[t.Parts[i].Call.ID] = true
			}
		}
	}
	rest := make([]neutral.Part, 0, len(parts))
	for _, p := range parts {
		if p.Kind != neutral.Result {
			rest = append(rest, p)
			continue
		}
		if _, open := waiting[p.Result.ID]; !open || asked[p.Result.ID] {
			continue
		}
		delete(waiting, p.Result.ID)
		rest = append(rest, p.Result.Parts...)
	}
	return rest
}

// Joined is the text of parts, a blank line between them.
func Joined(parts []neutral.Part) string {
	texts := make([]string, 0, len(parts))
	for i := range parts {
		if parts[i].Kind == neutral.Text && parts[i].Text != "" {
			texts = append(texts, parts[i].Text)
		}
	}
	return strings.Join(texts, "\n\n")
}
