package messages

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/reader"
	"github.com/weirgate/weir/sdk/wire"
)

// ReadRequest reads the body of a messages request. A body that is none is a *neutral.Fault (TR-31).
func ReadRequest(body []byte) (*neutral.Request, error) {
	r := requestReader{out: &neutral.Request{From: wire.AnthropicMessages}}
	top := r.Body(body)
	if r.OK() {
		r.Object("", top, r.member)
	}
	if r.OK() && len(r.out.Turns) == 0 {
		r.Fail("messages", "must hold at least one message")
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
	case "max_tokens":
		n := r.Int(path, v)
		o.MaxOutput = &n
	case "system":
		if v.Type == gjson.String {
			o.System, o.SystemPlain = []neutral.Part{{Text: v.Str, Path: path}}, true
			return
		}
		r.List(path, v, func(at string, v gjson.Result) { o.System = append(o.System, r.part(at, v)) })
	case "messages":
		r.List(path, v, r.message)
	case "tools":
		r.List(path, v, r.tool)
	case "tool_choice":
		r.choice(path, v)
	case "temperature":
		o.Temperature = r.Number(path, v)
	case "top_p":
		o.TopP = r.Number(path, v)
	case "top_k":
		o.TopK = r.Number(path, v)
	case "stop_sequences":
		r.List(path, v, func(at string, v gjson.Result) { o.Stop = append(o.Stop, r.String(at, v)) })
	default:
		r.options(name, path, v)
	}
}

// options reads the members that are objects of options.
func (r *requestReader) options(name, path string, v gjson.Result) {
	o := r.out
	switch name {
	case "thinking":
		r.Object(path, v, func(name, at string, v gjson.Result) {
			switch name {
			case "type":
				kind := r.String(at, v)
				o.Reasoning.Off, o.Reasoning.Adaptive = kind == "disabled", kind == "adaptive"
				show := !o.Reasoning.Off
				o.Reasoning.Show = &show
			case "budget_tokens":
				n := r.Int(at, v)
				o.Reasoning.Budget = &n
			default:
				r.extra(at, v)
			}
		})
	case "output_config":
		r.Object(path, v, func(name, at string, v gjson.Result) {
			switch {
			case name == "effort":
				o.Reasoning.Effort = r.String(at, v)
			case name == "format" && v.Get("type").Str == "json_schema":
				o.Format = neutral.Format{Kind: neutral.FormatSchema, Schema: []byte(v.Get("schema").Raw)}
			default:
				r.extra(at, v)
			}
		})
	case "metadata":
		r.Object(path, v, func(name, at string, v gjson.Result) {
			if name == "user_id" {
				o.User = r.String(at, v)
				return
			}
			r.extra(at, v)
		})
	default:
		r.extra(path, v)
	}
}

// choice reads tool_choice.
func (r *requestReader) choice(path string, v gjson.Result) {
	c := &r.out.Choice
	r.Object(path, v, func(name, at string, v gjson.Result) {
		switch name {
		case "type":
			switch kind := r.String(at, v); kind {
			case "auto":
				c.Mode = neutral.ChoiceAuto
			case "none":
				c.Mode = neutral.ChoiceNone
			case "any":
				c.Mode = neutral.ChoiceAny
			case "tool":
				c.Mode = neutral.ChoiceNamed
			default:
				r.Fail(at, "must be auto, any, tool or none, not %q", kind)
			}
		case "name":
			c.Names = []string{r.String(at, v)}
		case "disable_parallel_tool_use":
			if r.out.ParallelOff = r.Bool(at, v); !r.out.ParallelOff {
				r.extra(at, v)
			}
		default:
			r.extra(at, v)
		}
	})
	if r.OK() && c.Mode == neutral.ChoiceNamed && len(c.Names) == 0 {
		r.Fail(path+".name", "is missing")
	}
}

