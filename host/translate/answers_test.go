package translate_test

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
)

// answerOf is a whole answer of a dialect that ended for a reason.
func answerOf(dialect, reason string) string {
	switch dialect {
	case "chat":
		return fmt.Sprintf(`{"id":"x","object":"chat.completion","model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":%q}]}`, reason)
	case "messages":
		return fmt.Sprintf(`{"id":"x","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"a"}],"stop_reason":%q,"usage":{"input_tokens":1,"output_tokens":1}}`, reason)
	case "gemini":
		return fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":%q}]}`, reason)
	}
	status, details := "completed", "null"
	if reason != "completed" {
		status, details = "incomplete", fmt.Sprintf(`{"reason":%q}`, reason)
	}
	return fmt.Sprintf(`{"id":"x","object":"response","model":"up","status":%q,"incomplete_details":%s,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`, status, details)
}

// reasons are where a dialect says why an answer ended.
var reasons = map[string]string{
	"chat": "choices.0.finish_reason", "messages": "stop_reason", "gemini": "candidates.0.finishReason", "responses": "status",
}

func told(t *testing.T, client, upstream, answer string) (string, *neutral.Answer) {
	t.Helper()
	r, err := translate.Read(named[client], []byte(bodyOf(client, "")))
	if err != nil {
		t.Fatal(err)
	}
	w, err := translate.NewWay(r, named[upstream], neutral.Target{Model: "up", Family: "p/up"}, neutral.Told{ID: "id", Model: "m", Request: r})
	if err != nil {
		t.Fatal(err)
	}
	out, a, err := w.Answer(nil, []byte(answer))
	if err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return string(out), a
}

// TR-3: why an answer ended, in every dialect.
func TestStopReasons(t *testing.T) {
	rows := []struct {
		name                              string
		chat, responses, messages, gemini string // as it is read; empty: the dialect cannot say it
		toChat, toMessages, toGemini      string // as it is written
		status, incomplete                string // towards responses
	}{
		{"end", "stop", "completed", "end_turn", "STOP", "stop", "end_turn", "STOP", "completed", ""},
		{"stop sequence", "", "", "stop_sequence", "", "stop", "stop_sequence", "STOP", "completed", ""},
		{"limit", "length", "max_output_tokens", "max_tokens", "MAX_TOKENS", "length", "max_tokens", "MAX_TOKENS", "incomplete", "max_output_tokens"},
		{"context full", "", "", "model_context_window_exceeded", "", "length", "model_context_window_exceeded", "MAX_TOKENS", "incomplete", "max_output_tokens"},
		{"filtered", "content_filter", "content_filter", "refusal", "SAFETY", "content_filter", "refusal", "SAFETY", "incomplete", "content_filter"},
		{"filtered by a list", "", "", "", "PROHIBITED_CONTENT", "content_filter", "refusal", "", "incomplete", "content_filter"},
		{"filtered as a recital", "", "", "", "RECITATION", "content_filter", "refusal", "", "incomplete", "content_filter"},
		{"paused", "", "", "pause_turn", "", "stop", "pause_turn", "STOP", "completed", ""},
		{"bad call", "", "", "", "MALFORMED_FUNCTION_CALL", "stop", "end_turn", "", "completed", ""},
		{"TR-4 unknown", "odd", "", "odd", "ODD", "stop", "end_turn", "STOP", "completed", ""},
	}
	for _, r := range rows {
		t.Run("TR-3 "+r.name, func(t *testing.T) {
			read := map[string]string{"chat": r.chat, "responses": r.responses, "messages": r.messages, "gemini": r.gemini}
			written := map[string]string{"chat": r.toChat, "messages": r.toMessages, "gemini": r.toGemini, "responses": r.status}
			for upstream, reason := range read {
				for client, want := range written {
					if reason == "" || want == "" || client == upstream {
						continue
					}
					out, _ := told(t, client, upstream, answerOf(upstream, reason))
					if got := gjson.Get(out, reasons[client]).Str; got != want {
						t.Errorf("%s %s for %s: %q", upstream, reason, client, got)
					}
					if got := gjson.Get(out, "incomplete_details.reason").Str; client == "responses" && got != r.incomplete {
						t.Errorf("%s %s: incomplete for %q", upstream, reason, got)
					}
				}
			}
		})
	}
}

