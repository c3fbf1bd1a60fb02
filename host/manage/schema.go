package manage

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// schemas makes JSON Schemas (as of OpenAPI 3.1) from Go types. Named structs become components.
type schemas map[string]any

func (s schemas) of(t reflect.Type) map[string]any {
	if t == nil {
		return map[string]any{}
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner := s.of(t.Elem())
		if text, ok := inner["type"].(string); ok {
			inner["type"] = []string{text, "null"}
			return inner
		}
		return map[string]any{"anyOf": []any{inner, map[string]any{"type": "null"}}}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{} // raw JSON
		}
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.structure(t)
	case reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}

func (s schemas) structure(t reflect.Type) map[string]any {
	name := componentName(t)
	if name == "" {
		return s.object(t)
	}
	if _, done := s[name]; !done {
		s[name] = map[string]any{} // ends a cycle
		s[name] = s.object(t)
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

// componentName is the type's name with its package, so that two packages may use one word.
func componentName(t reflect.Type) string {
	if t.Name() == "" || strings.ContainsAny(t.Name(), "[]") {
		return ""
	}
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	pkg := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]
	if pkg == "manage" {
		return name
	}
	return strings.ToUpper(pkg[:1]) + pkg[1:] + name
}

func (s schemas) object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	s.fields(t, properties)
	return map[string]any{"type": "object", "properties": properties}
}

func (s schemas) fields(t reflect.Type, into map[string]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		if f.Anonymous && name == "" && embedded.Kind() == reflect.Struct {
			s.fields(embedded, into)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		into[name] = s.of(f.Type)
	}
}
