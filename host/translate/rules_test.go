package translate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// short names of the dialects in tables.
var named = map[string]wire.Dialect{
	"chat": wire.OpenAIChat, "responses": wire.OpenAIResponses, "messages": wire.AnthropicMessages, "gemini": wire.GeminiGenerate,
}

// bodies wrap members in the least request of each dialect.
func bodyOf(dialect, members string) string {
	least := map[string]string{
		"chat": `"model":"m","messages":[{"role":"user","content":"hi"}]`, "responses": `"model":"m","input":"hi"`,
		"messages": `"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]`, "gemini": `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`,
	}[dialect]
	for _, own := range []string{`"messages"`, `"input"`, `"contents"`} {
		if strings.HasPrefix(members, own) || strings.Contains(members, ","+own) {
			least = map[string]string{"chat": `"model":"m"`, "responses": `"model":"m"`, "messages": `"model":"m","max_tokens":100`}[dialect]
		}
	}
	return "{" + strings.Trim(least+","+members, ",") + "}"
}

func bend(t *testing.T, from, to, body string, target neutral.Target) (string, []neutral.Note, error) {
	t.Helper()
	r, err := translate.Read(named[from], []byte(body))
	if err != nil {
		return "", nil, err
	}
	if target.Model == "" {
		target.Model = "m"
	}
	w, err := translate.NewWay(r, named[to], target, neutral.Told{ID: "id", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	out, notes, err := w.Body(nil)
	if err == nil && !gjson.ValidBytes(out) {
		t.Fatalf("not JSON: %s", out)
	}
	return string(out), notes, err
}

const weather = `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}}}`

// Each row is a rule of the table of translation: what a member becomes. An empty value means that the member is not there.
var requestRules = []struct {
	name, from, to, members string
	target                  neutral.Target
	path, want              string
	note                    string // what a note names, if one is expected
}{
	// TR-2
	{"TR-2 system to a field", "chat", "messages", `"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]`, neutral.Target{}, "system", `"s"`, ""},
	{"TR-2 instructions to a message", "responses", "chat", `"instructions":"s"`, neutral.Target{}, "messages.0.content", `"s"`, ""},
	{"TR-2 system to gemini", "messages", "gemini", `"system":"s"`, neutral.Target{}, "systemInstruction.parts.0.text", `"s"`, ""},
	{"TR-2 role of the model", "chat", "gemini", `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`, neutral.Target{}, "contents.1.role", `"model"`, ""},
	{"TR-2 image inline", "chat", "gemini", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]`, neutral.Target{}, "contents.0.parts.0.inlineData.mimeType", `"image/png"`, ""},
	{"TR-2 image by address", "messages", "responses", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}]`, neutral.Target{}, "input.0.content.0.image_url", `"https://x/y.png"`, ""},
	{"TR-2 document", "responses", "messages", `"input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}]}]`, neutral.Target{}, "messages.0.content.0.source.media_type", `"application/pdf"`, ""},
	{"TR-2 tool", "messages", "responses", `"tools":[{"name":"f","description":"d","input_schema":` + weather + `}]`, neutral.Target{}, "tools.0.parameters", weather, ""},
	{"TR-2 free-form tool", "responses", "messages", `"tools":[{"type":"custom","name":"f"}]`, neutral.Target{}, "tools.0.input_schema.properties.input.type", `"string"`, ""},
	{"TR-2 choice any", "messages", "gemini", `"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`, neutral.Target{}, "toolConfig.functionCallingConfig.mode", `"ANY"`, ""},
	{"TR-2 choice named", "chat", "gemini", `"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}`, neutral.Target{}, "toolConfig.functionCallingConfig.allowedFunctionNames", `["f"]`, ""},
	{"TR-2 parallel calls off", "chat", "messages", `"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":false`, neutral.Target{}, "tool_choice.disable_parallel_tool_use", `true`, ""},
	{"TR-2 output limit", "gemini", "chat", `"generationConfig":{"maxOutputTokens":7}`, neutral.Target{}, "max_completion_tokens", `7`, ""},
	{"TR-2 sampling", "messages", "gemini", `"temperature":0.50,"top_p":0.9,"top_k":5`, neutral.Target{}, "generationConfig.temperature", `0.50`, ""},
	{"TR-2 stop", "chat", "messages", `"stop":"END"`, neutral.Target{}, "stop_sequences", `["END"]`, ""},
	{"TR-2 seed", "chat", "gemini", `"seed":4`, neutral.Target{}, "generationConfig.seed", `4`, ""},
	{"TR-2 structured output", "responses", "messages", `"text":{"format":{"type":"json_schema","name":"n","schema":` + weather + `}}`, neutral.Target{}, "output_config.format.schema", weather, ""},
	{"TR-2 user", "chat", "messages", `"user":"u"`, neutral.Target{}, "metadata.user_id", `"u"`, ""},

	// TR-12
	{"TR-12 schema as it came", "chat", "gemini", `"tools":[{"type":"function","function":{"name":"f","parameters":` + weather + `}}]`, neutral.Target{}, "tools.0.functionDeclarations.0.parametersJsonSchema", weather, ""},
	{"TR-12 reduced schema", "chat", "gemini", `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"$ref":"#/$defs/X"},"y":{"anyOf":[{"type":"string","format":"uri","default":"d"},{"type":"null"}]},"z":{"const":1}},"additionalProperties":false,"$defs":{"X":{"type":"integer"}}}}}]`,
		neutral.Target{Reduced: true}, "tools.0.functionDeclarations.0.parameters", `{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"string","nullable":true},"z":{"enum":[1]}}}`, ""},
	{"TR-12 no schema", "chat", "messages", `"tools":[{"type":"function","function":{"name":"f"}}]`, neutral.Target{}, "tools.0.input_schema", `{"type":"object","properties":{}}`, ""},
	{"TR-12 strict that is none", "responses", "chat", `"tools":[{"type":"function","name":"f","strict":true,"parameters":` + weather + `}]`, neutral.Target{}, "tools.0.function.strict", `false`, ""},
	{"TR-12 strict that is", "responses", "chat", `"tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{},"additionalProperties":false}}]`, neutral.Target{}, "tools.0.function.strict", `true`, ""},

	// TR-14
	{"TR-14 arguments to an object", "chat", "messages", `"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"b\":1.50,\"a\":2}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}]`,
		neutral.Target{}, "messages.1.content.0.input", `{"b":1.50,"a":2}`, ""},
	{"TR-14 arguments that do not parse", "chat", "messages", `"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{oops"}}]},{"role":"tool","tool_call_id":"c","content":"r"}]`,
		neutral.Target{}, "messages.1.content.0.input", `{"_raw":"{oops"}`, "messages[1].tool_calls[0]"},
	{"TR-14 empty arguments", "chat", "gemini", `"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"c","content":"r"}]`,
		neutral.Target{}, "contents.1.parts.0.functionCall.args", `{}`, ""},
	{"TR-14 an object to arguments", "messages", "chat", `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{ "b": 1.50, "a": [ 1 ] }}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}]`,
		neutral.Target{}, "messages.1.tool_calls.0.function.arguments", `"{\"b\":1.50,\"a\":[1]}"`, ""},

	// TR-15
	{"TR-15 text stays text", "messages", "chat", results(`"content":"r"`), neutral.Target{}, "messages.2.content", `"r"`, ""},
	{"TR-15 an error towards chat", "messages", "chat", results(`"content":"r","is_error":true`), neutral.Target{}, "messages.2.content", `"Error: r"`, ""},
	{"TR-15 an error towards responses", "messages", "responses", results(`"content":"r","is_error":true`), neutral.Target{}, "input.2.output", `"Error: r"`, ""},
	{"TR-15 an object towards gemini", "messages", "gemini", results(`"content":"r"`), neutral.Target{}, "contents.2.parts.0.functionResponse.response", `{"output":"r"}`, ""},
	{"TR-15 an error towards gemini", "messages", "gemini", results(`"content":"r","is_error":true`), neutral.Target{}, "contents.2.parts.0.functionResponse.response", `{"error":"r"}`, ""},
	{"TR-15 an image follows", "messages", "chat", results(`"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]`), neutral.Target{}, "messages.3.content.0.type", `"image_url"`, ""},

	// TR-16
	{"TR-16 the model's limit", "chat", "messages", ``, neutral.Target{MaxOutput: 32_000}, "max_tokens", `32000`, ""},
	{"TR-16 no limit is known", "chat", "messages", ``, neutral.Target{}, "max_tokens", `8192`, ""},
	{"TR-16 the newer name wins", "chat", "messages", `"max_tokens":5,"max_completion_tokens":6`, neutral.Target{}, "max_tokens", `6`, ""},
	{"TR-16 above the budget", "chat", "messages", `"max_tokens":100,"reasoning_effort":"low"`, neutral.Target{Thinks: true}, "max_tokens", `3072`, ""},

	// TR-20, TR-21
	{"TR-20 temperature is capped", "chat", "messages", `"temperature":1.7`, neutral.Target{}, "temperature", `1`, "temperature"},
	{"TR-20 top_k towards chat", "messages", "chat", `"top_k":5`, neutral.Target{}, "top_k", ``, "top_k"},
	{"TR-20 too many stops", "messages", "chat", `"stop_sequences":["a","b","c","d","e"]`, neutral.Target{}, "stop.#", `4`, "stop"},

	// TR-22, TR-24, TR-25
	{"TR-22 a tool stands in", "chat", "messages", `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + weather + `}}`, neutral.Target{NoSchema: true}, "tools.0.name", `"structured_output"`, ""},
	{"TR-22 it is forced", "chat", "messages", `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + weather + `}}`, neutral.Target{NoSchema: true}, "tool_choice.name", `"structured_output"`, ""},
	{"TR-22 towards chat", "messages", "chat", `"output_config":{"format":{"type":"json_schema","schema":` + weather + `}}`, neutral.Target{NoSchema: true}, "tools.0.function.parameters", weather, ""},
	{"TR-24 JSON mode", "chat", "messages", `"response_format":{"type":"json_object"}`, neutral.Target{}, "system", `"Answer with a single JSON value and nothing else."`, ""},
	{"TR-25 marks are dropped", "messages", "chat", `"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]`, neutral.Target{}, "messages.0.content", `"s"`, ""},
	{"TR-25 no marks unless asked for", "chat", "messages", `"tools":[{"type":"function","function":{"name":"f"}}]`, neutral.Target{}, "tools.0.cache_control", ``, ""},
	{"TR-25 the last tool is marked", "chat", "messages", `"tools":[{"type":"function","function":{"name":"e"}},{"type":"function","function":{"name":"f"}}]`, neutral.Target{Marks: true}, "tools.#.cache_control.type", `["ephemeral"]`, ""},
	{"TR-25 the system text is marked", "chat", "messages", `"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]`, neutral.Target{Marks: true}, "system.0.cache_control.type", `"ephemeral"`, ""},
}

