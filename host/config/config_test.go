package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

func env(pairs ...string) settings.Lookup {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func lines(faults []document.Fault) []string {
	var out []string
	for _, f := range faults {
		out = append(out, f.String())
	}
	return out
}

func described() []catalog.Described {
	return []catalog.Described{
		{Plugin: "openai", Builtin: true, Providers: []wire.Provider{{ID: "openai", BaseURL: "https://api.openai.com/v1", Models: []wire.Model{{ID: "gpt-5"}, {ID: "gpt-5-mini"}}}}},
		{Plugin: "anthropic", Builtin: true, Providers: []wire.Provider{{ID: "anthropic", BaseURL: "https://api.anthropic.com"}}},
		{Plugin: "openai-compatible", Builtin: true, PlanDialects: map[string]wire.Dialect{"/v1/chat/completions": wire.OpenAIChat}},
	}
}

// example is the file of the specification.
const example = `
listen: 127.0.0.1:8787
data_dir: ./weir-data
shutdown_grace: 10s
store: {reserve: 256MiB}
plugins:
  dir: ./plugins
  modes: {my-rules: off}
  trust: open
  trusted_keys: []
  compile: inprocess
  require_examples: false
  settings:
    my-rules: {config: {a: 1}, order: 3, on_violation: fail_open, merge: false, min_confidence: 0, grants: {providers: [openai]}, limits: {memory_mib: 16, fuel: {classify: 100000}, wall_ms: {plan: 1000}, body_kib: 64}}
providers:
  - id: openai
    base_url: https://api.openai.com/v2
  - id: my-vllm
    executor: openai-compatible
    category: local
    base_url: http://127.0.0.1:8000/v1
    models: [qwen3-32b, {id: big, context_window: 100000}]
connections:
  - id: openai-main
    provider: openai
    api_key: ${OPENAI_API_KEY}
    priority: ${PRIORITY:-1}
    max_concurrent: 4
    rate_limit_overrides: {max_wait: 20s, model_concurrency: {gpt-5: 2}}
    provider_data: {organization: org-1, disableCooling: true}
  - {id: local, provider: my-vllm}
  - {id: claude, provider: anthropic, api_key: k}
combos:
  - id: best
    strategy: priority
    targets:
      - {model: anthropic/claude-sonnet-4-5, connection: claude, weight: 1}
      - openai/gpt-5
    config: {max_retries: 0, target_timeout: 2s, fallback_on_content_filter: true}
aliases: {gpt-4: openai/gpt-5-mini}
api_keys:
  - {id: laptop, key: "${WEIR_CLIENT_KEY:-}", scopes: [inference], allowed_connections: [], allowed_models: []}
  - {id: phone, key: 0123456789abcdef-phone, expires_at: "2030-01-01T00:00:00Z"}
resilience: {connectionCooldown: {apikey: {baseCooldownMs: 1000}}}
settings: {customBannedSignals: [gone]}
`

func TestExampleFile(t *testing.T) { // OBJ-1, CFG-1
	f, faults := Parse("weir.yaml", []byte(example), env("OPENAI_API_KEY", "sk-1"))
	if len(faults) > 0 {
		t.Fatal(lines(faults))
	}
	if f.Listen != "127.0.0.1:8787" || *f.ShutdownGrace != 10*time.Second || f.StoreReserve != 256<<20 {
		t.Errorf("%+v", f)
	}
	want := Plugins{
		Dir: "./plugins", Modes: map[string]string{"my-rules": "off"}, Trust: "open", TrustedKeys: []string{}, Compile: "inprocess",
		Settings: map[string]PluginSettings{"my-rules": {
			Config: wire.Raw(`{"a":1}`), Order: 3, OnViolation: "fail_open", Grants: Grants{Providers: []string{"openai"}},
			Limits: Limits{MemoryMiB: 16, Fuel: map[string]int64{"classify": 100_000}, WallMS: map[string]int64{"plan": 1000}, BodyKiB: 64},
		}},
	}
	if d := cmp.Diff(want, f.Plugins); d != "" {
		t.Error(d)
	}
	s, faults := catalog.Build(catalog.Sources{File: f.Input, Described: described()})
	if len(faults) > 0 {
		t.Fatal(lines(faults))
	}
	c := s.Connection("openai-main")
	if c.Priority != 1 || *c.MaxConcurrent != 4 || c.Data["organization"] != "org-1" || !c.DisableCooling || c.ManagedBy != catalog.ByFile ||
		string(c.RateLimitOverrides) != `{"maxWaitMs":20000,"modelConcurrency":{"gpt-5":2}}` || c.Secrets["api_key"].Reveal() != "sk-1" {
		t.Errorf("%+v", c)
	}
	r, err := s.Resolve("best")
	if err != nil || *r.Config.MaxRetries != 0 || *r.Config.TargetTimeout != 2*time.Second || !*r.Config.FallbackOnFilter || len(r.Targets) != 2 ||
		r.Targets[0].Connection.ID != "claude" {
		t.Errorf("%+v %v", r, err)
	}
	if p := s.Provider("openai"); p.BaseURL != "https://api.openai.com/v2" || len(p.Models) != 2 {
		t.Errorf("an entry for a built-in provider changes more than it gives: %+v", p)
	}
	if p := s.Provider("my-vllm"); p.Category != catalog.Local || p.Auth != wire.AuthLocal || p.Passthrough || p.Models[1].ContextWindow != 100_000 ||
		p.Dialects["/v1/chat/completions"] != wire.OpenAIChat {
		t.Errorf("%+v", p)
	}
	if _, err := s.Resolve("gpt-4"); err != nil {
		t.Error(err)
	}
	if len(s.Keys) != 1 || s.Keys[0].ID != "phone" || s.Keys[0].ExpiresAt.Year() != 2030 || !strings.Contains(strings.Join(s.Warnings, "\n"), `"laptop" in weir.yaml line`) {
		t.Errorf("an empty key is not skipped with a warning: %v %q", s.Keys, s.Warnings)
	}
	if s.Settings.ConnectionCooldown.APIKey.Base != time.Second || s.Settings.CustomBannedSignals[0] != "gone" ||
		s.SettingSources["customBannedSignals"] != settings.FromFile {
		t.Errorf("%+v", s.Settings)
	}
}

func TestSecretsOfPlugins(t *testing.T) { // PLG-12, DATA-1
	text := `plugins:
  settings:
    acme:
      secrets:
        admin_key: ${ACME_ADMIN_KEY}
        unset: ${ACME_OTHER:-}
      grants: {http: {hosts: [api.acme.example, "10.0.0.7:8443"], allow_private: ["10.0.0.7:8443"]}}
`
	lookup := func(name string) (string, bool) {
		return map[string]string{"ACME_ADMIN_KEY": "007"}[name], name == "ACME_ADMIN_KEY"
	}
	f, faults := Parse("weir.yaml", []byte(text), lookup)
	if len(faults) > 0 {
		t.Fatal(lines(faults))
	}
	acme := f.Plugins.Settings["acme"]
	if len(acme.Secrets) != 2 || acme.Secrets["admin_key"].Reveal() != "007" || acme.Secrets["unset"].Set() {
		t.Errorf("%v", acme.Secrets)
	}
	if d := cmp.Diff(Grants{HTTPHosts: []string{"api.acme.example", "10.0.0.7:8443"}, HTTPPrivate: []string{"10.0.0.7:8443"}}, acme.Grants); d != "" {
		t.Error(d)
	}
	if shown := fmt.Sprintf("%v %+v %#v", acme, acme, acme); strings.Contains(shown, "007") {
		t.Errorf("a secret is printed: %s", shown)
	}
	bad := `plugins:
  settings:
    acme:
      secrets: {"a b": s3cret, torn: "s3cret\nx", number: 7}
      grants: {http: {hosts: [a.test], allow_private: [b.test]}}
`
	_, faults = Parse("weir.yaml", []byte(bad), lookup)
	want := []string{
		`weir.yaml:4:17: plugins.settings.acme.secrets["a b"]: is no name of a secret; use letters, digits and _, at most 64, as the plugin's manifest does`,
		"weir.yaml:4:32: plugins.settings.acme.secrets.torn: has a line break or control character, which no header can hold; check where the value comes from",
		"weir.yaml:4:59: plugins.settings.acme.secrets.number: must be text, not a number; put it in quotes",
		"weir.yaml:5:56: plugins.settings.acme.grants.http.allow_private[0]: names a host that is not granted; name it in hosts too, spelled alike",
	}
	if d := cmp.Diff(want, lines(faults)); d != "" {
		t.Error(d)
	}
}

func TestFaultsCarryPlaces(t *testing.T) { // CFG-6: unknown names in resilience and settings too
	text := `lisen: x
listen: nonsense
log_level: loud
shutdown_grace: soon
max_body: 3
store: {reserve: 1MiB}
plugins:
  modes: {a: shadow, b: on}
  trust: signed
  compile: elsewhere
  trusted_keys: []
  settings:
    p: {on_violation: fail_often, merge: true, min_confidence: 50, limits: {fuel: 4}, grants: {secrets: [a]}}
connections:
  - id: a
    provder: openai
    api_key: ${MISSING}
combos:
  - id: c
    config: {max_retries: 1, unheard: true, retry_delay: 5}
resilience:
  connectionCooldowns: {}
settings:
  customBannedSignals: [""]
`
	f, faults := Parse("weir.yaml", []byte(text), env())
	want := []string{
		"weir.yaml:1:1: lisen: is not known here; did you mean listen?",
		"weir.yaml:2:1: listen: must be an address such as 127.0.0.1:8787",
		"weir.yaml:3:1: log_level: must be one of debug, info, warn, error",
		"weir.yaml:4:17: shutdown_grace: is not a duration; write one such as 30s or 10m",
		"weir.yaml:5:1: max_body: must be 1KiB to 1GiB",
		"weir.yaml:6:9: store.reserve: must be 96MiB or more: the store needs that room to close its files (DATA-6)",
		"weir.yaml:8:22: plugins.modes.b: must be active, shadow or off",
		"weir.yaml:9:3: plugins.trust: signed needs at least one public key in plugins.trusted_keys, else no plugin could be loaded",
		"weir.yaml:10:3: plugins.compile: must be one of inprocess, child",
		"weir.yaml:13:9: plugins.settings.p.on_violation: must be one of fail_open, fail_closed",
		"weir.yaml:13:35: plugins.settings.p.merge: true is not implemented in this version; leave it false",
		"weir.yaml:13:48: plugins.settings.p.min_confidence: is not implemented in this version; leave it 0",
		"weir.yaml:13:83: plugins.settings.p.limits.fuel: must be an object, not a number",
		"weir.yaml:13:96: plugins.settings.p.grants.secrets: are granted by giving them: leave this out and write each with its value under plugins.settings.p.secrets",
		"weir.yaml:16:5: connections[0].provder: is not known here; did you mean provider?",
		"weir.yaml:17:14: connections[0].api_key: needs the environment variable MISSING, which is not set; set it or write ${MISSING:-default}",
		"weir.yaml:20:30: combos[0].config.unheard: is not known here",
		"weir.yaml:20:58: combos[0].config.retry_delay: must be a duration such as 30s or 10m",
		"weir.yaml:22:3: resilience.connectionCooldowns: is not known here; did you mean connectionCooldown?",
		"weir.yaml:24:25: settings.customBannedSignals[0]: must have 1 to 200 characters after trimming",
	}
	if d := cmp.Diff(want, lines(faults)); d != "" || f != nil {
		t.Error(d, f)
	}
}

// CFG-1, OBJ-14, CMB-1: what only the catalogue can know has places too.
func TestSemanticFaultsCarryPlaces(t *testing.T) {
	text := `providers:
  - id: Mine
    executor: openai-compatibel
connections:
  - id: a
    provider: opnai
    api_key: k
  - id: b
    provider: openai
  - id: b
    provider: openai
    api_key: k
    priority: 0
  - {id: stored, provider: openai, api_key: k}
combos:
  - id: best
    targets: [openai/gpt-6, nobody/x, {kind: combo-ref, combo_name: bets}, {model: openai/gpt-5, connection: zzz, weight: -1}]
  - id: deep
    strategy: prioritty
    models: [openai/gpt-5]
    config: {max_combo_depth: 99}
aliases: {x: openai/nope, y: x}
api_keys:
  - {id: k, key: short, scopes: [inferense]}
`
	f, faults := Parse("weir.yaml", []byte(text), env())
	if len(faults) > 0 {
		t.Fatal(lines(faults))
	}
	stored := &catalog.Input{Name: "the store", Connections: []catalog.Entry[catalog.ConnectionInput]{
		{Object: catalog.ConnectionInput{ID: "stored", Provider: "openai", APIKey: "k"}},
	}}
	_, faults = catalog.Build(catalog.Sources{File: f.Input, Stored: stored, Described: described()})
	want := []string{
		`weir.yaml:2:5: providers[0].id: must be 1 to 63 of a-z, 0-9 and -, and not begin with -`,
		`weir.yaml:2:5: providers[0].base_url: is needed for a provider of your own`,
		`weir.yaml:3:5: providers[0].executor: there is no plugin "openai-compatibel"; did you mean openai-compatible?`,
		`weir.yaml:6:5: connections[0].provider: there is no provider "opnai"; did you mean openai?`,
		`weir.yaml:8:5: connections[1].api_key: is missing; provider openai authenticates with a key`,
		`weir.yaml:10:5: connections[2]: the connection id "b" is both in weir.yaml line 8 (connections[1]) and in weir.yaml line 10 (connections[2]); keep one of them`,
		`weir.yaml:14:5: connections[3]: the connection id "stored" is both in weir.yaml line 14 (connections[3]) and in the store; keep one of them`,
		`weir.yaml:17:15: combos[0].targets[0].model: provider openai has no model "gpt-6"; did you mean gpt-5?`,
		`weir.yaml:17:29: combos[0].targets[1].model: "nobody/x" names the provider "nobody", which does not exist`,
		`weir.yaml:17:57: combos[0].targets[2].combo_name: there is no combo "bets"; did you mean best?`,
		`weir.yaml:17:98: combos[0].targets[3].connection: there is no connection "zzz"`,
		`weir.yaml:17:115: combos[0].targets[3].weight: must be 0 or more`,
		`weir.yaml:19:5: combos[1].strategy: "prioritty" is not a strategy; did you mean priority?`,
		`weir.yaml:21:14: combos[1].config.max_combo_depth: must be 1 to 10`,
		`weir.yaml:22:11: aliases.x: provider openai has no model "nope"`,
		`weir.yaml:22:27: aliases.y: alias_chain: "x" is itself an alias; point at what it points at`,
		`weir.yaml:24:13: api_keys[0].key: has fewer than 16 characters; make one with weir keys create`,
		`weir.yaml:24:34: api_keys[0].scopes[0]: is not a scope; did you mean inference?`,
	}
	if d := cmp.Diff(want, lines(faults)); d != "" {
		t.Error(d)
	}
}

func TestNoFaultHoldsASecret(t *testing.T) { // SEC: a fault is printed and logged
	const secret = "sk-very-secret"
	for _, text := range []string{
		"connections: [{id: a, provider: x, api_key: [" + secret + "]}]",
		"connections: [{id: a, provider: openai, api_key: \"" + secret + "\\n\"}]",
		"connections: [{id: a, provider: openai, base_url: \"https://u:" + secret + "@h/\"}]",
		"api_keys: [{id: a, key: " + secret + "}]",
		"connections: [{id: a, provider: openai, api_key: k, provider_data: {cookie: " + secret + "}, priority: " + secret + "}]",
	} {
		f, faults := Parse("weir.yaml", []byte(text), env())
		if f != nil {
			_, faults = catalog.Build(catalog.Sources{File: f.Input, Described: described()})
		}
		if len(faults) == 0 || strings.Contains(strings.Join(lines(faults), "\n"), secret) {
			t.Errorf("%s\ngives %q", text, lines(faults))
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	if _, faults := Load(path, env()); len(faults) != 1 || faults[0].File != path || faults[0].Message != "does not exist" {
		t.Error(lines(faults))
	}
	if err := os.WriteFile(path, []byte("# nothing yet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, faults := Load(path, env()); len(faults) > 0 || f.Input.Connections != nil {
		t.Error(f, lines(faults))
	}
}

func TestResolvePrecedence(t *testing.T) { // CFG-6
	file := &File{Listen: "file:1", DataDir: "file", LogLevel: "warn", LogFormat: "json", Plugins: Plugins{Dir: "file"}, MaxBody: 5 << 20, StoreReserve: 100 << 20}
	vars := env("WEIR_LISTEN", "env:2", "WEIR_DATA", "env", "WEIR_LOG_LEVEL", "error", "WEIR_LOG_FORMAT", "text")
	flags := Flags{Listen: "flag:3", Data: "flag", LogLevel: "debug", LogFormat: "json", Plugins: "flag"}
	short := func(o Options) []string { return []string{o.Listen, o.DataDir, o.LogLevel, o.LogFormat, o.PluginsDir} }
	for _, tc := range []struct {
		flags Flags
		env   settings.Lookup
		file  *File
		want  []string
	}{
		{Flags{}, env(), nil, []string{DefaultListen, DefaultDataDir, "info", "text", ""}},
		{Flags{}, env(), file, []string{"file:1", "file", "warn", "json", "file"}},
		{Flags{}, vars, file, []string{"env:2", "env", "error", "text", "file"}},
		{flags, vars, file, []string{"flag:3", "flag", "debug", "json", "flag"}},
	} {
		o, faults := Resolve(tc.flags, tc.env, tc.file)
		if d := cmp.Diff(tc.want, short(o)); d != "" || len(faults) > 0 {
			t.Error(d, lines(faults))
		}
	}
	o, _ := Resolve(Flags{}, env(), file)
	if o.MaxBody != 5<<20 || o.Reserve != 100<<20 || o.ShutdownGrace != 30*time.Second {
		t.Errorf("%+v", o)
	}
	_, faults := Resolve(Flags{Listen: "8787"}, env("WEIR_LOG_LEVEL", "loud", "WEIR_LISTEN", "bad too"), nil)
	if d := cmp.Diff([]string{"--listen: must be an address such as 127.0.0.1:8787", "WEIR_LOG_LEVEL: must be one of debug, info, warn, error"}, lines(faults)); d != "" {
		t.Error(d)
	}
}

func TestFindPath(t *testing.T) { // CFG-6
	yes, no := func(string) bool { return true }, func(string) bool { return false }
	for _, tc := range []struct {
		flags  Flags
		env    settings.Lookup
		exists func(string) bool
		want   string
	}{
		{Flags{Config: "a"}, env("WEIR_CONFIG", "b"), yes, "a"},
		{Flags{}, env("WEIR_CONFIG", "b"), yes, "b"},
		{Flags{}, env(), yes, "weir.yaml"},
		{Flags{}, env(), no, ""},
	} {
		if got := FindPath(tc.flags, tc.env, tc.exists); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{"256MiB": 256 << 20, "1.5 KiB": 1536, "10": 10, "2kb": 2000, "-1": -1, "x": -1, "1e300": -1, "": -1, "NaN": -1} {
		var b Bytes
		err := b.UnmarshalText([]byte(text))
		if (err != nil) != (want < 0) || err == nil && int64(b) != want {
			t.Errorf("%q is %d, %v", text, b, err)
		}
	}
}

// OBJ-1: each name of the file is the API's in snake case, Ms replaced by a duration, with the exceptions that OBJ-1 lists.
func TestEveryFieldIsReadUnderItsFileName(t *testing.T) {
	text := `connections:
  - {id: a, provider: openai, name: n, auth_type: api_key, priority: 2, is_active: false, base_url: "https://x.example", allow_private: true, models: [m],
     excluded_models: [e], max_concurrent: 1, concurrency_group: g, rate_limit_protection: true, quota_window_thresholds: {5h: 80}, api_key: k,
     access_token: t, refresh_token: r, secrets: {s: v}, rate_limit_overrides: {rpm: 1, min_time: 2, max_concurrent: 3, max_wait: 4ms, execution_max_wait: 5ms, tpm: 6, tpd: 7}}
`
	f, faults := Parse("f", []byte(text), env())
	if len(faults) > 0 {
		t.Fatal(lines(faults))
	}
	got, err := json.Marshal(f.Input.Connections[0].Object)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"a","provider":"openai","name":"n","authType":"api_key","priority":2,"isActive":false,"baseUrl":"https://x.example","allowPrivate":true,` +
		`"models":["m"],"excludedModels":["e"],"maxConcurrent":1,"concurrencyGroup":"g","rateLimitProtection":true,` +
		`"rateLimitOverrides":{"rpm":1,"minTime":2,"maxConcurrent":3,"maxWaitMs":4,"executionMaxWaitMs":5,"tpm":6,"tpd":7},"quotaWindowThresholds":{"5h":80},` +
		`"apiKey":"k","accessToken":"t","refreshToken":"r","secrets":{"s":"v"}}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
}
