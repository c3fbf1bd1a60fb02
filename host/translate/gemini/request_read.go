package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/reader"
	"github.com/weirgate/weir/sdk/wire"
)

// ReadRequest reads the body of a generateContent request. A body that is none is a *neutral.Fault (TR-31).
func ReadRequest(body []byte) (*neutral.Request, error) {
	r := requestReader{out: &neutral.Request{From: wire.GeminiGenerate}}
	top := r.Body(body)
	if r.OK() {
		r.Object("", top, r.member)
	}
	if r.OK() && len(r.out.Turns) == 0 {
		r.Fail("contents", "must hold at least one content")
	}
	return r.out, r.Err()
}

type requestReader struct {
	reader.Reader
	out  *neutral.Request
	open []neutral.ToolCall // calls without a result so far, in their order (TR-7)
	n    int                // calls so far
}

func (r *requestReader) extra(path string, v gjson.Result) {
	r.out.Extra = append(r.out.Extra, reader.Extra(path, v))
}

// camel is a name as the dialect writes it; it also takes the names of the protocol buffers.
func camel(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		if words[i] != "" {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
	}
	return strings.Join(words, "")
}

// either is a member under one of its two names.
func either(v gjson.Result, name, snake string) gjson.Result {
	if m := v.Get(name); m.Exists() {
		return m
	}
	return v.Get(snake)
}

// member reads one member of the body.
func (r *requestReader) member(name, _ string, v gjson.Result) {
	name = camel(name)
	switch name {
	case "model":
		r.out.Model = strings.TrimPrefix(r.String(name, v), "models/")
	case "contents":
		r.contents(name, v)
	case "systemInstruction":
		r.system(name, v)
	case "tools":
		if v.IsObject() {
			r.toolset(name, v)
			return
		}
		r.List(name, v, r.toolset)
	case "toolConfig":
		r.Object(name, v, r.toolConfig)
	case "generationConfig":
		if len(v.Map()) == 0 {
			r.extra(name, v)
		}
		r.Object(name, v, r.generation)
	default:
		r.extra(name, v)
	}
}

// contents takes one content without a list too, as the service does.
func (r *requestReader) contents(path string, v gjson.Result) {
	if v.IsObject() {
		r.content(path, v)
		return
	}
	r.List(path, v, r.content)
}

func (r *requestReader) system(path string, v gjson.Result) {
	r.Object(path, v, func(name, at string, v gjson.Result) {
		if name == "parts" {
			r.List(at, v, func(at string, v gjson.Result) { r.out.System = append(r.out.System, r.part(at, v, neutral.User)) })
			return
		}
		r.extra(at, v)
	})
}

func (r *requestReader) content(path string, v gjson.Result) {
	t := neutral.Turn{Path: path}
	switch role := v.Get("role").Str; role {
	case "user", "function", "":
		if role == "" && v.Get("role").Exists() {
			break
		}
	case "model":
		t.Role = neutral.Model
	case "system":
		t.Role = neutral.System
	default:
		r.Fail(path+".role", "must be user or model, not %q", role)
		return
	}
	r.Object(path, v, func(name, at string, v gjson.Result) {
		switch name {
		case "role":
			if v.Str == "function" {
				t.Extra = append(t.Extra, reader.Extra(at, v))
			}
		case "parts":
			r.List(at, v, func(at string, v gjson.Result) { t.Parts = append(t.Parts, r.part(at, v, t.Role)) })
		default:
			t.Extra = append(t.Extra, reader.Extra(at, v))
		}
	})
	r.out.Turns = append(r.out.Turns, t)
}

// part reads one part.
func (r *requestReader) part(path string, v gjson.Result, _ neutral.Role) neutral.Part {
	r.Count(path)
	if !v.IsObject() {
		r.Fail(path, "must be an object")
		return neutral.Part{}
	}
	p, known := readPart(v)
	p.Path = path
	switch p.Kind {
	case neutral.Call:
		r.String(path+".functionCall.name", either(v, "functionCall", "function_call").Get("name"))
		if p.Call.ID == "" {
			p.Call.ID = callID(r.n, len(r.out.Turns), p.Call.Name)
			p.Extra = append(p.Extra, neutral.Field{Path: noID}) // so that it is not written where there was none
		}
		r.n++
		r.open = append(r.open, p.Call)
	case neutral.Result:
		r.String(path+".functionResponse.name", either(v, "functionResponse", "function_response").Get("name"))
		r.match(&p)
	case neutral.Unknown:
		return p
	default:
	}
	v.ForEach(func(k, m gjson.Result) bool {
		for _, n := range known {
			if camel(k.Str) == n {
				return true
			}
		}
		p.Extra = append(p.Extra, reader.Extra(reader.Join(path, k.Str), m))
		return true
	})
	return p
}

// noID marks a call or result that came without an id.
const noID = "\x00id"

// match finds the call of a result: by id, else the first open one of its name (TR-7).
func (r *requestReader) match(p *neutral.Part) {
	for i, c := range r.open {
		if p.Result.ID == c.ID || p.Result.ID == "" && p.Result.Name == c.Name {
			if p.Result.ID == "" {
				p.Extra = append(p.Extra, neutral.Field{Path: noID})
			}
			p.Result.ID = c.ID
			r.open = append(r.open[:i:i], r.open[i+1:]...)
			return
		}
	}
	if p.Result.ID == "" {
		p.Extra = append(p.Extra, neutral.Field{Path: noID})
		p.Result.ID = callID(r.n, len(r.out.Turns), p.Result.Name)
	}
}
