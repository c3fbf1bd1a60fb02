package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/reader"
	"github.com/weirgate/weir/sdk/wire"
)

// ReadRequest reads the body of a Responses request. A body that is none is a *neutral.Fault (TR-31).
func ReadRequest(body []byte) (*neutral.Request, error) {
	r := requestReader{out: &neutral.Request{From: wire.OpenAIResponses}}
	top := r.Body(body)
	if r.OK() {
		r.Object("", top, r.member)
	}
	if r.OK() && len(r.out.Turns) == 0 {
		r.Fail("input", "must hold a text or at least one item")
	}
	return r.out, r.Err()
}

type requestReader struct {
	reader.Reader
	out *neutral.Request
}

func (r *requestReader) extra(path string, v gjson.Result) {
	r.out.Extra = append(r.out.Extra, reader.Extra(path, v))
}

// member reads one member of the body.
func (r *requestReader) member(name, path string, v gjson.Result) {
	o := r.out
	switch name {
	case "model":
		o.Model = r.String(path, v)
	case "stream":
		if o.Stream = r.Bool(path, v); !o.Stream {
			r.extra(path, v)
		}
	case "instructions":
		o.System, o.SystemPlain = []neutral.Part{{Text: r.String(path, v), Path: path}}, true
	case "input":
		if v.Type == gjson.String {
			o.Turns = []neutral.Turn{{Plain: true, Path: path, Parts: []neutral.Part{{Text: v.Str, Path: path}}}}
			return
		}
		r.List(path, v, r.item)
	case "tools":
		r.List(path, v, r.tool)
	case "tool_choice":
		r.choice(path, v)
	case "parallel_tool_calls":
		if o.ParallelOff = !r.Bool(path, v); !o.ParallelOff {
			r.extra(path, v)
		}
	case "max_output_tokens":
		n := r.Int(path, v)
		o.MaxOutput = &n
	case "temperature":
		o.Temperature = r.Number(path, v)
	case "top_p":
		o.TopP = r.Number(path, v)
	case "prompt_cache_key":
		o.CacheKey = r.String(path, v)
	case "user":
		o.User = r.String(path, v)
	case "reasoning":
		r.Object(path, v, r.reasoning)
	case "text":
		r.Object(path, v, r.text)
	default:
		r.extra(path, v)
	}
}

func (r *requestReader) reasoning(name, path string, v gjson.Result) {
	switch name {
	case "effort":
		r.out.Reasoning.Effort = r.String(path, v)
	case "summary":
		show := true
		r.out.Reasoning.Summary, r.out.Reasoning.Show = r.String(path, v), &show
	default:
		r.extra(path, v)
	}
}

// text reads the form of the answer.
func (r *requestReader) text(name, path string, v gjson.Result) {
	f := &r.out.Format
	if name != "format" {
		r.extra(path, v)
		return
	}
	switch kind := v.Get("type").Str; kind {
	case "text":
		r.extra(path, v)
	case "json_object":
		f.Kind = neutral.FormatJSON
	case "json_schema":
		f.Kind = neutral.FormatSchema
		r.Object(path, v, func(name, at string, v gjson.Result) {
			switch name {
			case "type":
			case "name":
				f.Name = r.String(at, v)
			case "schema":
				f.Schema = []byte(v.Raw)
			case "strict":
				strict := r.Bool(at, v)
				f.Strict = &strict
			default:
				r.extra(at, v)
			}
		})
	default:
		r.Fail(path+".type", "must be text, json_object or json_schema, not %q", kind)
	}
}

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
		c.Mode, c.Names = neutral.ChoiceNamed, []string{r.String(path+".name", v.Get("name"))}
	case "":
		r.Fail(path+".type", "is missing")
	case "allowed_tools":
		r.extra(path, v)
	default: // a tool of the provider's own
		c.Mode, c.Names = neutral.ChoiceNamed, []string{kind}
		r.extra(path, v)
	}
}

