// Package scan finds many substrings in one pass over a text, in any letter case: it owns the folding of letters, the
// automaton over all markers of a rule set, and the literals that a regular expression cannot match without.
package scan

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold returns s with every letter replaced by the one that stands for all its cases, in the sense of the (?i) flag of
// regular expressions, so that a substring of folded text is a match in any letter case. ASCII becomes lower case.
func Fold(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return strings.Map(foldRune, s)
		}
	}
	return strings.ToLower(s)
}

func foldRune(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	case 0x2E80 <= r && r <= 0xA63F, 0xAC00 <= r && r <= 0xD7FF:
		return r // Chinese, Japanese, Korean: no cases, and common in error texts
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}

// Cut returns at most the first n bytes of s, whole characters only.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
