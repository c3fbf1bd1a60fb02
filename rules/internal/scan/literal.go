package scan

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

const (
	leastLiteral = 3  // shorter ones are found everywhere
	mostChoices  = 32 // of an alternation
)

// Far is a reach without a bound.
const Far = 1 << 12

// Reach is how long something is at most: so many characters and so many words, which are as long as the text has them.
type Reach struct{ Runes, Words int }

// In returns the number of characters in a text whose longest word is that long.
func (r Reach) In(longest int) int { return min(r.Runes+r.Words*longest, Far) }

// Need is a set of folded texts, one of which every match of a regular expression holds, and how much of a match stands
// before and after it.
type Need struct {
	Texts         []string
	Before, After Reach
}

// Bounded reports whether a match ends somewhere.
func (n *Need) Bounded() bool { return n.Before.Runes < Far && n.After.Runes < Far }

// Needs returns what every match of the regular expression holds. None: there is nothing worth looking for. A rule's
// expression is tried only where all of it was found, and only as far around one of it as a match reaches.
func Needs(expr string) []Need {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	return needs(re)
}

func needs(re *syntax.Regexp) []Need {
	switch re.Op {
	case syntax.OpLiteral:
		if s := Fold(string(re.Rune)); len(s) >= leastLiteral {
			return []Need{{Texts: []string{s}}}
		}
	case syntax.OpCapture:
		return needs(re.Sub[0])
	case syntax.OpPlus:
		return shift(needs(re.Sub[0]), Reach{}, Reach{Runes: Far})
	case syntax.OpRepeat:
		if re.Min > 0 { // the first time
			return shift(needs(re.Sub[0]), Reach{}, repeated(re.Sub[0], re.Max-1))
		}
	case syntax.OpConcat:
		var all []Need
		for i, sub := range re.Sub {
			all = append(all, shift(needs(sub), total(re.Sub[:i]), total(re.Sub[i+1:]))...)
		}
		return all
	case syntax.OpAlternate:
		return alternatives(re.Sub)
	}
	return nil
}

// alternatives takes of each alternative the need whose texts are longest, which is found least.
func alternatives(subs []*syntax.Regexp) []Need {
	var all Need
	for _, sub := range subs {
		list := needs(sub)
		if len(list) == 0 {
			return nil
		}
		n := slices.MaxFunc(list, func(a, b Need) int { return shortest(a.Texts) - shortest(b.Texts) })
		all.Texts = append(all.Texts, n.Texts...)
		all.Before, all.After = all.Before.or(n.Before), all.After.or(n.After)
	}
	if len(all.Texts) > mostChoices {
		return nil
	}
	return []Need{all}
}

func shift(list []Need, before, after Reach) []Need {
	for i := range list {
		list[i].Before, list[i].After = list[i].Before.and(before), list[i].After.and(after)
	}
	return list
}

func (r Reach) and(other Reach) Reach {
	return Reach{min(r.Runes+other.Runes, Far), min(r.Words+other.Words, Far)}
}

func (r Reach) or(other Reach) Reach {
	return Reach{max(r.Runes, other.Runes), max(r.Words, other.Words)}
}

// length is how long a match is.
func length(re *syntax.Regexp) Reach {
	switch re.Op {
	case syntax.OpLiteral:
		return Reach{Runes: min(len(re.Rune), Far)}
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return Reach{Runes: 1}
	case syntax.OpCapture, syntax.OpQuest:
		return length(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		return repeated(re.Sub[0], -1)
	case syntax.OpRepeat:
		return repeated(re.Sub[0], re.Max)
	case syntax.OpConcat:
		return total(re.Sub)
	case syntax.OpAlternate:
		var r Reach
		for _, sub := range re.Sub {
			r = r.or(length(sub))
		}
		return r
	}
	return Reach{}
}

func total(subs []*syntax.Regexp) Reach {
	var r Reach
	for _, sub := range subs {
		r = r.and(length(sub))
	}
	return r
}

// repeated is the length of re so often, below 0 without a bound: then of letters and digits it is a word.
func repeated(re *syntax.Regexp, often int) Reach {
	switch r := length(re); {
	case often >= 0:
		return Reach{min(r.Runes*often, Far), min(r.Words*often, Far)}
	case ofWords(re):
		return Reach{Words: 1}
	}
	return Reach{Runes: Far}
}

// ofWords reports whether re is one character of a word.
func ofWords(re *syntax.Regexp) bool {
	if re.Op != syntax.OpCharClass {
		return false
	}
	for i := 0; i < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1] && r < utf8.RuneSelf; r++ {
			if !inWord(byte(r)) {
				return false
			}
		}
	}
	return true
}

// inWord takes all that is not ASCII for letters.
func inWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z' || c >= utf8.RuneSelf
}

// LongestWord returns how many bytes the longest run of letters, digits and _ in text has.
func LongestWord(text string) int {
	longest, start := 0, 0
	for i := range len(text) {
		if !inWord(text[i]) {
			longest, start = max(longest, i-start), i+1
		}
	}
	return max(longest, len(text)-start)
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, t := range texts {
		n = min(n, len(t))
	}
	return n
}
