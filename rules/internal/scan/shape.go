package scan

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

// Shape is what can be known of a regular expression without a text.
type Shape struct {
	Needs    []Need
	Anchored bool // it asks where a text or a line begins or ends
	Edges    bool // it asks where a word begins or ends, so that a match in a part of a text may be none in the whole
	Exact    bool // a text matches where the one text that it needs stands
	Gap      *Gap
}

// Gap is an expression of the form words.{0,n}rest: it matches where rest matches and one of the words ends not far before.
// Looked for so it costs a fraction, since a program has each of the n characters by itself.
type Gap struct {
	Words []string // folded
	Most  int      // characters between them
	Lines bool     // the gap may have line breaks
	Rest  string
}

// ShapeOf looks at an expression.
func ShapeOf(expr string) Shape {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return Shape{}
	}
	s := Shape{Needs: needs(re), Exact: re.Op == syntax.OpLiteral && anyCase(re),
		Anchored: has(re, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText),
		Edges:    has(re, syntax.OpWordBoundary, syntax.OpNoWordBoundary)}
	s.Exact = s.Exact && len(s.Needs) > 0
	if !s.Anchored && !s.Edges {
		s.Gap = gap(re)
	}
	return s
}

// Branches returns the alternatives of a regular expression, each as one of its own; none when it has no alternatives on its
// outermost level. A text matches the expression where it matches one of them. An expression longer than most characters
// is split at its last part too.
func Branches(expr string, most int) []string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	subs := []*syntax.Regexp{re}
	if re.Op == syntax.OpAlternate {
		subs = re.Sub
	}
	var all []string
	for _, sub := range subs {
		if length(sub).Runes > most {
			all = append(all, endings(sub)...)
		} else {
			all = append(all, sub.String())
		}
	}
	if len(all) == 1 {
		return nil
	}
	return all
}

// endings splits an expression whose last part has alternatives.
func endings(re *syntax.Regexp) []string {
	if re.Op == syntax.OpConcat {
		last := len(re.Sub) - 1
		ends := re.Sub[last]
		for ends.Op == syntax.OpCapture {
			ends = ends.Sub[0]
		}
		if ends.Op == syntax.OpAlternate {
			all := make([]string, len(ends.Sub))
			for i, end := range ends.Sub {
				all[i] = (&syntax.Regexp{Op: syntax.OpConcat, Sub: append(slices.Clone(re.Sub[:last]), end)}).String()
			}
			return all
		}
	}
	return []string{re.String()}
}

func has(re *syntax.Regexp, ops ...syntax.Op) bool {
	return slices.Contains(ops, re.Op) || slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return has(sub, ops...) })
}

// anyCase reports whether a literal matches in any letter case.
func anyCase(literal *syntax.Regexp) bool {
	return literal.Flags&syntax.FoldCase != 0 ||
		!slices.ContainsFunc(literal.Rune, func(r rune) bool { return unicode.SimpleFold(r) != r })
}

// gap splits an expression at its first gap, if all before it is words; nil: it has another form.
func gap(re *syntax.Regexp) *Gap {
	if re.Op != syntax.OpConcat {
		return nil
	}
	words := []string{""}
	for i, sub := range re.Sub[:len(re.Sub)-1] {
		if most, lines, ok := between(sub); ok {
			if slices.Contains(words, "") {
				return nil
			}
			rest := &syntax.Regexp{Op: syntax.OpConcat, Sub: re.Sub[i+1:]}
			return &Gap{Words: words, Most: most, Lines: lines, Rest: rest.String()}
		}
		next, ok := texts(sub)
		if words = product(words, next); !ok || len(words) > mostChoices {
			return nil
		}
	}
	return nil
}

// between reads .{0,n} and .*
func between(re *syntax.Regexp) (most int, lines, ok bool) {
	switch {
	case re.Op == syntax.OpStar, re.Op == syntax.OpRepeat && re.Min == 0 && re.Max < 0:
		most = Far * Far
	case re.Op == syntax.OpRepeat && re.Min == 0:
		most = re.Max
	default:
		return 0, false, false
	}
	op := re.Sub[0].Op
	return most, op == syntax.OpAnyChar, op == syntax.OpAnyChar || op == syntax.OpAnyCharNotNL
}

// texts returns all texts that an expression matches, folded, when they are few and their letter case does not matter.
func texts(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpLiteral:
		return []string{Fold(string(re.Rune))}, anyCase(re)
	case syntax.OpCapture:
		return texts(re.Sub[0])
	case syntax.OpQuest:
		list, ok := texts(re.Sub[0])
		return append(list, ""), ok
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range re.Sub {
			list, ok := texts(sub)
			if all = product(all, list); !ok || len(all) > mostChoices {
				return nil, false
			}
		}
		return all, true
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			list, ok := texts(sub)
			if all = append(all, list...); !ok || len(all) > mostChoices {
				return nil, false
			}
		}
		return all, true
	}
	return nil, false
}

func product(heads, tails []string) []string {
	all := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			all = append(all, h+t)
		}
	}
	return all
}
