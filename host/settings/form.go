package settings

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/host/document"
)

// form is how a row is read and shown whose value is not a plain bool, number, text or list of texts.
type form interface {
	get(field any) any // as documents show it
	set(field, x any)  // x: what parse and env return, or the row's Default
	parse(r *Row, n *document.Node, path string) (any, []document.Fault)
	env(r *Row, text string) (any, bool)
	allowed(r *Row) string
}

// merger is a form whose patches change a part of the value: given is merged into what is stored. An empty result removes it.
type merger interface {
	merge(stored, given json.RawMessage) json.RawMessage
}

// optionalBool is a *bool, null while it is not set.
type optionalBool struct{}

func (optionalBool) get(field any) any {
	if p := *field.(**bool); p != nil {
		return *p
	}
	return nil
}

func (optionalBool) set(field, x any) {
	b, ok := x.(bool)
	if !ok {
		*field.(**bool) = nil
		return
	}
	*field.(**bool) = &b
}

func (optionalBool) parse(_ *Row, n *document.Node, path string) (any, []document.Fault) {
	var b bool
	faults := n.DecodeAt(path, &b)
	return b, faults
}

func (optionalBool) env(_ *Row, text string) (any, bool) { return parseBool(text) }
func (optionalBool) allowed(*Row) string                 { return "true, false or null" }

// optionalInt is an int that is null while it is 0.
type optionalInt struct{}

func (optionalInt) get(field any) any {
	if i := *field.(*int); i != 0 {
		return int64(i)
	}
	return nil
}

func (optionalInt) set(field, x any) { *field.(*int) = int(number(x)) }

func (optionalInt) parse(r *Row, n *document.Node, path string) (any, []document.Fault) {
	return r.parseInt(n, path)
}

func (optionalInt) env(r *Row, text string) (any, bool) { return r.envInt(text) }

func (optionalInt) allowed(r *Row) string {
	return fmt.Sprintf("a whole number from %d to %d, or null", r.Min, r.Max)
}

// fraction is a float64.
type fraction struct{}

func (fraction) get(field any) any { return *field.(*float64) }
func (fraction) set(field, x any)  { *field.(*float64) = x.(float64) }

func (fraction) parse(r *Row, n *document.Node, path string) (any, []document.Fault) {
	var f float64
	if faults := n.DecodeAt(path, &f); faults != nil {
		return nil, faults
	}
	if !(f >= float64(r.Min) && f <= float64(r.Max)) {
		return nil, r.fault(n, path, fmt.Sprintf("must be %d to %d", r.Min, r.Max))
	}
	return f, nil
}

func (fraction) env(r *Row, text string) (any, bool) {
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && f >= float64(r.Min) && f <= float64(r.Max)
}

func (fraction) allowed(r *Row) string { return fmt.Sprintf("a number from %d to %d", r.Min, r.Max) }

// clamped is the nearest number within bounds of a stored one (API-14).
func (fraction) clamped(r *Row, n *document.Node) (any, bool) {
	f, err := strconv.ParseFloat(n.Text, 64)
	if n.Kind != document.Number || err != nil && !math.IsInf(f, 0) {
		return nil, false
	}
	return min(max(f, float64(r.Min)), float64(r.Max)), true
}

// numbers is a []int; an empty list means the default (LOCK-10).
type numbers struct{}

func (numbers) get(field any) any { return slices.Clone(*field.(*[]int)) }
func (numbers) set(field, x any)  { *field.(*[]int) = slices.Clone(x.([]int)) }

func (numbers) parse(r *Row, n *document.Node, path string) (any, []document.Fault) {
	list := []int{}
	faults := n.DecodeAt(path, &list)
	if faults != nil {
		return nil, faults
	}
	for i, x := range list {
		if int64(x) < r.Min || int64(x) > r.Max {
			message := fmt.Sprintf("must be %d to %d", r.Min, r.Max)
			faults = append(faults, r.fault(n.Items[i], document.At(path, i), message)...)
		}
	}
	if len(list) == 0 {
		list = r.Default.([]int)
	}
	slices.Sort(list)
	return slices.Compact(list), faults
}

func (numbers) env(*Row, string) (any, bool) { return nil, false }

func (numbers) allowed(r *Row) string {
	return fmt.Sprintf("a list of whole numbers from %d to %d", r.Min, r.Max)
}

// words is a []string of known words.
type words struct{}

func (words) get(field any) any { return slices.Clone(*field.(*[]string)) }
func (words) set(field, x any)  { *field.(*[]string) = slices.Clone(x.([]string)) }

func (words) parse(r *Row, n *document.Node, path string) (any, []document.Fault) {
	list := []string{}
	faults := n.DecodeAt(path, &list)
	if faults != nil {
		return nil, faults
	}
	for i, x := range list {
		if !slices.Contains(r.Words, x) {
			message := "must be one of " + strings.Join(r.Words, ", ")
			faults = append(faults, r.fault(n.Items[i], document.At(path, i), message)...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), faults
}

func (words) env(*Row, string) (any, bool) { return nil, false }
func (words) allowed(r *Row) string        { return "a list of " + strings.Join(r.Words, ", ") }

// zone is a *time.Location, by its IANA name.
type zone struct{}

func (zone) get(field any) any { return (*field.(**time.Location)).String() }

func (zone) set(field, x any) {
	*field.(**time.Location) = time.UTC
	if at, err := time.LoadLocation(x.(string)); err == nil {
		*field.(**time.Location) = at
	}
}

func (z zone) parse(r *Row, n *document.Node, path string) (any, []document.Fault) {
	var name string
	if faults := n.DecodeAt(path, &name); faults != nil {
		return nil, faults
	}
	if _, ok := z.env(r, name); !ok {
		return nil, r.fault(n, path, "must be "+z.allowed(r))
	}
	return name, nil
}

func (zone) env(_ *Row, text string) (any, bool) {
	_, err := time.LoadLocation(text)
	return text, err == nil && text != "" && text != "Local"
}

func (zone) allowed(*Row) string { return "a time zone such as Europe/Paris" }

// raw is a json.RawMessage that another package reads; check says what is wrong with it.
type raw struct {
	check func(n *document.Node, path string) []document.Fault
	says  string
}

func (raw) get(field any) any { return *field.(*json.RawMessage) }
func (raw) set(field, x any)  { *field.(*json.RawMessage) = slices.Clone(x.(json.RawMessage)) }

func (f raw) parse(_ *Row, n *document.Node, path string) (any, []document.Fault) {
	return json.RawMessage(n.JSON()), f.check(n, path)
}

func (raw) env(*Row, string) (any, bool) { return nil, false }
func (f raw) allowed(*Row) string        { return f.says }
