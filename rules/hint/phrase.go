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
	bare  bool // a number behind it that has no unit is one of seconds
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

// longestHead is more bytes than the words before a gap have.
const longestHead = 32

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

// behind looks for the words behind the gap.
func (s *step) behind(low string, i int) (int, bool) {
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

// near says whether the words behind the gap of a phrase that begins at i stand near enough, true when it has no gap. It
// keeps in m what it saw, so that all calls for one text together look at each byte a few times at most.
func (p *phrase) near(low string, i int, m *matched) bool {
	last := &p.steps[len(p.steps)-1]
	if last.gap == 0 {
		return true
	}
	reach := longestHead + utf8.UTFMax*last.gap
	if m.next <= i {
		ahead := low[i:min(len(low), i+2*reach)]
		m.next, m.found = i+reach, false
		for _, w := range last.words {
			if at := strings.Index(ahead, w); at >= 0 {
				m.next, m.found = i+at, true
				ahead = ahead[:at]
			}
		}
	}
	return m.found && m.next-i < reach
}

// edged returns where the first of words ends that stands at i, with no letter, digit or _ behind it.
func edged(low string, i int, words []string) (int, bool) {
	if i == len(low) {
		return 0, false
	}
	for _, w := range words {
		if end := i + len(w); low[i] == w[0] && end <= len(low) && (end == len(low) || !wordByte(low[end])) && low[i:end] == w {
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
		if n := len(w); s[0] == w[0] && n <= len(s) && s[n-1] == w[n-1] && s[:n] == w {
			return n
		}
	}
	return 0
}

// wordByte says that b belongs to a word in the sense of \b of regular expressions, in lower-cased text.
func wordByte(b byte) bool { return b == '_' || isDigit(b) || 'a' <= b && b <= 'z' }

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// book is a set of phrases that are looked for together, in one pass over a text in which nearly all places are passed by.
type book struct {
	slots [1 << slotBits]uint8 // by the first three bytes at a place: which of lists
	lists [][]int              // the numbers of the phrases that may begin there
}

const slotBits = 12

// newBook indexes phrases by the first three bytes of the words of their first step, which have no fewer.
func newBook(phrases ...phrase) *book {
	b := &book{lists: [][]int{nil}}
	for i, p := range phrases {
		for _, w := range p.steps[0].words {
			slot := &b.slots[slotOf(threeAt(w, 0))]
			if *slot == 0 {
				*slot = uint8(len(b.lists))
				b.lists = append(b.lists, nil)
			}
			if list := &b.lists[*slot]; !slices.Contains(*list, i) {
				*list = append(*list, i)
			}
		}
	}
	return b
}

// slotOf is the slot of three bytes, the first one lowest.
func slotOf(three uint32) uint32 { return three * 0x9E3779B1 >> (32 - slotBits) }

func threeAt(s string, i int) uint32 {
	return uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16
}

// at returns the phrases that may begin at i.
func (b *book) at(low string, i int) []int {
	if i+2 >= len(low) {
		return nil
	}
	return b.lists[b.slots[slotOf(threeAt(low, i))]]
}

// places appends to list the places where a phrase may begin or a row of digits does.
func (b *book) places(low string, list []int32) []int32 {
	three := uint32(0) // the bytes that end at i
	for i := range len(low) {
		three = three>>8 | uint32(low[i])<<16
		if b.slots[slotOf(three)] != 0 && i >= 2 {
			list = append(list, int32(i-2))
		}
		if isDigit(low[i]) && !isDigit(byte(three>>8)) {
			list = append(list, int32(i))
		}
	}
	return list
}

// matched counts the matches of one phrase in a text; none begins before the end of the one before it.
type matched struct {
	count, end int

	// What near has seen: that the next words behind a gap stand at next, or that none begins before next and as far again
	// as a gap reaches.
	next  int
	found bool
}

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
