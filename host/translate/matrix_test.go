package translate_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

var dialects = []wire.Dialect{wire.OpenAIChat, wire.OpenAIResponses, wire.AnthropicMessages, wire.GeminiGenerate}

// essence is what a conversation says, without how a dialect says it: texts, calls, results and media by role, tools, choice.
func essence(r *neutral.Request) []string {
	var out []string
	part := func(who string, p *neutral.Part) {
		switch p.Kind {
		case neutral.Text, neutral.Refusal:
			text := strings.TrimSuffix(strings.TrimPrefix(p.Text, "<system-reminder>\n"), "\n</system-reminder>")
			if text != p.Text {
				who = "system"
			}
			for _, piece := range strings.Split(text, "\n\n") {
				if piece = strings.TrimSpace(piece); piece != "" {
					out = append(out, who+": "+piece)
				}
			}
		case neutral.Call:
			out = append(out, "call "+p.Call.ID+" "+p.Call.Name+" "+p.Call.Arguments)
		case neutral.Result:
			text := ""
			for i := range p.Result.Parts {
				text += p.Result.Parts[i].Text
			}
			out = append(out, "result "+p.Result.ID+" "+text)
		case neutral.Image, neutral.Document, neutral.Audio:
			out = append(out, who+" media: "+p.Media.Type+" "+p.Media.Base64+p.Media.URL)
		default:
		}
	}
	for i := range r.System {
		part("system", &r.System[i])
	}
	for _, t := range r.Turns {
		who := map[neutral.Role]string{neutral.User: "user", neutral.Model: "model", neutral.System: "system", neutral.Developer: "system"}[t.Role]
		for i := range t.Parts {
			part(who, &t.Parts[i])
		}
	}
	for i := range r.Tools {
		if t := &r.Tools[i]; t.Hosted == "" {
			out = append(out, "tool "+t.Name+" "+t.Description)
		}
	}
	slices.Sort(out)
	return out
}

// TR-30: every recorded request becomes every other dialect and comes back, and no text, call, result, image or tool is lost.
func TestRequestsTranslate(t *testing.T) {
	target := neutral.Target{Model: "upstream-model", Family: "p/m", MaxOutput: 64_000, Thinks: true}
	eachRequest(t, func(t *testing.T, from wire.Dialect, _ neutral.Codec, body []byte) {
		first, err := translate.Read(from, body)
		if err != nil {
			t.Fatal(err)
		}
		want := essence(first)
		for _, to := range dialects {
			if to == from {
				continue
			}
			way, err := translate.NewWay(first, to, target, neutral.Told{})
			if err != nil {
				t.Fatal(err)
			}
			there, _, err := way.Body(nil)
			if err != nil {
				t.Errorf("to %s: %v", to, err)
				continue
			}
			second, err := translate.Read(to, there)
			if err != nil {
				t.Errorf("to %s: does not parse there: %v\n%s", to, err, there)
				continue
			}
			if diff := cmp.Diff(want, essence(second)); diff != "" {
				t.Errorf("to %s (-from +to)\n%s", to, diff)
			}
			home, err := translate.NewWay(second, from, target, neutral.Told{})
			if err != nil {
				t.Fatal(err)
			}
			again, _, err := home.Body(nil)
			if err != nil {
				t.Errorf("back from %s: %v", to, err)
				continue
			}
			third, err := translate.Read(from, again)
			if err != nil {
				t.Errorf("back from %s: %v", to, err)
				continue
			}
			if diff := cmp.Diff(want, essence(third)); diff != "" {
				t.Errorf("back from %s (-want +got)\n%s", to, diff)
			}
			if got, want := third.Reasoning.Level(), first.Reasoning.Level(); from != wire.OpenAIResponses && got != want && !lower(got, want) {
				t.Errorf("TR-17: back from %s: effort %q, was %q", to, got, want)
			}
			if diff := cmp.Diff(first.Choice.Mode, third.Choice.Mode); diff != "" && len(first.Tools) > 0 && first.Choice.Mode != neutral.ChoiceUnset {
				t.Errorf("back from %s: choice %s", to, diff)
			}
		}
	})
}

// lower says whether a level is the nearest lower step of another one, which a budget may become.
func lower(got, want string) bool {
	steps := []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
	return slices.Index(steps, got) == slices.Index(steps, want)-1 || want == "minimal" && got == "minimal"
}

// TR-26: a stream that is translated event by event and read as the client's dialect gives the answer that the plain answer, translated
// whole, gives.
func TestStreamsTranslate(t *testing.T) {
	for prefix, from := range prefixes {
		files, _ := filepath.Glob("testdata/streams/" + prefix + "-*.sse")
		for _, file := range files {
			plain, err := os.ReadFile(strings.TrimSuffix(file, ".sse") + ".json")
			if err != nil {
				continue
			}
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, client := range dialects {
				if client == from {
					continue
				}
				t.Run(strings.TrimSuffix(filepath.Base(file), ".sse")+"/"+string(client), func(t *testing.T) {
					translateBoth(t, client, from, plain, string(stream))
				})
			}
		}
	}
}

