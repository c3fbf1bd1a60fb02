package document

import (
	"cmp"
	"slices"
)

// What a document may cost. They bound the work for hostile input: deep nesting, and aliases that multiply (an alias
// counts each value that it stands for).
const (
	MaxBytes  = 4 << 20
	MaxDepth  = 64
	MaxValues = 200_000
	maxFaults = 100 // further ones are not reported
)

// sorted puts faults into the order of the document and caps their number.
func sorted(faults []Fault) []Fault {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(faults) > maxFaults {
		faults = faults[:maxFaults]
	}
	return faults
}
