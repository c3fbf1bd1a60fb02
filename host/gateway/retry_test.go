package gateway_test

import (
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
)

// INF-41, INF-45: a wait is announced in both headers, since each client obeys another one; "stop now" says so and names no time; a model
// that is out for now is 503 with the code that codex shows to its user.
func TestRetryHeaders(t *testing.T) {
	d := open(t, nil)
	for _, c := range []struct {
		name                string
		f                   dialect.Failure
		after, ms, should   string
		status              int
		responsesCode, kind string
	}{
		{"INF-45 wait", dialect.Failure{Status: 429, RetryAfter: 1500 * time.Millisecond, Message: "m"}, "2", "1500", "", 429, "rate_limit_exceeded", "rate_limit_error"},
		{"INF-45 stop now", dialect.Failure{Status: 429, NoRetry: true, Message: "m"}, "", "", "false", 429, "rate_limit_exceeded", "rate_limit_error"},
		{"INF-45 out for now", dialect.Failure{Status: 503, RetryAfter: time.Second, Message: "m"}, "1", "1000", "", 503, "server_is_overloaded", "overloaded_error"},
		{"INF-42 a long wait", dialect.Failure{Status: 429, RetryAfter: time.Hour, Message: "m"}, "3600", "3600000", "false", 429, "rate_limit_exceeded", "rate_limit_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.do = func(*dispatch.Call, dispatch.Sink) *dispatch.Trail { return &dispatch.Trail{Failure: &c.f} }
			for _, path := range []string{"/v1/responses", "/v1/messages"} {
				resp, text := d.send("POST", path, chat)
				h := resp.Header
				if resp.StatusCode != c.status || h.Get("Retry-After") != c.after || h.Get("Retry-After-Ms") != c.ms || h.Get("X-Should-Retry") != c.should {
					t.Errorf("%s: %d %v", path, resp.StatusCode, h)
				}
				if path == "/v1/responses" && gjson.Get(text, "error.code").Str != c.responsesCode {
					t.Errorf("%s: %s", path, text)
				}
				if path == "/v1/messages" && gjson.Get(text, "error.type").Str != c.kind {
					t.Errorf("%s: %s", path, text)
				}
			}
		})
	}
}

// INF-4: what agents ask at their start in other modes is answered without an upstream.
func TestWhatAgentsAskAtStart(t *testing.T) {
	d := open(t, nil)
	for _, path := range []string{"/v1/models", "/v1beta/models", "/v1/models/acme/large"} {
		if resp, text := d.send("GET", path, ""); resp.StatusCode != 200 || !gjson.Valid(text) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	for path, member := range map[string]string{
		"/v1/messages/count_tokens": "input_tokens", "/v1/responses/input_tokens": "input_tokens", "/v1beta/models/acme/large:countTokens": "totalTokens",
	} {
		resp, text := d.send("POST", path, chat)
		if resp.StatusCode != 200 || gjson.Get(text, member).Int() < 1 || resp.Header.Get("X-Weir-Estimated") != "true" {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	if len(d.calls) > 0 {
		t.Error("an upstream was asked to generate")
	}
	if _, text := d.send("GET", "/v1beta/models/acme/large", ""); !gjson.Get(text, `supportedGenerationMethods.#(=="countTokens")`).Exists() { // INF-50
		t.Error(text)
	}
}
