package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// classifier is a pack whose one rule for any 403 says who it is in its message.
func classifier(name, more string) string {
	return fmt.Sprintf("name: %s\nversion: 1.0.0\nkinds: [classifier]\n%s\nrules:\n- {id: r, status: [403], then: {reason: overloaded}}\n", name, more)
}

// The order of plugins (ABI-9, RUL-11: third-party ones before built-in ones): each key decides only where those before it are equal.
func TestOrder(t *testing.T) {
	order := map[string]Settings{"late": {Order: 5}, "early": {Order: -5}}
	sources := []source{
		builtin(classifier("generic", "matches: [{providers: ['*']}]\npriority: 0")),
		builtin(classifier("pack", "matches: [{providers: [acme]}]")),
		builtin(classifier("early", "matches: [{providers: ['*']}]")),
		thirdParty(classifier("late", "matches: [{providers: [acme]}]\npriority: 999")),
		thirdParty(classifier("star", "")),
		thirdParty(classifier("glob", "matches: [{providers: ['ac*']}]")),
		thirdParty(classifier("exact", "matches: [{providers: [acme]}]")),
		thirdParty(classifier("exact-high", "matches: [{providers: [acme]}]\npriority: 7")),
		thirdParty(classifier("by-model", "matches: [{providers: [acme], models: [large]}]")),
		thirdParty(classifier("by-glob", "matches: [{providers: [acme], models: ['l*']}]")),
		thirdParty(classifier("by-end", "matches: [{providers: [acme], models: [large], endpoints: [/v1/chat/completions]}]")),
		thirdParty(classifier("other", "matches: [{providers: [zeta]}]")),
		thirdParty(classifier("aaa", "matches: [{providers: [acme]}]")),
	}
	for i := range sources {
		sources[i].file = fmt.Sprint(i)
	}
	_, s := setOf(t, Options{Settings: order}, sources...)
	r := failed("acme", "acme/large", 403, "x")
	want := []string{"early", "by-end", "by-model", "by-glob", "exact-high", "aaa", "exact", "glob", "star", "pack", "generic", "late"}
	if got := judge(s, "acme").Members(r); !slices.Equal(got, want) {
		t.Errorf("ABI-9:\n got %v\nwant %v", got, want)
	}
	r.Model = "small"
	want = []string{"early", "exact-high", "aaa", "exact", "glob", "star", "pack", "generic", "late"}
	if got := judge(s, "acme").Members(r); !slices.Equal(got, want) {
		t.Errorf("ABI-9, another model:\n got %v\nwant %v", got, want)
	}
	if got := judge(s, "nobody").Members(failed("nobody", "m", 403, "x")); !slices.Equal(got, []string{"early", "star", "generic"}) {
		t.Errorf("PLG-13: for another provider %v", got)
	}
	v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "large", 403, "x"))
	if !ok || v.Plugin != "early" || v.Rule != "r" || len(v.Digest) != 64 {
		t.Errorf("ABI-9: decision record %+v", v)
	}
}

// Phases go before the order of plugins, and a plugin's rules before its hook (CLS-7).
func TestPhasesAndHooks(t *testing.T) {
	ruled := func(name, phase string, status int, match string) string {
		return fmt.Sprintf("name: %s\nversion: 1.0.0\nkinds: [classifier]\nmatches: [{providers: [%s]}]\nrules:\n- {id: r, phase: %s, status: [%d], then: {reason: overloaded}}\n",
			name, match, phase, status)
	}
	hook := strings.Replace(hookManifest, `"hooks"`, `"rules":[{"id":"own","status":[401],"then":{"reason":"auth_error"}}],"hooks"`, 1)
	_, s := setOf(t, Options{},
		guestFile(module{manifest: hook, answer: `{"reason":"unknown"}`}),
		builtin(ruled("guard", "guard", 400, "'*'")),
		builtin(ruled("late", "late", 404, "'*'")),
		builtin(ruled("normal", "normal", 403, "acme")))
	for status, want := range map[int]string{
		400: "guard/r",       // before everything, though built-in and unspecific
		401: "acme/own",      // rules before the hook of the same plugin
		403: "acme/classify", // the hook of an earlier plugin before the rules of a later one
		404: "acme/classify", // the phase late comes after all hooks
	} {
		v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", status, "x"))
		if !ok || v.Evidence() != want {
			t.Errorf("CLS-7: %d is decided by %s, want %s", status, v.Evidence(), want)
		}
	}
	if v, ok := judge(s, "other").Classify(t.Context(), failed("other", "m", 404, "x")); !ok || v.Plugin != "late" {
		t.Errorf("CLS-7: without a hook 404 is decided by %q", v.Evidence())
	}
}

const keeper = `
name: keeper
version: 1.0.0
kinds: [restatement]
rules:
- {id: keep, providers: [acme], text_contains: [leave], status: [403], then: {keep: true}}
- {id: to429, status: [403], then: {restate_status: 429, restate_code: rate_limit_exceeded}}
`