func results(members string) string {
	return `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c",` + members + `}]}]`
}

func TestRequestRules(t *testing.T) {
	for _, c := range requestRules {
		t.Run(c.name, func(t *testing.T) {
			out, notes, err := bend(t, c.from, c.to, bodyOf(c.from, c.members), c.target)
			if err != nil {
				t.Fatal(err)
			}
			if got := gjson.Get(out, c.path).Raw; got != c.want {
				t.Errorf("%s is %s, want %s, in %s", c.path, got, c.want, out)
			}
			noted := c.note == ""
			for _, n := range notes {
				noted = noted || strings.HasPrefix(n.Field, c.note)
			}
			if !noted {
				t.Errorf("no note of %s in %v", c.note, notes)
			}
		})
	}
}

// TR-25: what stands before the last user turn is the same bytes from turn to turn.
func TestPrefixStays(t *testing.T) {
	one := `"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}`
	two := one + `,{"role":"assistant","content":"ho"},{"role":"user","content":"more"}`
	for _, to := range []string{"messages", "gemini", "responses"} {
		a, _, err := bend(t, "chat", to, bodyOf("chat", one+"]"), neutral.Target{Marks: true})
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := bend(t, "chat", to, bodyOf("chat", two+"]"), neutral.Target{Marks: true})
		if err != nil {
			t.Fatal(err)
		}
		shared := strings.Index(a, `hi`)
		if shared < 0 || !strings.HasPrefix(b, a[:shared+2]) {
			t.Errorf("%s: %s\n%s", to, a, b)
		}
		if n := strings.Count(b, "cache_control"); n > 4 {
			t.Errorf("%d marks", n)
		}
	}
}

