package rules

import (
	"strings"

	"github.com/weirgate/weir/rules/internal/tree"
)

// finding is what one envelope says.
type finding struct{ message, code, typ string }

func (f finding) any() bool { return f != finding{} }

// over fills what the inner finding leaves open from the outer one: the inner error is the more specific.
func (f finding) over(outer finding) finding {
	if f.message == "" {
		f.message = outer.message
	}
	if f.code == "" {
		f.code = outer.code
	}
	if f.typ == "" {
		f.typ = outer.typ
	}
	return f
}

// The names under which the corpus has the three facts, the usual one first.
var (
	messageNames = []string{"message", "msg", "error_message", "error_msg", "errmsg", "error_description", "status_msg", "detail", "title", "reason"}
	codeNames    = []string{"code", "error_code", "errcode", "err_code", "status_code"}
	typeNames    = []string{"type", "error_type", "__type"}
)

// envelope finds the structured error in one JSON value (ABI-2.1, condition code): an error object, a string error, an
// errors object or array, base_resp, a bare code and message, an error inside any of these, and all of it in a response
// or in an array.
func envelope(v tree.Value, depth int) finding {
	if depth > maxNesting {
		return finding{}
	}
	switch v.Kind {
	case tree.Array:
		for _, item := range v.Items[:min(len(v.Items), maxItems)] {
			if f := envelope(item, depth+1); f.any() {
				return f
			}
		}
	case tree.String:
		return fromString(v.Text, depth)
	case tree.Object:
		return object(v, depth)
	}
	return finding{}
}

func object(v tree.Value, depth int) finding {
	outer := bare(v)
	switch e := v.Key("error"); e.Kind {
	case tree.Object:
		return errorObject(e, depth).over(finding{message: outer.message, code: outer.code, typ: unlessError(outer.typ)})
	case tree.Array:
		return envelope(e, depth+1).over(outer)
	case tree.String:
		return stringError(e.Text, outer, depth)
	}
	if e := v.Key("errors"); e.Kind == tree.Array || e.Kind == tree.Object {
		if f := errorsValue(e, depth); f.any() {
			return f.over(outer)
		}
	}
	if e := v.Key("base_resp"); e.Kind == tree.Object {
		if code := e.Key("status_code"); code.Text != "0" && code.Scalar() {
			return bare(e).over(outer)
		}
		return finding{}
	}
	for _, name := range []string{"response", "detail"} {
		if e := v.Key(name); e.Kind == tree.Object || e.Kind == tree.Array {
			if f := envelope(e, depth+1); f.any() {
				return f.over(finding{message: outer.message, code: outer.code}) // the outer type is the event's
			}
		}
	}
	if outer.message == "" && outer.code == "" {
		return finding{} // a type alone stands in every good answer
	}
	return unwrap(outer, depth)
}

// unlessError drops the type of Anthropic's outer object, which is the word error.
func unlessError(typ string) string {
	if typ == "error" {
		return ""
	}
	return typ
}

// errorObject reads the value of error. Google's has its own word in status, and often a reason in its details.
func errorObject(e tree.Value, depth int) finding {
	f := bare(e)
	if status := e.Key("status"); status.Kind == tree.String && f.typ == "" {
		f.typ = status.Text
	}
	e.Key("details").Find(tree.Path{"*", "reason"}, func(reason tree.Value) bool {
		if reason.Kind == tree.String {
			f.code = reason.Text
		}
		return reason.Kind == tree.String
	})
	if inner := e.Key("error"); inner.Kind == tree.Object && depth < maxNesting {
		return errorObject(inner, depth+1).over(f)
	}
	return unwrap(f, depth)
}

// stringError reads {"error": "..."}: the message, or, when it is one word and a message stands beside it, the code.
func stringError(s string, outer finding, depth int) finding {
	f := fromString(s, depth)
	if outer.message == "" || outer.message == s {
		return f.over(finding{code: outer.code, typ: outer.typ})
	}
	if f.message == s && oneWord(s) {
		return unwrap(finding{message: outer.message, code: s}.over(outer), depth)
	}
	return f.over(outer)
}

// errorsValue reads a list of errors, or of lists of messages by field.
func errorsValue(e tree.Value, depth int) finding {
	if f := bare(e); f.message != "" {
		return f
	}
	for _, item := range e.Items[:min(len(e.Items), maxItems)] {
		f := finding{}
		switch item.Kind {
		case tree.String:
			f = fromString(item.Text, depth)
		case tree.Object:
			f = object(item, depth+1)
		case tree.Array:
			f = envelope(item, depth+1)
		}
		if f.any() {
			return f
		}
	}
	return finding{}
}

// bare reads message, code and type beside each other.
func bare(v tree.Value) finding {
	f := finding{code: word(v, codeNames), typ: word(v, typeNames)}
	for _, name := range messageNames {
		if m := v.Key(name); m.Kind == tree.String && m.Text != "" {
			f.message = m.Text
			break
		}
	}
	if i := strings.LastIndexByte(f.typ, '#'); i >= 0 {
		f.typ = f.typ[i+1:] // AWS: com.amazonaws.service#ThrottlingException
	}
	if reason := v.Key("reason"); f.code == "" && reason.Kind == tree.String && reason.Text != f.message && oneWord(reason.Text) {
		f.code = reason.Text // Kiro: MONTHLY_REQUEST_COUNT beside __type and message
	}
	return f
}

func oneWord(s string) bool { return s != "" && !strings.ContainsAny(s, " \t\r\n") }

func word(v tree.Value, names []string) string {
	for _, name := range names {
		if w := v.Key(name); (w.Kind == tree.String || w.Kind == tree.Number) && w.Text != "" {
			return w.Text
		}
	}
	return ""
}

// fromString reads a text that may hold an error as JSON.
func fromString(s string, depth int) finding {
	return unwrap(finding{message: s}, depth)
}

// unwrap looks for an error as JSON inside the message.
func unwrap(f finding, depth int) finding {
	if depth >= maxNesting {
		return f
	}
	if v, ok := inside(f.message); ok {
		if inner := envelope(v, depth+1); inner.any() {
			return inner.over(f)
		}
	}
	return f
}
