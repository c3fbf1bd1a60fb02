package hint

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words is a text and the places in it where something may begin that says when to come back.
type words struct {
	s, low string // as it is and in lower case, with all characters at the same places
	places []int32
}

// spoken are all phrases, the leads before the moments.
var spoken = newBook(slices.Concat(leads, moments)...)

// text reads a wait from words: a length that stands where a wait stands, else a point in time.
func (p *pick) text(s string) bool {
	w := words{s: western(s)}
	w.low = lower(w.s)
	w.places = spoken.places(w.low, make([]int32, 0, 32+len(w.low)/32))
	isNumber := func(at int32) bool { return isDigit(w.low[at]) }
	if !slices.ContainsFunc(w.places, isNumber) && !strings.Contains(w.low, "midnight") && !strings.Contains(w.low, "noon") {
		return false // many answers say no time at all
	}
	if d, ok := w.spokenLength(); ok && p.offer(d, "text") {
		return true
	}
	if d, ok := w.spokenMoment(p.now); ok {
		return p.offer(d, "text")
	}
	return false
}

// western returns s with Arabic and full-width digits written as 0 to 9, and bytes that are not UTF-8 as U+FFFD.
func western(s string) string {
	if utf8.ValidString(s) && !mayHaveDigits(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + utf8.UTFMax)
	copied := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if w := westernDigit(r); w != r || size == 1 {
			b.WriteString(s[copied:i])
			b.WriteRune(w)
			copied = i + size
		}
		i += size
	}
	b.WriteString(s[copied:])
	return b.String()
}

// mayHaveDigits looks for the first bytes of the digits that are not 0 to 9.
func mayHaveDigits(s string) bool {
	return strings.IndexByte(s, "٠"[0]) >= 0 || strings.IndexByte(s, "۰"[0]) >= 0 || strings.Contains(s, "０"[:2])
}

// lower returns s in lower case, except for the few letters whose lower case takes another number of bytes.
func lower(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	var ascii [256]byte
	for len(s) > 0 {
		n := lowerASCII(ascii[:], s)
		b.Write(ascii[:n])
		s = s[n:]
		if n == len(ascii) || s == "" {
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		if l := lowerRune(r); l != r {
			b.WriteRune(l)
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// lowerASCII writes the bytes of s in lower case to b, up to one that is not ASCII, and returns how many; eight at once
// where it can.
func lowerASCII(b []byte, s string) int {
	const each = 0x0101010101010101
	s = s[:min(len(s), len(b))]
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := s[i : i+8]
		v := uint64(x[0]) | uint64(x[1])<<8 | uint64(x[2])<<16 | uint64(x[3])<<24 |
			uint64(x[4])<<32 | uint64(x[5])<<40 | uint64(x[6])<<48 | uint64(x[7])<<56
		if v&(0x80*each) != 0 {
			break
		}
		capital := (v + (0x80-'A')*each) &^ (v + (0x7F-'Z')*each) & (0x80 * each) // from A on, and not above Z
		binary.LittleEndian.PutUint64(b[i:], v|capital>>2)
	}
	for ; i < len(s) && s[i] < utf8.RuneSelf; i++ {
		b[i] = lowerByte(s[i])
	}
	return i
}

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

func lowerRune(r rune) rune {
	switch {
	case 0x0590 <= r && r < 0x10A0 || 0x2E80 <= r && r < 0xA640 || 0xAC00 <= r && r < 0xD800:
		return r // Hebrew to Burmese, Chinese, Japanese, Korean: no cases
	case 0x0430 <= r && r < 0x0460 || r == utf8.RuneError:
		return r // Russian in lower case; what was no character
	}
	if l := unicode.ToLower(r); utf8.RuneLen(l) == utf8.RuneLen(r) {
		return l
	}
	return r
}

func westernDigit(r rune) rune {
	switch {
	case '٠' <= r && r <= '٩':
		return '0' + r - '٠'
	case '۰' <= r && r <= '۹':
		return '0' + r - '۰'
	case '０' <= r && r <= '９':
		return '0' + r - '０'
	}
	return r
}

// lookBack is how many bytes before a match are looked at for what makes it no hint.
const lookBack = 160

// refused says that the words before a match make it no hint: advice under a condition ("If you have already done so,
// try again in 15 minutes"), or the display of a window that is not used up ("usage: 22%. Resets in 111 hours").
func refused(low string, start int) bool {
	before := low[max(0, start-lookBack):start]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	sentence := before
	for _, end := range []string{". ", "! ", "? ", "。"} {
		if i := strings.LastIndex(sentence, end); i >= 0 {
			sentence = sentence[i+len(end):]
		}
	}
	return conditional(sentence) || open(before)
}

var conditions = []string{"if", "when", "once", "after you", "unless"}

// conditional says that a sentence has a condition.
func conditional(sentence string) bool {
	for i := range len(sentence) {
		if i > 0 && sentence[i-1] != '(' && !isSpace(sentence[i-1]) {
			continue
		}
		if n := oneOf(sentence[i:], conditions); n > 0 && i+n < len(sentence) && isSpace(sentence[i+n]) {
			return true
		}
	}
	return false
}

func isSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' && b != '\v' }

// open says that the last percentage is that of a window with something left.
func open(before string) bool {
	for at := strings.LastIndexByte(before, '%'); at >= 0; at = strings.LastIndexByte(before[:at], '%') {
		n, err := strconv.ParseFloat(numberBefore(before[:at]), 64)
		if err != nil {
			continue
		}
		if oneOf(strings.TrimPrefix(before[at+1:], " "), []string{"left", "remaining", "available"}) > 0 {
			return n > 0
		}
		return n < 100
	}
	return false
}

// numberBefore is the number that s ends with, a blank between left aside; empty for none.
func numberBefore(s string) string {
	s = strings.TrimSuffix(s, " ")
	start := len(s)
	for start > 0 && isDigit(s[start-1]) {
		start--
	}
	if start == len(s) || start < 2 || s[start-1] != '.' || !isDigit(s[start-2]) {
		return s[start:]
	}
	for start--; start > 0 && isDigit(s[start-1]); {
		start--
	}
	return s[start:]
}