// TR-21: data URLs are split strictly, and a type that the model does not take is named.
func TestImages(t *testing.T) {
	image := func(url string) string {
		return bodyOf("chat", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"`+url+`"}}]}]`)
	}
	for url, want := range map[string]string{
		"data:image/tiff;base64,AAAA": "image/tiff", "data:image/png,AAAA": "data", "data:;base64": "data",
	} {
		_, _, err := bend(t, "chat", "messages", image(url), neutral.Target{})
		fault, ok := errors.AsType[*neutral.Fault](err)
		if !ok || !strings.Contains(fault.Message, want) || !strings.HasPrefix(fault.Path, "messages[0].content[0]") {
			t.Errorf("%s: %v", url, err)
		}
	}
	out, _, err := bend(t, "chat", "messages", image("https://x/y.png"), neutral.Target{})
	if err != nil || gjson.Get(out, "messages.0.content.0.source.url").Str != "https://x/y.png" {
		t.Errorf("%v %s", err, out)
	}
}

const geminiCall = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"g1","name":"f","args":{"a":1}},"thoughtSignature":"c2lnbmVk"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}`

type remembered map[string]string

func (m remembered) Keep(call, signature string)     { m[call] = signature }
func (m remembered) Find(call string) (string, bool) { s, ok := m[call]; return s, ok }

