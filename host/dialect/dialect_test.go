package dialect_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/sdk/wire"
)

func decode(t *testing.T, b []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return m
}

// INF-30: the body has the shape of the route's dialect, with param and code present even when null.
func TestBodyByDialect(t *testing.T) {
	f := dialect.Failure{Status: 400, Message: "wrong <field> & more", RequestID: "r1"}
	for d, want := range map[wire.Dialect]string{
		wire.OpenAIChat:        `{"error":{"message":"wrong <field> & more","type":"invalid_request_error","param":null,"code":null}}`,
		wire.OpenAIResponses:   `{"error":{"message":"wrong <field> & more","type":"invalid_request_error","param":null,"code":null}}`,
		wire.AnthropicMessages: `{"type":"error","error":{"type":"invalid_request_error","message":"wrong <field> & more"},"request_id":"r1"}`,
		wire.GeminiGenerate:    `{"error":{"code":400,"message":"wrong <field> & more","status":"INVALID_ARGUMENT","details":[]}}`,
	} {
		if got := string(dialect.Body(d, f)); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
}

// INF-31: status and type, row by row.
func TestStatusTable(t *testing.T) {
	for _, row := range []struct {
		status                               int
		chatType, chatCode, messages, gemini string
	}{
		{400, "invalid_request_error", "", "invalid_request_error", "INVALID_ARGUMENT"},
		{401, "invalid_request_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED"},
		{402, "insufficient_quota", "insufficient_quota", "billing_error", "FAILED_PRECONDITION"},
		{403, "invalid_request_error", "", "permission_error", "PERMISSION_DENIED"},
		{404, "invalid_request_error", "model_not_found", "not_found_error", "NOT_FOUND"},
		{413, "invalid_request_error", "", "request_too_large", "INVALID_ARGUMENT"},
		{429, "requests", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"},
		{500, "server_error", "", "api_error", "INTERNAL"},
		{502, "server_error", "bad_gateway", "api_error", "UNAVAILABLE"},
		{503, "server_error", "server_is_overloaded", "overloaded_error", "UNAVAILABLE"},
		{529, "server_error", "server_is_overloaded", "overloaded_error", "UNAVAILABLE"},
		{504, "server_error", "timeout", "timeout_error", "DEADLINE_EXCEEDED"},
	} {
		f := dialect.Failure{Status: row.status, Message: "m"}
		chat := decode(t, dialect.Body(wire.OpenAIChat, f))["error"].(map[string]any)
		code, _ := chat["code"].(string)
		if chat["type"] != row.chatType || code != row.chatCode {
			t.Errorf("%d chat: %v", row.status, chat)
		}
		messages := decode(t, dialect.Body(wire.AnthropicMessages, f))["error"].(map[string]any)
		if messages["type"] != row.messages {
			t.Errorf("%d messages: %v", row.status, messages)
		}
		gemini := decode(t, dialect.Body(wire.GeminiGenerate, f))["error"].(map[string]any)
		if gemini["status"] != row.gemini || gemini["code"] != float64(dialect.StatusFor(wire.GeminiGenerate, row.status)) {
			t.Errorf("%d gemini: %v", row.status, gemini)
		}
	}
	if dialect.StatusFor(wire.AnthropicMessages, 529) != 529 || dialect.StatusFor(wire.OpenAIChat, 529) != 503 {
		t.Error("INF-31: 529 belongs to messages routes only")
	}
}

// INF-37: type and code of another section win on chat; the other dialects keep the status' own word and carry the facts.
func TestFactsOfOtherSections(t *testing.T) {
	f := dialect.Failure{
		Status: 429, Type: "rate_limit_error", Code: "model_cooldown", Message: "cooling", RetryAfter: 90 * time.Second,
		Facts: []dialect.Fact{{Name: "model", Value: "m"}, {Name: "reset_seconds", Value: 90}},
	}
	want := map[string]any{"message": "cooling", "type": "rate_limit_error", "code": "model_cooldown", "param": nil,
		"model": "m", "reset_seconds": float64(90)}
	if diff := cmp.Diff(want, decode(t, dialect.Body(wire.OpenAIChat, f))["error"]); diff != "" {
		t.Error(diff)
	}
	messages := decode(t, dialect.Body(wire.AnthropicMessages, f))["error"].(map[string]any)
	if messages["type"] != "rate_limit_error" || messages["code"] != "model_cooldown" || messages["reset_seconds"] != float64(90) {
		t.Error(messages)
	}
	gemini := decode(t, dialect.Body(wire.GeminiGenerate, f))["error"].(map[string]any)
	details := gemini["details"].([]any)
	info, retry := details[0].(map[string]any), details[1].(map[string]any)
	if info["reason"] != "model_cooldown" || info["metadata"].(map[string]any)["reset_seconds"] != "90" || retry["retryDelay"] != "90s" {
		t.Error(details)
	}
}

// INF-34: a stream that has begun ends with one error event in its own dialect, and never as if it were whole.
func TestStreamError(t *testing.T) {
	f := dialect.Failure{Status: 502, Message: "cut"}
	chat := string(dialect.StreamError(wire.OpenAIChat, f, dialect.Place{}))
	if !strings.HasPrefix(chat, `data: {"error":{"message":"cut"`) || strings.Contains(chat, "[DONE]") || !strings.HasSuffix(chat, "\n\n") {
		t.Error(chat)
	}
	messages := string(dialect.StreamError(wire.AnthropicMessages, f, dialect.Place{}))
	if !strings.HasPrefix(messages, "event: error\ndata: {\"type\":\"error\"") || strings.Contains(messages, "message_stop") {
		t.Error(messages)
	}
	responses := string(dialect.StreamError(wire.OpenAIResponses, f, dialect.Place{}))
	if !strings.HasPrefix(responses, "event: error\n") || !strings.Contains(responses, "event: response.failed\n") {
		t.Error(responses)
	}
	if gemini := string(dialect.StreamError(wire.GeminiGenerate, f, dialect.Place{})); !strings.HasPrefix(gemini, `data: {"error":{"code":502`) {
		t.Error(gemini)
	}
}

// INF-40, INF-42, INF-43: both retry headers, and a plain no when waiting or repeating does not help.
func TestRetryHeaders(t *testing.T) {
	for _, c := range []struct {
		f                           dialect.Failure
		seconds, millis, stopAsking string
	}{
		{dialect.Failure{Status: 429, RetryAfter: 1200 * time.Millisecond}, "2", "1200", ""},
		{dialect.Failure{Status: 429, RetryAfter: time.Hour}, "3600", "3600000", "false"},
		{dialect.Failure{Status: 400, NoRetry: true}, "", "", "false"},
		{dialect.Failure{Status: 503}, "", "", ""},
	} {
		h := http.Header{}
		dialect.Headers(h, c.f)
		got := []string{h.Get("Retry-After"), h.Get("Retry-After-Ms"), h.Get("X-Should-Retry")}
		if diff := cmp.Diff([]string{c.seconds, c.millis, c.stopAsking}, got); diff != "" {
			t.Errorf("%+v: %s", c.f, diff)
		}
	}
}

func TestUnencodableFactKeepsTheMessage(t *testing.T) {
	f := dialect.Failure{Status: 500, Message: "still here", Facts: []dialect.Fact{{Name: "bad", Value: func() {}}}}
	if got := string(dialect.Body(wire.OpenAIChat, f)); !strings.Contains(got, "still here") {
		t.Error(got)
	}
}

// INF-37, CMB-52, CMB-53: diagnostics, hint and times are the same in every dialect: beside the message in chat, responses and
// messages, and as texts of one ErrorInfo in gemini.
func TestFactsInEveryDialect(t *testing.T) {
	type list struct {
		Excluded []string `json:"excluded"`
	}
	f := dialect.Failure{Status: 429, Code: "rate_limit_exceeded", Message: "wait", RetryAfter: 2 * time.Second, Facts: []dialect.Fact{
		{Name: "retry_after", Value: 2}, {Name: "diagnostics", Value: list{[]string{"model_lockout"}}},
	}}
	want := map[string]any{"retry_after": 2.0, "diagnostics": map[string]any{"excluded": []any{"model_lockout"}}}
	for _, d := range []wire.Dialect{wire.OpenAIChat, wire.OpenAIResponses, wire.AnthropicMessages} {
		body := decode(t, dialect.Body(d, f))["error"].(map[string]any)
		for name, value := range want {
			if diff := cmp.Diff(value, body[name]); diff != "" {
				t.Errorf("%s: %s: %s", d, name, diff)
			}
		}
		if body["code"] != "rate_limit_exceeded" {
			t.Errorf("%s: %v", d, body)
		}
	}
	details := decode(t, dialect.Body(wire.GeminiGenerate, f))["error"].(map[string]any)["details"].([]any)
	info := details[0].(map[string]any)
	meta := info["metadata"].(map[string]any)
	if info["reason"] != "rate_limit_exceeded" || meta["retry_after"] != "2" || meta["diagnostics"] != `{"excluded":["model_lockout"]}` {
		t.Errorf("%v", details)
	}
	if retry := details[1].(map[string]any); retry["retryDelay"] != "2s" {
		t.Errorf("INF-40: %v", retry)
	}
}
