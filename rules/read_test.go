package rules_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// ABI-2.1, condition code: the envelopes of the corpus.
func TestEnvelopes(t *testing.T) {
	for _, c := range []struct{ name, body, message, code, typ string }{
		{"OpenAI", `{"error":{"message":"m","type":"t","param":null,"code":"c"}}`, "m", "c", "t"},
		{"nulls", `{"error":{"message":"m","type":null,"code":null}}`, "m", "", ""},
		{"Anthropic", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`, "Overloaded", "", "overloaded_error"},
		{"numeric code", `{"error":{"code":1302,"message":"m"}}`, "m", "1302", ""},
		{"Google", `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}`, "m", "429", "RESOURCE_EXHAUSTED"},
		{"Google with a reason", `[{"error":{"code":403,"message":"m","status":"PERMISSION_DENIED","details":[{"@type":"x"},{"reason":"SERVICE_DISABLED"}]}}]`, "m", "SERVICE_DISABLED", "PERMISSION_DENIED"},
		{"string error", `{"error":"m and more"}`, "m and more", "", ""},
		{"string error with a code", `{"code":"c","error":"m and more"}`, "m and more", "c", ""},
		{"OAuth", `{"error":"invalid_grant","error_description":"m and more"}`, "m and more", "invalid_grant", ""},
		{"errors", `{"success":false,"errors":[{"code":7003,"message":"m"}],"messages":[]}`, "m", "7003", ""},
		{"errors of strings", `{"errors":["m"]}`, "m", "", ""},
		{"errors object", `{"errors":{"message":"m","code":"c"}}`, "m", "c", ""},
		{"errors by field", `{"errors":{"model":["m is required"]}}`, "m is required", "", ""},
		{"bare", `{"code":"c","message":"m","request_id":"r"}`, "m", "c", ""},
		{"bare with null data", `{"code":503,"data":null,"message":"m"}`, "m", "503", ""},
		{"msg", `{"code":1113,"msg":"m"}`, "m", "1113", ""},
		{"Baidu", `{"error_code":17,"error_msg":"m"}`, "m", "17", ""},
		{"AWS", `{"__type":"com.amazon#ThrottlingException","message":"m","reason":"MONTHLY_REQUEST_COUNT"}`, "m", "MONTHLY_REQUEST_COUNT", "ThrottlingException"},
		{"capital letters", `{"Message":"m","Code":"c"}`, "m", "c", ""},
		{"base_resp", `{"id":"0","choices":null,"base_resp":{"status_code":1004,"status_msg":"m"}}`, "m", "1004", ""},
		{"base_resp of a good answer", `{"id":"0","base_resp":{"status_code":0,"status_msg":"success"}}`, "", "", ""},
		{"nested error", `{"error":{"code":503,"error":{"code":"c","message":"m"}}}`, "m", "c", ""},
		{"nested error leaves the rest", `{"error":{"message":"o","type":"t","error":{"message":"m"}}}`, "m", "", "t"},
		{"JSON in a string", `{"error":{"message":"{\"error\":{\"message\":\"m\",\"code\":\"c\"}}","type":"t"}}`, "m", "c", "t"},
		{"JSON after words in a string", `{"error":{"message":"litellm.RateLimitError: {\"error\":{\"message\":\"m\",\"type\":\"u\"}}","code":"429"}}`, "m", "429", "u"},
		{"the body is a JSON string", `"{\"error\":{\"message\":\"m\"}}"`, "m", "", ""},
		{"type outside, error inside", `{"error":{"message":"m"},"message":"UNAUTHENTICATED","success":false,"type":"t"}`, "m", "", "t"},
		{"detail object", `{"detail":{"code":"c"}}`, "", "c", ""},
		{"detail list", `{"detail":[{"loc":["body"],"msg":"m","type":"missing"}]}`, "m", "", "missing"},
		{"detail text", `{"detail":"m","status":403,"title":"Forbidden"}`, "m", "", ""},
		{"Responses", "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"c\",\"message\":\"m\"}}}\n\n", "m", "c", ""},
		{"event stream", "event: error\r\ndata: {\"type\":\"error\",\"error\":{\"type\":\"t\",\"message\":\"m\"}}\r\n\r\n", "m", "", "t"},
		{"event stream after good frames", ": OPENROUTER PROCESSING\n\ndata: {\"id\":\"x\",\"choices\":[]}\n\ndata: {\"error\":{\"code\":502,\"message\":\"m\"},\"choices\":[]}\n\ndata: [DONE]\n", "m", "502", ""},
		{"cut off", `{"error":{"code":"c","message":"m is lo`, "m is lo", "c", ""},
		{"plain text", " upstream connect error\n", "upstream connect error", "", ""},
		{"text that begins like JSON", "{not json}", "{not json}", "", ""},
		{"HTML", "<!DOCTYPE html><html><head><TITLE>504 Gateway\n Time-out</title></head>", "504 Gateway Time-out", "", ""},
		{"HTML without a title", "<html><body>x</body></html>", "", "", ""},
		{"a good answer", `{"id":"msg_0","type":"message","content":[{"type":"text","text":"rate_limit_error"}]}`, "", "", ""},
		{"error null", `{"id":"r","object":"response","error":null,"output":[]}`, "", "", ""},
		{"a number", `7`, "7", "", ""},
		{"nothing", ``, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := answer("p", 400, c.body).Facts
			if diff := cmp.Diff([]string{c.message, c.code, c.typ}, []string{f.Message, f.Code, f.Type}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecoded(t *testing.T) { // RST-4
	f := answer("p", 400, `{"a":"\u989d\u5ea6\u4e0d\u8db3","b":["x","x",{"c":"{\"d\":\"\\u00e9\"}"}]}`).Facts
	if want := "额度不足\nx\n{\"d\":\"\\u00e9\"}\né"; f.Decoded != want {
		t.Errorf("decoded = %q, want %q", f.Decoded, want)
	}
	if f := answer("p", 400, `{"a":"plain"}`).Facts; f.Decoded != "" {
		t.Errorf("without an escape in the body decoded = %q", f.Decoded)
	}
}

func TestReadTransport(t *testing.T) { // ABI-4
	for text, code := range map[string]string{
		"read ECONNRESET": wire.TransportReset, "dial tcp: i/o timeout": wire.TransportTimeout, "context deadline exceeded": wire.TransportTimeout,
		"lookup x: no such host": wire.TransportDNS, "remote error: tls: handshake failure": wire.TransportTLS, "unexpected EOF": wire.TransportEOF,
		"connect: connection refused": wire.TransportConnect, "odd": "",
	} {
		f := answer("p", 0, text).Facts
		if f.Code != code || f.HasBody || f.Message != text {
			t.Errorf("%q: %+v, want code %q", text, f, code)
		}
	}
	r := &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{Code: "eof", Message: "closed"}}
	rules.Read(r)
	if r.Facts.Code != "eof" || r.Facts.Message != "closed" {
		t.Errorf("facts = %+v", r.Facts)
	}
}

func TestReadHint(t *testing.T) {
	r := answer("p", 429, `{"error":{"message":"x"}}`, "Retry-After", "30")
	if want := (rules.Hint{OK: true, Wait: 30 * time.Second, Source: "header:retry-after"}); r.Hint != want {
		t.Errorf("hint = %+v", r.Hint)
	}
}

// "Bad input" of section 2: classified by what can be read, never an error.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "{", `{"error":{"message":"\ud83d","code":1}}`, "data: {\"error\":", "\xff\xfe{", `"\"{\\\"a\\\":1}\""`,
		strings.Repeat("[", 100), strings.Repeat(`{"error":`, 50), "<title>", `{"errors":[[[[[["m"]]]]]]}`, `{"a":"\u`} {
		f.Add([]byte(s), 429)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		r := answer("p", status, string(body))
		facts := r.Facts
		for _, s := range []string{facts.Message, facts.Code, facts.Type, facts.Text, facts.Decoded} {
			if !utf8.ValidString(s) {
				t.Fatalf("not UTF-8: %q", s)
			}
		}
		if len(facts.Message) > 4<<10 || len(facts.Code) > 256 || len(facts.Decoded) > 3*rules.MaxText {
			t.Fatal("too long")
		}
		rules.ByStatus(r)
	})
}
