package body

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// MaxEdits is how many edits one table may hold (ABI-3).
const MaxEdits = 64

// EditError names the edit of a table that cannot be compiled.
type EditError struct {
	Index int
	Op    string
	Path  string
	Err   error
}

// Error says which edit is wrong, why, and what would be right.
func (e *EditError) Error() string {
	return fmt.Sprintf("body edit %d (%s %q): %v", e.Index, e.Op, e.Path, e.Err)
}

// Unwrap returns the fault itself.
func (e *EditError) Unwrap() error { return e.Err }

// Editor is a compiled table of edits. It does not change and may be used by any number of goroutines at once.
type Editor struct {
	steps []step
	lone  bool // the table is one set of a top-level name
}

type opKind uint8

const (
	opSet opKind = iota
	opSetDefault
	opDelete
	opRename
	opClamp
)

var ops = map[string]opKind{"set": opSet, "set_default": opSetDefault, "delete": opDelete, "rename": opRename, "clamp": opClamp}

// step is one compiled edit.
type step struct {
	op   opKind
	path []part
	to   []part // rename: the other place
	// sibling: rename changes the name only, and the member keeps its place
	sibling  bool
	value    []byte
	min, max *float64
	low, up  []byte // min and max as they are written
}

// Compile checks a table of edits and prepares it. A fault is an *EditError; several are joined.
//
// A path is dot-separated: names, numbers of items (negative ones count from the end), `*` for every item of an array,
// `\.` for a dot in a name. Edits run in order, each on the result of those before it. Delete, rename and clamp of what
// is not there do nothing. Set makes the objects on its way that are missing or null, and does nothing where another
// value stands in the way. Rename names its target by a whole path, takes the place of what is there, and may use `*` only
// where both paths differ in nothing but the last name.
func Compile(edits []wire.Edit) (*Editor, error) {
	if len(edits) > MaxEdits {
		return nil, fmt.Errorf("%d body edits: at most %d are allowed", len(edits), MaxEdits)
	}
	e := &Editor{steps: make([]step, 0, len(edits))}
	var faults []error
	for i, w := range edits {
		s, err := compileStep(w)
		if err != nil {
			faults = append(faults, &EditError{i, w.Op, w.Path, err})
			continue
		}
		e.steps = append(e.steps, s)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	e.lone = len(e.steps) == 1 && e.steps[0].op == opSet && len(e.steps[0].path) == 1 && !e.steps[0].path[0].star
	return e, nil
}

// Then returns an editor that runs the steps of e and then those of more: each table keeps its own bound.
func (e *Editor) Then(more *Editor) *Editor {
	switch {
	case more == nil || len(more.steps) == 0:
		return e
	case len(e.steps) == 0:
		return more
	}
	return &Editor{steps: slices.Concat(e.steps, more.steps)}
}

func compileStep(w wire.Edit) (s step, err error) {
	var known bool
	if s.op, known = ops[w.Op]; !known {
		return s, errors.New("the op is unknown: use set, set_default, delete, rename or clamp")
	}
	if s.path, err = splitPath(nil, w.Path); err != nil {
		return s, err
	}
	switch s.op {
	case opSet, opSetDefault:
		if end, _, err := skipValue(w.Value, skipSpace(w.Value, 0), 1); err != nil || skipSpace(w.Value, end) != len(w.Value) {
			return s, errors.New("the value is missing or not JSON: give one JSON value")
		}
		s.value = slices.Clone([]byte(strings.TrimSpace(string(w.Value))))
	case opRename:
		return s, s.compileRename(w.To)
	case opClamp:
		return s, s.compileClamp(w.Min, w.Max)
	}
	return s, nil
}

func (s *step) compileRename(to string) (err error) {
	if s.to, err = splitPath(nil, to); err != nil {
		return fmt.Errorf("to %q: %w", to, err)
	}
	n := len(s.path) - 1
	s.sibling = len(s.to) == len(s.path) && slices.Equal(s.to[:n], s.path[:n])
	switch {
	case s.path[n].star || s.to[len(s.to)-1].star:
		return errors.New("items of an array have no name: end both paths with a member")
	case !s.sibling && (slices.ContainsFunc(s.path, isStar) || slices.ContainsFunc(s.to, isStar)):
		return errors.New("with * both paths may differ in the last name only")
	case len(s.to) > len(s.path) && slices.Equal(s.to[:len(s.path)], s.path):
		return errors.New("the target lies inside the source: name another place")
	}
	return nil
}

func (s *step) compileClamp(low, up *float64) (err error) {
	if low == nil && up == nil {
		return errors.New("clamp needs min, max or both")
	}
	if low != nil && up != nil && *low > *up {
		return errors.New("min is above max")
	}
	if low != nil {
		if s.low, err = json.Marshal(*low); err != nil {
			return err
		}
	}
	if up != nil {
		if s.up, err = json.Marshal(*up); err != nil {
			return err
		}
	}
	s.min, s.max = low, up
	return nil
}
