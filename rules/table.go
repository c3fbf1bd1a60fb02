package rules

import (
	"regexp"
	"time"

	"github.com/weirgate/weir/rules/internal/scan"
	"github.com/weirgate/weir/rules/internal/tree"
	"github.com/weirgate/weir/sdk/wire"
)

// The limits of a table (ABI-2.1, "Bad input" of 09-restatement-classification.md).
const (
	MaxRules    = 256
	MaxTable    = 256 << 10 // bytes
	maxPatterns = 16        // regular expressions of one rule
	maxPattern  = 512       // bytes of one
	maxMarkers  = 64        // of one rule, over its three lists
	maxMarker   = 256       // characters of one
	maxMessage  = 1 << 10   // bytes of a verdict's message
	prefixBytes = 4 << 10   // needs.error_text: prefix
	maxWait     = 30 * 24 * time.Hour
)

// Phase says where a classifier rule stands in the order of detectors (CLS-7).
type Phase uint8

// The phases. Guard and Late are for built-in packs.
const (
	Guard Phase = iota
	Normal
	Late
)

// String returns the word that a rule's phase is written as.
func (p Phase) String() string { return [...]string{"guard", "normal", "late"}[p] }

// Table is the parsed table of one plugin version. It is immutable.
type Table struct {
	rules   []*rule
	limit   int       // bytes of text that its rules see, 0: none
	unknown []Problem // fields that this version does not know: ignored by Parse (ABI-1), told by Lint
	builtin bool
}

// Len returns the number of rules.
func (t *Table) Len() int { return len(t.rules) }

// IDs returns the ids of the rules in their order.
func (t *Table) IDs() []string {
	ids := make([]string, len(t.rules))
	for i, r := range t.rules {
		ids[i] = r.id
	}
	return ids
}

// rule is one parsed rule. A condition that is empty or nil holds always.
type rule struct {
	id       string
	index    int // in the table as written
	phase    Phase
	evidence string

	providers, models, endpoints []glob
	auth                         []wire.Auth
	status, original             *statuses
	codes, types                 []string // folded
	contains, all, none          []string // folded
	patterns                     []pattern
	header, headerAll            []headerCondition
	json, jsonAll                []jsonCondition
	stream                       *bool

	restates    bool
	restatement restatement
	verdict     verdict
}

type pattern struct {
	scan.Shape
	expr string
	re   *regexp.Regexp
	rest *regexp.Regexp // what follows its gap, nil: it has none
	size int            // of its program
}

// statuses is a set of statuses: 0 and 100 to 599.
type statuses [10]uint64

const statusCount = 600

func (s *statuses) add(from, to int) {
	for n := from; n <= to; n++ {
		s[n/64] |= 1 << (n % 64)
	}
}

// has reports whether n is in the set; every status is in a nil set.
func (s *statuses) has(n int) bool {
	return s == nil || n >= 0 && n < statusCount && s[n/64]&(1<<(n%64)) != 0
}

// test is the part of a header or json condition that looks at a value.
type test struct {
	equals   *string
	exists   *bool // present for a header
	matches  *regexp.Regexp
	listZero bool
}

type headerCondition struct {
	name string
	test
}

type jsonCondition struct {
	text string // the path as written
	path tree.Path
	test
}

type restatement struct {
	status int
	code   string
	note   string
	keep   bool
	wait   wait
}

type verdict struct {
	reason        wire.Reason
	scope         wire.Scope
	fallback      bool
	breaker       *bool
	terminal      bool
	setStatus     wire.TerminalState
	wait          wait
	cooldown      time.Duration
	exact         bool
	requestScoped bool
	message       string
	confidence    int
	ignored       bool // terminal was asked for without the permission (RUL-14)
}

// wait is then.retry_after: nothing, a length, or a reading.
type wait struct {
	fixed   time.Duration
	reading *reading
}
