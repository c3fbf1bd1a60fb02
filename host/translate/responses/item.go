package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// readCall reads an item function_call or custom_tool_call, unchecked.
func readCall(v gjson.Result) neutral.Part {
	c := neutral.ToolCall{ID: v.Get("call_id").Str, Name: v.Get("name").Str, Arguments: v.Get("arguments").Str}
	if v.Get("type").Str == "custom_tool_call" {
		c.Arguments, c.Custom = v.Get("input").Str, true
	}
	return neutral.Part{Kind: neutral.Call, Call: c}
}

// readThought reads an item reasoning: its summaries, or its text where the provider shows that, with a blank line between.
func readThought(v gjson.Result) neutral.Part {
	texts := func(path string) string {
		var all []string
		v.Get(path).ForEach(func(_, s gjson.Result) bool {
			all = append(all, s.Get("text").Str)
			return true
		})
		return strings.Join(all, "\n\n")
	}
	text := texts("summary")
	if text == "" {
		text = texts("content")
	}
	return neutral.Part{
		Kind: neutral.Thought, Text: text,
		Signature: neutral.Signature{Value: v.Get("encrypted_content").Str},
	}
}
