package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
)

// Two calls of one answer as upstreams send them: their pieces interleaved, one without an index, one with its arguments only at the
// end; before them what the model thought, with the signature that its provider wants back.
var interleaved = map[string][]string{
	"chat": {
		`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm"}}]}`,
		`{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_one","type":"function","function":{"name":"first","arguments":""}}]}}]}`,
		`{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_two","type":"function","function":{"name":"second","arguments":"{\"b\""}}]}}]}`,
		`{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_two","function":{"arguments":":2}"}}]}}]}`,
		`{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}}]}`,
		`{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
	},
	"messages": {
		`{"type":"message_start","message":{"id":"x","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln+/="}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"aGlkZGVu+/="}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_one","name":"first","input":{}}}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"call_two","name":"second","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"b\""}}`,
		`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":":2}"}}`, // the one that was opened last
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	},
	"responses": {
		`{"type":"response.created","response":{"id":"x"}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs"}}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"hm"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2ln+/="}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"call_one","name":"first","arguments":""}}`,
		`{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"f2","call_id":"call_two","name":"second","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"b\""}`,
		`{"type":"response.function_call_arguments.delta","output_index":2,"delta":":2}"}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"f2","call_id":"call_two","name":"second","arguments":"{\"b\":2}"}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"call_one","name":"first","arguments":"{\"a\":1}"}}`,
		`{"type":"response.completed","response":{"id":"x","status":"completed","output":[]}}`,
	},
	"gemini": { // calls come whole, without index or id
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true}]}}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"first","args":{"a":1}},"thoughtSignature":"c2ln+/="}]}}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"second","args":{"b":2}}}]},"finishReason":"STOP"}]}`,
	},
}

// signed are the signatures of those answers, and where each stands in the next request to the same provider.
var signed = map[string]map[string]string{
	"chat":      {},
	"messages":  {"c2ln+/=": "messages.1.content.0.signature", "aGlkZGVu+/=": "messages.1.content.1.data"},
	"responses": {"c2ln+/=": "input.1.encrypted_content"},
	"gemini":    {"c2ln+/=": "contents.1.parts.#(functionCall.name==\"first\").thoughtSignature"},
}

const twoTools = `,"tools":[{"type":"function","function":{"name":"first"}},{"type":"function","function":{"name":"second"}}]`

// SCN-13, TR-18, TR-19, TR-27: two calls at once and what was thought before them, through every pair of dialects: two blocks with an index of
// their own and whole JSON; on the next turn each signature is the same bytes for its own provider, and gone for another one.
func TestInterleavedCalls(t *testing.T) {
	for upstream, events := range interleaved {
		for client := range named {
			t.Run(fmt.Sprintf("SCN-13 %s from %s", client, upstream), func(t *testing.T) {
				m := remembered{}
				target := neutral.Target{Model: "gemini-3-pro", Family: "p/one", Thinks: true}
				told := streamed(t, client, upstream, events, target, m)
				own := distinct(t, client, told)
				if diff := cmp.Diff([]string{`first {"a":1}`, `second {"b":2}`}, own); diff != "" {
					t.Errorf("calls (-want +got)\n%s%s", diff, told)
				}
				next := nextTurn(t, client, told)
				sent := sentOn(t, client, upstream, next, target, m)
				for signature, path := range signed[upstream] {
					if got := gjson.Get(sent, path).Str; got != signature && keeps(client, upstream) {
						t.Errorf("%s is %q in %s", path, got, sent)
					}
				}
				target.Family = "q/other"
				for other := range named {
					if other == upstream && upstream == client { // it never left its dialect, so that nothing says whose it is
						continue
					}
					sent := sentOn(t, client, other, next, target, m)
					for signature := range signed[upstream] {
						if strings.Contains(sent, signature) || strings.Contains(sent, strings.ReplaceAll(signature, "/", `\/`)) || strings.Contains(sent, "d2Vpci1zaWcu") {
							t.Errorf("to another provider of %s: %s", other, sent)
						}
					}
					if !strings.Contains(sent, "first") || !strings.Contains(sent, "second") {
						t.Errorf("to another provider of %s, without the calls: %s", other, sent)
					}
				}
			})
		}
	}
}

// keeps says whether a client can give signatures of an upstream back: one of chat holds none, so that only those of calls are
// remembered for it.
func keeps(client, upstream string) bool { return client != "chat" || upstream == "gemini" }

func requestOf(t *testing.T, client, body string) *neutral.Request {
	t.Helper()
	r, err := translate.Read(named[client], []byte(body))
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return r
}

// streamed is what a client of a dialect is told of a stream.
func streamed(t *testing.T, client, upstream string, events []string, target neutral.Target, m translate.Memory) string {
	t.Helper()
	r := requestOf(t, client, bodyOf(client, toolsOf(client)))
	w, err := translate.NewWay(r, named[upstream], target, neutral.Told{ID: "gw", Model: "m", Request: r})
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(m)
	s := w.Stream()
	var out []byte
	for _, e := range events {
		if out, err = s.Event(out, []byte(gjson.Get(e, "type").Str), []byte(e)); err != nil {
			t.Fatalf("%v: %s", err, e)
		}
	}
	return string(s.End(out, true))
}

func toolsOf(client string) string {
	switch client {
	case "responses":
		return `"tools":[{"type":"function","name":"first"},{"type":"function","name":"second"}]`
	case "messages":
		return `"tools":[{"name":"first","input_schema":{"type":"object"}},{"name":"second","input_schema":{"type":"object"}}]`
	case "gemini":
		return `"tools":[{"functionDeclarations":[{"name":"first"},{"name":"second"}]}]`
	}
	return strings.TrimPrefix(twoTools, ",")
}

// distinct puts the calls of a stream together by nothing but the index that the client sees.
func distinct(t *testing.T, client, told string) []string {
	t.Helper()
	var order []string
	names, args := map[string]string{}, map[string]string{}
	add := func(at, name, text string) {
		if _, known := names[at]; !known {
			order = append(order, at)
		}
		if name != "" && names[at] != "" && names[at] != name {
			t.Errorf("two calls have the index %s", at)
		}
		if names[at] == "" {
			names[at] = name
		}
		args[at] += text
	}
	for _, e := range eventsOf(told) {
		v := gjson.Parse(e.data)
		switch client {
		case "chat":
			for _, c := range v.Get("choices.0.delta.tool_calls").Array() {
				add(c.Get("index").Raw, c.Get("function.name").Str, c.Get("function.arguments").Str)
			}
		case "messages":
			at := v.Get("index").Raw
			if b := v.Get("content_block"); b.Get("type").Str == "tool_use" {
				add(at, b.Get("name").Str, "")
			}
			if d := v.Get("delta"); d.Get("type").Str == "input_json_delta" {
				add(at, "", d.Get("partial_json").Str)
			}
		case "responses":
			at := v.Get("output_index").Raw
			if v.Get("type").Str == "response.output_item.added" && v.Get("item.type").Str == "function_call" {
				add(at, v.Get("item.name").Str, "")
			}
			if v.Get("type").Str == "response.function_call_arguments.delta" {
				add(at, "", v.Get("delta").Str)
			}
		case "gemini":
			for _, p := range v.Get("candidates.0.content.parts").Array() {
				if c := p.Get("functionCall"); c.Exists() {
					add(fmt.Sprint(len(order)), c.Get("name").Str, c.Get("args").Raw)
				}
			}
		}
	}
	var out []string
	for _, at := range order {
		if !gjson.Valid(args[at]) {
			t.Errorf("the arguments of %s are %s", names[at], args[at])
		}
		out = append(out, names[at]+" "+args[at])
	}
	return out
}

// nextTurn is the client's next request: what it was told, and the results of the calls.
func nextTurn(t *testing.T, client, told string) string {
	t.Helper()
	c, _ := translate.Codec(named[client])
	var into neutral.Collector
	r := c.NewReader()
	for _, e := range eventsOf(told) {
		if err := r.Read([]byte(e.name), []byte(e.data), into.Take); err != nil {
			t.Fatal(err)
		}
	}
	r.End(true, into.Take)
	a := into.Answer()
	text := string(c.WriteAnswer(nil, &a, neutral.Told{ID: "gw", Model: "m", Request: &neutral.Request{}}))
	said := func(path string) string { return gjson.Get(text, path).Raw }
	var ids []string
	for _, p := range a.Parts {
		if p.Kind == neutral.Call {
			ids = append(ids, p.Call.ID)
		}
	}
	if len(ids) != 2 {
		t.Fatalf("calls %q in %s", ids, told)
	}
	var turns string
	switch client {
	case "chat":
		turns = fmt.Sprintf(`"messages":[{"role":"user","content":"hi"},%s,{"role":"tool","tool_call_id":%q,"content":"r"},{"role":"tool","tool_call_id":%q,"content":"s"}]`,
			said("choices.0.message"), ids[0], ids[1])
	case "messages":
		turns = fmt.Sprintf(`"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":%s},{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"r"},{"type":"tool_result","tool_use_id":%q,"content":"s"}]}]`,
			said("content"), ids[0], ids[1])
	case "responses":
		turns = fmt.Sprintf(`"input":[{"role":"user","content":"hi"},%s,{"type":"function_call_output","call_id":%q,"output":"r"},{"type":"function_call_output","call_id":%q,"output":"s"}]`,
			strings.Trim(said("output"), "[]"), ids[0], ids[1])
	case "gemini":
		turns = `"contents":[{"role":"user","parts":[{"text":"hi"}]},` + said("candidates.0.content") +
			`,{"role":"user","parts":[{"functionResponse":{"name":"first","response":{"output":"r"}}},{"functionResponse":{"name":"second","response":{"output":"s"}}}]}]`
	}
	if body := bodyOf(client, toolsOf(client)+","+turns); gjson.Valid(body) {
		return body
	}
	t.Fatalf("%s", turns)
	return ""
}

func sentOn(t *testing.T, client, upstream, body string, target neutral.Target, m translate.Memory) string {
	t.Helper()
	w, err := translate.NewWay(requestOf(t, client, body), named[upstream], target, neutral.Told{ID: "gw", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(m)
	out, _, err := w.Body(nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return string(out)
}
