package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/rules/hint"
	"github.com/weirgate/weir/sdk/wire"
)

// thenFields are the members of then, of both kinds of rule.
type thenFields struct {
	RestateStatus *int    `json:"restate_status"`
	RestateCode   *string `json:"restate_code"`
	Note          *string `json:"note"`
	Keep          *bool   `json:"keep"`

	RetryAfter json.RawMessage `json:"retry_after"`

	Reason        *string `json:"reason"`
	Scope         *string `json:"scope"`
	Fallback      *bool   `json:"fallback"`
	Cooldown      *string `json:"cooldown"`
	Breaker       *bool   `json:"count_for_breaker"`
	Terminal      *bool   `json:"terminal"`
	SetStatus     *string `json:"set_status"`
	Message       *string `json:"message"`
	Confidence    *int    `json:"confidence"`
	Exact         *bool   `json:"exact"`
	RequestScoped *bool   `json:"request_scoped"`
}

// The words of thenFields by the kind of rule that they make.
var (
	restateWords  = []string{"restate_status", "restate_code", "keep", "note"}
	classifyWords = []string{"reason", "scope", "fallback", "cooldown", "count_for_breaker", "terminal", "set_status",
		"message", "confidence", "exact", "request_scoped"}
)

func (p *ruleParser) then(raw json.RawMessage) {
	var present map[string]json.RawMessage
	if raw == nil {
		p.invalid("then", "is missing: a rule says what an answer means")
		return
	}
	if !p.decode("then", raw, &present, "an object") {
		return
	}
	restates, classifies := false, ""
	for _, name := range sortedKeys(present) {
		switch {
		case slices.Contains(restateWords, name):
			restates = restates || name != "note"
		case slices.Contains(classifyWords, name):
			classifies = name
		case name != "retry_after":
			p.unknownField("then." + name)
		}
	}
	if restates && classifies != "" {
		p.fault("then", CodeMixed, "restates and classifies (%s): make two rules of it", classifies)
		return
	}
	var f thenFields
	if err := json.Unmarshal(raw, &f); err != nil {
		p.invalid("then", "%v", err)
		return
	}
	p.rule.restates = restates
	if restates {
		p.kind(wire.KindRestatement)
		p.restate(f)
	} else {
		p.kind(wire.KindClassifier)
		p.classify(f)
	}
}

// kind refuses a rule that would never run, because its plugin is not of that kind (ABI-9).
func (p *ruleParser) kind(kind string) {
	if len(p.o.Kinds) > 0 && !slices.Contains(p.o.Kinds, kind) {
		p.invalid("then", "makes a %s rule, but the manifest's kinds (%s) lack %s", kind, strings.Join(p.o.Kinds, ", "), kind)
	}
}

