package scan

import (
	"regexp/syntax"
	"slices"
)

const (
	leastLiteral = 3  // shorter ones are found everywhere
	mostChoices  = 32 // of an alternation
)

// Far is a reach without a bound.
const Far = 1 << 12

// Need is a set of folded texts, one of which every match of a regular expression holds, and how many characters of a match
// stand before and after it at most.
type Need struct {
	Texts         []string
	Before, After int
}

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
		return shift(needs(re.Sub[0]), 0, Far)
	case syntax.OpRepeat:
		if re.Min > 0 { // the first time
			return shift(needs(re.Sub[0]), 0, times(runes(re.Sub[0]), re.Max-1))
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
		all.Before, all.After = max(all.Before, n.Before), max(all.After, n.After)
	}
	if len(all.Texts) > mostChoices {
		return nil
	}
	return []Need{all}
}

func shift(list []Need, before, after int) []Need {
	for i := range list {
		list[i].Before, list[i].After = min(list[i].Before+before, Far), min(list[i].After+after, Far)
	}
	return list
}

// runes is how many characters a match has at most.
func runes(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return min(len(re.Rune), Far)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpQuest:
		return runes(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		return Far
	case syntax.OpRepeat:
		return times(runes(re.Sub[0]), re.Max)
	case syntax.OpConcat:
		return total(re.Sub)
	case syntax.OpAlternate:
		n := 0
		for _, sub := range re.Sub {
			n = max(n, runes(sub))
		}
		return n
	}
	return 0
}

func total(subs []*syntax.Regexp) int {
	n := 0
	for _, sub := range subs {
		n = min(n+runes(sub), Far)
	}
	return n
}

// times is n repeated so often, below 0 without a bound.
func times(n, often int) int {
	if often < 0 {
		return Far
	}
	return min(n*often, Far)
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, t := range texts {
		n = min(n, len(t))
	}
	return n
}
