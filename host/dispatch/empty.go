package dispatch

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// empty says whether a stream has ended without anything for the user, and without a reason for that (STM-60, STM-61). Reasoning is
// nothing for the user (STM-24).
func (p *pump) empty() bool {
	if !p.known || p.output || !p.finished || p.a.resumed != nil {
		return false
	}
	return !p.a.legitimate(p.reason)
}

// nothing judges a stream that was empty.
func (p *pump) nothing(ctx context.Context) step {
	a := p.a
	reply, v := a.emptyReply()
	if !a.r.t.Committed {
		return a.decided(ctx, reply, v, a.factsOf(reply, v), resilience.FaultEmptyContent)
	}
	return p.endAs(ctx, reply, v, a.factsOf(reply, v), resilience.FaultEmptyContent)
}

// emptyReply is what an empty answer is judged as: 502, the exact model, nothing that cools or counts for a breaker (STM-60).
func (a *attempt) emptyReply() (*rules.Reply, wire.Verdict) {
	a.code, a.kind = "empty_content", "server_error"
	reply := &rules.Reply{Source: wire.SourceHTTP, Status: http.StatusBadGateway, Original: a.resp.StatusCode, Header: a.resp.Header}
	a.describe(reply)
	reply.Facts.Message = "The provider's answer has no content (empty content)."
	return reply, wire.Verdict{
		Reason: wire.ServerError, Scope: wire.ScopeModel, Exact: true, Fallback: true, SkipBreaker: true, Plugin: "host", Rule: "empty_content", Confidence: 100,
	}
}

// legitimate says whether a reason to end explains why there is nothing for the user (STM-61). A normal end does only where the plan
// says that the endpoint is a native one.
func (a *attempt) legitimate(reason string) bool {
	switch reason {
	case "length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded",
		"tool_calls", "tool_use", "function_call", "pause_turn", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL",
		"content_filter", "refusal", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY":
		return true
	case "stop", "end_turn", "stop_sequence", "response.completed", "STOP":
		return a.prep.Native
	}
	return false
}

var (
	contentName = []byte(`content"`)
	textName    = []byte(`text"`)
)

// speaks finds at a glance what nearly every answer has: a text that is not empty. Where reasoning stands in members of the same name
// it finds nothing.
func speaks(d wire.Dialect, b []byte) bool {
	name := contentName
	switch d {
	case wire.OpenAIChat:
	case wire.AnthropicMessages:
		name = textName
	default:
		return false
	}
	for v := member(b, name); v != nil; v = member(v, name) {
		if len(v) > 1 && v[0] == '"' && (v[1] > ' ' && v[1] != '"' && v[1] != '\\') {
			return true
		}
	}
	return false
}

// emptyDocument says whether a whole answer brings nothing for the user. Only what is surely an answer of the dialect is judged.
func (a *attempt) emptyDocument(b []byte) bool {
	if speaks(a.spoken(), b) {
		return false
	}
	reason, some, sure := "", false, false
	switch a.spoken() {
	case wire.OpenAIChat:
		choices := gjson.GetBytes(b, "choices")
		choices.ForEach(func(_, c gjson.Result) bool {
			m := c.Get("message")
			sure = sure || m.IsObject()
			reason = firstOf(reason, c.Get("finish_reason").Str)
			for _, f := range [...]string{"content", "tool_calls", "refusal", "function_call", "audio"} {
				some = some || said(m.Get(f))
			}
			return !some
		})
	case wire.AnthropicMessages:
		content := gjson.GetBytes(b, "content")
		sure, reason = content.IsArray(), gjson.GetBytes(b, "stop_reason").Str
		content.ForEach(func(_, c gjson.Result) bool {
			switch c.Get("type").Str {
			case "thinking", "redacted_thinking":
			case "text":
				some = some || c.Get("text").Str != ""
			default:
				some = true
			}
			return !some
		})
	case wire.OpenAIResponses:
		output := gjson.GetBytes(b, "output")
		sure = output.IsArray() && gjson.GetBytes(b, "status").Str != "queued" && gjson.GetBytes(b, "status").Str != "in_progress"
		if reason = gjson.GetBytes(b, "incomplete_details.reason").Str; reason == "" {
			reason = "response.completed"
		}
		output.ForEach(func(_, item gjson.Result) bool {
			switch item.Get("type").Str {
			case "reasoning":
			case "message":
				some = some || item.Get("content.0.text").Str != "" || item.Get("content.0.refusal").Str != "" || item.Get("content.1").Exists()
			default:
				some = true
			}
			return !some
		})
	case wire.GeminiGenerate:
		gjson.GetBytes(b, "candidates").ForEach(func(_, c gjson.Result) bool {
			sure, reason = true, firstOf(reason, c.Get("finishReason").Str)
			c.Get("content.parts").ForEach(func(_, p gjson.Result) bool {
				some = some || !p.Get("thought").Bool() && (!p.Get("text").Exists() || p.Get("text").Str != "")
				return !some
			})
			return !some
		})
	default:
	}
	return sure && !some && !a.legitimate(reason)
}

// said says whether a member holds anything.
func said(v gjson.Result) bool {
	switch {
	case v.Type == gjson.String:
		return v.Str != ""
	case v.IsArray():
		return v.Get("#").Int() > 0
	}
	return v.IsObject()
}
