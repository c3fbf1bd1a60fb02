package operator

import (
	"bytes"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Source is who decided, in the verdicts of this package: their Plugin.
const Source = "settings"

// Set is what an operator says about failed answers, between the phases of the plugins (CLS-7). It is a rules.Operator. The
// zero value says nothing. It is never changed, and safe for concurrent use.
type Set struct {
	Rules    Rules
	Defaults Defaults
}

// Rule returns the verdict of the first rule that holds (RUL-31, RUL-35). A status compares with the one that came and with
// the restated one, since an operator may have seen either.
func (s *Set) Rule(r *rules.Reply) (wire.Verdict, bool) {
	list := s.Rules.of[strings.ToLower(r.Provider)]
	if len(list) == 0 {
		return wire.Verdict{}, false
	}
	text := ""
	for i := range list {
		o := &list[i]
		if o.status != 0 && o.status != rules.HostStatus(r) && o.status != r.Original {
			continue
		}
		if o.match != "" && text == "" {
			text = said(r)
		}
		if o.match == "" || strings.Contains(text, o.match) {
			return o.verdict(r, o.name, true), true
		}
	}
	return wire.Verdict{}, false
}

// Default returns the verdict of the provider's default for a status that it covers (RUL-41, RUL-43): its cooldown beside
// the wait that the answer asks for, of which the longer holds.
func (s *Set) Default(r *rules.Reply) (wire.Verdict, bool) {
	f, ok := s.Defaults.of[strings.ToLower(r.Provider)]
	if !ok || !covered(rules.HostStatus(r)) || r.Source == wire.SourceTransport {
		return wire.Verdict{}, false
	}
	if f.reason == "" {
		f.reason = rules.ByStatus(r).Reason // RUL-42
	}
	return f.verdict(r, f.name, false), true
}

// covered says which statuses a default is for (RUL-41).
func covered(status int) bool {
	switch status {
	case 402, 403, 408, 429:
		return true
	}
	return 500 <= status && status <= 599
}

// verdict is the verdict of this answer. Time heals all that an operator says: none is terminal.
func (t *then) verdict(r *rules.Reply, name string, exact bool) wire.Verdict {
	v := wire.Verdict{
		Reason: t.reason, Scope: t.scope, Fallback: t.reason.DefaultFallback(), Cooldown: t.cooldown, Confidence: 100,
		Breaker: wire.DefaultBreaker(t.scope, rules.HostStatus(r)), Plugin: Source, Rule: name,
	}
	if t.given { // RUL-32: a rule's is used as given, whatever the answer asks for; 0 is no time that anybody waits
		v.Exact, v.Cooldown = true, max(t.cooldown, time.Millisecond)
	}
	if exact && t.given {
		return v
	}
	if r.Hint.OK && r.Hint.Wait > 0 {
		v.RetryAfter, v.Hinted, v.HintSource = r.Hint.Wait, true, r.Hint.Source
	}
	return v
}

// said is the error text in lower case.
func said(r *rules.Reply) string {
	f := &r.Facts
	if f.Partial {
		return strings.ToLower(f.Words)
	}
	return strings.ToLower(f.Text + "\n" + f.Decoded + "\n" + f.Message)
}

// Book keeps the set that two documents make, so that failures do not read them again. The zero value is ready. Safe for
// concurrent use.
type Book struct{ last atomic.Pointer[page] }

type page struct {
	rules, defaults []byte
	set             Set
}

// Set returns what the documents say; a document with faults says nothing.
func (b *Book) Set(ruleDoc, defaultDoc []byte) *Set {
	p := b.last.Load()
	if p == nil || !bytes.Equal(p.rules, ruleDoc) || !bytes.Equal(p.defaults, defaultDoc) {
		p = &page{rules: bytes.Clone(ruleDoc), defaults: bytes.Clone(defaultDoc)}
		p.set.Rules, _ = ParseRules(ruleDoc)
		p.set.Defaults, _ = ParseDefaults(defaultDoc)
		b.last.Store(p)
	}
	return &p.set
}
