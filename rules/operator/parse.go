package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/sdk/wire"
)

const (
	// MaxRules is how many rules there may be over all providers (RUL-33).
	MaxRules = 50
	// MaxMatch is how long a match may be, in characters (RUL-33).
	MaxMatch = 512
	// MaxCooldown is the longest cooldown of a rule or default (RUL-32, RUL-40).
	MaxCooldown = 30 * 24 * time.Hour
	// MinDefault is the shortest cooldown of a default (RUL-40).
	MinDefault = time.Minute
)

// Fault is what is wrong with a document, and where: glm[3].status. The message says what is allowed.
type Fault struct{ Path, Message string }

// Error is path and message.
func (f Fault) Error() string { return f.Path + " " + f.Message }

// Rules are the operator's own error rules by provider id in lower case (RUL-30). The zero value has none. It is never
// changed, and safe for concurrent use.
type Rules struct{ of map[string][]rule }

// Defaults say what an error means that no rule knows, by provider id in lower case (RUL-40). The zero value has none. It is
// never changed, and safe for concurrent use.
type Defaults struct{ of map[string]fallback }

// rule is one of the operator's rules.
type rule struct {
	name   string // providerErrorRules.glm[0]
	status int    // 0: any
	match  string // in lower case; empty: anything
	then
}

// fallback is the default of one provider.
type fallback struct {
	name string
	then
}

// then is what a rule or default says.
type then struct {
	reason   wire.Reason // empty: by status, or of rules quota_exhausted
	scope    wire.Scope
	cooldown time.Duration
	given    bool // a cooldown is, be it 0
}

// ParseRules reads providerErrorRules. With faults nothing of the document holds; an empty document has no rules.
func ParseRules(doc []byte) (Rules, []Fault) {
	of, faults := map[string][]rule{}, []Fault(nil)
	total := 0
	each(doc, &faults, func(provider string, raw json.RawMessage) {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			faults = append(faults, Fault{provider, "must be a list of rules"})
			return
		}
		id := strings.ToLower(provider)
		for i, one := range list {
			path := fmt.Sprintf("%s[%d]", provider, i)
			if total++; total == MaxRules+1 {
				faults = append(faults, Fault{path, fmt.Sprintf("is one rule too many; at most %d are allowed over all providers", MaxRules)})
			}
			p := parser{path: path}
			r := p.rule(one)
			r.name = "providerErrorRules." + path
			of[id] = append(of[id], r)
			faults = append(faults, p.faults...)
		}
	})
	if faults != nil {
		return Rules{}, faults
	}
	return Rules{of}, nil
}

// ParseDefaults reads providerErrorDefaults. With faults nothing of the document holds.
func ParseDefaults(doc []byte) (Defaults, []Fault) {
	of, faults := map[string]fallback{}, []Fault(nil)
	each(doc, &faults, func(provider string, raw json.RawMessage) {
		p := parser{path: provider}
		f := fallback{name: "providerErrorDefaults." + provider, then: p.fallback(raw)}
		of[strings.ToLower(provider)] = f
		faults = append(faults, p.faults...)
	})
	if faults != nil {
		return Defaults{}, faults
	}
	return Defaults{of}, nil
}

// each calls f for the members of an object, in the order of their names.
func each(doc []byte, faults *[]Fault, f func(provider string, raw json.RawMessage)) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil {
		*faults = append(*faults, Fault{"", "must be an object keyed by provider"})
		return
	}
	for _, provider := range slices.Sorted(maps.Keys(members)) {
		if strings.TrimSpace(provider) == "" {
			*faults = append(*faults, Fault{provider, "names no provider"})
			continue
		}
		f(provider, members[provider])
	}
}

// parser collects what is wrong with one rule or default.
type parser struct {
	path   string
	faults []Fault
}

func (p *parser) wrong(field, message string) {
	p.faults = append(p.faults, Fault{strings.TrimSuffix(p.path+"."+field, "."), message})
}

// members decodes an object; what it has beside known is wrong.
func (p *parser) members(raw json.RawMessage, known ...string) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		p.wrong("", "must be an object")
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, field) {
			p.wrong(field, "is unknown; the fields are "+strings.Join(known, ", "))
		}
		if string(m[field]) == "null" {
			delete(m, field)
		}
	}
	return m
}

func (p *parser) rule(raw json.RawMessage) (r rule) {
	m := p.members(raw, "status", "match", "scope", "reason", "cooldownMs")
	if m == nil {
		return rule{}
	}
	if v, ok := m["status"]; ok {
		if json.Unmarshal(v, &r.status) != nil || r.status < 400 || r.status > 599 {
			p.wrong("status", "must be a status from 400 to 599")
		}
	}
	if v, ok := m["match"]; ok {
		if json.Unmarshal(v, &r.match) != nil || r.match == "" || utf8.RuneCountInString(r.match) > MaxMatch {
			p.wrong("match", fmt.Sprintf("must be a text of 1 to %d characters", MaxMatch))
		}
		r.match = strings.ToLower(r.match)
	}
	if m["status"] == nil && m["match"] == nil {
		p.wrong("status", "or match is required")
	}
	r.then = p.then(m, 0)
	if r.reason == "" {
		r.reason = wire.QuotaExhausted // RUL-32
	}
	return r
}

func (p *parser) fallback(raw json.RawMessage) then {
	m := p.members(raw, "cooldownMs", "scope", "reason")
	if m == nil {
		return then{}
	}
	if m["cooldownMs"] == nil {
		p.wrong("cooldownMs", "is required")
	}
	return p.then(m, MinDefault)
}

// then reads what rules and defaults share.
func (p *parser) then(m map[string]json.RawMessage, least time.Duration) then {
	t := then{scope: wire.ScopeConnection}
	var word string
	if v, ok := m["scope"]; ok {
		scope, known := wire.Scope(""), json.Unmarshal(v, &word) == nil
		if known {
			scope, known = wire.ParseScope(word)
		}
		if t.scope = scope; !known {
			p.wrong("scope", "must be request, model, connection or provider")
		}
	}
	if v, ok := m["reason"]; ok {
		known := json.Unmarshal(v, &word) == nil
		if known {
			t.reason, known = wire.ParseReason(word)
		}
		if !known || t.reason == wire.NoReason {
			p.wrong("reason", "must be one of the canonical reasons, such as quota_exhausted or rate_limit_exceeded")
		}
	}
	if v, ok := m["cooldownMs"]; ok {
		var ms int64
		if json.Unmarshal(v, &ms) != nil || ms < least.Milliseconds() || ms > MaxCooldown.Milliseconds() {
			p.wrong("cooldownMs", fmt.Sprintf("must be a whole number from %d to %d", least.Milliseconds(), MaxCooldown.Milliseconds()))
		}
		t.cooldown, t.given = time.Duration(min(ms, MaxCooldown.Milliseconds()))*time.Millisecond, true
	}
	return t
}
