package document

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Nearest returns up to limit of the known names, the nearest to name first: those within a third of its length in edits
// (at least two), letter case ignored, and those that contain it. Equal ones are in the order of the alphabet.
func Nearest(name string, known []string, limit int) []string {
	type near struct {
		name  string
		edits int
	}
	const maxLen = 200 // names that people mistype are short; the cost grows with the product of lengths
	if len(name) > maxLen {
		return nil
	}
	want := []rune(strings.ToLower(name))
	allowed := max(2, len(want)/3)
	var found []near
	for _, k := range known {
		if len(k) > maxLen {
			continue
		}
		lower := strings.ToLower(k)
		e := allowed + 1 // a difference in length is that many edits, so most names need no table
		if diff := utf8.RuneCountInString(lower) - len(want); max(diff, -diff) <= allowed {
			e = edits(want, []rune(lower))
		}
		if e > allowed && len(want) >= 3 && strings.Contains(lower, string(want)) {
			e = allowed
		}
		if e <= allowed {
			found = append(found, near{k, e})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, f := range found[:min(limit, len(found))] {
		out = append(out, f.name)
	}
	return out
}

// edits is the number of insertions, deletions, replacements and swaps of neighbours between a and b.
func edits(a, b []rune) int {
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, old[j+1]+1, old[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}