func (r *requestReader) tool(path string, v gjson.Result) {
	t := neutral.Tool{Path: path}
	kind := v.Get("type").Str
	switch kind {
	case "function", "custom":
	case "":
		r.Fail(path+".type", "is missing")
		return
	default:
		t.Hosted, t.Name, t.Raw = kind, v.Get("name").Str, []byte(v.Raw)
		r.out.Tools = append(r.out.Tools, t)
		return
	}
	t.Custom = kind == "custom"
	r.Object(path, v, func(name, at string, v gjson.Result) {
		switch {
		case name == "type":
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
		r.Fail(path+".name", "is missing")
	}
	r.out.Tools = append(r.out.Tools, t)
}

// item reads one item of the input into one turn.
func (r *requestReader) item(path string, v gjson.Result) {
	r.Count(path)
	if !v.IsObject() {
		r.Fail(path, "must be an object")
		return
	}
	t := neutral.Turn{Path: path, Role: neutral.Model}
	var p neutral.Part
	switch kind := v.Get("type").Str; kind {
	case "", "message":
		r.message(path, v, &t)
		r.out.Turns = append(r.out.Turns, t)
		return
	case "function_call", "custom_tool_call":
		p = readCall(v)
		r.String(path+".name", v.Get("name"))
		r.String(path+".call_id", v.Get("call_id"))
		t.Extra = others(path, v, "type", "call_id", "name", "arguments", "input")
	case "function_call_output", "custom_tool_call_output":
		t.Role = neutral.User
		p = neutral.Part{Kind: neutral.Result}
		p.Result.Custom = kind == "custom_tool_call_output"
		p.Result.ID = r.String(path+".call_id", v.Get("call_id"))
		p.Result.Parts, p.Result.Plain = r.content(path+".output", v.Get("output"))
		t.Extra = others(path, v, "type", "call_id", "output")
	case "reasoning":
		p = readThought(v)
		p.Raw = []byte(v.Raw)
	default:
		p = neutral.Part{Kind: neutral.Unknown, Type: kind, Raw: []byte(v.Raw)}
	}
	p.Path = path
	t.Parts = []neutral.Part{p}
	r.out.Turns = append(r.out.Turns, t)
}

// others are the members of v that are not named.
func others(path string, v gjson.Result, named ...string) (out []neutral.Field) {
	v.ForEach(func(k, m gjson.Result) bool {
		for _, n := range named {
			if k.Str == n {
				return true
			}
		}
		out = append(out, reader.Extra(reader.Join(path, k.Str), m))
		return true
	})
	return out
}

func (r *requestReader) message(path string, v gjson.Result, t *neutral.Turn) {
	switch role := v.Get("role").Str; role {
	case "user":
		t.Role = neutral.User
	case "assistant":
	case "system":
		t.Role = neutral.System
	case "developer":
		t.Role = neutral.Developer
	default:
		r.Fail(path+".role", "must be user, assistant, system or developer, not %q", role)
		return
	}
	t.Parts, t.Plain = r.content(path+".content", v.Get("content"))
	t.Extra = others(path, v, "role", "content")
}

func (r *requestReader) content(path string, v gjson.Result) (parts []neutral.Part, plain bool) {
	if v.Type == gjson.String {
		r.Count(path)
		return []neutral.Part{{Text: v.Str, Path: path}}, true
	}
	r.List(path, v, func(at string, v gjson.Result) { parts = append(parts, r.part(at, v)) })
	return parts, false
}

// part reads one part of a content.
func (r *requestReader) part(path string, v gjson.Result) neutral.Part {
	r.Count(path)
	p := neutral.Part{Type: v.Get("type").Str, Path: path}
	known := []string{"type", "text"}
	switch p.Type {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		p.Text = r.String(path+".text", v.Get("text"))
	case "refusal":
		p.Kind, p.Text = neutral.Refusal, r.String(path+".refusal", v.Get("refusal"))
		known = []string{"type", "refusal"}
	case "input_image":
		if url := v.Get("image_url"); url.Type == gjson.String {
			p.Kind, p.Media = neutral.Image, r.media(path+".image_url", url.Str)
			p.Media.Detail = v.Get("detail").Str
			known = []string{"type", "image_url", "detail"}
			break
		}
		p.Kind, p.Raw = neutral.Unknown, []byte(v.Raw)
	case "input_file":
		known = []string{"type", "file_data", "file_url", "filename"}
		p.Kind = neutral.Document
		switch data, url := v.Get("file_data"), v.Get("file_url"); {
		case data.Type == gjson.String:
			p.Media = r.media(path+".file_data", data.Str)
		case url.Type == gjson.String:
			p.Media.URL = url.Str
		default:
			p.Kind, p.Raw = neutral.Unknown, []byte(v.Raw)
		}
		p.Media.Name = v.Get("filename").Str
	case "":
		r.Fail(path+".type", "is missing")
	default:
		p.Kind, p.Raw = neutral.Unknown, []byte(v.Raw)
	}
	if p.Kind != neutral.Unknown {
		p.Extra = others(path, v, known...)
	}
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
