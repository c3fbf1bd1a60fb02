package packs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

// CLS-14, COOL-66, RUL-13: a request that is the caller's own fault cools, locks and moves nothing, and a good answer stays
// one, whatever words of limits, money and bans the caller or a model wrote, and whoever answered.
func TestCallersFaults(t *testing.T) {
	all := load(t)
	set := compile(all)
	for _, a := range answers(t, "callers.jsonl") {
		t.Run("CLS-14 COOL-66/"+a.ID, func(t *testing.T) {
			providers := []string{a.Provider}
			if !ownForm(a) {
				providers = append(providers, named(all)...)
			}
			for i, p := range providers {
				b := a
				b.Provider, b.Auth = p, []wire.Auth{wire.AuthAPIKey, wire.AuthOAuth, wire.AuthLocal}[i%3]
				got := judge(set, b.reply())
				if wrong := compare(b, got, map[string]int{}); wrong != "" {
					t.Errorf("%s, %s: differs in %s: got %d %s %s fallback=%v terminal=%v by %s", p, b.Auth, wrong, got.status, got.Reason, got.Scope, got.Fallback, got.Terminal, got.Evidence())
				}
			}
		})
	}
}

// ownForm says that the answer means this only of its own provider: its form is another one's failure.
func ownForm(a answer) bool {
	return strings.Contains(a.Body, "error_code") || strings.Contains(a.Body, "base_resp")
}

// named are the providers that packs name.
func named(all []shipped) []string {
	var ids []string
	for _, s := range all {
		for _, m := range s.Matches {
			for _, p := range m.Providers {
				if !strings.Contains(p, "*") && !slices.Contains(ids, p) {
					ids = append(ids, p)
				}
			}
		}
	}
	return ids
}
