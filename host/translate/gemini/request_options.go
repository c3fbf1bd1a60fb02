package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/reader"
)

// toolset reads one element of tools: declarations of functions, or a tool that the service runs itself.
func (r *requestReader) toolset(path string, v gjson.Result) {
	if !v.IsObject() {
		r.Fail(path, "must be an object")
		return
	}
	v.ForEach(func(k, m gjson.Result) bool {
		if camel(k.Str) == "functionDeclarations" {
			r.List(path+".functionDeclarations", m, r.declaration)
			return r.OK()
		}
		raw := append(append([]byte(`{"`+k.Str+`":`), m.Raw...), '}')
		r.out.Tools = append(r.out.Tools, neutral.Tool{Hosted: camel(k.Str), Raw: raw, Path: path + "." + k.Str})
		return r.OK()
	})
}

func (r *requestReader) declaration(path string, v gjson.Result) {
	t := neutral.Tool{Path: path}
	r.Object(path, v, func(name, at string, v gjson.Result) {
		switch camel(name) {
		case "name":
			t.Name = r.String(at, v)
		case "description":
			t.Description = r.String(at, v)
		case "parametersJsonSchema":
			t.Schema, t.SchemaName = []byte(v.Raw), "parametersJsonSchema"
		case "parameters":
			if t.Schema == nil {
				t.Raw, t.SchemaName = []byte(v.Raw), "parameters"
				t.Schema = lowered(v.Raw)
			}
		default:
			t.Extra = append(t.Extra, reader.Extra(at, v))
		}
	})
	if r.OK() && t.Name == "" {
		r.Fail(path+".name", "is missing")
	}
	r.out.Tools = append(r.out.Tools, t)
}

func (r *requestReader) toolConfig(name, path string, v gjson.Result) {
	if camel(name) != "functionCallingConfig" {
		r.extra(path, v)
		return
	}
	c := &r.out.Choice
	r.Object(path, v, func(name, at string, v gjson.Result) {
		switch camel(name) {
		case "mode":
			switch mode := strings.ToUpper(r.String(at, v)); mode {
			case "AUTO", "MODE_UNSPECIFIED":
				c.Mode = neutral.ChoiceAuto
			case "NONE":
				c.Mode = neutral.ChoiceNone
			case "ANY":
				c.Mode = neutral.ChoiceAny
			case "VALIDATED":
				c.Mode = neutral.ChoiceAuto
				r.extra(at, v)
			default:
				r.Fail(at, "must be AUTO, NONE or ANY, not %q", mode)
			}
		case "allowedFunctionNames":
			r.List(at, v, func(at string, v gjson.Result) { c.Names = append(c.Names, r.String(at, v)) })
		default:
			r.extra(at, v)
		}
	})
	if c.Mode == neutral.ChoiceAny && len(c.Names) == 1 {
		c.Mode = neutral.ChoiceNamed
	}
}

// generation reads one member of generationConfig.
func (r *requestReader) generation(name, path string, v gjson.Result) {
	o := r.out
	switch camel(name) {
	case "temperature":
		o.Temperature = r.Number(path, v)
	case "topP":
		o.TopP = r.Number(path, v)
	case "topK":
		o.TopK = r.Number(path, v)
	case "maxOutputTokens":
		n := r.Int(path, v)
		o.MaxOutput = &n
	case "stopSequences":
		r.List(path, v, func(at string, v gjson.Result) { o.Stop = append(o.Stop, r.String(at, v)) })
	case "seed":
		o.Seed = r.Number(path, v)
	case "presencePenalty":
		o.Presence = r.Number(path, v)
	case "frequencyPenalty":
		o.Frequency = r.Number(path, v)
	case "responseMimeType":
		switch kind := r.String(path, v); kind {
		case "application/json":
			o.Format.Kind = max(o.Format.Kind, neutral.FormatJSON)
		default:
			r.extra(path, v)
		}
	case "responseJsonSchema":
		o.Format.Kind, o.Format.Schema = neutral.FormatSchema, []byte(v.Raw)
	case "responseSchema":
		o.Format.Kind, o.Format.Schema, o.Format.Name = neutral.FormatSchema, lowered(v.Raw), ""
		o.Format.Old = []byte(v.Raw)
	case "thinkingConfig":
		r.Object(path, v, r.thinking)
	default:
		r.extra(path, v)
	}
}

func (r *requestReader) thinking(name, path string, v gjson.Result) {
	t := &r.out.Reasoning
	switch camel(name) {
	case "includeThoughts":
		show := r.Bool(path, v)
		t.Show = &show
	case "thinkingBudget":
		n := r.Int(path, v)
		t.Budget = &n
	case "thinkingLevel":
		t.Effort = strings.ToLower(r.String(path, v))
	default:
		r.extra(path, v)
	}
}

// lowered is a schema of this dialect, whose types may be in capitals, as JSON schema (TR-12).
func lowered(raw string) []byte {
	v := gjson.Parse(raw)
	if !v.IsObject() {
		return []byte(raw)
	}
	out := []byte{'{'}
	v.ForEach(func(k, m gjson.Result) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, k.Raw...), ':')
		switch {
		case k.Str == "type" && m.Type == gjson.String:
			out = append(out, strings.ToLower(m.Raw)...)
		case k.Str == "properties" && m.IsObject():
			out = append(out, loweredEach(m)...)
		case m.IsObject():
			out = append(out, lowered(m.Raw)...)
		case m.IsArray() && k.Str == "anyOf":
			out = append(out, '[')
			for i, e := range m.Array() {
				if i > 0 {
					out = append(out, ',')
				}
				out = append(out, lowered(e.Raw)...)
			}
			out = append(out, ']')
		default:
			out = append(out, m.Raw...)
		}
		return true
	})
	return append(out, '}')
}

// loweredEach is lowered for every property of a schema, whatever its name.
func loweredEach(v gjson.Result) []byte {
	out := []byte{'{'}
	v.ForEach(func(k, m gjson.Result) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, k.Raw...), ':'), lowered(m.Raw)...)
		return true
	})
	return append(out, '}')
}