func TestRestate(t *testing.T) { // RST-2, RST-8 (the operator's plugins first, then built-in ones), ABI-9
	_, s := setOf(t, Options{}, thirdParty(keeper), builtin("name: later\nversion: 1.0.0\nkinds: [restatement]\nrules:\n- {id: r, status: [403], then: {restate_status: 500}}\n"))
	if x, ok := judge(s, "acme").Restate(t.Context(), failed("acme", "m", 403, "x")); !ok || x.Status != 429 || x.Plugin != "keeper" {
		t.Errorf("restatement %+v", x)
	}
	if x, ok := judge(s, "acme").Restate(t.Context(), failed("acme", "m", 403, "leave it")); ok {
		t.Errorf("a rule that keeps did not end the search: %+v", x)
	}
	if x, ok := judge(s, "acme").Restate(t.Context(), failed("acme", "m", 400, "x")); ok {
		t.Errorf("restated %+v", x)
	}
}

const acmeProvider = `
name: acme
version: 1.0.0
kinds: [executor]
providers:
- {id: acme, base_url: "https://api.acme.example/v1", key_env: [ACME_KEY], aliases: [ac], models: [small, {id: large, context_window: 7}]}
plans:
- {match: {providers: [acme], endpoints: [/v1/chat/completions], models: [large], stream: true}, plan: {url: "{{connection.base_url}}/stream", dialect: openai_chat}}
- {match: {providers: [acme], endpoints: [/v1/chat/completions], auth: [oauth]}, plan: {url: "{{connection.base_url}}/oauth", dialect: openai_chat}}
- {match: {providers: [acme], endpoints: [/v1/chat/completions]}, plan: {url: "{{connection.base_url}}/chat", dialect: openai_chat}}
`

func TestStaticPlans(t *testing.T) { // ABI-2.2, ABI-3
	_, s := setOf(t, Options{}, builtin(acmeProvider))
	e, err := s.Executor(&catalog.Provider{ID: "acme", Plugin: "acme", Executor: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	q := wire.PlanQuery{Provider: "acme", Endpoint: "/v1/chat/completions"}
	for _, c := range []struct {
		model  string
		stream bool
		auth   wire.Auth
		want   string
	}{
		{"large", true, wire.AuthAPIKey, "stream"},
		{"large", true, wire.AuthOAuth, "stream"}, // the first match
		{"large", false, wire.AuthAPIKey, "chat"},
		{"small", true, wire.AuthAPIKey, "chat"},
		{"small", true, wire.AuthOAuth, "oauth"},
	} {
		q.UpstreamModel, q.Stream = c.model, c.stream
		if p, err := e.Plan(t.Context(), q, c.auth); err != nil || p.URL != "{{connection.base_url}}/"+c.want || p.Method != "POST" {
			t.Errorf("%+v: plan %+v, %v", c, p, err)
		}
	}
	q.Endpoint = "/v1/embeddings"
	if _, err := e.Plan(t.Context(), q, wire.AuthAPIKey); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a plan for an endpoint that has none: %v", err)
	}
	if _, err := e.Respond(t.Context(), wire.RequestFacts{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a pack responds: %v", err)
	}
	d := s.Described()
	if len(d) != 1 || len(d[0].Providers) != 1 || !d[0].Builtin {
		t.Fatalf("described %+v", d)
	}
	p := d[0].Providers[0]
	if p.Dialects["/v1/chat/completions"] != wire.OpenAIChat || p.Category != "apikey" || p.Auth != wire.AuthAPIKey || len(p.Models) != 2 || p.Models[0].ID != "small" || p.Models[1].ContextWindow != 7 {
		t.Errorf("ABI-2.2: provider %+v", p)
	}
}

func TestPlanOfAGuest(t *testing.T) { // ABI-3
	m := `{"name":"acme","version":"1.0.0","kinds":["executor"],"hooks":["plan"],"providers":[{"id":"acme","base_url":"https://x.example"}]}`
	p := &catalog.Provider{ID: "acme", Plugin: "acme", Executor: "acme"}
	for answer, want := range map[string]string{
		`{"url":"{{connection.base_url}}/a","error":{"code_paths":["code"]}}`: "",
		`{"url":"https://{{model}}/a"}`:                                       "cannot be used",
		`{"error":{"code":"unsupported","message":"no such model"}}`:          "declined",
		`{"url":7}`: "cannot be used",
		``:          "no plan",
	} {
		_, s := setOf(t, Options{}, guestFile(module{manifest: m, answer: answer}))
		e, err := s.Executor(p)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := e.Plan(t.Context(), wire.PlanQuery{Provider: "acme", Endpoint: "/v1/chat/completions"}, wire.AuthAPIKey)
		if want == "" {
			if err != nil || plan.URL != "{{connection.base_url}}/a" {
				t.Errorf("%s: %+v, %v", answer, plan, err)
			}
		} else if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", answer, err, want)
		}
	}
}
