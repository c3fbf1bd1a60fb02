package rules

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weirgate/weir/rules/internal/scan"
	"github.com/weirgate/weir/rules/internal/tree"
	"github.com/weirgate/weir/sdk/wire"
)

// condition reads one field of a rule outside then, and reports whether the language has it.
func (p *ruleParser) condition(name string, raw json.RawMessage) bool {
	r := &p.rule
	switch name {
	case "providers":
		r.providers = p.globs(name, raw)
	case "models":
		r.models = p.globs(name, raw)
	case "endpoints":
		r.endpoints = p.globs(name, raw)
	case "auth":
		p.auth(raw)
	case "status":
		r.status = p.statuses(name, raw)
	case "original_status":
		r.original = p.statuses(name, raw)
	case "code":
		r.codes = p.words(name, raw)
	case "type":
		r.types = p.words(name, raw)
	case "text_contains":
		r.contains = p.markers(name, raw)
	case "text_all":
		r.all = p.markers(name, raw)
	case "text_none":
		r.none = p.markers(name, raw)
	case "text_matches":
		p.patterns(name, raw)
	case "header":
		r.header = p.headers(name, raw)
	case "header_all":
		r.headerAll = p.headers(name, raw)
	case "json":
		r.json = p.paths(name, raw)
	case "json_all":
		r.jsonAll = p.paths(name, raw)
	case "stream":
		r.stream = new(bool)
		p.decode(name, raw, r.stream, "true or false")
	case "phase":
		p.phase(raw)
	case "evidence":
		r.evidence = evidence(raw)
	default:
		return false
	}
	return true
}

// evidence is where the payload was seen: a text, or any JSON, which nothing decides on.
func evidence(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// list splits a condition's value into its alternatives; one value may stand without brackets.
func (p *ruleParser) list(field string, raw json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] != '[' {
		items = []json.RawMessage{raw}
	} else if !p.decode(field, raw, &items, "a list") {
		return nil
	}
	if len(items) == 0 {
		p.invalid(field, "is an empty list, which no answer can meet; leave the condition out")
	}
	return items
}

func (p *ruleParser) texts(field string, raw json.RawMessage) []string {
	var texts []string
	for _, item := range p.list(field, raw) {
		var s string
		if !p.decode(field, item, &s, "a list of strings") {
			continue
		}
		if s == "" {
			p.invalid(field, "has an empty string")
			continue
		}
		texts = append(texts, s)
	}
	return texts
}

func (p *ruleParser) globs(field string, raw json.RawMessage) []glob {
	return globs(p.texts(field, raw))
}

func (p *ruleParser) auth(raw json.RawMessage) {
	for _, s := range p.texts("auth", raw) {
		switch a := wire.Auth(s); a {
		case wire.AuthAPIKey, wire.AuthOAuth, wire.AuthLocal:
			p.rule.auth = append(p.rule.auth, a)
		default:
			p.invalid("auth", "%q is none of api_key, oauth, local", s)
		}
	}
}

func (p *ruleParser) statuses(field string, raw json.RawMessage) *statuses {
	set := &statuses{}
	for _, item := range p.list(field, raw) {
		from, to, ok := statusRange(item)
		if !ok {
			p.invalid(field, "%s is no status from 100 to 599, no range such as \"500-599\", and not 0", brief(item))
			continue
		}
		set.add(from, to)
	}
	return set
}

func statusRange(raw json.RawMessage) (from, to int, ok bool) {
	text := string(raw)
	if strings.HasPrefix(text, `"`) && json.Unmarshal(raw, &text) != nil {
		return 0, 0, false
	}
	first, last, isRange := strings.Cut(text, "-")
	from, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0, 0, false
	}
	if !isRange {
		return from, from, from == 0 || 100 <= from && from <= 599
	}
	to, err = strconv.Atoi(strings.TrimSpace(last))
	return from, to, err == nil && 100 <= from && from <= to && to <= 599
}

// words reads codes and types; a number is taken as its text.
func (p *ruleParser) words(field string, raw json.RawMessage) []string {
	var words []string
	for _, item := range p.list(field, raw) {
		var n json.Number
		s := ""
		if json.Unmarshal(item, &s) != nil {
			if !p.decode(field, item, &n, "a list of strings or numbers") {
				continue
			}
			s = n.String()
		}
		if s == "" {
			p.invalid(field, "has an empty string")
			continue
		}
		words = append(words, scan.Fold(s))
	}
	return words
}

// needsText refuses a condition on text in a plugin that needs none (RUL-2).
func (p *ruleParser) needsText(field string) {
	if TextBytes(p.o.Needs) == 0 {
		p.fault(field, CodeNeedsText, "looks at the error's text, but the manifest's needs.error_text is none")
	}
}

func (p *ruleParser) markers(field string, raw json.RawMessage) []string {
	p.needsText(field)
	var markers []string
	for _, s := range p.texts(field, raw) {
		if n := utf8.RuneCountInString(s); n > maxMarker {
			p.invalid(field, "a marker has %d characters, at most %d are taken", n, maxMarker)
			continue
		}
		if strings.TrimSpace(s) == "" {
			p.invalid(field, "a marker is blank")
			continue
		}
		markers = append(markers, scan.Fold(s))
	}
	return markers
}

