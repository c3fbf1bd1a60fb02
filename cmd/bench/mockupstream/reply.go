package main

import (
	"bytes"
	"fmt"
	"strings"
)

// modelOf finds the top-level-looking "model" value near either end of the body; the scan is
// bounded so that a large prompt costs little.
func modelOf(body []byte) string {
	i := bytes.Index(body[:min(len(body), 4096)], []byte(`"model"`))
	if i < 0 {
		o := max(0, len(body)-4096)
		if i = bytes.LastIndex(body[o:], []byte(`"model"`)); i < 0 {
			return ""
		}
		i += o
	}
	rest := body[i+len(`"model"`):]
	a := bytes.IndexByte(rest, '"')
	if a < 0 {
		return ""
	}
	rest = rest[a+1:]
	b := bytes.IndexByte(rest, '"')
	if b < 0 || b > 200 {
		return ""
	}
	return string(rest[:b])
}

func fail(w *conn, d dialect, p plan) {
	kind, msg := "server_error", "mock upstream failure"
	switch p.failCode {
	case 429:
		kind, msg = "rate_limit_error", "Rate limit reached for requests"
	case 401, 403:
		kind, msg = "authentication_error", "Incorrect API key provided"
	case 400:
		kind, msg = "invalid_request_error", "mock bad request"
	}
	extra := ""
	if (p.failCode == 429 || p.failCode == 503) && p.retryIn != "" {
		extra = "Retry-After: " + p.retryIn + "\r\n"
	}
	var b []byte
	switch d {
	case anthropic:
		b = fmt.Appendf(nil, `{"type":"error","error":{"type":%q,"message":%q}}`, kind, msg)
	case gemini:
		b = fmt.Appendf(nil, `{"error":{"code":%d,"message":%q,"status":%q}}`, p.failCode, msg, strings.ToUpper(kind))
	default:
		b = fmt.Appendf(nil, `{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, msg, kind, kind)
	}
	w.sized(p.failCode, extra, b)
}

type replyKey struct {
	d     dialect
	size  int
	model string
	in    int
}

const words = "the quick brown fox jumps over the lazy dog and then it rests for a while in the shade "

func text(n int) string {
	return strings.Repeat(words, n/len(words)+1)[:n]
}

func (m *mock) reply(d dialect, size int, model string, in int) []byte {
	k := replyKey{d, size, model, in}
	if v, ok := m.replies.Load(k); ok {
		return v.([]byte)
	}
	t, out := text(size), size/4
	var s string
	switch d {
	case anthropic:
		s = fmt.Sprintf(`{"id":"msg_mock","type":"message","role":"assistant","model":%q,"content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":%d}}`, model, t, in, out)
	case gemini:
		s = fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"text":%q}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":%q}`, t, in, out, in+out, model)
	default:
		s = fmt.Sprintf(`{"id":"chatcmpl-mock","object":"chat.completion","created":1700000000,"model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%q},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, model, t, in, out, in+out)
	}
	b := []byte(s)
	m.replies.Store(k, b)
	return b
}
