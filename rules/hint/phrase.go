package hint

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// phrase is a row of words that stands for one way of saying something. It is matched against lower-cased text, one step
// after the other and without ever stepping back, so that a look at one place costs the same in any text: the words of
// a step stand longest first.
type phrase struct {
	steps []step
	whole bool // no letter, digit or _ stands before it
}

// step is the next part of a phrase: one of words, or nothing when it may be left out, after at most gap characters that
// are none of stop.
type step struct {
	words    []string
	optional bool
	edge     bool // no letter, digit or _ comes after
	gap      int
	stop     string
}

// longestWord is more bytes than a word behind a gap has.
const longestWord = 32

func one(words ...string) step   { return step{words: words} }
func maybe(words ...string) step { return step{words: words, optional: true} }
func within(gap int, stop string, words ...string) step {
	return step{words: words, gap: gap, stop: stop}
}

// end returns where the phrase that begins at i ends, and false when none does.
func (p *phrase) end(low string, i int) (int, bool) {
	if p.whole && i > 0 && wordByte(low[i-1]) {
		return 0, false
	}
	for k := range p.steps {
		s := &p.steps[k]
		end, ok := s.end(low, i)
		if !ok && !s.optional {
			return 0, false
		}
		if ok {
			i = end
		}
	}
	return i, true
}

func (s *step) end(low string, i int) (int, bool) {
	if s.edge {
		return edged(low, i, s.words)
	}
	if s.gap > 0 {
		return s.behind(low, i)
	}
	n := oneOf(low[i:], s.words)
	return i + n, n > 0
}

// behind looks for the words behind the gap. Most texts have none of them near, which is seen at a glance.
func (s *step) behind(low string, i int) (int, bool) {
	near := low[i:min(len(low), i+utf8.UTFMax*(s.gap+1)+longestWord)]
	if !slices.ContainsFunc(s.words, func(w string) bool { return strings.Contains(near, w) }) {
		return 0, false
	}
	for range s.gap + 1 {
		if n := oneOf(low[i:], s.words); n > 0 {
			return i + n, true
		}
		r, size := utf8.DecodeRuneInString(low[i:])
		if size == 0 || strings.ContainsRune(s.stop, r) {
			return 0, false
		}
		i += size
	}
	return 0, false
}

// edged returns where the first of words ends that stands at i and ends there.
func edged(low string, i int, words []string) (int, bool) {
	for _, w := range words {
		if end := i + len(w); strings.HasPrefix(low[i:], w) && (end == len(low) || !wordByte(low[end])) {
			return end, true
		}
	}
	return 0, false
}

// oneOf returns the length of the first of words that s begins with, 0 for none.
func oneOf(s string, words []string) int {
	if s == "" {
		return 0
	}
	for _, w := range words {
		if s[0] == w[0] && strings.HasPrefix(s, w) {
			return len(w)
		}
	}
	return 0
}

// wordByte says that b belongs to a word in the sense of \b of regular expressions, in lower-cased text.
func wordByte(b byte) bool { return b == '_' || isDigit(b) || 'a' <= b && b <= 'z' }

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// book is a set of phrases that are looked for together.
type book struct {
	phrases []phrase
	by      [256][]int // the phrases by their first byte
	gate    [1 << 12 / 64]uint64
}

// newBook indexes phrases by the first three bytes of the words of their first step, which have no fewer.
func newBook(phrases ...phrase) *book {
	b := &book{phrases: phrases}
	for i, p := range phrases {
		for _, w := range p.steps[0].words {
			h := gateOf(w)
			b.gate[h/64] |= 1 << (h % 64)
			if list := b.by[w[0]]; len(list) == 0 || list[len(list)-1] != i {
				b.by[w[0]] = append(list, i)
			}
		}
	}
	return b
}

func gateOf(s string) uint { return (uint(s[0])<<6 ^ uint(s[1])<<3 ^ uint(s[2])) % (1 << 12) }

// next returns the first place from i on where a phrase may begin, or, if numbers is set, where a row of digits does; the
// length of low when there is none. Nearly all of a text is passed over here.
func (b *book) next(low string, i int, numbers bool) int {
	for ; i+2 < len(low); i++ {
		if h := gateOf(low[i:]); b.gate[h/64]&(1<<(h%64)) != 0 && b.by[low[i]] != nil {
			return i
		}
		if numbers && isDigit(low[i]) && (i == 0 || !isDigit(low[i-1])) {
			return i
		}
	}
	return len(low)
}

// matched counts the matches of one phrase in a text; none begins before the end of the one before it.
type matched struct{ count, end int }

// take says whether a match from start to end is one to look at; most is how many are, so that a text that repeats itself
// costs no more than another.
func (m *matched) take(start, end, most int) bool {
	if start < m.end || m.count == most {
		return false
	}
	m.count++
	m.end = end
	return true
}