// tool reads one definition. A type other than custom is a tool that the provider runs, or knows the schema of.
func (r *requestReader) tool(path string, v gjson.Result) {
	t := neutral.Tool{Path: path}
	if kind := v.Get("type").Str; kind != "" && kind != "custom" {
		t.Hosted, t.Name, t.Raw = kind, v.Get("name").Str, []byte(v.Raw)
		r.out.Tools = append(r.out.Tools, t)
		return
	}
	r.Object(path, v, func(name, at string, v gjson.Result) {
		switch name {
		case "name":
			t.Name = r.String(at, v)
		case "description":
			t.Description = r.String(at, v)
		case "input_schema":
			t.Schema = []byte(v.Raw)
		case "strict":
			strict := r.Bool(at, v)
			t.Strict = &strict
		case "cache_control":
			t.CacheMark = []byte(v.Raw)
		default:
			t.Extra = append(t.Extra, reader.Extra(at, v))
		}
	})
	if r.OK() && t.Name == "" {
		r.Fail(path+".name", "is missing")
	}
	r.out.Tools = append(r.out.Tools, t)
}

// message reads one message into one turn.
func (r *requestReader) message(path string, v gjson.Result) {
	t := neutral.Turn{Path: path}
	switch role := v.Get("role").Str; role {
	case "user":
	case "assistant":
		t.Role = neutral.Model
	case "system": // Claude Code sends it (INF-16)
		t.Role = neutral.System
	default:
		r.Fail(path+".role", "must be user or assistant, not %q", role)
		return
	}
	r.Object(path, v, func(name, at string, v gjson.Result) {
		switch name {
		case "role":
		case "content":
			t.Parts, t.Plain = r.content(at, v)
		default:
			t.Extra = append(t.Extra, reader.Extra(at, v))
		}
	})
	r.out.Turns = append(r.out.Turns, t)
}

func (r *requestReader) content(path string, v gjson.Result) (parts []neutral.Part, plain bool) {
	if v.Type == gjson.String {
		r.Count(path)
		return []neutral.Part{{Text: v.Str, Path: path}}, true
	}
	r.List(path, v, func(at string, v gjson.Result) { parts = append(parts, r.part(at, v)) })
	return parts, false
}

// part reads one block.
func (r *requestReader) part(path string, v gjson.Result) neutral.Part {
	r.Count(path)
	p := readBlock(v)
	p.Path = path
	switch p.Type {
	case "":
		r.Fail(path+".type", "is missing")
	case "text":
		r.String(path+".text", v.Get("text"))
	case "tool_use":
		r.String(path+".name", v.Get("name"))
		if in := v.Get("input"); in.Exists() && !in.IsObject() {
			r.Fail(path+".input", "must be an object")
		}
	case "tool_result":
		p.Result.ID = r.String(path+".tool_use_id", v.Get("tool_use_id"))
		if c := v.Get("content"); c.Exists() && c.Type != gjson.Null {
			p.Result.Parts, p.Result.Plain = r.content(path+".content", c)
		}
	}
	known := members[p.Type]
	v.ForEach(func(k, m gjson.Result) bool {
		switch {
		case k.Str == "type" || p.Kind == neutral.Unknown:
		case k.Str == "cache_control":
			if m.Type != gjson.Null {
				p.CacheMark = []byte(m.Raw)
			}
		case k.Str == "is_error" && m.Type == gjson.True:
		case k.Str != "is_error" && slices.Contains(known, k.Str):
		default:
			p.Extra = append(p.Extra, reader.Extra(reader.Join(path, k.Str), m))
		}
		return true
	})
	return p
}

// members are the ones of a block that the neutral form has a word for.
var members = map[string][]string{
	"text": {"text"}, "image": {"source"}, "document": {"source", "title"}, "thinking": {"thinking", "signature"},
	"redacted_thinking": {"data"}, "tool_use": {"id", "name", "input"}, "tool_result": {"tool_use_id", "content", "is_error"},
}