func (p *ruleParser) restate(f thenFields) {
	r := &p.rule.restatement
	r.keep = f.Keep != nil && *f.Keep
	if f.RestateStatus != nil {
		r.status = *f.RestateStatus
	}
	switch {
	case r.keep && (f.RestateStatus != nil || f.RestateCode != nil):
		p.invalid("then.keep", "stops without change, so it goes with no restate_status or restate_code")
	case !r.keep && f.RestateStatus == nil:
		p.invalid("then.restate_status", "is missing")
	case !r.keep && (r.status < 400 || r.status > 599):
		p.invalid("then.restate_status", "%d is not from 400 to 599", r.status)
	}
	if p.rule.phase != Normal {
		p.invalid("phase", "belongs to classifier rules; a restatement has none")
	}
	r.code, r.note = value(f.RestateCode), value(f.Note)
	r.wait = p.wait(f.RetryAfter)
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func (p *ruleParser) classify(f thenFields) {
	v := &p.rule.verdict
	if f.Reason == nil {
		p.invalid("then.reason", "is missing: a verdict without a reason decides nothing (ABI-9)")
		return
	}
	reason, ok := wire.ParseReason(*f.Reason)
	if !ok {
		p.invalid("then.reason", "%q is no canonical reason", brief([]byte(*f.Reason)))
		return
	}
	*v = verdict{reason: reason, scope: reason.DefaultScope(), fallback: reason.DefaultFallback(), breaker: f.Breaker,
		exact: value(f.Exact), requestScoped: value(f.RequestScoped), message: value(f.Message), confidence: 100}
	if f.Scope != nil {
		if v.scope, ok = wire.ParseScope(*f.Scope); !ok {
			p.invalid("then.scope", "%q is none of request, model, connection, provider", brief([]byte(*f.Scope)))
		}
	}
	if f.Fallback != nil {
		v.fallback = *f.Fallback
	}
	if f.Confidence != nil {
		v.confidence = *f.Confidence
	}
	if f.Cooldown != nil {
		v.cooldown = p.length("then.cooldown", *f.Cooldown, 0)
	}
	v.wait = p.wait(f.RetryAfter)
	p.terminal(f)
	if field, fault := v.check(); fault != "" {
		p.invalid("then."+field, "%s", fault)
	}
	if v.terminal && !p.o.Builtin && !p.o.Terminate {
		v.terminal, v.setStatus, v.ignored = false, "", true // RUL-14
	}
}

// check says which field of a verdict, of a rule or a hook, goes against ABI-4.
func (v *verdict) check() (field, fault string) {
	switch {
	case (v.scope == wire.ScopeNone) != (v.reason == wire.NoReason):
		return "scope", "none goes with the reason none, and only with it"
	case v.terminal && v.scope != wire.ScopeConnection:
		return "terminal", "ends a connection, so it goes only with scope connection"
	case v.terminal && v.setStatus == "":
		return "set_status", "is missing: the reason names no terminal state"
	case v.confidence < 0 || v.confidence > 100:
		return "confidence", "is not from 0 to 100"
	case len(v.message) > maxMessage:
		return "message", "is longer than 1 KiB"
	}
	return "", ""
}

// terminal reads terminal and set_status.
func (p *ruleParser) terminal(f thenFields) {
	v := &p.rule.verdict
	v.terminal = value(f.Terminal)
	if f.SetStatus == nil {
		if v.terminal {
			v.setStatus, _ = v.reason.DefaultTerminal()
		}
		return
	}
	v.setStatus = wire.TerminalState(*f.SetStatus)
	if _, ok := terminalState(*f.SetStatus); !ok {
		p.invalid("then.set_status", "%q is none of banned, expired, credits_exhausted", brief([]byte(*f.SetStatus)))
	}
	if !v.terminal {
		p.invalid("then.set_status", "goes only with terminal: true")
	}
}

func terminalState(s string) (wire.TerminalState, bool) {
	switch state := wire.TerminalState(s); state {
	case wire.Banned, wire.Expired, wire.CreditsExhausted:
		return state, true
	}
	return "", false
}

// length reads a Go duration from least to 30 days.
func (p *ruleParser) length(field, text string, least time.Duration) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		p.invalid(field, "%q is no Go duration such as 60s or 6h", brief([]byte(text)))
		return 0
	}
	if d < least || d > maxWait {
		p.invalid(field, "%s is not from %s to 720h", text, least)
		return 0
	}
	return d
}

// readingFields is retry_after as a reading.
type readingFields struct {
	From     string  `json:"from"`
	Match    *string `json:"match"`
	Unit     string  `json:"unit"`
	Required bool    `json:"required"`
}

func (p *ruleParser) wait(raw json.RawMessage) wait {
	const field = "then.retry_after"
	if raw == nil || isNull(raw) {
		return wait{}
	}
	if raw[0] == '"' {
		var text string
		if p.decode(field, raw, &text, "a string") {
			return wait{fixed: p.length(field, text, time.Millisecond)}
		}
		return wait{}
	}
	var f readingFields
	if !p.decode(field, raw, &f, `a Go duration or like {"from": "text", "match": "in ([0-9.]+)s", "unit": "s"}`) {
		return wait{}
	}
	r := &reading{unit: f.Unit, required: f.Required}
	p.from(field, f, r)
	if f.Match != nil {
		expr := *f.Match
		if r.from == fromText {
			expr = "(?i)" + expr
		}
		r.match = p.regexp(field+".match", expr, *f.Match)
	}
	if r.from != fromHint && !hint.ValidUnit(r.unit) {
		p.invalid(field+".unit", "%q is no unit of ABI-2, such as s, unix_s, rfc3339, countdown or next_midnight:UTC", f.Unit)
	}
	return wait{reading: r}
}

func (p *ruleParser) from(field string, f readingFields, r *reading) {
	kind, name, _ := strings.Cut(f.From, ":")
	switch {
	case f.From == "hint":
		r.from = fromHint
	case f.From == "text" && f.Match != nil:
		r.from = fromText
		p.needsText(field)
	case (f.From == "text" || f.From == "") && f.Match == nil && strings.HasPrefix(f.Unit, "next_midnight:"):
		r.from = fromClock
	case f.From == "text":
		p.invalid(field+".match", "is missing: which part of the text is the time?")
	case kind == "header" && name != "":
		r.from, r.header = fromHeader, strings.ToLower(name)
		p.needsHeader(field, r.header)
	case kind == "json" && name != "":
		r.from = fromJSON
		r.setPath(name, func() { p.invalid(field+".from", "%q is no path", name) })
		p.needsText(field)
	default:
		p.invalid(field+".from", "%q is none of text, header:NAME, json:PATH, hint", brief([]byte(f.From)))
	}
}
