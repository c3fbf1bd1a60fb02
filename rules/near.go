package rules

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/weirgate/weir/rules/internal/scan"
)

// A regular expression costs a hundred times what the automaton costs. So it is tried only on the parts of a text that may
// hold a match: around the places where what it needs stands, as far as a match can reach.

// matchesIn reports whether the expression matches the visible part of one text; not sure: the plugin has done too much for
// this answer.
func (m *Match) matchesIn(s *sight, i, source int, p *sought) (found, sure bool) {
	text := s.cut[i]
	if len(text) != int(s.ends[i]) { // the folded text has other places, or was not made
		return m.try(source, p, text)
	}
	pivot, ok := m.pivot(s, i, p)
	switch {
	case !ok:
		return false, true
	case p.Exact:
		return true, true
	case p.Anchored || pivot < 0:
		return m.tryPart(source, p, text, m.folded[i][:len(text)])
	}
	return m.around(s, i, source, p, pivot)
}

// pivot chooses the need around whose texts to look: the one that comes first last. False: a need is not there at all.
// -1: a match may reach anywhere from each of them.
func (m *Match) pivot(s *sight, i int, p *sought) (int, bool) {
	best, latest := -1, int32(-1)
	for n, markers := range p.literals {
		first := scan.Absent
		for _, marker := range markers {
			first = min(first, m.found[i][marker])
		}
		if first > s.ends[i] {
			return -1, false
		}
		if need := &p.Needs[n]; first > latest && need.Bounded() {
			best, latest = n, first
		}
	}
	return best, true
}

// around tries the expression on the parts of a text that lie around the texts of one need and hold the other needs too.
// Parts that meet are tried as one, so that no byte is looked at twice for one text of the need.
func (m *Match) around(s *sight, i, source int, p *sought, pivot int) (found, sure bool) {
	text, need := s.cut[i], &p.Needs[pivot]
	folded := m.folded[i][:len(text)]
	longest := 0
	if need.Before.Words+need.After.Words > 0 {
		longest = s.longestWord(i)
	}
	before, after := need.Before.In(longest)+1, need.After.In(longest)+1
	for k, marker := range p.literals[pivot] {
		if m.found[i][marker] > s.ends[i] {
			continue
		}
		word, from, to := need.Texts[k], 0, 0
		for at := int(m.found[i][marker]) - len(word); ; {
			lo, hi := back(text, at, before), ahead(text, at+len(word), after)
			if p.holdsOthers(folded[lo:hi], pivot) {
				if lo > to {
					if found, sure = m.part(source, p, text, folded, from, to); found || !sure {
						return found, sure
					}
					from = lo
				}
				to = hi
			}
			next := strings.Index(folded[at+1:], word)
			if next < 0 {
				break
			}
			at += 1 + next
		}
		if found, sure = m.part(source, p, text, folded, from, to); found || !sure {
			return found, sure
		}
	}
	return false, true
}

// longestWord looks once for how long the words of a text are.
func (s *sight) longestWord(i int) int {
	if s.longest[i] == 0 {
		s.longest[i] = scan.LongestWord(s.cut[i])
	}
	return s.longest[i]
}

// holdsOthers reports whether a part of a folded text has a text of each need but one.
func (p *sought) holdsOthers(folded string, but int) bool {
	for n, need := range p.Needs {
		if n != but && !containsAny(folded, need.Texts) {
			return false
		}
	}
	return true
}

func containsAny(text string, list []string) bool {
	for _, t := range list {
		if strings.Contains(text, t) {
			return true
		}
	}
	return false
}

// part tries text[from:to]. What an expression says about the edge of a word may be true of the part alone.
func (m *Match) part(source int, p *sought, text, folded string, from, to int) (found, sure bool) {
	if from == to {
		return false, true
	}
	found, sure = m.tryPart(source, p, text[from:to], folded[from:to])
	if found && p.Edges && to-from < len(text) {
		return m.try(source, p, text)
	}
	return found, sure
}

func (m *Match) tryPart(source int, p *sought, text, folded string) (found, sure bool) {
	if p.rest == nil {
		return m.try(source, p, text)
	}
	if !m.affords(source, p.pattern, text) {
		return false, false
	}
	return p.overGap(text, folded), true
}

func (m *Match) try(source int, p *sought, text string) (found, sure bool) {
	if !m.affords(source, p.pattern, text) {
		return false, false
	}
	return p.re.MatchString(text), true
}

// overGap looks for what follows the gap, and each time for a word before it.
func (p *pattern) overGap(text, folded string) bool {
	at := firstEnd(folded, p.Gap.Words)
	for at >= 0 && at <= len(text) {
		where := p.rest.FindStringIndex(text[at:])
		if where == nil {
			return false
		}
		at += where[0]
		if p.bridged(text, folded, at) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += max(size, 1)
	}
	return false
}

// bridged reports whether one of the words ends where the gap reaches from at.
func (p *pattern) bridged(text, folded string, at int) bool {
	g := p.Gap
	least := back(text, at, g.Most)
	if !g.Lines {
		least = max(least, strings.LastIndexByte(text[:at], '\n')+1)
	}
	for _, w := range g.Words {
		from := max(0, least-len(w))
		if strings.Contains(folded[from:at], w) {
			return true
		}
	}
	return false
}

// firstEnd returns where the first of the words ends that ends first, -1: there is none.
func firstEnd(text string, list []string) int {
	first := -1
	for _, w := range list {
		if at := strings.Index(text, w); at >= 0 && (first < 0 || at+len(w) < first) {
			first = at + len(w)
		}
	}
	return first
}

// back returns where the n characters before at begin.
func back(text string, at, n int) int {
	if n >= at {
		return 0
	}
	for ; n > 0 && at > 0; n-- {
		for at--; at > 0 && !utf8.RuneStart(text[at]); at-- {
		}
	}
	return at
}

// ahead returns where the n characters from at on end.
func ahead(text string, at, n int) int {
	if n >= len(text)-at {
		return len(text)
	}
	for ; n > 0 && at < len(text); n-- {
		for at++; at < len(text) && !utf8.RuneStart(text[at]); at++ {
		}
	}
	return at
}

// longExpression is from which length on, in characters, the alternatives at an expression's end are tried one by one: package
// regexp runs programs above 500 instructions in its slow way.
const longExpression = 100

// newPattern compiles a part of an expression.
func newPattern(expr string, re *regexp.Regexp) pattern {
	p := pattern{expr: expr, re: re, Shape: scan.ShapeOf(expr), size: programSize(expr)}
	if p.Gap != nil {
		p.rest, _ = regexp.Compile(p.Gap.Rest)
	}
	return p
}