func translateBoth(t *testing.T, client, upstream wire.Dialect, plain []byte, stream string) {
	t.Helper()
	c, _ := translate.Codec(client)
	request := &neutral.Request{From: client, Turns: []neutral.Turn{{Parts: []neutral.Part{{Text: "hi"}}}}, Tools: []neutral.Tool{{Name: "apply_patch", Custom: client == wire.OpenAIResponses || client == wire.OpenAIChat}}}
	told := neutral.Told{ID: "gw-1", Model: "asked", Created: 7, Usage: true, Prompt: 11}
	way, err := translate.NewWay(request, upstream, neutral.Target{Family: "p/m"}, told)
	if err != nil {
		t.Fatal(err)
	}
	whole, answer, err := way.Answer(nil, plain)
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.ReadAnswer(whole)
	if err != nil {
		t.Fatalf("%v\n%s", err, whole)
	}
	s := way.Stream()
	var out []byte
	for _, e := range eventsOf(stream) {
		if out, err = s.Event(out, []byte(e.name), []byte(e.data)); err != nil {
			t.Fatal(err)
		}
	}
	out = s.End(out, true)
	if _, ok := s.Finished(); !ok {
		t.Error("the stream has no end")
	}
	if s.Usage().Stated() != answer.Usage.Stated() {
		t.Errorf("usage %+v, plain %+v", s.Usage(), answer.Usage)
	}
	var into neutral.Collector
	r := c.NewReader()
	for _, e := range eventsOf(string(out)) {
		if err := r.Read([]byte(e.name), []byte(e.data), into.Take); err != nil {
			t.Fatalf("%v\n%s", err, e.data)
		}
	}
	r.End(true, into.Take)
	got := into.Answer()
	w := comparable(want)
	if !answer.Usage.Stated() {
		w.Usage, got.Usage = neutral.Usage{}, neutral.Usage{}
	}
	if diff := cmp.Diff(w, got); diff != "" {
		t.Errorf("(-whole +streamed)\n%s", diff)
	}
}

// TR-31: a body that is not what the dialect says is a fault that names the path.
func TestFaults(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, c := range []struct {
		d          wire.Dialect
		body, path string
	}{
		{wire.OpenAIChat, `[]`, ""},
		{wire.OpenAIChat, `{"model":"m"}`, "messages"},
		{wire.OpenAIChat, `{"messages":[{"role":"user","content":[{"type":5}]}]}`, "messages[0].content[0].type"},
		{wire.OpenAIChat, `{"messages":[{"role":"boss","content":"x"}]}`, "messages[0].role"},
		{wire.OpenAIChat, `{"messages":[{"role":"user","content":"x"}],"temperature":"hot"}`, "temperature"},
		{wire.OpenAIChat, `{"messages":[{"role":"user","content":"x"}],"x":` + deep + `}`, ""},
		{wire.OpenAIChat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png,zz"}}]}]}`, "messages[0].content[0].image_url.url"},
		{wire.AnthropicMessages, `{"messages":[{"role":"user","content":[{"type":"text"}]}],"max_tokens":1}`, "messages[0].content[0].text"},
		{wire.AnthropicMessages, `{"messages":[{"role":"user","content":"x"}],"max_tokens":"many"}`, "max_tokens"},
		{wire.OpenAIResponses, `{"input":[{"role":"user","content":[{"type":"input_text","text":1}]}]}`, "input[0].content[0].text"},
		{wire.OpenAIResponses, `{"input":[{"type":"function_call","call_id":"1"}]}`, "input[0].name"},
		{wire.GeminiGenerate, `{"contents":[{"role":"user","parts":[7]}]}`, "contents[0].parts[0]"},
		{wire.GeminiGenerate, `{"contents":[{"role":"boss","parts":[]}]}`, "contents[0].role"},
	} {
		_, err := translate.Read(c.d, []byte(c.body))
		var fault *neutral.Fault
		if !errors.As(err, &fault) || fault.Path != c.path {
			t.Errorf("%s %.80s: %v, want a fault at %q", c.d, c.body, err, c.path)
		}
	}
}

// FuzzRead: no body and no event crashes a reader, and what reads as a request can be written in every dialect or is refused (TR-31).
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/requests/*.json")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil && len(b) < 8<<10 {
			f.Add(b)
		}
	}
	for _, s := range []string{
		`{"messages":[{"role":"user","content":null}]}`, `{"input":[{"type":"reasoning","summary":[1]}]}`,
		`{"contents":[{"parts":[{"functionCall":{}}]}]}`, `{"type":"content_block_delta","delta":{}}`, `{"choices":[{"delta":{"tool_calls":[{}]}}]}`,
		`{"type":"response.output_item.done","item":{"type":"message"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, d := range dialects {
			if r, err := translate.Read(d, b); err == nil {
				for _, to := range dialects {
					way, err := translate.NewWay(r, to, neutral.Target{Model: "m", Thinks: true}, neutral.Told{ID: "1"})
					if err != nil {
						t.Fatal(err)
					}
					if out, _, err := way.Body(nil); err == nil {
						value(t, out)
					}
				}
			}
			c, _ := translate.Codec(d)
			if a, err := c.ReadAnswer(b); err == nil {
				value(t, c.WriteAnswer(nil, a, neutral.Told{ID: "1"}))
			}
			r := c.NewReader()
			_ = r.Read(nil, b, func(*neutral.Event) {})
			r.End(true, func(*neutral.Event) {})
		}
	})
}

func BenchmarkStreamEvent(b *testing.B) {
	for prefix, from := range prefixes {
		text, err := os.ReadFile("testdata/streams/" + prefix + "-text.sse")
		if err != nil {
			b.Fatal(err)
		}
		events := eventsOf(string(text))
		for _, client := range dialects {
			if client == from {
				continue
			}
			b.Run(prefix+"/"+string(client), func(b *testing.B) {
				b.ReportAllocs()
				request := &neutral.Request{From: client}
				var dst []byte
				n := 0
				for b.Loop() {
					way, err := translate.NewWay(request, from, neutral.Target{}, neutral.Told{ID: "x", Model: "m"})
					if err != nil {
						b.Fatal(err)
					}
					s := way.Stream()
					for i := range events {
						if dst, err = s.Event(dst[:0], []byte(events[i].name), []byte(events[i].data)); err != nil {
							b.Fatal(err)
						}
						n++
					}
					dst = s.End(dst[:0], true)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
			})
		}
	}
}
