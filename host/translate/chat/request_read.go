package chat

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/reader"
	"github.com/weirgate/weir/sdk/wire"
)

// ReadRequest reads the body of a chat completion request. A body that is none is a *neutral.Fault (TR-31).
func ReadRequest(body []byte) (*neutral.Request, error) {
	r := requestReader{out: &neutral.Request{From: wire.OpenAIChat}}
	top := r.Body(body)
	if r.OK() {
		r.Object("", top, r.member)
	}
	if r.OK() && len(r.out.Turns) == 0 {
		r.Fail("messages", "must hold at least one message")
	}
	if r.limit != nil { // both given: the newer name wins (TR-16)
		if r.out.MaxOutput == nil {
			r.out.MaxOutput, r.out.LimitName = r.limit, "max_tokens"
		} else {
			r.out.Extra = append(r.out.Extra, neutral.Field{Path: "max_tokens", Raw: r.limitRaw})
		}
	}
	return r.out, r.Err()
}

type requestReader struct {
	reader.Reader
	out      *neutral.Request
	limit    *int64 // max_tokens, the older name
	limitRaw []byte
}

// member reads one member of the body.
func (r *requestReader) member(name, path string, v gjson.Result) {
	o := r.out
	switch name {
	case "model":
		o.Model = r.String(path, v)
	case "stream":
		if o.Stream = r.Bool(path, v); !o.Stream {
			o.Extra = append(o.Extra, reader.Extra(path, v))
		}
	case "stream_options":
		r.Object(path, v, func(name, at string, v gjson.Result) {
			if name == "include_usage" {
				o.UsageInStream = r.Bool(at, v)
				return
			}
			o.Extra = append(o.Extra, reader.Extra(at, v))
		})
	case "messages":
		r.List(path, v, r.message)
	case "tools":
		r.List(path, v, r.tool)
	case "tool_choice":
		r.choice(path, v)
	case "parallel_tool_calls":
		o.ParallelOff = !r.Bool(path, v)
		if !o.ParallelOff {
			o.Extra = append(o.Extra, reader.Extra(path, v))
		}
	case "max_completion_tokens":
		n := r.Int(path, v)
		o.MaxOutput, o.LimitName = &n, name
	case "max_tokens":
		n := r.Int(path, v)
		r.limit, r.limitRaw = &n, []byte(v.Raw)
	default:
		r.sampling(name, path, v)
	}
}

// sampling reads how the answer is to be made.
func (r *requestReader) sampling(name, path string, v gjson.Result) {
	o := r.out
	switch name {
	case "temperature":
		o.Temperature = r.Number(path, v)
	case "top_p":
		o.TopP = r.Number(path, v)
	case "top_k":
		o.TopK = r.Number(path, v)
	case "seed":
		o.Seed = r.Number(path, v)
	case "frequency_penalty":
		o.Frequency = r.Number(path, v)
	case "presence_penalty":
		o.Presence = r.Number(path, v)
	case "stop":
		if v.Type == gjson.String {
			o.Stop, o.StopPlain = []string{v.Str}, true
			return
		}
		r.List(path, v, func(at string, v gjson.Result) { o.Stop = append(o.Stop, r.String(at, v)) })
	case "reasoning_effort":
		o.Reasoning.Effort = r.String(path, v)
	case "response_format":
		r.format(path, v)
	case "prompt_cache_key":
		o.CacheKey = r.String(path, v)
	case "user":
		o.User = r.String(path, v)
	default:
		o.Extra = append(o.Extra, reader.Extra(path, v))
	}
}

// format reads response_format.
func (r *requestReader) format(path string, v gjson.Result) {
	f := &r.out.Format
	switch kind := v.Get("type").Str; kind {
	case "text":
	case "json_object":
		f.Kind = neutral.FormatJSON
	case "json_schema":
		f.Kind = neutral.FormatSchema
		inner := v.Get("json_schema")
		r.Object(path+".json_schema", inner, func(name, at string, v gjson.Result) {
			switch name {
			case "name":
				f.Name = r.String(at, v)
			case "schema":
				f.Schema = []byte(v.Raw)
			case "strict":
				strict := r.Bool(at, v)
				f.Strict = &strict
			default:
				r.out.Extra = append(r.out.Extra, reader.Extra(at, v))
			}
		})
	default:
		r.Fail(path+".type", "must be text, json_object or json_schema, not %q", kind)
	}
}

