package plugin

import (
	"testing"

	"github.com/weirgate/weir/rules/operator"
)

// CLS-5, CLS-6, CLS-7, RUL-11: the operator's rules come after the phase guard and before all plugins, and the defaults after
// these and before the phase late.
func TestOperatorBetweenPhases(t *testing.T) {
	const pack = `name: generic
version: 1.0.0
kinds: [classifier]
rules:
- {id: ban, phase: guard, status: [403], text_contains: [banned], then: {reason: banned, scope: connection}}
- {id: text, status: [403], text_contains: [quota], then: {reason: quota_exhausted}}
- {id: table, phase: late, status: [403], then: {reason: auth_error}}
`
	_, s := setOf(t, Options{}, builtin(pack), thirdParty(classifier("third", "matches: [{providers: [other]}]")))
	var book operator.Book
	ruled := book.Set([]byte(`{"acme":[{"match":"mine"},{"match":"banned"}],"other":[{"status":403,"match":"mine"}]}`), []byte(`{"acme":{"cooldownMs":60000}}`))
	for _, c := range []struct{ id, provider, body, want string }{
		{"CLS-5 guard first", "acme", "banned", "generic/ban"},
		{"CLS-7 then the operator's rule", "acme", "quota, mine", "settings/providerErrorRules.acme[0]"},
		{"RUL-11 before third parties too", "other", "mine", "settings/providerErrorRules.other[0]"},
		{"CLS-6 a rule of a pack before the default", "acme", "quota", "generic/text"},
		{"CLS-6 RUL-41 the default before the generic table", "acme", "x", "settings/providerErrorDefaults.acme"},
		{"CLS-7 late without a default", "nobody", "x", "generic/table"},
	} {
		t.Run(c.id, func(t *testing.T) {
			r := failed(c.provider, "m", 403, c.body)
			r.Operator = ruled
			if v, ok := judge(s, c.provider).Classify(t.Context(), r); !ok || v.Evidence() != c.want {
				t.Errorf("got %v %s, want %s", ok, v.Evidence(), c.want)
			}
		})
	}
}
