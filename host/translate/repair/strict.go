package repair

import (
	"slices"

	"github.com/tidwall/gjson"
)

// maxStrictDepth bounds the look into a schema.
const maxStrictDepth = 32

// Strict says whether a schema keeps the rules under which OpenAI's models follow one to the letter: every object is closed and asks for
// all of its properties (TR-12).
func Strict(schema []byte) bool {
	root := gjson.ParseBytes(schema)
	return root.Get("type").Str == "object" && strict(root, 0)
}

func strict(v gjson.Result, depth int) bool {
	if depth > maxStrictDepth {
		return false
	}
	properties := v.Get("properties")
	if properties.Exists() || v.Get("type").Str == "object" {
		if v.Get("additionalProperties").Raw != "false" {
			return false
		}
		var required []string
		for _, name := range v.Get("required").Array() {
			required = append(required, name.Str)
		}
		for name := range properties.Map() {
			if !slices.Contains(required, name) {
				return false
			}
		}
	}
	for _, below := range [...]string{"properties", "$defs", "definitions"} {
		for _, e := range v.Get(gjsonKey(below)).Map() {
			if !strict(e, depth+1) {
				return false
			}
		}
	}
	for _, e := range v.Get("anyOf").Array() {
		if !strict(e, depth+1) {
			return false
		}
	}
	items := v.Get("items")
	return !items.IsObject() || strict(items, depth+1)
}

// gjsonKey is a member's name as a path.
func gjsonKey(name string) string {
	if name[0] == '$' {
		return `\` + name
	}
	return name
}
