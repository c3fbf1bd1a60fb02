package document

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Parse reads b as one YAML document. Anchors, aliases and merge keys are resolved; an empty document is null. A syntax
// fault ends the reading; every other fault of the document is reported. The tree is nil when there is any fault. file is
// only the name that faults carry.
func Parse(file string, b []byte) (n *Node, faults []Fault) {
	whole := func(message string) []Fault { return []Fault{{File: file, Message: message, Line: 1, Column: 1}} }
	switch {
	case len(b) > MaxBytes:
		return nil, whole(fmt.Sprintf("is larger than %d bytes", MaxBytes))
	case !utf8.Valid(b):
		return nil, whole("is not UTF-8 text")
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff")) // some editors write the mark
	defer func() {
		// The parser is a stranger: some malformed input makes it panic, and that is a fault of the input.
		if recover() != nil {
			n, faults = nil, whole("is not valid YAML")
		}
	}()
	tokens := lexer.Tokenize(string(b))
	if f := tooDeep(file, tokens); f != nil {
		return nil, []Fault{*f}
	}
	tree, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, []Fault{syntaxFault(file, err)}
	}
	r := &yamlReader{file: file, anchors: map[string]ast.Node{}, open: map[string]bool{}}
	n = r.documents(tree)
	if len(r.faults) > 0 {
		return nil, sorted(r.faults)
	}
	return n, nil
}

// tooDeep looks for nesting that would make the recursive parser run out of stack: flow brackets, and entries or tags
// one after the other on a line. Nesting by indentation grows with the square of the text and is bounded by MaxBytes.
func tooDeep(file string, tokens token.Tokens) *Fault {
	flow, run, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, run = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			run++
		}
		if flow > MaxDepth || run > MaxDepth {
			return &Fault{
				File: file, Message: fmt.Sprintf("is nested deeper than %d", MaxDepth),
				Line: t.Position.Line, Column: t.Position.Column,
			}
		}
	}
	return nil
}

func syntaxFault(file string, err error) Fault {
	f := Fault{File: file, Message: "is not valid YAML", Line: 1, Column: 1}
	var at yaml.Error
	if errors.As(err, &at) {
		f.Message += ": " + at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			f.Line, f.Column = t.Position.Line, t.Position.Column
		}
	}
	return f
}

// yamlReader turns the parser's tree into Nodes.
type yamlReader struct {
	file    string
	anchors map[string]ast.Node // by name, the newest so far
	open    map[string]bool     // anchors whose value is being read: an alias to one never ends
	values  int
	full    bool
	faults  []Fault
}

func (r *yamlReader) fault(at ast.Node, path, message string) {
	f := Fault{File: r.file, Path: path, Message: message}
	f.Line, f.Column = place(at)
	r.faults = append(r.faults, f)
}

func (r *yamlReader) documents(tree *ast.File) *Node {
	n := &Node{Line: 1, Column: 1, File: r.file}
	found := false
	for _, d := range tree.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if found {
			r.fault(d.Body, "", "holds more than one YAML document; split it into files")
			break
		}
		found = true
		n = r.node(d.Body, "", 0)
	}
	return n
}

func (r *yamlReader) node(y ast.Node, path string, depth int) *Node {
	n := &Node{File: r.file}
	n.Line, n.Column = place(y)
	if r.values++; r.values > MaxValues || depth > MaxDepth {
		if !r.full {
			r.fault(y, path, fmt.Sprintf("is too large: at most %d levels and %d values, aliases included", MaxDepth, MaxValues))
		}
		r.full = true
	}
	if r.full {
		return n
	}
	switch y := y.(type) {
	case nil, *ast.NullNode:
	case *ast.BoolNode:
		n.Kind, n.Text = Bool, strconv.FormatBool(y.Value)
	case *ast.IntegerNode:
		n.Kind, n.Text = Number, numberText(y.GetToken().Value, fmt.Sprint(y.Value))
	case *ast.FloatNode:
		n.Kind, n.Text = Number, numberText(y.GetToken().Value, strconv.FormatFloat(y.Value, 'g', -1, 64))
		if math.IsInf(y.Value, 0) || math.IsNaN(y.Value) {
			r.fault(y, path, "is not a finite number")
		}
	case *ast.InfinityNode, *ast.NanNode:
		r.fault(y, path, "is not a finite number")
	case *ast.StringNode:
		n.Kind, n.Text = Text, y.Value
	case *ast.LiteralNode:
		n.Kind, n.Text = Text, y.Value.Value
	case *ast.SequenceNode:
		n.Kind = List
		for i, item := range y.Values {
			n.Items = append(n.Items, r.node(item, At(path, i), depth+1))
		}
	case *ast.MappingNode:
		r.mapping(n, y.Values, path, depth)
	case *ast.MappingValueNode:
		r.mapping(n, []*ast.MappingValueNode{y}, path, depth)
	case *ast.AnchorNode:
		return r.anchor(y, path, depth)
	case *ast.AliasNode:
		return r.alias(y, path, depth)
	case *ast.TagNode:
		return r.tagged(y, path, depth)
	default:
		r.fault(y, path, "is YAML that is not understood here")
	}
	return n
}

