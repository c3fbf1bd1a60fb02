package main

import (
	"fmt"
)

// spoken is one of the two dialects that stream here: what the mock upstream says in it. Clients read it in reading.go.
type spoken struct {
	name, short string
	path        string
	executor    string
	mark        string // the end of a stream
}

var (
	chat = &spoken{
		name: "chat completions", short: "chat", path: "/v1/chat/completions", executor: "openai-compatible", mark: "data: [DONE]\n\n",
	}
	messages = &spoken{
		name: "messages", short: "messages", path: "/v1/messages", executor: "anthropic",
		mark: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	}
	dialects = []*spoken{chat, messages}
)

// prompt and completion are the tokens that every whole answer states.
const prompt, completion = 11, 60

func (d *spoken) body(model string, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":200,"stream":%t,"messages":[{"role":"user","content":"Count to sixty."}]%s}`, model, stream,
		map[bool]string{true: `,"stream_options":{"include_usage":true}`}[stream && d == chat])
}

func (d *spoken) document(model, text string) string {
	if d == messages {
		return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":%q,"content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":%d}}`,
			model, text, prompt, completion)
	}
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion","created":1,"model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
		model, text, prompt, completion, prompt+completion)
}

// chunk is an event of chat.
func chunk(model, choices, more string) string {
	return fmt.Sprintf("data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":%q,\"choices\":[%s]%s}\n\n", model, choices, more)
}

// event is one of messages.
func event(kind, members string) string {
	return fmt.Sprintf("event: %[1]s\ndata: {\"type\":%[1]q%[2]s}\n\n", kind, members)
}

func (d *spoken) opening(model string) string {
	if d == messages {
		return event("message_start", fmt.Sprintf(`,"message":{"id":"msg_1","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}`, model, prompt)) +
			event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	}
	return chunk(model, `{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`, "")
}

func (d *spoken) delta(model, text string) string {
	if d == messages {
		return event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%q}`, text))
	}
	return chunk(model, fmt.Sprintf(`{"index":0,"delta":{"content":%q},"finish_reason":null}`, text), "")
}

// finish states the reason and the usage, without the end mark.
func (d *spoken) finish(model string) string {
	if d == messages {
		return event("content_block_stop", `,"index":0`) +
			event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}`, completion))
	}
	return chunk(model, `{"index":0,"delta":{},"finish_reason":"stop"}`, "") +
		chunk(model, "", fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, prompt, completion, prompt+completion))
}
