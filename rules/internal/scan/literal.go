package scan

import "regexp/syntax"

const (
	leastLiteral = 3  // shorter ones are found everywhere
	mostChoices  = 32 // of an alternation
)

// Literals returns folded texts one of which is part of every match of the regular expression, or nil when there is no
// such set worth looking for. A rule's expression is tried only where one of them was found.
func Literals(expr string) []string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	return literals(re.Simplify())
}

func literals(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if s := Fold(string(re.Rune)); len(s) >= leastLiteral {
			return []string{s}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literals(re.Sub[0])
		}
	case syntax.OpConcat:
		return best(re.Sub)
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			some := literals(sub)
			if some == nil || len(all)+len(some) > mostChoices {
				return nil
			}
			all = append(all, some...)
		}
		return all
	}
	return nil
}

// best picks the part whose shortest literal is the longest.
func best(parts []*syntax.Regexp) []string {
	var found []string
	for _, part := range parts {
		if some := literals(part); some != nil && (found == nil || shortest(some) > shortest(found)) {
			found = some
		}
	}
	return found
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, t := range texts {
		n = min(n, len(t))
	}
	return n
}