func (r *yamlReader) anchor(y *ast.AnchorNode, path string, depth int) *Node {
	name := y.Name.GetToken().Value
	r.anchors[name] = y.Value
	was := r.open[name]
	r.open[name] = true
	n := r.node(y.Value, path, depth)
	r.open[name] = was
	return n
}

func (r *yamlReader) alias(y *ast.AliasNode, path string, depth int) *Node {
	n := &Node{File: r.file}
	n.Line, n.Column = place(y)
	name := y.Value.GetToken().Value
	target, ok := r.anchors[name]
	switch {
	case !ok:
		r.fault(y, path, fmt.Sprintf("names the anchor %q, which is not defined above", name))
		return n
	case r.open[name]:
		r.fault(y, path, fmt.Sprintf("contains itself through the anchor %q", name))
		return n
	}
	r.open[name] = true
	defer func() { r.open[name] = false }()
	return r.node(target, path, depth+1)
}

func (r *yamlReader) tagged(y *ast.TagNode, path string, depth int) *Node {
	tag := y.Start.Value
	switch token.ReservedTagKeyword(tag) {
	case token.StringTag:
		n := r.node(y.Value, path, depth)
		if y.Value != nil && (n.Kind == Number || n.Kind == Bool || n.Kind == Null) {
			n.Kind, n.Text = Text, y.Value.GetToken().Value
		}
		return n
	case token.IntegerTag, token.FloatTag, token.BooleanTag, token.NullTag, token.MappingTag, token.SequenceTag:
		return r.node(y.Value, path, depth)
	}
	r.fault(y, path, fmt.Sprintf("has the tag %s, which is not understood here; leave it out", tag))
	return &Node{File: r.file}
}

// mapping reads the entries; those of merge keys (<<) come after, and never replace one that is given.
func (r *yamlReader) mapping(n *Node, values []*ast.MappingValueNode, path string, depth int) {
	n.Kind = Map
	seen := map[string]bool{}
	var merges []*Node
	for _, v := range values {
		if v.Key.IsMergeKey() {
			merges = append(merges, r.node(v.Value, path, depth+1))
			continue
		}
		m, ok := r.key(v, path)
		if !ok {
			continue
		}
		at := Join(path, m.Name)
		m.Value = r.node(v.Value, at, depth+1)
		if seen[m.Name] {
			r.faults = append(r.faults, Fault{File: r.file, Path: at, Message: "is given twice", Line: m.Line, Column: m.Column})
			continue
		}
		seen[m.Name] = true
		n.Members = append(n.Members, m)
	}
	for _, from := range merges {
		r.merge(n, from, path, seen)
	}
}

func (r *yamlReader) key(v *ast.MappingValueNode, path string) (Member, bool) {
	key := r.node(v.Key, path, 0)
	m := Member{Name: key.Text, Line: key.Line, Column: key.Column}
	if key.Kind == List || key.Kind == Map || key.Kind == Null && v.Key.Type() != ast.NullType {
		r.fault(v.Key, path, "has a key that is not text")
		return m, false
	}
	if key.Kind != Text {
		m.Name = v.Key.GetToken().Value
	}
	return m, true
}

func (r *yamlReader) merge(n, from *Node, path string, seen map[string]bool) {
	switch from.Kind {
	case List:
		for _, item := range from.Items {
			r.merge(n, item, path, seen)
		}
	case Map:
		for _, m := range from.Members {
			if !seen[m.Name] {
				seen[m.Name] = true
				n.Members = append(n.Members, m)
			}
		}
	default:
		r.faults = append(r.faults, Fault{
			File: r.file, Path: path, Message: "merges (<<) something that is not an object", Line: from.Line, Column: from.Column,
		})
	}
}

// numberText keeps a number as written when JSON can hold it so.
func numberText(written, value string) string {
	if validNumber(written) {
		return written
	}
	return value
}

// place is where a value begins. A mapping of the parser stands at its first colon; people look for its first key.
func place(y ast.Node) (line, column int) {
	switch v := y.(type) {
	case nil:
		return 0, 0
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			return place(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return place(v.Key)
	}
	if t := y.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line, t.Position.Column
	}
	return 0, 0
}
