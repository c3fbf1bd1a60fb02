package repair

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/weirgate/weir/host/translate/neutral"
)

// Alphabet is what a dialect allows in names and ids.
type Alphabet struct {
	Max   int
	Extra string // beside letters, digits, _ and -
}

// The names of tools (TR-13) and the ids of calls (TR-7).
var (
	ToolName         = Alphabet{Max: 64}
	ToolNameMessages = Alphabet{Max: 128}
	ToolNameGemini   = Alphabet{Max: 64, Extra: ".:"}
	CallID           = Alphabet{Max: 64}
	CallIDOpenAI     = Alphabet{Max: 64, Extra: anything}
)

const anything = "*"

// Fits says whether s is allowed as it is.
func (a Alphabet) Fits(s string) bool {
	if s == "" || len(s) > a.Max {
		return false
	}
	if a.Extra == anything {
		return true
	}
	for i := range len(s) {
		if !a.allows(s[i]) {
			return false
		}
	}
	return true
}

func (a Alphabet) allows(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || strings.IndexByte(a.Extra, c) >= 0
}

// Map returns s when it fits, else a name that is the same whenever s is: what is allowed of s, and a hash of all of it.
func (a Alphabet) Map(s string) string {
	if a.Fits(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	tail := "_" + hex.EncodeToString(sum[:5])
	out := make([]byte, 0, a.Max)
	for i := 0; i < len(s) && len(out) < a.Max-len(tail); i++ {
		if c := s[i]; a.Extra != anything && a.allows(c) || a.Extra == anything && c < 0x80 && c > ' ' {
			out = append(out, c)
		} else if c < 0x80 {
			out = append(out, '_')
		}
	}
	return string(out) + tail
}

// Names maps the tools of a request into a. Two tools that would get one name are a fault (TR-13).
func Names(tools []neutral.Tool, a Alphabet) error {
	seen := map[string]string{}
	for i := range tools {
		name := tools[i].Name
		if name == "" {
			continue
		}
		to := a.Map(name)
		if other, taken := seen[to]; taken && other != name {
			return neutral.Faultf(tools[i].Path, "the tools %q and %q would have one name in the dialect of this model; rename one", other, name)
		}
		seen[to] = name
	}
	return nil
}

// Back is the name that the client knows a tool by.
func Back(tools []neutral.Tool, a Alphabet, name string) string {
	for i := range tools {
		if tools[i].Name == name {
			return name
		}
	}
	for i := range tools {
		if tools[i].Name != "" && a.Map(tools[i].Name) == name {
			return tools[i].Name
		}
	}
	return name
}
