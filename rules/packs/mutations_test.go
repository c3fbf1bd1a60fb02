package packs_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

// mutation is a change of an answer that does not change what it means. It returns false where it cannot be made.
type mutation struct {
	name   string
	change func(a *answer) bool
}

// CLS-2, RST-4, RST-10, ABI-2.1: the same failure in another dress has the same verdict.
func TestMutations(t *testing.T) {
	set := compile(load(t))
	all := append(answers(t, "upstream-errors.jsonl"), answers(t, "relatives.jsonl")...)
	for turn, m := range mutations() {
		t.Run("CLS-2/"+m.name, func(t *testing.T) {
			made := 0
			for i, a := range all {
				if notYet[a.ID] != "" || !a.Stream && i%4 != turn%4 { // each a few times over is enough
					continue
				}
				b := a
				if !m.change(&b) {
					continue
				}
				made++
				for _, r := range b.ways() {
					got := judge(set, r)
					if wrong := compare(b, got, map[string]int{}); wrong != "" {
						t.Errorf("%s %q under %d differs in %s: got %d %s %s fallback=%v wait=%v terminal=%v by %s, restated by %q, want %+v", a.ID, b.Body[:min(len(b.Body), 260)], a.Status,
							wrong, got.status, got.Reason, got.Scope, got.Fallback, got.RetryAfter, got.Terminal, got.Evidence(), r.Restated, b.Expect)
					}
				}
			}
			if made < 3 {
				t.Errorf("made %d times only", made)
			}
		})
	}
}

func mutations() []mutation {
	return []mutation{
		{"header names in capitals", func(a *answer) bool {
			h := map[string]string{}
			for k, v := range a.Headers {
				h[strings.ToUpper(k)] = v
			}
			a.Headers = h
			return len(h) > 0
		}},
		{"wrong content type", header("content-type", "application/octet-stream")},
		{"another model", anotherModel},
		{"byte order mark", func(a *answer) bool {
			a.Body = "\ufeff" + a.Body
			return a.Status != 0
		}},
		{"spaces around", func(a *answer) bool {
			a.Body = "\n \t" + a.Body + "\r\n"
			return a.Status != 0 && !a.Stream
		}},
		{"pretty JSON", rewritten(func(v any) any { return v }, "", "\t")},
		{"escaped", escaped},
		{"in an array", enveloped(func(v any) any { return []any{v} })},
		{"in errors", enveloped(func(v any) any { return map[string]any{"errors": []any{inner(v)}} })},
		{"error in error", enveloped(func(v any) any { return map[string]any{"error": map[string]any{"error": inner(v)}} })},
		{"in detail", enveloped(func(v any) any { return map[string]any{"detail": inner(v)} })},
		{"as Anthropic's", enveloped(func(v any) any { return map[string]any{"type": "error", "error": inner(v), "request_id": "req_0"} })},
		{"quoted by a relay", quoted("")},
		{"quoted by a relay behind words", quoted("Error from provider: 400 ")},
		{"message in capitals", loud},
		{"lines of a stream end in CRLF", func(a *answer) bool {
			a.Body = strings.ReplaceAll(a.Body, "\n", "\r\n")
			return a.Stream
		}},
		{"comments and ids in a stream", func(a *answer) bool {
			a.Body = ": keepalive\n\nid: 7\n" + a.Body
			return a.Stream
		}},
		{"no space after data", func(a *answer) bool {
			a.Body = strings.ReplaceAll(a.Body, "data: ", "data:")
			return a.Stream
		}},
		{"a role before the error", func(a *answer) bool {
			a.Body = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n" + a.Body
			return a.Stream && strings.Contains(a.Body, "error")
		}},
	}
}

func header(name, value string) func(a *answer) bool {
	return func(a *answer) bool {
		h := map[string]string{name: value}
		for k, v := range a.Headers {
			if k != name {
				h[k] = v
			}
		}
		a.Headers = h
		return true
	}
}

// anotherModel puts a model's name in the place of the one that is named between marks.
func anotherModel(a *answer) bool {
	body := namedModel.ReplaceAllString(a.Body, "${1}nova-premier-2${2}")
	changed := body != a.Body
	a.Body = body
	return changed
}

var namedModel = regexp.MustCompile("(model `|for model `|models/)[A-Za-z0-9._-]+([` ])")

// parsed is the body's JSON, when it is a failed answer's one document.
func parsed(a *answer) (any, bool) {
	var v any
	ok := json.Unmarshal([]byte(a.Body), &v) == nil && a.Status != 0 && !a.Stream
	return v, ok
}

