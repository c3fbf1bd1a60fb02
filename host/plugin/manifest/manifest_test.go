package manifest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/sdk/wire"
)

func read(t *testing.T, yaml string, o Options) (*Manifest, string) {
	t.Helper()
	n, faults := document.Parse("a.yaml", []byte(yaml))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	m, problems, _ := Read(n, o)
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return m, strings.Join(all, "\n")
}

const head = "name: acme\nversion: 1.0.0-rc.1+b7\n"

func TestDefaults(t *testing.T) { // ABI-2, ABI-2.2
	m, bad := read(t, head+"kinds: [executor]\nproviders:\n- {id: a}\n- {id: b, auth: local}\n- {id: c, auth: oauth, category: apikey}\nplans: [{plan: {url: 'https://x.example/y'}}]\n", Options{})
	if bad != "" {
		t.Fatal(bad)
	}
	for i, want := range []struct {
		auth     wire.Auth
		category string
	}{{wire.AuthAPIKey, "apikey"}, {wire.AuthLocal, "local"}, {wire.AuthOAuth, "apikey"}} {
		if p := m.Providers[i]; p.Auth != want.auth || p.Category != want.category {
			t.Errorf("%s: %s %s", p.ID, p.Auth, p.Category)
		}
	}
	if m.ABI != "1.0" || m.Plans[0].Plan.Method != "POST" {
		t.Errorf("abi %s, method %s", m.ABI, m.Plans[0].Plan.Method)
	}
}

// Each line is one thing that ABI-2 or ABI-3 forbids, and what the problem says about it.
func TestProblems(t *testing.T) {
	for yaml, want := range map[string]string{
		"kinds: [executor, executor]":                                                                                   "kinds[1]: \"executor\" stands there twice",
		"kinds: classifier":                                                                                             "kinds: must be a list",
		"matches: [{providers: ['a?c']}]":                                                                               "the only wildcard is *",
		"matches: [{providers: ['']}]":                                                                                  "write * to match everything",
		"matches: [{endpoints: [v1/x]}]":                                                                                "an endpoint starts with /",
		"matches: [{stream: true}]":                                                                                     "belong to the match of a plan",
		"needs: {error_text: some}":                                                                                     "needs.error_text",
		"needs: {error_text_bytes: 65537}":                                                                              "needs.error_text_bytes",
		"needs: {headers: [Retry-After]}":                                                                               "needs.headers[0]",
		"needs: {request_fields: [a..b]}":                                                                               "needs.request_fields[0]",
		"permissions: {http: {hosts: ['https://x']}}":                                                                   "permissions.http.hosts[0]",
		"permissions: {kv: {bytes: 0}}":                                                                                 "permissions.kv.bytes",
		"permissions: {secrets: [{name: a b}]}":                                                                         "permissions.secrets[0].name",
		"permissions: {providers: {ids: [A]}}":                                                                          "permissions.providers.ids[0]",
		"limits: {fuel: {classify: 3000000}}":                                                                           "limits.fuel.classify",
		"limits: {fuel: {sing: 1}}":                                                                                     "limits.fuel.sing",
		"examples: [{op: sing, input: {}, expect: null}]":                                                               "examples[0].op",
		"examples: [{op: plan, input: 7, expect: null}]":                                                                "examples[0].input",
		"examples: [{op: plan, input: {}}]":                                                                             "examples[0].expect",
		"kinds: [executor]\nproviders: [{id: a}, {id: b, aliases: [a]}]":                                                "providers[1].aliases[0]: \"a\" is taken by providers[0]",
		"kinds: [executor]\nproviders: [{id: a, models: [x, {name: y}, x]}]":                                            "providers[0].models[1]: a model needs an id",
		"kinds: [executor]\nproviders: [{id: a, dialects: {/v1/embeddings: openai_chat}}]":                              "its dialect is raw",
		"kinds: [executor]\nproviders: [{id: a, base_url: 'https://u:p@x.example'}]":                                    "must have no user",
		"kinds: [executor]\nplans: [{plan: {}}]":                                                                        "plans[0].plan.url: is missing",
		"kinds: [executor]\nplans: [{plan: {upstream: none}}]":                                                          "a pack has no code for it",
		"kinds: [executor]\nplans: [{plan: {url: 'https://x.example/', response: {frames: ndjson}}}]":                   "does not do that yet",
		"kinds: [executor]\nplans: [{plan: {url: 'https://x.example/', response: {events: hook}}}]":                     "no code that could see events",
		"kinds: [executor]\nplans: [{plan: {url: 'https://x.example/', response: {stateful: true}}}]":                   "set response.events to hook",
		"kinds: [executor]\nplans: [{plan: {url: 'https://x.example/', hooks: [on_request]}}]":                          "can have no hooks",
		"kinds: [executor]\nplans: [{plan: {url: 'https://x.example/', hooks: [sing]}}]":                                "plans[0].plan.hooks[0]",
		"kinds: [executor]\nplans: [{plan: {url: 'https://x.example/', response: {mode: sse}}}]":                        "plans[0].plan.response.mode",
		"kinds: [executor]\nplans: [{plan: {url: 'https://x.example/', headers: {\"a b\": c}}}]":                        "not a header",
		"kinds: [executor]\nplans: [{plan: {url: 'https://x.example/', body: [{op: rename, path: a}]}}]":                "plans[0].plan.body[0].to",
		"kinds: [executor]\nplans: [{plan: {url: 'https://x.example/', body: [{op: clamp, path: a, min: 2, max: 1}]}}]": "min is above max",
	} {
		if _, bad := read(t, head+yaml+"\n", Options{}); !strings.Contains(bad, want) {
			t.Errorf("ABI-2: %s\n got %q\nwant %q", yaml, bad, want)
		}
	}
}