// choice reads tool_choice.
func (r *requestReader) choice(path string, v gjson.Result) {
	c := &r.out.Choice
	if v.Type == gjson.String {
		switch v.Str {
		case "auto":
			c.Mode = neutral.ChoiceAuto
		case "none":
			c.Mode = neutral.ChoiceNone
		case "required":
			c.Mode = neutral.ChoiceAny
		default:
			r.Fail(path, "must be auto, none, required or an object, not %q", v.Str)
		}
		return
	}
	switch kind := v.Get("type").Str; kind {
	case "function", "custom":
		c.Mode, c.Names = neutral.ChoiceNamed, []string{r.String(path+"."+kind+".name", v.Get(kind+".name"))}
	case "allowed_tools":
		r.out.Extra = append(r.out.Extra, reader.Extra(path, v))
	default:
		r.Fail(path+".type", "must be function, custom or allowed_tools, not %q", kind)
	}
}

// tool reads one definition.
func (r *requestReader) tool(path string, v gjson.Result) {
	t := neutral.Tool{Path: path}
	kind := v.Get("type").Str
	switch kind {
	case "function", "custom":
		t.Custom = kind == "custom"
		r.Object(path+"."+kind, v.Get(kind), func(name, at string, v gjson.Result) {
			switch {
			case name == "name":
				t.Name = r.String(at, v)
			case name == "description":
				t.Description = r.String(at, v)
			case name == "parameters":
				t.Schema = []byte(v.Raw)
			case name == "strict":
				strict := r.Bool(at, v)
				t.Strict = &strict
			case name == "format" && t.Custom:
				t.Format = []byte(v.Raw)
			default:
				t.Extra = append(t.Extra, reader.Extra(at, v))
			}
		})
		if r.OK() && t.Name == "" {
			r.Fail(path+"."+kind+".name", "is missing")
		}
	default:
		t.Hosted, t.Raw = kind, []byte(v.Raw)
		if kind == "" {
			r.Fail(path+".type", "is missing")
		}
	}
	r.out.Tools = append(r.out.Tools, t)
}

// message reads one message into one turn.
func (r *requestReader) message(path string, v gjson.Result) {
	t := neutral.Turn{Path: path}
	role := v.Get("role").Str
	switch role {
	case "system":
		t.Role = neutral.System
	case "developer":
		t.Role = neutral.Developer
	case "user":
	case "assistant":
		t.Role = neutral.Model
	case "tool", "function":
		r.result(path, v, &t)
		r.out.Turns = append(r.out.Turns, t)
		return
	default:
		r.Fail(path+".role", "must be system, developer, user, assistant or tool, not %q", role)
		return
	}
	var thought, spoken, calls []neutral.Part
	r.Object(path, v, func(name, at string, v gjson.Result) {
		switch name {
		case "role":
		case "name":
			t.Name = r.String(at, v)
		case "content":
			spoken, t.Plain = r.content(at, v)
		case "reasoning_content":
			thought = append(thought, neutral.Part{Kind: neutral.Thought, Text: r.String(at, v), Path: at})
		case "refusal":
			calls = append(calls, neutral.Part{Kind: neutral.Refusal, Text: r.String(at, v), Path: at})
		case "tool_calls":
			r.List(at, v, func(at string, v gjson.Result) { calls = append(calls, r.call(at, v)) })
		default:
			t.Extra = append(t.Extra, reader.Extra(at, v))
		}
	})
	t.Parts = append(append(thought, spoken...), calls...)
	if m := v.Get("content"); m.Exists() && m.Type == gjson.Null {
		t.Extra = append(t.Extra, reader.Extra(path+".content", m))
	}
	if m := v.Get("refusal"); m.Exists() && m.Type == gjson.Null {
		t.Extra = append(t.Extra, reader.Extra(path+".refusal", m))
	}
	r.out.Turns = append(r.out.Turns, t)
}

