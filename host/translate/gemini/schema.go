package gemini

import (
	"strings"

	"github.com/tidwall/gjson"
)

// formats are what the reduced schema knows of format.
var formats = map[string]bool{"enum": true, "date-time": true, "int32": true, "int64": true, "float": true, "double": true}

// gone are the words of JSON schema that the reduced one does not know (TR-12).
var gone = map[string]bool{
	"additionalProperties": true, "$schema": true, "$id": true, "$defs": true, "definitions": true, "default": true, "examples": true,
	"pattern": true, "$comment": true, "patternProperties": true, "unevaluatedProperties": true, "propertyNames": true,
}

// reduced is a JSON schema in the words that older models of the service know (TR-12): references stand in their place, const is an
// enum of one, a choice that allows null is nullable. The order of the properties is kept.
func reduced(schema []byte) []byte {
	root := gjson.ParseBytes(schema)
	return (&reducer{root: root}).object(root, 0)
}

type reducer struct{ root gjson.Result }

// maxRefs bounds references within references, which may lead back to themselves.
const maxRefs = 16

func (r *reducer) object(v gjson.Result, depth int) []byte {
	if !v.IsObject() || depth > maxRefs {
		return []byte(`{"type":"object"}`)
	}
	if ref := v.Get("$ref").Str; ref != "" {
		return r.object(r.resolve(ref), depth+1)
	}
	var m members
	nullable := false
	v.ForEach(func(k, e gjson.Result) bool {
		switch {
		case gone[k.Str]:
		case k.Str == "format" && !formats[e.Str]:
		case k.Str == "const":
			m.add("enum", []byte("["+e.Raw+"]"))
		case (k.Str == "anyOf" || k.Str == "oneOf") && e.IsArray():
			nullable = r.choice(&m, e, depth) || nullable
		case k.Str == "type" && e.IsArray():
			nullable = types(&m, e) || nullable
		case k.Str == "properties" && e.IsObject():
			m.add("properties", r.each(e, depth))
		case e.IsObject():
			m.add(k.Str, r.object(e, depth))
		default:
			m.add(k.Str, []byte(e.Raw))
		}
		return true
	})
	if nullable {
		m.add("nullable", []byte("true"))
	}
	return m.close()
}

// members collects the members of an object.
type members struct{ b []byte }

func (m *members) add(name string, raw []byte) {
	if len(m.b) == 0 {
		m.b = append(m.b, '{')
	} else {
		m.b = append(m.b, ',')
	}
	m.b = append(append(append(append(m.b, '"'), name...), '"', ':'), raw...)
}

func (m *members) close() []byte {
	if len(m.b) == 0 {
		return []byte("{}")
	}
	return append(m.b, '}')
}

// choice takes null out of alternatives; one that is left alone takes their place.
func (r *reducer) choice(m *members, list gjson.Result, depth int) (nullable bool) {
	var left []gjson.Result
	list.ForEach(func(_, e gjson.Result) bool {
		if e.Get("type").Str == "null" {
			nullable = true
		} else {
			left = append(left, e)
		}
		return true
	})
	if len(left) == 1 {
		gjson.ParseBytes(r.object(left[0], depth)).ForEach(func(k, e gjson.Result) bool {
			m.add(k.Str, []byte(e.Raw))
			return true
		})
		return nullable
	}
	out := []byte{'['}
	for i, e := range left {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, r.object(e, depth)...)
	}
	m.add("anyOf", append(out, ']'))
	return nullable
}

// types is a list of types: the first that is not null.
func types(m *members, list gjson.Result) (nullable bool) {
	done := false
	list.ForEach(func(_, e gjson.Result) bool {
		switch {
		case e.Str == "null":
			nullable = true
		case !done:
			m.add("type", []byte(e.Raw))
			done = true
		}
		return true
	})
	return nullable
}

// each reduces every property, whatever its name.
func (r *reducer) each(v gjson.Result, depth int) []byte {
	out := []byte{'{'}
	v.ForEach(func(k, e gjson.Result) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, k.Raw...), ':'), r.object(e, depth+1)...)
		return true
	})
	return append(out, '}')
}

// resolve finds what a reference within the schema names.
func (r *reducer) resolve(ref string) gjson.Result {
	at := r.root
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		next := gjson.Result{}
		at.ForEach(func(k, e gjson.Result) bool {
			if k.Str == step {
				next = e
				return false
			}
			return true
		})
		at = next
	}
	return at
}
