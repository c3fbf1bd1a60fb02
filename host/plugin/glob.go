package plugin

import (
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// globMatch says whether the pattern, in which * stands for any text, covers s. Letter case does not count.
func globMatch(pattern, s string) bool {
	pattern, s = strings.ToLower(pattern), strings.ToLower(s)
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], next
	}
}

// How closely a list of globs names a text.
const (
	byStar  = 1 // only "*", or no list at all
	byGlob  = 2
	byExact = 3
)

// closeness is the best of the patterns that cover s; 0: none does.
func closeness(patterns []string, s string) int {
	if len(patterns) == 0 {
		return byStar
	}
	best := 0
	for _, p := range patterns {
		if best == byExact || !globMatch(p, s) {
			continue
		}
		switch {
		case p == "*":
			best = max(best, byStar)
		case strings.Contains(p, "*"):
			best = max(best, byGlob)
		default:
			best = byExact
		}
	}
	return best
}

// specificity orders matches: provider before model before endpoint (ABI-9). 0: no match.
func specificity(m wire.Match, provider, model, endpoint string) int {
	p, mo, e := closeness(m.Providers, provider), closeness(m.Models, model), closeness(m.Endpoints, endpoint)
	if p == 0 || mo == 0 || e == 0 {
		return 0
	}
	return p*16 + mo*4 + e
}