// content reads a text or a list of parts.
func (r *requestReader) content(path string, v gjson.Result) (parts []neutral.Part, plain bool) {
	if v.Type == gjson.String {
		r.Count(path)
		return []neutral.Part{{Kind: neutral.Text, Text: v.Str, Path: path}}, true
	}
	r.List(path, v, func(at string, v gjson.Result) { parts = append(parts, r.part(at, v)) })
	return parts, false
}

// part reads one part of a content.
func (r *requestReader) part(path string, v gjson.Result) neutral.Part {
	r.Count(path)
	p := neutral.Part{Type: v.Get("type").Str, Path: path}
	switch p.Type {
	case "text":
		p.Text = r.String(path+".text", v.Get("text"))
	case "refusal":
		p.Kind, p.Text = neutral.Refusal, r.String(path+".refusal", v.Get("refusal"))
	case "image_url":
		p.Kind = neutral.Image
		p.Media = r.media(path+".image_url.url", r.String(path+".image_url.url", v.Get("image_url.url")))
		p.Media.Detail = v.Get("image_url.detail").Str
	case "input_audio":
		p.Kind = neutral.Audio
		p.Media = neutral.Media{Base64: r.String(path+".input_audio.data", v.Get("input_audio.data")), Type: "audio/" + v.Get("input_audio.format").Str}
	case "file":
		p.Kind = neutral.Document
		if data := v.Get("file.file_data"); data.Exists() {
			p.Media = r.media(path+".file.file_data", r.String(path+".file.file_data", data))
		} else {
			p.Kind, p.Raw = neutral.Unknown, []byte(v.Raw) // file_id names what only that provider has
		}
		p.Media.Name = v.Get("file.filename").Str
	case "":
		r.Fail(path+".type", "is missing")
	default:
		p.Kind, p.Raw = neutral.Unknown, []byte(v.Raw)
	}
	v.ForEach(func(k, m gjson.Result) bool {
		switch k.Str {
		case "type", "text", "refusal", "image_url", "input_audio", "file":
		default:
			p.Extra = append(p.Extra, reader.Extra(reader.Join(path, k.Str), m))
		}
		return true
	})
	return p
}

// media splits a data URL strictly (TR-21); anything else is an address.
func (r *requestReader) media(path, url string) neutral.Media {
	rest, data := strings.CutPrefix(url, "data:")
	if !data {
		return neutral.Media{URL: url}
	}
	kind, b64, ok := strings.Cut(rest, ";base64,")
	if !ok || kind == "" {
		r.Fail(path, "a data URL must have the form data:<type>;base64,<data>")
	}
	return neutral.Media{Type: kind, Base64: b64}
}

// call reads one call of a tool.
func (r *requestReader) call(path string, v gjson.Result) neutral.Part {
	r.Count(path)
	p := neutral.Part{Kind: neutral.Call, Type: v.Get("type").Str, Path: path}
	kind, text := "function", "arguments"
	if p.Type == "custom" {
		kind, text, p.Call.Custom = "custom", "input", true
	}
	p.Call.ID = v.Get("id").Str
	p.Call.Name = r.String(path+"."+kind+".name", v.Get(kind+".name"))
	p.Call.Arguments = v.Get(kind + "." + text).Str
	v.ForEach(func(k, m gjson.Result) bool {
		switch k.Str {
		case "id", "type", "function", "custom":
		default:
			p.Extra = append(p.Extra, reader.Extra(reader.Join(path, k.Str), m))
		}
		return true
	})
	return p
}

// result reads a message of role tool.
func (r *requestReader) result(path string, v gjson.Result, t *neutral.Turn) {
	p := neutral.Part{Kind: neutral.Result, Path: path}
	r.Object(path, v, func(name, at string, v gjson.Result) {
		switch name {
		case "role":
		case "tool_call_id":
			p.Result.ID = r.String(at, v)
		case "name":
			p.Result.Name = r.String(at, v)
		case "content":
			p.Result.Parts, p.Result.Plain = r.content(at, v)
		default:
			t.Extra = append(t.Extra, reader.Extra(at, v))
		}
	})
	r.Count(path)
	t.Parts = []neutral.Part{p}
}
