package document

import (
	"errors"
	"fmt"
	"strings"
)

// ExpandEnv replaces ${NAME} and ${NAME:-default} in every text below n. It works on parsed values, so that a value from
// the environment can never add structure. The default also stands for an empty variable; a missing variable without one
// is a fault, and all are reported. $${ stands for a plain ${. A text that was replaced may stand for a number or a
// boolean in Decode. It changes n in place.
func (n *Node) ExpandEnv(lookup func(name string) (string, bool)) []Fault {
	e := &expander{lookup: lookup, done: map[*Node]bool{}}
	e.node(n, "")
	return sorted(e.faults)
}

type expander struct {
	lookup func(string) (string, bool)
	done   map[*Node]bool // merge keys share nodes
	faults []Fault
}

func (e *expander) node(n *Node, path string) {
	if n == nil || e.done[n] {
		return
	}
	switch n.Kind {
	case Text:
		e.done[n] = true
		if !strings.Contains(n.Text, "${") {
			return
		}
		text, err := expand(n.Text, e.lookup)
		if err != nil {
			e.faults = append(e.faults, Fault{File: n.File, Path: path, Message: err.Error(), Line: n.Line, Column: n.Column})
			return
		}
		n.Text, n.expanded = text, true
	case List:
		for i, item := range n.Items {
			e.node(item, At(path, i))
		}
	case Map:
		for i := range n.Members {
			e.node(n.Members[i].Value, Join(path, n.Members[i].Name))
		}
	}
}

func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(text)
			return out.String(), nil
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			out.WriteString(plain + "${")
			text = after
			continue
		}
		out.WriteString(before)
		inner, rest, closed := strings.Cut(after, "}")
		if !closed {
			return "", errors.New("has ${ without a closing brace")
		}
		name, fallback, hasFallback := strings.Cut(inner, ":-")
		if !variableName(name) {
			return "", fmt.Errorf("has ${%s}, which is no variable; write ${NAME} or ${NAME:-default}", inner)
		}
		value, set := lookup(name)
		switch {
		case hasFallback && value == "":
			value = fallback
		case !set && !hasFallback:
			return "", fmt.Errorf("needs the environment variable %s, which is not set; set it or write ${%s:-default}", name, name)
		}
		out.WriteString(value)
		text = rest
	}
}

func variableName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
