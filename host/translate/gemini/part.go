package gemini

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// callID is the id of a call that came without one: the same on every replay of the conversation (TR-7).
func callID(n, turn int, name string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(turn) + "\x00" + name))
	return "call_" + strconv.Itoa(n) + "_" + hex.EncodeToString(sum[:8])
}

// readPart reads one part of a request or an answer, unchecked, and names the members that it took. What the neutral form has no
// word for is Unknown.
func readPart(v gjson.Result) (p neutral.Part, known []string) {
	sig := either(v, "thoughtSignature", "thought_signature").Str
	known = []string{"thoughtSignature"}
	switch {
	case v.Get("text").Type == gjson.String:
		p.Text = v.Get("text").Str
		known = append(known, "text")
		if v.Get("thought").Bool() {
			p.Kind = neutral.Thought
			known = append(known, "thought")
		}
	case either(v, "functionCall", "function_call").IsObject():
		c := either(v, "functionCall", "function_call")
		p.Kind = neutral.Call
		p.Call = neutral.ToolCall{ID: c.Get("id").Str, Name: c.Get("name").Str, Arguments: compact(c.Get("args").Raw)}
		known = append(known, "functionCall")
	case either(v, "functionResponse", "function_response").IsObject():
		readResult(&p, either(v, "functionResponse", "function_response"))
		known = append(known, "functionResponse")
	case either(v, "inlineData", "inline_data").IsObject():
		d := either(v, "inlineData", "inline_data")
		p.Media = neutral.Media{Type: either(d, "mimeType", "mime_type").Str, Base64: d.Get("data").Str, Name: either(d, "displayName", "display_name").Str}
		p.Kind = kindOf(p.Media.Type)
		known = append(known, "inlineData")
	case either(v, "fileData", "file_data").IsObject():
		d := either(v, "fileData", "file_data")
		p.Media = neutral.Media{Type: either(d, "mimeType", "mime_type").Str, URL: either(d, "fileUri", "file_uri").Str}
		p.Kind = kindOf(p.Media.Type)
		known = append(known, "fileData")
	default:
		return neutral.Part{Kind: neutral.Unknown, Type: typeOf(v), Raw: []byte(v.Raw)}, nil
	}
	p.Signature.Value = sig
	return p, known
}

// typeOf is the member that says what a part is.
func typeOf(v gjson.Result) (name string) {
	v.ForEach(func(k, _ gjson.Result) bool {
		name = k.Str
		return false
	})
	return name
}

// kindOf is what media of a MIME type are; what is no image and no sound is a document.
func kindOf(mime string) neutral.Kind {
	switch {
	case strings.HasPrefix(mime, "image/"), mime == "":
		return neutral.Image
	case strings.HasPrefix(mime, "audio/"):
		return neutral.Audio
	}
	return neutral.Document
}

// readResult reads what a tool said: SDKs wrap a text in an object under one of a few names (TR-15).
func readResult(p *neutral.Part, v gjson.Result) {
	p.Kind = neutral.Result
	p.Result = neutral.ToolResult{ID: v.Get("id").Str, Name: v.Get("name").Str, Plain: true}
	said := v.Get("response")
	p.Result.Object = []byte(said.Raw)
	text := compact(said.Raw)
	for _, name := range [...]string{"output", "result", "content", "error"} {
		m := said.Get(name)
		if !m.Exists() || !wraps(said, name, p.Result.Name) {
			continue
		}
		if text = m.Str; m.Type != gjson.String {
			text = compact(m.Raw)
		}
		p.Result.Error = name == "error"
		break
	}
	p.Result.Parts = []neutral.Part{{Text: text}}
}

// wraps says whether an object holds nothing but one member, and perhaps the name of the tool.
func wraps(v gjson.Result, member, tool string) bool {
	only := true
	v.ForEach(func(k, m gjson.Result) bool {
		only = k.Str == member || k.Str == "name" && m.Str == tool
		return only
	})
	return only
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