// TR-19: a signature that a chat client cannot carry is remembered by the call, and goes back to the model family that it came from and to
// no other; a model that wants one gets the word that stands for none.
func TestSignaturesAreRemembered(t *testing.T) {
	ask := func(family, model string, m remembered, text string) (*translate.Way, string) {
		r, err := translate.Read(wire.OpenAIChat, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		w, err := translate.NewWay(r, wire.GeminiGenerate, neutral.Target{Model: model, Family: family}, neutral.Told{ID: "id", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		w.Remember(m)
		out, _, err := w.Body(nil)
		if err != nil {
			t.Fatal(err)
		}
		return w, string(out)
	}
	m := remembered{}
	const home, gemini = "gemini/gemini-3-pro", "gemini-3-pro-preview"
	w, _ := ask(home, gemini, m, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	text, _, err := w.Answer(nil, []byte(geminiCall))
	if err != nil {
		t.Fatal(err)
	}
	call := gjson.GetBytes(text, "choices.0.message.tool_calls.0").Raw
	next := `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"` +
		gjson.Get(call, "id").Str + `","content":"r"}]}`
	for _, c := range []struct{ family, model, want string }{
		{home, gemini, "c2lnbmVk"}, {"other/gemini-3-pro", gemini, "skip_thought_signature_validator"}, {"gemini/gemini-2.5-pro", "gemini-2.5-pro", ""},
	} {
		_, out := ask(c.family, c.model, m, next)
		if got := gjson.Get(out, "contents.1.parts.0.thoughtSignature").Str; got != c.want {
			t.Errorf("%s: %q in %s", c.family, got, out)
		}
	}
}

// TR-18: what a model thought comes back to it byte for byte through a client of another dialect, over two turns, and goes to no other.
func TestThoughtsComeHome(t *testing.T) {
	answers := map[string]string{
		"messages":  `{"id":"x","type":"message","role":"assistant","model":"up","content":[{"type":"thinking","thinking":"hm","signature":"c2ln+/="},{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
		"responses": `{"id":"x","object":"response","status":"completed","model":"up","output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2ln+/="},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":1,"output_tokens":1}}`,
	}
	for _, c := range []struct{ client, upstream, turns, again, home string }{
		{"responses", "messages", "input", "output", "messages.1.content.0.signature"},
		{"messages", "responses", "messages", "content", "input.1.encrypted_content"},
		{"gemini", "messages", "contents", "candidates.0.content", "messages.1.content.0.signature"},
	} {
		target := neutral.Target{Model: "m", Family: "p/m", Thinks: true}
		r, err := translate.Read(named[c.client], []byte(bodyOf(c.client, "")))
		if err != nil {
			t.Fatal(err)
		}
		w, err := translate.NewWay(r, named[c.upstream], target, neutral.Told{ID: "id", Model: "m", Request: r})
		if err != nil {
			t.Fatal(err)
		}
		told, _, err := w.Answer(nil, []byte(answers[c.upstream]))
		if err != nil {
			t.Fatal(err)
		}
		said := gjson.GetBytes(told, c.again).Raw
		user := map[string]string{"responses": `{"role":"user","content":"hi"}`, "messages": `{"role":"user","content":"hi"}`, "gemini": `{"role":"user","parts":[{"text":"hi"}]}`}[c.client]
		switch c.client {
		case "responses":
			said = strings.Trim(said, "[]")
		case "messages":
			said = `{"role":"assistant","content":` + said + `}`
		}
		next := bodyOf(c.client, `"`+c.turns+`":[`+user+`,`+said+`,`+user+`]`)
		out, _, err := bend(t, c.client, c.upstream, next, target)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(out, c.home).Str; got != "c2ln+/=" {
			t.Errorf("%s by %s: %q in %s", c.upstream, c.client, got, out)
		}
		target.Family = "q/other"
		out, _, err = bend(t, c.client, c.upstream, next, target)
		if err != nil || strings.Contains(out, "c2ln") || strings.Contains(out, "hm") || !strings.Contains(out, `"a"`) {
			t.Errorf("%s by %s, another family: %v %s", c.upstream, c.client, err, out)
		}
	}
}
