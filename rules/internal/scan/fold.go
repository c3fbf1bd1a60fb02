// Package scan finds many substrings in one pass over a text, in any letter case: it owns the folding of letters, the
// automaton over all markers of a rule set, and the literals that a regular expression cannot match without.
package scan

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// Fold returns s with every letter replaced by the one that stands for all its cases, in the sense of the (?i) flag of
// regular expressions, so that a substring of folded text is a match in any letter case. ASCII becomes lower case.
func Fold(s string) string {
	at := 0
	for at < len(s) && s[at] < utf8.RuneSelf && lower(s[at]) == s[at] {
		at++
	}
	if at == len(s) {
		return s
	}
	b := make([]byte, at, len(s)+utf8.UTFMax)
	copy(b, s)
	for at < len(s) {
		if n := len(b); n+8 <= cap(b) && at+8 <= len(s) {
			if v, ok := lower8(s[at : at+8]); ok {
				b = b[:n+8]
				binary.LittleEndian.PutUint64(b[n:], v)
				at += 8
				continue
			}
		}
		if c := s[at]; c < utf8.RuneSelf {
			b = append(b, lower(c))
			at++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[at:])
		b = utf8.AppendRune(b, foldRune(r))
		at += size
	}
	return string(b)
}

// lower8 returns eight bytes in lower case, as one number with the first byte lowest; false when one of them is not ASCII.
func lower8(x string) (uint64, bool) {
	const each = 0x0101010101010101
	v := uint64(x[0]) | uint64(x[1])<<8 | uint64(x[2])<<16 | uint64(x[3])<<24 |
		uint64(x[4])<<32 | uint64(x[5])<<40 | uint64(x[6])<<48 | uint64(x[7])<<56
	if v&(0x80*each) != 0 {
		return 0, false
	}
	capital := (v + (0x80-'A')*each) &^ (v + (0x7F-'Z')*each) & (0x80 * each) // from A on, and not above Z
	return v | capital>>2, true
}

// lower returns an ASCII letter in lower case, and any other byte as it is.
func lower(c byte) byte {
	if c-'A' < 26 {
		c += 'a' - 'A'
	}
	return c
}

func foldRune(r rune) rune {
	if 0x2E80 <= r && r <= 0xA63F || 0xAC00 <= r && r <= 0xD7FF {
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
