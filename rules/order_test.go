package rules_test

import (
	"sync"
	"testing"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

func source(t *testing.T, name string, builtin bool, table string, matches ...wire.Match) rules.Source {
	t.Helper()
	return rules.Source{Plugin: name, Digest: "sha-" + name, Table: parse(t, rules.Options{Builtin: builtin}, table), Matches: matches}
}

func says(id, phase, reason string) string {
	return `[{"id": "` + id + `", "phase": "` + phase + `", "then": {"reason": "` + reason + `"}}]`
}

// CLS-7: guard before normal before late; ABI-9: within a phase the order of the sources.
func TestOrder(t *testing.T) {
	set := rules.Compile(
		source(t, "operator", false, `[{"id": "op", "status": [500], "then": {"reason": "timeout"}}]`),
		rules.Source{Plugin: "hooks-only"},
		source(t, "acme", false, `[{"id": "a", "status": [501], "then": {"reason": "overloaded"}}, {"id": "b", "status": ["501-502"], "then": {"reason": "unknown"}}]`),
		source(t, "pack", true, `[{"id": "guard", "phase": "guard", "text_contains": ["deactivated"], "then": {"reason": "banned", "terminal": true}},
		  {"id": "late", "phase": "late", "then": {"reason": "server_error"}}]`),
		source(t, "generic", true, says("g", "normal", "expired")),
	)
	for _, c := range []struct {
		name   string
		status int
		body   string
		rule   string
		source int
	}{
		{"guard comes before operator rules (CLS-5)", 500, "deactivated", "guard", 3},
		{"the first source", 500, "x", "op", 0},
		{"the first rule of a source", 501, "x", "a", 2},
		{"the next rule", 502, "x", "b", 2},
		{"the last source", 503, "x", "g", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := set.Match(answer("p", c.status, c.body))
			for _, p := range []rules.Phase{rules.Guard, rules.Normal, rules.Late} {
				v, i, ok := m.Classify(p, 0, set.Len())
				if !ok {
					continue
				}
				if v.Rule != c.rule || i != c.source {
					t.Errorf("%s: decided by %s of source %d, want %s of %d", p, v.Rule, i, c.rule, c.source)
				}
				return
			}
			t.Error("no verdict")
		})
	}
	t.Run("a part of the sources, so that a hook comes after its plugin's rules", func(t *testing.T) {
		m := set.Match(answer("p", 503, "x"))
		if _, _, ok := m.Classify(rules.Normal, 0, 4); ok {
			t.Error("the sources 0 to 3 decided")
		}
		if v, i, ok := m.Classify(rules.Normal, 4, 5); !ok || i != 4 || v.Evidence() != "generic/g" || v.Digest != "sha-generic" {
			t.Errorf("source 4: %+v %d %v", v, i, ok)
		}
		if v, _, ok := m.Classify(rules.Late, -3, 99); !ok || v.Rule != "late" {
			t.Errorf("late: %+v %v", v, ok)
		}
		if _, _, ok := m.Classify(rules.Late, 3, 3); ok {
			t.Error("an empty part decided")
		}
	})
}

// ABI-2: matches are alternatives, the fields of one hold together, and rules are narrower.
func TestMatches(t *testing.T) {
	set := rules.Compile(
		source(t, "narrow", true, says("narrow", "normal", "unknown"),
			wire.Match{Providers: []string{"acme"}, Models: []string{"big-*"}},
			wire.Match{Providers: []string{"acme-*"}, Endpoints: []string{"/v1/messages"}}),
		source(t, "wide", true, says("wide", "normal", "unknown"), wire.Match{Providers: []string{"ac*"}}),
		source(t, "all", true, says("all", "normal", "unknown")),
	)
	for _, c := range []struct{ provider, model, endpoint, rule string }{
		{"acme", "big-1", "/v1/chat/completions", "narrow"},
		{"ACME", "acme/Big-1", "/v1/chat/completions", "narrow"},
		{"acme", "small", "/v1/messages", "wide"},
		{"acme-eu", "small", "/v1/messages", "narrow"},
		{"acme-eu", "big-1", "/v1/chat/completions", "wide"},
		{"other", "big-1", "/v1/messages", "all"},
	} {
		r := answer(c.provider, 500, "x")
		r.Model, r.Endpoint = c.model, c.endpoint
		if v, _ := classify(set.Match(r), 3); v.Rule != c.rule {
			t.Errorf("%s %s %s: decided by %s, want %s", c.provider, c.model, c.endpoint, v.Rule, c.rule)
		}
	}
}

func TestSetIsConcurrent(t *testing.T) { // RUL-15
	set := one(t, agentrouter)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, provider := range []string{"agentrouter", "openai", "a", "b", "c"} {
				r := answer(provider, 403, `{"error":{"message":"额度不足"}}`)
				if _, ok := restate(set.Match(r), r, 1); ok != (provider == "agentrouter") {
					t.Errorf("%s: restated %v", provider, ok)
				}
			}
		})
	}
	wg.Wait()
}

// An empty set has no opinion.
func TestEmptySet(t *testing.T) {
	m := rules.Compile().Match(answer("p", 500, "x"))
	if _, i, ok := m.Restate(0, 1); ok || i != -1 {
		t.Error("restated")
	}
	if _, i, ok := m.Classify(rules.Normal, 0, 1); ok || i != -1 {
		t.Error("classified")
	}
}
