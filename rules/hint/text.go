package hint

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text reads a wait from words: a length that stands where a wait stands, else a point in time.
func (p *pick) text(s string) bool {
	s, low := plainText(s)
	if strings.IndexAny(low, "0123456789") < 0 && !strings.Contains(low, "midnight") && !strings.Contains(low, "noon") {
		return false // many answers say no time at all
	}
	if d, ok := spokenLength(low); ok && p.offer(d, "text") {
		return true
	}
	if d, ok := spokenMoment(s, low, p.now); ok {
		return p.offer(d, "text")
	}
	return false
}

// plainText returns text with Arabic and full-width digits written as 0 to 9 and bytes that are not UTF-8 as U+FFFD, and
// the same in lower case. Both have their characters at the same places: the few letters whose lower case takes another
// number of bytes are kept.
func plainText(text string) (s, low string) {
	ascii := 0
	for ascii < len(text) && text[ascii] < utf8.RuneSelf {
		ascii++
	}
	if ascii == len(text) {
		return text, strings.ToLower(text)
	}
	var a, b strings.Builder
	a.Grow(len(text) + utf8.UTFMax)
	b.Grow(len(text) + utf8.UTFMax)
	for _, r := range text {
		if r < utf8.RuneSelf {
			a.WriteByte(byte(r))
			b.WriteByte(lowerByte(byte(r)))
			continue
		}
		if r = westernDigit(r); r < utf8.RuneSelf {
			a.WriteByte(byte(r))
			b.WriteByte(byte(r))
			continue
		}
		a.WriteRune(r)
		b.WriteRune(lowerRune(r))
	}
	return a.String(), b.String()
}

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

func lowerRune(r rune) rune {
	if 0x2E80 <= r && r <= 0xA63F || 0xAC00 <= r && r <= 0xD7FF {
		return r // Chinese, Japanese, Korean: no cases
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
