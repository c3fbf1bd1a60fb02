package manage

import (
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Route is an endpoint of another package (inference), for the description (OBS-7).
type Route struct {
	Method  string
	Path    string // with {variables}
	Summary string
}

var pathVariable = regexp.MustCompile(`\{(\w+)(:[^}]*)?\}`)

// describe answers the OpenAPI description, made from the table.
func describe(s *Server, c *call) (any, error) {
	components := schemas{}
	problems := components.of(reflect.TypeFor[errorAnswer]())
	paths := map[string]map[string]any{}
	add := func(method, path string, operation map[string]any) {
		variables := []any{}
		for _, m := range pathVariable.FindAllStringSubmatch(path, -1) {
			variables = append(variables, map[string]any{
				"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"},
			})
		}
		if old, ok := operation["parameters"].([]any); ok {
			variables = append(variables, old...)
		}
		if len(variables) > 0 {
			operation["parameters"] = variables
		}
		path = pathVariable.ReplaceAllString(path, "{$1}")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(method)] = operation
	}
	for i := range s.table {
		e := &s.table[i]
		add(e.method, e.path, operation(e, components, problems))
	}
	for _, r := range s.ports.Inference {
		add(r.Method, r.Path, map[string]any{
			"summary": r.Summary, "tags": []string{"inference"},
			"security":  []any{map[string]any{"key": []string{}}, map[string]any{}}, // none is needed while inference is open (SEC-2)
			"responses": map[string]any{"default": map[string]any{"description": "in the client's own dialect"}},
		})
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "Weir", "version": s.ports.Facts().Version},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         map[string]any(components),
			"securitySchemes": map[string]any{"key": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	}, nil
}

func operation(e *endpoint, components schemas, problems map[string]any) map[string]any {
	content := func(schema map[string]any) map[string]any {
		return map[string]any{"application/json": map[string]any{"schema": schema}}
	}
	status := strconv.Itoa(max(e.status, http.StatusOK))
	op := map[string]any{
		"summary": e.summary,
		"tags":    []string{"management"},
		"responses": map[string]any{
			status:    map[string]any{"description": "done", "content": content(components.of(reflect.TypeOf(e.answer)))},
			"default": map[string]any{"description": "refused", "content": content(problems)},
		},
	}
	for _, more := range e.also {
		op["responses"].(map[string]any)[strconv.Itoa(more)] = op["responses"].(map[string]any)[status]
	}
	if e.needs != open {
		op["security"] = []any{map[string]any{"key": []string{}}}
	}
	parameters := []any{}
	for _, q := range e.query {
		parameters = append(parameters, map[string]any{"name": q, "in": "query", "schema": map[string]any{"type": "string"}})
	}
	for _, h := range e.headers {
		parameters = append(parameters, map[string]any{"name": h, "in": "header", "schema": map[string]any{"type": "string"}})
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if e.binary > 0 {
		op["requestBody"] = map[string]any{"required": true, "content": map[string]any{
			"application/octet-stream": map[string]any{"schema": map[string]any{"type": "string", "format": "binary", "maxLength": e.binary}},
			"application/yaml":         map[string]any{"schema": map[string]any{"type": "string"}},
		}}
	}
	if e.body != nil {
		op["requestBody"] = map[string]any{"required": !e.optional, "content": content(components.of(reflect.TypeOf(e.body)))}
	}
	return op
}
