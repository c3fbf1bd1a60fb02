package rules

import (
	"strings"

	"github.com/weirgate/weir/rules/internal/scan"
	"github.com/weirgate/weir/sdk/wire"
)

// glob is a folded pattern in which * stands for any text, also an empty one.
type glob string

func newGlob(s string) glob { return glob(scan.Fold(s)) }

// match compares with a folded text.
func (g glob) match(s string) bool {
	head, rest, star := strings.Cut(string(g), "*")
	if !star {
		return string(g) == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], more
	}
}

// anyGlob reports whether one of gs matches one of the folded texts; no globs match everything.
func anyGlob(gs []glob, texts ...string) bool {
	for _, g := range gs {
		for _, s := range texts {
			if g.match(s) {
				return true
			}
		}
	}
	return len(gs) == 0
}

func globs(texts []string) []glob {
	var gs []glob
	for _, s := range texts {
		gs = append(gs, newGlob(s))
	}
	return gs
}

// Visible reports whether a plugin with these needs sees the header: declared, and none that carries a credential
// (ABI-2). The name may have any letter case.
func Visible(n wire.Needs, header string) bool {
	header = strings.ToLower(header)
	switch header {
	case "authorization", "cookie", "set-cookie", "x-api-key":
		return false
	}
	for _, g := range n.Headers {
		if newGlob(g).match(header) {
			return true
		}
	}
	return false
}

// TextBytes returns how many bytes of an error's text a plugin with these needs sees (ABI-2); an unknown word counts as
// the default.
func TextBytes(n wire.Needs) int {
	switch n.ErrorText {
	case "none":
		return 0
	case "full":
		if n.ErrorTextBytes > 0 {
			return min(n.ErrorTextBytes, MaxText)
		}
		return MaxText
	}
	return prefixBytes
}
