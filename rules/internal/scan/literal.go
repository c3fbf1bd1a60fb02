package scan

import (
	"regexp/syntax"
	"slices"
)

const (
	leastLiteral = 3  // shorter ones are found everywhere
	mostChoices  = 32 // of an alternation
)

// Literals returns sets of folded texts: every match of the regular expression holds one text of each set. None: there is
// no set worth looking for. A rule's expression is tried only where all its sets were found.
func Literals(expr string) [][]string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	return literals(re.Simplify())
}

// Branches returns the alternatives of a regular expression, each as one of its own; none when it has no alternatives on its
// outermost level. A text matches the expression where it matches one of them.
func Branches(expr string) []string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || re.Op != syntax.OpAlternate {
		return nil
	}
	all := make([]string, len(re.Sub))
	for i, sub := range re.Sub {
		all[i] = sub.String()
	}
	return all
}

// Anchored reports whether the expression asks where a text or a line begins or ends.
func Anchored(expr string) bool {
	re, err := syntax.Parse(expr, syntax.Perl)
	return err == nil && anchored(re)
}

func anchored(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return true
	}
	return slices.ContainsFunc(re.Sub, anchored)
}

func literals(re *syntax.Regexp) [][]string {
	switch re.Op {
	case syntax.OpLiteral:
		if s := Fold(string(re.Rune)); len(s) >= leastLiteral {
			return [][]string{{s}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literals(re.Sub[0])
		}
	case syntax.OpConcat:
		var all [][]string
		for _, sub := range re.Sub {
			all = append(all, literals(sub)...)
		}
		return all
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			sets := literals(sub)
			if len(sets) == 0 {
				return nil
			}
			all = append(all, slices.MaxFunc(sets, func(a, b []string) int { return shortest(a) - shortest(b) })...)
		}
		if len(all) <= mostChoices {
			return [][]string{all}
		}
	}
	return nil
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, t := range texts {
		n = min(n, len(t))
	}
	return n
}