// rewritten changes the document and writes it anew.
func rewritten(change func(any) any, prefix, indent string) func(a *answer) bool {
	return func(a *answer) bool {
		v, ok := parsed(a)
		if !ok {
			return false
		}
		text, err := json.MarshalIndent(change(v), prefix, indent)
		a.Body = string(text)
		return err == nil
	}
}

// escaped writes every character above ASCII as \u.
func escaped(a *answer) bool {
	if _, ok := parsed(a); !ok {
		return false
	}
	text := strconv.QuoteToASCII(a.Body)
	if !strings.Contains(text, `\u`) {
		return false
	}
	var b strings.Builder
	for _, r := range a.Body {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			q := strconv.QuoteToASCII(string(r))
			b.WriteString(q[1 : len(q)-1])
		}
	}
	a.Body = b.String()
	return true
}

// enveloped puts an error object into another envelope. A good status is left out: there only known envelopes count.
func enveloped(change func(any) any) func(a *answer) bool {
	return func(a *answer) bool {
		v, ok := parsed(a)
		if o, is := v.(map[string]any); !ok || !is || a.Status < 400 || !simple(o) {
			return false
		}
		return rewritten(change, "", "")(a)
	}
}

// simple says that the document is an error object and nothing else.
func simple(o map[string]any) bool {
	e, ok := o["error"].(map[string]any)
	if !ok || e["error"] != nil || e["metadata"] != nil || e["details"] != nil || e["param"] != nil && e["param"] != "" {
		return false
	}
	return len(o) == 1 || len(o) == 2 && (o["type"] == "error" || o["request_id"] != nil || o["id"] != nil) || len(o) == 3 && o["type"] == "error"
}

func inner(v any) any { return v.(map[string]any)["error"] }

// quoted is what a relay makes of it: the whole body as text in a message of its own.
func quoted(words string) func(a *answer) bool {
	quote := enveloped(func(v any) any {
		text, err := json.Marshal(v)
		if err != nil {
			return v
		}
		return map[string]any{"error": map[string]any{"message": words + string(text), "type": "upstream_error"}}
	})
	return func(a *answer) bool { // whose account is empty is another question there (credits-of-an-upstream)
		return a.Expect.Reason != "credits_exhausted" && quote(a)
	}
}

// loud writes the message in capitals; times and zones are left as they are.
func loud(a *answer) bool {
	if a.Expect.WaitMS != nil || a.Status < 400 {
		return false
	}
	return rewritten(func(v any) any {
		if o, ok := v.(map[string]any); ok {
			if e, ok := o["error"].(map[string]any); ok {
				o = e
			}
			if s, ok := o["message"].(string); ok {
				o["message"] = strings.ToUpper(s)
			}
		}
		return v
	}, "", "")(a)
}

// STM-50, RST-12: the same failure inside a stream, in the frames of each dialect, has the same reason.
func TestFramesOfDialects(t *testing.T) {
	set := compile(load(t))
	frames := map[string]func(e string) string{
		"openai_chat and gemini_generate": func(e string) string { return "data: {\"error\":" + e + "}\n\n" },
		"anthropic_messages":              func(e string) string { return "event: error\ndata: {\"type\":\"error\",\"error\":" + e + "}\n\n" },
		"openai_responses": func(e string) string {
			return "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":" + e + "}}\n\n"
		},
	}
	for name, frame := range frames {
		t.Run("STM-50 RST-12/"+name, func(t *testing.T) {
			made, same := 0, 0
			for _, a := range append(answers(t, "upstream-errors.jsonl"), answers(t, "relatives.jsonl")...) {
				v, ok := parsed(&a)
				o, is := v.(map[string]any)
				if !ok || !is || a.Status < 400 || !simple(o) {
					continue
				}
				b := a
				b.Body, b.Stream, b.Status = frame(written(t, inner(v))), true, 200
				got := judge(set, b.reply())
				made++
				switch {
				case got.Terminal && !a.Expect.Terminal:
					t.Errorf("%s %q ends the connection by %s", a.ID, b.Body, got.Evidence())
				case got.Reason == a.Expect.Reason && got.Scope == a.Expect.Scope:
					same++
				case got.Reason != wire.ServerError: // a frame without a status may say too little, but it does not say another thing
					t.Logf("%s %q: got %d %s %s by %s, want %s %s", a.ID, b.Body[:min(len(b.Body), 200)], got.status, got.Reason, got.Scope, got.Evidence(), a.Expect.Reason, a.Expect.Scope)
				}
			}
			if t.Logf("%d of %d the same", same, made); same*100 < made*80 {
				t.Errorf("only %d of %d frames have the reason and scope of the same error as an answer", same, made)
			}
		})
	}
}

func written(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
