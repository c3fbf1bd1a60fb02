package tree

import (
	"strconv"
	"strings"
)

// Path leads to a value: member names and array indexes with dots between them. * is every item of an array, a negative
// index counts from the end, \. is a dot in a name.
type Path []string

// ParsePath splits s; an empty path or an empty step is refused.
func ParsePath(s string) (Path, bool) {
	var path Path
	var step strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '.' || s[i+1] == '\\'):
			i++
			step.WriteByte(s[i])
		case s[i] == '.':
			path = append(path, step.String())
			step.Reset()
		default:
			step.WriteByte(s[i])
		}
	}
	path = append(path, step.String())
	for _, p := range path {
		if p == "" {
			return nil, false
		}
	}
	return path, true
}

// Find calls f with each value that path leads to, until f returns true, and reports whether it did. Nulls count as absent.
func (v Value) Find(path Path, f func(Value) bool) bool {
	if len(path) == 0 {
		return v.Kind != None && v.Kind != Null && f(v)
	}
	step, rest := path[0], path[1:]
	switch v.Kind {
	case Object:
		for i, k := range v.Keys {
			if k == step && v.Items[i].Find(rest, f) {
				return true
			}
		}
	case Array:
		if step == "*" {
			for _, item := range v.Items {
				if item.Find(rest, f) {
					return true
				}
			}
			return false
		}
		n, err := strconv.Atoi(step)
		if err != nil {
			return false
		}
		if n < 0 {
			n += len(v.Items)
		}
		return n >= 0 && n < len(v.Items) && v.Items[n].Find(rest, f)
	}
	return false
}
