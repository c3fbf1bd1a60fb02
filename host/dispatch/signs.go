package dispatch

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/resilience/watchdog"
	"github.com/weirgate/weir/sdk/wire"
)

// sign is what an event says of the model: whether it works, whether a user sees something of it, and the text (STM-22, STM-23).
type sign struct {
	watchdog.Sign
	text string // for the user
	tool bool   // a tool call, or another part that is no text
}

func (s *sign) said(text string) {
	if text != "" {
		s.Activity, s.Output = true, true
		s.Text += len(text)
		s.text += text
	}
}

func (s *sign) thinks()  { s.Activity, s.Busy = true, true }
func (s *sign) calls()   { s.Activity, s.Output, s.Busy, s.tool = true, true, true, true }
func (s *sign) stopped() { s.Activity = true }

// signOf reads an event of a dialect. Opening events, signs of life, errors and what does not parse say nothing; of a dialect that we
// do not know every event is output.
func signOf(d wire.Dialect, name string, data []byte) (s sign) {
	switch d {
	case wire.OpenAIChat, wire.AnthropicMessages, wire.OpenAIResponses, wire.GeminiGenerate:
	default:
		s.Activity, s.Output, s.Text = len(data) > 0, len(data) > 0, len(data)
		return s
	}
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return s
	}
	switch d {
	case wire.AnthropicMessages:
		messagesSign(&s, name, data)
	case wire.OpenAIResponses:
		responsesSign(&s, name, data)
	case wire.GeminiGenerate:
		geminiSign(&s, data)
	default:
		chatSign(&s, data)
	}
	return s
}

func chatSign(s *sign, data []byte) {
	gjson.GetBytes(data, "choices").ForEach(func(_, c gjson.Result) bool {
		if f := c.Get("finish_reason"); f.Type == gjson.String && f.Str != "" {
			s.stopped()
		}
		c.Get("delta").ForEach(func(k, v gjson.Result) bool {
			switch k.Str {
			case "content", "refusal":
				if v.Type == gjson.String {
					s.said(v.Str)
				} else if v.IsArray() && len(v.Raw) > 2 {
					s.calls()
				}
			case "reasoning_content", "reasoning":
				if v.Type == gjson.String {
					s.thinks()
				}
			case "reasoning_details":
				s.thinks()
			case "tool_calls":
				if v.IsArray() && len(v.Raw) > 2 {
					s.calls()
				}
			case "function_call", "audio":
				if v.IsObject() {
					s.calls()
				}
			}
			return true
		})
		return true
	})
}

func messagesSign(s *sign, name string, data []byte) {
	switch kindOf(name, data) {
	case "content_block_start":
		b := gjson.GetBytes(data, "content_block")
		switch b.Get("type").Str {
		case "text":
			s.said(b.Get("text").Str)
		case "thinking", "redacted_thinking":
			s.thinks()
		default:
			s.calls()
		}
	case "content_block_delta":
		v := gjson.GetBytes(data, "delta")
		switch v.Get("type").Str {
		case "text_delta":
			s.said(v.Get("text").Str)
		case "thinking_delta", "signature_delta":
			s.thinks()
		case "citations_delta":
			s.Activity = true
		default:
			s.calls()
		}
	case "message_delta":
		if gjson.GetBytes(data, "delta.stop_reason").Str != "" {
			s.stopped()
		}
	}
}

func responsesSign(s *sign, name string, data []byte) {
	kind := kindOf(name, data)
	switch {
	case kind == "response.output_text.delta", kind == "response.refusal.delta":
		s.Activity = true
		s.said(gjson.GetBytes(data, "delta").Str)
	case strings.HasPrefix(kind, "response.reasoning"):
		s.thinks()
	case strings.HasPrefix(kind, "response.") && strings.HasSuffix(kind, ".delta"):
		s.calls()
	case kind == "response.output_item.added", kind == "response.output_item.done":
		switch gjson.GetBytes(data, "item.type").Str {
		case "message", "":
		case "reasoning":
			s.thinks()
		default:
			s.calls()
		}
	case kind == "response.completed", kind == "response.incomplete":
		s.stopped()
	}
}

func geminiSign(s *sign, data []byte) {
	gjson.GetBytes(data, "candidates").ForEach(func(_, c gjson.Result) bool {
		if c.Get("finishReason").Str != "" {
			s.stopped()
		}
		c.Get("content.parts").ForEach(func(_, p gjson.Result) bool {
			text := p.Get("text")
			switch {
			case p.Get("thought").Bool():
				s.thinks()
			case text.Exists():
				s.said(text.Str)
			default:
				s.calls()
			}
			if p.Get("thoughtSignature").Str != "" {
				s.Activity = true
			}
			return true
		})
		return true
	})
}

// kindOf is the type of an event, by its JSON or by its event line.
func kindOf(name string, data []byte) string {
	if t := gjson.GetBytes(data, "type"); t.Type == gjson.String {
		return t.Str
	}
	return name
}

// reasonIn is the reason to end that an event of a run states, or empty.
func reasonIn(d wire.Dialect, data []byte) string {
	switch d {
	case wire.AnthropicMessages:
		return gjson.GetBytes(data, "delta.stop_reason").Str
	case wire.GeminiGenerate:
		return gjson.GetBytes(data, "candidates.0.finishReason").Str
	case wire.OpenAIResponses:
		switch gjson.GetBytes(data, "type").Str {
		case "response.completed":
			return "response.completed"
		case "response.incomplete":
			if why := gjson.GetBytes(data, "response.incomplete_details.reason").Str; why != "" {
				return why
			}
			return "length"
		}
		return ""
	default:
		return gjson.GetBytes(data, "choices.0.finish_reason").Str
	}
}
