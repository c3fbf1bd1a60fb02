package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// Options are what Parse must know about the plugin that brings the table.
type Options struct {
	Plugin    string     // its name, for messages
	Builtin   bool       // a built-in pack: may use the phases guard and late, and terminal
	Terminate bool       // permissions.terminate was granted (RUL-14)
	Needs     wire.Needs // what its rules see (RUL-2)
	Kinds     []string   // the manifest's kinds; empty: not checked
}

// The codes of a Problem.
const (
	CodeInvalid       = "rule_invalid"        // a value that the language does not have
	CodeMixed         = "rule_mixed"          // then restates and classifies
	CodeMarkerGeneric = "rule_marker_generic" // a marker that also ends accounts (COOL-55)
	CodePhaseReserved = "rule_phase_reserved" // a third-party rule outside the normal phase
	CodeNeedsText     = "rule_needs_text"     // a text condition in a plugin that needs no text
	CodeNeedsHeader   = "rule_needs_header"   // a header that needs does not declare
	CodeTooMany       = "too_many_rules"
	CodeTooLarge      = "rules_too_large"
	CodeShadowed      = "rule_shadowed"         // Lint: an earlier rule always decides
	CodeNoExample     = "rule_no_example"       // Lint: no example shows the rule
	CodeUnknownField  = "rule_unknown_field"    // Lint: a field of a later version, or a typing error
	CodeTerminal      = "rule_terminal_ignored" // Lint: terminal without the permission
)

// Problem is one fault of a table. Index is the place of the rule in the table, -1 for the table as a whole.
type Problem struct {
	Index   int
	Rule    string // the rule's id, when it has one
	Field   string
	Code    string
	Message string
}

// Error returns the whole of it in one sentence.
func (p Problem) Error() string {
	where := "rules"
	if p.Index >= 0 {
		where = fmt.Sprintf("rules[%d]", p.Index)
	}
	if p.Rule != "" {
		where += " " + p.Rule
	}
	if p.Field != "" {
		where += ": " + p.Field
	}
	return where + ": " + p.Message + " (" + p.Code + ")"
}

// Parse reads a table, the JSON array of ABI-2.1, and returns all problems at once. The table holds the rules without a
// problem, in their order: for the operator's own rules the rest of the set loads ("Bad input" of
// 09-restatement-classification.md); a plugin version with any problem is refused as a whole by the one who loads it,
// since a plugin whose rules are half there would decide differently from what its examples show. Fields that this
// version does not know are ignored (ABI-1); Lint names them. Without rules (nil, null) the table is empty.
func Parse(raw []byte, o Options) (*Table, []Problem) {
	t := &Table{limit: TextBytes(o.Needs), builtin: o.Builtin}
	if len(raw) > MaxTable {
		return t, []Problem{{Index: -1, Code: CodeTooLarge,
			Message: fmt.Sprintf("the table has %d bytes, at most %d are read; split the plugin", len(raw), MaxTable)}}
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return t, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return t, []Problem{{Index: -1, Code: CodeInvalid, Message: "not a JSON array of rules: " + err.Error()}}
	}
	if len(items) > MaxRules {
		return t, []Problem{{Index: -1, Code: CodeTooMany,
			Message: fmt.Sprintf("the table has %d rules, at most %d are taken; split the plugin", len(items), MaxRules)}}
	}
	var problems []Problem
	seen, size := map[string]bool{}, 0
	for i, item := range items {
		p := &ruleParser{o: o, rule: rule{index: i, phase: Normal}, size: size}
		p.parse(item, seen)
		size = p.size
		t.unknown = append(t.unknown, p.unknown...)
		if problems = append(problems, p.problems...); len(p.problems) == 0 {
			t.rules = append(t.rules, &p.rule)
		}
	}
	return t, problems
}

// ruleParser reads one rule and collects what is wrong with it.
type ruleParser struct {
	o        Options
	rule     rule
	problems []Problem
	unknown  []Problem
	exprs    int // regular expressions seen in text_matches
	size     int // of the programs of all expressions of the table so far
}

func (p *ruleParser) fault(field, code, format string, args ...any) {
	p.problems = append(p.problems, Problem{Index: p.rule.index, Rule: p.rule.id, Field: field, Code: code,
		Message: fmt.Sprintf(format, args...)})
}

func (p *ruleParser) invalid(field, format string, args ...any) {
	p.fault(field, CodeInvalid, format, args...)
}

// decode reads raw into to and reports a value of the wrong type.
func (p *ruleParser) decode(field string, raw json.RawMessage, to any, want string) bool {
	if err := json.Unmarshal(raw, to); err != nil || isNull(raw) {
		p.invalid(field, "must be %s, not %s", want, brief(raw))
		return false
	}
	return true
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// brief is a value as it may stand in a message.
func brief(raw []byte) string {
	const most = 60
	if s := string(raw); len(s) <= most {
		return s
	}
	return string(raw[:most]) + "..."
}

func (p *ruleParser) parse(raw json.RawMessage, seen map[string]bool) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		p.invalid("", "a rule must be a JSON object, not %s", brief(raw))
		return
	}
	p.identity(fields["id"], seen)
	for _, name := range sortedKeys(fields) {
		if name == "id" || name == "then" {
			continue
		}
		if !p.condition(name, fields[name]) {
			p.unknownField(name)
		}
	}
	p.limits()
	p.then(fields["then"])
	p.generic()
}

func (p *ruleParser) unknownField(name string) {
	p.unknown = append(p.unknown, Problem{Index: p.rule.index, Rule: p.rule.id, Field: name, Code: CodeUnknownField,
		Message: "this version does not know the field and ignores it; is it spelled as in the manual?"})
}

func (p *ruleParser) identity(raw json.RawMessage, seen map[string]bool) {
	var id string
	if raw == nil {
		p.invalid("id", "is missing; every rule has one, unique in its plugin")
		return
	}
	if !p.decode("id", raw, &id, "a string") {
		return
	}
	if !validID(id) {
		p.invalid("id", "%q must be 1 to 128 letters, digits, dots, dashes or underscores, a letter or digit first", brief([]byte(id)))
		return
	}
	p.rule.id = id
	if seen[id] {
		p.invalid("id", "a rule before this one has the same id")
	}
	seen[id] = true
}

// validID keeps ids fit for a response header (RST-7) and a log line.
func validID(id string) bool {
	for i, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || strings.IndexByte(".-_", c) < 0) {
			return false
		}
	}
	return id != "" && len(id) <= 128
}

func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// limits checks what spans several conditions.
func (p *ruleParser) limits() {
	r := &p.rule
	if n := len(r.contains) + len(r.all) + len(r.none); n > maxMarkers {
		p.invalid("text_contains", "the rule has %d markers, at most %d are taken", n, maxMarkers)
	}
	if p.exprs > maxPatterns {
		p.invalid("text_matches", "the rule has %d patterns, at most %d are taken", p.exprs, maxPatterns)
	}
}

// generic refuses a restatement by a marker that ends accounts wherever it is found (COOL-55). A built-in rule that
// restates to 402 says the same as the marker and is let through: the corpus has such answers.
func (p *ruleParser) generic() {
	r := &p.rule
	if !r.restates || p.o.Builtin && r.restatement.status == 402 {
		return
	}
	for _, list := range []struct {
		field   string
		markers []string
	}{{"text_contains", r.contains}, {"text_all", r.all}} {
		for _, m := range list.markers {
			if slices.Contains(CreditSignals(), m) {
				p.fault(list.field, CodeMarkerGeneric,
					"%q is a credit signal and would also end the account; name more of the text", m)
			}
		}
	}
}