func TestCodeMayAnswer(t *testing.T) { // ABI-3
	if _, bad := read(t, head+"kinds: [executor]\nhooks: [respond]\nplans: [{plan: {upstream: none}}]\n", Options{Code: true}); bad != "" {
		t.Error(bad)
	}
	if _, bad := read(t, head+"kinds: [classifier]\nhooks: [respond]\n", Options{Code: true}); !strings.Contains(bad, "hook of kind executor") {
		t.Error(bad)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"name":"acme","version":"1.0.0","kinds":["executor"],"providers":[{"id":"a","models":["x",{"id":"y"}]}],"plans":[{"plan":{"url":"https://x.example"}}]}`))
	f.Add([]byte(`{"name":7,"matches":[{"providers":[null]}],"limits":{"fuel":{"plan":-1}},"examples":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, faults := document.ParseJSON("", b)
		if len(faults) > 0 {
			return
		}
		m, problems, _ := Read(n, Options{Code: true})
		if len(problems) == 0 && !nameShape.MatchString(m.Name) {
			t.Errorf("a manifest without a name passed: %s", b)
		}
	})
}

// ABI-8: a manifest of a megabyte that lists too much is refused before anything walks over its lists.
func TestBounds(t *testing.T) {
	list := func(n int, f string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(f, "#", strconv.Itoa(i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	for yaml, want := range map[string]string{
		"kinds: " + list(60_000, "k#"):                               "kinds: lists 60000",
		"hooks: " + list(60_000, "classify"):                         "hooks: lists 60000",
		"matches: [{models: " + list(60_000, "m#") + "}]":            "matches: lists 60000 patterns",
		"providers: " + list(3000, "{id: p#}"):                       "providers: lists 3000",
		"providers: [{id: a, aliases: " + list(600, "p#") + "}]":     "providers[0].aliases: lists 600",
		"providers: [{id: a, models: " + list(30_000, "m#") + "}]":   "providers: list 30000 models",
		"plans: " + list(2000, "{plan: {url: 'https://x.example'}}"): "plans: lists 2000",
		"needs: {headers: " + list(600, "h#") + "}":                  "needs.headers: lists 600",
		"permissions: {http: {hosts: " + list(600, "h#") + "}}":      "permissions.http.hosts: lists 600",
		"matches: [{models: [" + strings.Repeat("a*", 200) + "]}]":   "has 400 bytes",
	} {
		if _, bad := read(t, head+yaml, Options{}); !strings.Contains(bad, want) || strings.Count(bad, "\n") > maxProblems {
			t.Errorf("%.40s: %.200s, want %s", yaml, bad, want)
		}
	}
}