func (p *ruleParser) patterns(field string, raw json.RawMessage) {
	p.needsText(field)
	for _, s := range p.texts(field, raw) {
		p.exprs++
		if re := p.regexp(field, "(?i)"+s, s); re != nil {
			p.rule.patterns = append(p.rule.patterns, branches(s, re)...)
		}
	}
}

// branches are the alternatives of an expression, each an expression of its own: so each is tried only where all of its own
// literals stand.
func branches(s string, whole *regexp.Regexp) []pattern {
	var all []pattern
	for _, expr := range scan.Branches("(?i)"+s, longExpression) {
		re, err := regexp.Compile(expr)
		if err != nil {
			all = nil
			break
		}
		all = append(all, newPattern(expr, re))
	}
	if all == nil {
		all = []pattern{newPattern("(?i)"+s, whole)}
	}
	return all
}

// regexp compiles expr, which was written as given.
func (p *ruleParser) regexp(field, expr, given string) *regexp.Regexp {
	if len(given) > maxPattern {
		p.invalid(field, "a pattern has %d bytes, at most %d are taken", len(given), maxPattern)
		return nil
	}
	if p.size > maxPrograms { // that was said before
		return nil
	}
	size := programSize(expr)
	if p.size += size; size > maxProgram || p.size > maxPrograms {
		p.invalid(field, "%q has a program of %d instructions, at most %d are taken, and %d in one table; repeat less",
			brief([]byte(given)), size, maxProgram, maxPrograms)
		return nil
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		p.invalid(field, "%q is no RE2 expression: %v", given, err)
		return nil
	}
	return re
}

// testFields are the members of a header or json condition.
type testFields struct {
	Name     string          `json:"name"`
	Path     string          `json:"path"`
	Equals   json.RawMessage `json:"equals"`
	Present  *bool           `json:"present"`
	Exists   *bool           `json:"exists"`
	Matches  *string         `json:"matches"`
	ListZero bool            `json:"list_has_zero"`
}

func (p *ruleParser) headers(field string, raw json.RawMessage) []headerCondition {
	var all []headerCondition
	for _, item := range p.list(field, raw) {
		var f testFields
		if !p.decode(field, item, &f, `like {"name": "x-ratelimit-remaining", "equals": "0"}`) {
			continue
		}
		c := headerCondition{name: strings.ToLower(f.Name)}
		if f.Name == "" {
			p.invalid(field+".name", "is missing")
			continue
		}
		p.needsHeader(field, c.name)
		c.test = p.test(field, f, f.Present, f.ListZero)
		all = append(all, c)
	}
	return all
}

func (p *ruleParser) needsHeader(field, name string) {
	if !Visible(p.o.Needs, name) {
		p.fault(field, CodeNeedsHeader, "looks at the header %q, which the manifest's needs.headers does not declare", name)
	}
}

func (p *ruleParser) paths(field string, raw json.RawMessage) []jsonCondition {
	p.needsText(field)
	var all []jsonCondition
	for _, item := range p.list(field, raw) {
		var f testFields
		if !p.decode(field, item, &f, `like {"path": "error.code", "equals": "quota"}`) {
			continue
		}
		path, ok := tree.ParsePath(f.Path)
		if !ok {
			p.invalid(field+".path", "%q is no path such as error.details.0.reason", f.Path)
			continue
		}
		all = append(all, jsonCondition{text: f.Path, path: path, test: p.test(field, f, f.Exists, false)})
	}
	return all
}

// test reads what a header or json condition asks of the value: exactly one thing.
func (p *ruleParser) test(field string, f testFields, exists *bool, listZero bool) test {
	t := test{exists: exists, listZero: listZero}
	asked := 0
	if exists != nil {
		asked++
	}
	if listZero {
		asked++
	}
	if f.Matches != nil {
		asked++
		t.matches = p.regexp(field+".matches", *f.Matches, *f.Matches)
	}
	if f.Equals != nil {
		asked++
		if v, _, _ := tree.Parse(string(f.Equals)); v.Scalar() {
			t.equals = &v.Text
		} else {
			p.invalid(field+".equals", "must be a string, a number or a boolean, not %s", brief(f.Equals))
		}
	}
	if asked != 1 {
		p.invalid(field, "must ask one thing of the value: equals, matches, present (of a header), exists (of a path) or list_has_zero; it asks %d", asked)
	}
	return t
}

func (p *ruleParser) phase(raw json.RawMessage) {
	var s string
	if !p.decode("phase", raw, &s, "a string") {
		return
	}
	for _, phase := range []Phase{Guard, Normal, Late} {
		if s == phase.String() {
			p.rule.phase = phase
			if phase != Normal && !p.o.Builtin {
				p.fault("phase", CodePhaseReserved, "%s is for built-in packs; leave the phase out", s)
			}
			return
		}
	}
	p.invalid("phase", "%q is none of guard, normal, late", s)
}
