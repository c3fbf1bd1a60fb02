// Package manifest reads what a plugin says about itself (ABI-2) and reports everything that is wrong with it at once. It
// owns decoding and validation; it decides nothing that depends on other plugins or on grants.
package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/sdk/wire"
)

// The ABI that this host speaks.
const (
	Major = 1
	Minor = 0
)

// Codes of problems. Problems of the rule table carry the codes of package rules.
const (
	Invalid     = "manifest_invalid"
	UnknownABI  = "unknown_abi"
	Unsupported = "unsupported" // meant for a later host
	Warning     = "warning"     // only in the list of warnings
)

// Problem is one thing that is wrong, with its place in the manifest.
type Problem struct {
	Field   string `json:"field"` // providers[2].base_url
	Code    string `json:"code"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"` // of the YAML source; 0: not known
	Column  int    `json:"column,omitempty"`
}

// String is field: message.
func (p Problem) String() string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

// Options say what the plugin is.
type Options struct {
	Builtin bool // built-in plugins may use the phases guard and late, and are granted what they declare
	Code    bool // the module has code of its own; a YAML pack has none, so it can have no hooks
}

// Manifest is a manifest that was read, with what the host understood beside the text.
type Manifest struct {
	wire.Manifest
	Later bool // built against a later minor: unknown words are ignored with a warning (ABI-10)
}

// Read decodes and validates the document n. The manifest is usable when there are no problems; warnings do not stop a
// load. Lines and columns are those of n.
func Read(n *document.Node, o Options) (m *Manifest, problems, warnings []Problem) {
	c := &checker{o: o}
	if m = c.decode(n); m != nil {
		c.check(m)
	}
	c.problems = c.problems[:min(len(c.problems), maxProblems)]
	c.warnings = c.warnings[:min(len(c.warnings), maxProblems)]
	place(n, c.problems)
	place(n, c.warnings)
	return m, c.problems, c.warnings
}

// checker collects problems while it walks over a manifest.
type checker struct {
	o        Options
	later    bool
	problems []Problem
	warnings []Problem
}

func (c *checker) bad(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Field: field, Code: Invalid, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) code(code, field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(field, format string, args ...any) {
	c.warnings = append(c.warnings, Problem{Field: field, Code: Warning, Message: fmt.Sprintf(format, args...)})
}

// word reports a word that this host does not know: a problem, or a warning when the plugin is newer than the host.
func (c *checker) word(field, word string, known ...string) bool {
	if slices.Contains(known, word) {
		return true
	}
	if c.later {
		c.warn(field, "this host does not know %q and ignores it", word)
		return false
	}
	c.bad(field, "%q is not one of %s", word, strings.Join(known, ", "))
	return false
}

// check runs over the parts that decoded.
func (c *checker) check(m *Manifest) {
	if !c.bounds(m) {
		return
	}
	c.identity(m)
	c.kinds(m)
	for i, x := range m.Matches {
		at := index("matches", i)
		c.globs(at, x)
		if len(x.Auth) > 0 || x.Stream != nil {
			c.bad(at, "auth and stream belong to the match of a plan, not of a plugin")
		}
	}
	c.needs(&m.Needs)
	c.hooks(m)
	c.permissions(&m.Permissions)
	c.limits(&m.Limits)
	c.providers(m)
	c.plans(m)
	c.prices(m)
	c.examples(m)
}

var (
	nameShape = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,62}$`)
	semver    = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
		`(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?` +
		`(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	abiShape = regexp.MustCompile(`^(0|[1-9]\d{0,3})\.(0|[1-9]\d{0,3})$`)
)

func (c *checker) identity(m *Manifest) {
	switch {
	case m.Name == "":
		c.bad("name", "is missing; give the plugin a name of small letters, digits and -")
	case !nameShape.MatchString(m.Name):
		c.bad("name", "%q must be 2 to 63 small letters, digits and -, and start with a letter or digit", m.Name)
	}
	switch {
	case m.Version == "":
		c.bad("version", "is missing; write one such as 1.0.0")
	case !semver.MatchString(m.Version):
		c.bad("version", "%q is not a semantic version such as 1.0.0", m.Version)
	}
	if m.ABI == "" {
		m.ABI = "1.0"
	}
	parts := abiShape.FindStringSubmatch(m.ABI)
	if parts == nil {
		c.bad("abi", "%q is not major.minor, such as 1.0", m.ABI)
		return
	}
	major, _ := strconv.Atoi(parts[1])
	minor, _ := strconv.Atoi(parts[2])
	if major != Major {
		c.code(UnknownABI, "abi", "built against ABI %s, this host speaks %d.%d; rebuild the plugin for it", m.ABI, Major, Minor)
		return
	}
	if minor > Minor {
		c.later, m.Later = true, true
		c.warn("abi", "built against ABI %s, this host speaks %d.%d; newer features are off", m.ABI, Major, Minor)
	}
}

func (c *checker) kinds(m *Manifest) {
	kept := m.Kinds[:0:0]
	for i, k := range m.Kinds {
		if c.word(index("kinds", i), k, wire.KindExecutor, wire.KindRestatement, wire.KindClassifier) {
			kept = append(kept, k)
		}
		if slices.Contains(m.Kinds[:i], k) {
			c.bad(index("kinds", i), "%q stands there twice", k)
		}
	}
	m.Kinds = kept
}

// Is says whether the plugin is of kind k.
func (m *Manifest) Is(k string) bool { return slices.Contains(m.Kinds, k) }

// Hook says whether the manifest lists the hook.
func (m *Manifest) Hook(name string) bool { return slices.Contains(m.Hooks, name) }

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}
