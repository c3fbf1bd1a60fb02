package gateway_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// INF-1, INF-2: the path says dialect, and on gemini routes the model and whether to stream; names hold slashes and colons, raw or
// percent-encoded.
func TestGenerationRoutes(t *testing.T) {
	d := open(t, nil)
	named := `{"model":"acme/large","stream":true}`
	bare := `{"contents":[{"parts":[{"text":"hi"}]}]}`
	for _, c := range []struct {
		path, body string
		endpoint   string
		dialect    wire.Dialect
		model      string
		stream     bool
	}{
		{"/v1/chat/completions", named, "/v1/chat/completions", wire.OpenAIChat, "acme/large", true},
		{"/v1/responses", named, "/v1/responses", wire.OpenAIResponses, "acme/large", true},
		{"/v1/messages", named, "/v1/messages", wire.AnthropicMessages, "acme/large", true},
		{"/v1/messages?beta=true", named, "/v1/messages", wire.AnthropicMessages, "acme/large", true},
		{"/v1beta/models/acme/large:generateContent", bare, "/v1beta/models:generateContent", wire.GeminiGenerate, "acme/large", false},
		{"/v1/models/gpt-4:streamGenerateContent?alt=sse", bare, "/v1beta/models:generateContent", wire.GeminiGenerate, "gpt-4", true},
		{"/v1beta/acme/large:generateContent", bare, "/v1beta/models:generateContent", wire.GeminiGenerate, "acme/large", false}, // as the AI SDK asks
		{"/v1alpha/models/acme%2Fteam/small%3AstreamGenerateContent", bare, "/v1beta/models:generateContent", wire.GeminiGenerate, "acme/team/small", true},
	} {
		d.calls = nil
		resp, text := d.send("POST", c.path, c.body)
		if resp.StatusCode != 200 || len(d.calls) != 1 {
			t.Errorf("%s: %d %s", c.path, resp.StatusCode, text)
			continue
		}
		got := d.calls[0]
		if got.Endpoint != c.endpoint || got.Dialect != c.dialect || got.Model != c.model || got.Stream != c.stream {
			t.Errorf("%s: %s %s %s stream %v", c.path, got.Endpoint, got.Dialect, got.Model, got.Stream)
		}
	}
}

// INF-5, INF-6, INF-30: what is not there is told in the shape that the family of the path reads.
func TestUnknownGenerationPaths(t *testing.T) {
	d := open(t, nil)
	if resp, text := d.send("POST", "/v1beta/models/acme/large:predict", "{}"); resp.StatusCode != 404 && resp.StatusCode != 405 || !json.Valid([]byte(text)) {
		t.Errorf("unknown method: %d %s", resp.StatusCode, text)
	}
	resp, text := d.send("GET", "/v1/messages", "")
	var e struct{ Type string }
	if resp.StatusCode != 405 || resp.Header.Get("Allow") == "" || json.Unmarshal([]byte(text), &e) != nil || e.Type != "error" {
		t.Errorf("GET /v1/messages: %d %s", resp.StatusCode, text)
	}
	resp, text = d.send("POST", "/v1beta/nothing", "{}")
	var g struct{ Error struct{ Status string } }
	if resp.StatusCode != 404 || json.Unmarshal([]byte(text), &g) != nil || g.Error.Status != "NOT_FOUND" {
		t.Errorf("/v1beta/nothing: %d %s", resp.StatusCode, text)
	}
	for _, path := range []string{"/v1/messages", "/v1/responses", "/v1beta/models/acme/large:generateContent"} {
		if resp, _ := d.send("OPTIONS", path, ""); resp.StatusCode != 204 || resp.Header.Get("Allow") == "" {
			t.Errorf("OPTIONS %s: %d", path, resp.StatusCode)
		}
	}
	if resp, text := d.send("GET", "/v1beta/models", ""); resp.StatusCode != 200 || !json.Valid([]byte(text)) {
		t.Errorf("models: %d %s", resp.StatusCode, text)
	}
}

// INF-1: without alt=sse a gemini stream is one JSON array, written element by element, however its events are cut; an error in
// mid-stream is its last element.
func TestGeminiArray(t *testing.T) {
	d := open(t, nil)
	failed := dialect.StreamError(wire.GeminiGenerate, dialect.Failure{Status: 502, Message: "broke"}, dialect.Place{})
	for name, pieces := range map[string][]string{
		"whole": {"data: {\"a\":1}\n\n", "data: {\"a\":2}\n\n"},
		"cut":   {"da", "ta: {\"a\"", ":1}\n", "\ndata: {\"a\":2}\n\n"},
		"crlf":  {"data: {\"a\":1}\r\n\r\ndata: {\"a\":2}\r\n\r\n"},
		"error": {"data: {\"a\":1}\n\n", string(failed)},
		"empty": {},
	} {
		t.Run(name, func(t *testing.T) {
			d.do = func(_ *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
				tr := &dispatch.Trail{Committed: true, Status: 200}
				out.Commit(200, http.Header{"Content-Type": {"text/event-stream"}}, tr)
				for _, p := range pieces {
					if err := out.Write([]byte(p)); err != nil {
						t.Error(err)
					}
				}
				return tr
			}
			resp, text := d.send("POST", "/v1beta/models/acme/large:streamGenerateContent", `{"contents":[]}`)
			var list []map[string]any
			if err := json.Unmarshal([]byte(text), &list); err != nil || resp.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("%v: %s", err, text)
			}
			want := 2
			if name == "empty" {
				want = 0
			}
			if len(list) != want {
				t.Errorf("%d elements: %s", len(list), text)
			}
		})
	}
}
