package settings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/host/document"
)

// get returns the row's value in v as documents show it: bool, int64, string or []string, or as its form says.
func (r *Row) get(v *Values) any {
	if r.as != nil {
		return r.as.get(r.at(v))
	}
	switch p := r.at(v).(type) {
	case *bool:
		return *p
	case *int:
		return int64(*p)
	case *time.Duration:
		return int64(*p / r.unit())
	case *string:
		return *p
	case *[]string:
		return slices.Clone(*p)
	}
	return nil
}

// set puts x, of a type that parse or the table gives, into v.
func (r *Row) set(v *Values, x any) {
	if r.as != nil {
		r.as.set(r.at(v), x)
		return
	}
	switch p := r.at(v).(type) {
	case *bool:
		*p = x.(bool)
	case *int:
		*p = int(number(x))
	case *time.Duration:
		*p = time.Duration(number(x)) * r.unit()
	case *string:
		*p = x.(string)
	case *[]string:
		*p = slices.Clone(x.([]string))
	}
}

// unit is that of a row that holds a time.
func (r *Row) unit() time.Duration { return cmp.Or(r.Unit, time.Millisecond) }

func number(x any) int64 {
	if i, ok := x.(int); ok {
		return int64(i)
	}
	return x.(int64)
}

// parse reads the row's value from a document. Values of the wrong type or out of bounds are faults (API-14).
func (r *Row) parse(n *document.Node, path string) (any, []document.Fault) {
	if r.as != nil {
		return r.as.parse(r, n, path)
	}
	switch r.Default.(type) {
	case bool:
		var b bool
		faults := n.DecodeAt(path, &b)
		return b, faults
	case int:
		return r.parseInt(n, path)
	case string:
		var s string
		if faults := n.DecodeAt(path, &s); faults != nil {
			return nil, faults
		}
		if !r.takes(s) {
			return nil, r.fault(n, path, "must be "+r.allowed())
		}
		return s, nil
	}
	return r.parseList(n, path)
}

// takes says whether a text is one of the row's words, or of a length that it allows.
func (r *Row) takes(s string) bool {
	if len(r.Words) > 0 {
		return slices.Contains(r.Words, s)
	}
	n := int64(utf8.RuneCountInString(s))
	return n >= r.Min && n <= r.Max
}

func (r *Row) parseInt(n *document.Node, path string) (any, []document.Fault) {
	var i int64
	if faults := n.DecodeAt(path, &i); faults != nil {
		return nil, faults
	}
	if i < r.Min || i > r.Max {
		return nil, r.fault(n, path, fmt.Sprintf("must be %d to %d", r.Min, r.Max))
	}
	return i, nil
}

// maxTexts bounds a list of texts (COOL-62).
const maxTexts = 200

func (r *Row) parseList(n *document.Node, path string) (any, []document.Fault) {
	list := []string{}
	faults := n.DecodeAt(path, &list)
	if faults != nil {
		return nil, faults
	}
	if len(list) > maxTexts {
		return nil, r.fault(n, path, fmt.Sprintf("must have at most %d entries", maxTexts))
	}
	for i, s := range list {
		list[i] = strings.TrimSpace(s)
		if count := int64(utf8.RuneCountInString(list[i])); count < r.Min || count > r.Max {
			message := fmt.Sprintf("must have %d to %d characters after trimming", r.Min, r.Max)
			faults = append(faults, r.fault(n.Items[i], document.At(path, i), message)...)
		}
	}
	return list, faults
}

func (r *Row) fault(n *document.Node, path, message string) []document.Fault {
	return []document.Fault{{File: n.File, Path: path, Message: message, Line: n.Line, Column: n.Column}}
}

// clamp is the stored number that is nearest to an out-of-bounds one; only stored legacy values are treated so (API-14).
func (r *Row) clamp(n *document.Node) (any, bool) {
	if f, ok := r.as.(fraction); ok {
		return f.clamped(r, n)
	}
	if _, isNumber := r.Default.(int); !isNumber || n.Kind != document.Number {
		return nil, false
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return nil, false
	}
	return int64(min(max(f, float64(r.Min)), float64(r.Max))), true
}

// parseEnv reads the row's value from the text of a variable (OV-13, OV-14).
func (r *Row) parseEnv(text string) (any, bool) {
	text = strings.TrimSpace(text)
	if r.as != nil {
		return r.as.env(r, text)
	}
	switch r.Default.(type) {
	case bool:
		return parseBool(text)
	case int:
		return r.envInt(text)
	case string:
		word := strings.ToLower(text)
		if b, ok := parseBool(text); ok { // the seed's switches were booleans
			word = map[bool]string{true: "on", false: "off"}[b.(bool)]
		}
		return word, r.takes(word)
	}
	return nil, false
}

func (r *Row) envInt(text string) (any, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || f < float64(r.Min) || f > float64(r.Max) {
		return nil, false
	}
	return int64(f), true
}

func parseBool(text string) (any, bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "1", "yes", "on":
		return true, true
	case "false", "0", "no", "off":
		return false, true
	}
	return false, false
}
