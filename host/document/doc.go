// Package document reads YAML and JSON strictly: every fault has a path, line and column, an unknown key names the nearest
// known one, and all faults are reported at once. It owns decoding of what people write; it knows no field of it.
package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong in a document.
type Fault struct {
	File    string `json:"file,omitempty"`
	Path    string `json:"field"` // connections[0].api_key
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"` // from 1; 0: not known
	Column  int    `json:"column,omitempty"`
}

// String is file:line:column: path: message, without the parts that are not known.
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		b.WriteString(": ")
	}
	if f.Path != "" {
		b.WriteString(f.Path)
		b.WriteString(": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Error makes a Fault an error.
func (f Fault) Error() string { return f.String() }

// InOrder returns the faults by their places in the document.
func InOrder(faults []Fault) []Fault {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return faults
}
