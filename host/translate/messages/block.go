package messages

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// readBlock reads one content block of a request or an answer, unchecked. What the neutral form has no word for is Unknown.
func readBlock(v gjson.Result) neutral.Part {
	p := neutral.Part{Type: v.Get("type").Str}
	switch p.Type {
	case "text":
		p.Text = v.Get("text").Str
	case "thinking":
		p.Kind, p.Text = neutral.Thought, v.Get("thinking").Str
		p.Signature.Value = v.Get("signature").Str
	case "redacted_thinking":
		p.Kind = neutral.Thought
		p.Signature = neutral.Signature{Value: v.Get("data").Str, Redacted: true}
	case "tool_use":
		p.Kind = neutral.Call
		p.Call = neutral.ToolCall{ID: v.Get("id").Str, Name: v.Get("name").Str, Arguments: compact(v.Get("input").Raw)}
	case "tool_result":
		p.Kind = neutral.Result
		p.Result.Error = v.Get("is_error").Bool()
	case "image":
		readSource(&p, v, neutral.Image)
	case "document":
		readSource(&p, v, neutral.Document)
		p.Media.Name = v.Get("title").Str
	default:
		p.Kind, p.Raw = neutral.Unknown, []byte(v.Raw)
	}
	return p
}

// readSource reads inline data or an address; a file that only the provider has stays unknown.
func readSource(p *neutral.Part, v gjson.Result, kind neutral.Kind) {
	src := v.Get("source")
	switch src.Get("type").Str {
	case "base64":
		p.Kind, p.Media = kind, neutral.Media{Type: src.Get("media_type").Str, Base64: src.Get("data").Str}
	case "url":
		p.Kind, p.Media = kind, neutral.Media{URL: src.Get("url").Str}
	default:
		p.Kind, p.Raw = neutral.Unknown, []byte(v.Raw)
	}
}

// compact is JSON without white space, its keys in their order (TR-14). Nothing is an empty object.
func compact(raw string) string {
	if raw == "" || raw == "{}" {
		return "{}"
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(raw)) != nil {
		return raw
	}
	return b.String()
}

// object is the arguments of a call as an object: text that is none is kept under _raw (TR-14).
func object(args string) (raw []byte, ok bool) {
	if args == "" {
		return []byte("{}"), true
	}
	if gjson.Valid(args) && gjson.Parse(args).IsObject() {
		return []byte(args), true
	}
	b, err := json.Marshal(map[string]string{"_raw": args})
	if err != nil {
		return []byte("{}"), false
	}
	return b, false
}