// TR-4: gemini tells calls with STOP, and other dialects with words that do not fit: a call makes the reason.
func TestCallsMakeTheReason(t *testing.T) {
	answers := map[string]string{
		"gemini":   geminiCall,
		"chat":     `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`,
		"messages": `{"id":"x","type":"message","content":[{"type":"tool_use","id":"c","name":"f","input":{}}],"stop_reason":"end_turn"}`,
	}
	for upstream, answer := range answers {
		for client, want := range map[string]string{"chat": "tool_calls", "messages": "tool_use", "gemini": "STOP", "responses": "completed"} {
			if client == upstream {
				continue
			}
			out, a := told(t, client, upstream, answer)
			if got := gjson.Get(out, reasons[client]).Str; got != want || a.Stop != neutral.StopToolCall {
				t.Errorf("%s for %s: %q %v", upstream, client, got, a.Stop)
			}
		}
	}
}

// TR-23: what a model declines is text with the reason refused.
func TestRefusals(t *testing.T) {
	chat := `{"choices":[{"message":{"role":"assistant","content":null,"refusal":"no"},"finish_reason":"stop"}]}`
	responses := `{"id":"x","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}`
	for upstream, answer := range map[string]string{"chat": chat, "responses": responses} {
		out, _ := told(t, "messages", upstream, answer)
		if gjson.Get(out, "stop_reason").Str != "refusal" || gjson.Get(out, "content.0.text").Str != "no" {
			t.Errorf("%s for messages: %s", upstream, out)
		}
		out, _ = told(t, "gemini", upstream, answer)
		if gjson.Get(out, "candidates.0.finishReason").Str != "SAFETY" || gjson.Get(out, "candidates.0.content.parts.0.text").Str != "no" {
			t.Errorf("%s for gemini: %s", upstream, out)
		}
	}
	out, _ := told(t, "chat", "messages", answerOf("messages", "refusal"))
	if gjson.Get(out, "choices.0.finish_reason").Str != "content_filter" || gjson.Get(out, "choices.0.message.content").Str != "a" {
		t.Errorf("messages for chat: %s", out)
	}
}

// TR-28: an empty text is no block, and an answer of nothing is not useful.
func TestEmptyText(t *testing.T) {
	empty := `{"choices":[{"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`
	out, a := told(t, "messages", "chat", empty)
	if gjson.Get(out, "content.#").Int() != 0 || len(a.Parts) != 0 {
		t.Errorf("%s", out)
	}
	r, err := translate.Read(named["messages"], []byte(bodyOf("messages", "")))
	if err != nil {
		t.Fatal(err)
	}
	w, err := translate.NewWay(r, named["chat"], neutral.Target{Model: "up"}, neutral.Told{ID: "id", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	s := w.Stream()
	for _, data := range []string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`} {
		if _, err := s.Event(nil, nil, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if s.Useful() {
		t.Error("an empty stream is called useful")
	}
}

// TR-29: a block that no other dialect knows is dropped and counted by its type.
func TestUnknownContent(t *testing.T) {
	out, _ := told(t, "chat", "messages", `{"id":"x","type":"message","content":[{"type":"odd_block","x":1},{"type":"text","text":"a"}],"stop_reason":"end_turn"}`)
	if gjson.Get(out, "choices.0.message.content").Str != "a" {
		t.Errorf("%s", out)
	}
	r, err := translate.Read(named["chat"], []byte(bodyOf("chat", "")))
	if err != nil {
		t.Fatal(err)
	}
	w, err := translate.NewWay(r, named["messages"], neutral.Target{Model: "up"}, neutral.Told{ID: "id", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	s := w.Stream()
	for _, e := range [][2]string{
		{"message_start", `{"type":"message_start","message":{"id":"x","usage":{"input_tokens":1,"output_tokens":1}}}`},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"odd_block"}}`},
		{"content_block_stop", `{"type":"content_block_stop","index":0}`},
		{"odd.event", `{"type":"odd.event"}`},
	} {
		if _, err := s.Event(nil, []byte(e[0]), []byte(e[1])); err != nil {
			t.Fatal(err)
		}
	}
	if d := s.Dropped(); d["odd_block"] != 1 || d["odd.event"] != 1 {
		t.Errorf("%v", d)
	}
}
