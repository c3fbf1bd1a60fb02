package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/sdk/wire"
)

func p[T any](v T) *T { return &v }

func TestProviders(t *testing.T) {
	t.Run("ABI-2.2 a provider belongs to the plugin that described it first", func(t *testing.T) {
		s := build(t, Sources{})
		if o := s.Provider("openai"); o.Plugin != "openai" || o.BaseURL != "https://api.openai.com/v1" || o.Category != APIKey || o.ManagedBy != ByPlugin {
			t.Errorf("%+v", o)
		}
		if !warned(s, "provider openai of plugin stranger already belongs to plugin openai") {
			t.Errorf("%q", s.Warnings)
		}
		if s.Provider("oai") != s.Provider("openai") {
			t.Error("the alias is not known")
		}
		if o := s.Provider("ollama"); o.Category != Local || !o.Passthrough {
			t.Errorf("category does not follow from auth: %+v", o)
		}
	})
	t.Run("OBJ-2 an entry overrides only what it gives", func(t *testing.T) {
		s := build(t, Sources{File: &Input{Providers: of(ProviderInput{ID: "groq", BaseURL: p("http://127.0.0.1:1/v1/"), Headers: map[string]string{"X-Team": "a"}})}})
		g := s.Provider("groq")
		if g.BaseURL != "http://127.0.0.1:1/v1" || len(g.Models) != 2 || g.Executor != "openai-compatible" || g.Plugin != "openai-compatible" ||
			g.Headers["X-Team"] != "a" || g.ManagedBy != ByFile || len(g.KeyEnv) != 1 {
			t.Errorf("%+v", g)
		}
	})
	t.Run("OBJ-2 faults", func(t *testing.T) {
		got := faultsOf(Sources{File: &Input{Providers: of(
			ProviderInput{ID: "a", Executor: p("openai"), BaseURL: p("ftp://x"), Category: p(Category("cloud")), Auth: p(wire.Auth("basic"))},
			ProviderInput{ID: "b", Executor: p("openai"), BaseURL: p("https://x.example"), Headers: map[string]string{"Host": "h", "a b": "", "X": "1\n"},
				Models: []ModelInput{{ID: "m"}, {ID: "m"}}, Dialects: map[string]wire.Dialect{"/v1/chat/completions": "morse"}},
		)}})
		want := []string{
			"category: must be oauth, apikey or local",
			"auth: must be api_key, oauth or local",
			"base_url: must be a URL such as https://api.example.com/v1",
			`dialects["/v1/chat/completions"]: must be one of openai_chat, openai_responses, anthropic_messages, gemini_generate, raw`,
			"models[1]: needs an id that no other model of this provider has",
			"headers.Host: belongs to the transport and cannot be set",
			"headers.X: is not a valid HTTP header",
			`headers["a b"]: is not a valid HTTP header`,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestEnvironmentConnections(t *testing.T) { // CFG-2
	vars := env("OPENAI_KEY", "sk-e", "GROQ_API_KEY", "gk", "STRANGE_KEY", "stolen", "HOME", "/root")
	t.Run("one for each provider whose variable is set", func(t *testing.T) {
		s := build(t, Sources{Env: vars})
		c := s.Connection("env-openai")
		if c == nil || c.ManagedBy != ByEnv || c.Secrets[SecretAPIKey].Reveal() != "sk-e" || s.Connection("env-groq") == nil {
			t.Errorf("%+v", c)
		}
		if d := cmp.Diff([]string{"GROQ_API_KEY", "OPENAI_KEY"}, s.Found); d != "" {
			t.Error(d)
		}
	})
	t.Run("ABI-2.2 never for a plugin of somebody else unless granted", func(t *testing.T) {
		if c := build(t, Sources{Env: vars}).Connection("env-strange"); c != nil {
			t.Error("a stranger's plugin got a variable of the environment")
		}
		granted := described()
		granted[3].KeyEnvGranted = []string{"strange"}
		if c := build(t, Sources{Env: vars, Described: granted}).Connection("env-strange"); c == nil {
			t.Error("the grant has no effect")
		}
	})
	t.Run("not when file or store have one of that provider", func(t *testing.T) {
		s := build(t, Sources{Env: vars, File: &Input{Connections: of(account("mine", "oai"))}, Stored: &Input{Connections: of(account("other", "groq"))}})
		if s.Connection("env-openai") != nil || s.Connection("env-groq") != nil || len(s.Found) > 0 {
			t.Error("a second connection was made")
		}
	})
	t.Run("discovered ones", func(t *testing.T) {
		found := []ConnectionInput{{ID: "env-ollama", Provider: "ollama"}}
		if c := build(t, Sources{Discovered: found}).Connection("env-ollama"); c == nil || c.ManagedBy != ByEnv || c.AuthType != wire.AuthLocal {
			t.Errorf("%+v", c)
		}
	})
	t.Run("WEIR_CLIENT_KEY is the key env", func(t *testing.T) {
		s := build(t, Sources{Env: env(EnvKey, "0123456789abcdef")})
		if k, ok := s.KeyByText("0123456789abcdef"); !ok || k.ID != "env" || k.ManagedBy != ByEnv || !s.NeedKey() {
			t.Errorf("%+v %v", k, ok)
		}
		if got := faultsOf(Sources{Env: env(EnvKey, "short")}); len(got) != 1 || !strings.Contains(got[0], "WEIR_CLIENT_KEY: has fewer than 16 characters") {
			t.Error(got)
		}
		s = build(t, Sources{Env: env(EnvKey, "0123456789abcdef"), File: &Input{Keys: of(KeyInput{ID: "laptop", Key: "0123456789abcdef"})}})
		if len(s.Keys) != 1 || s.Keys[0].ID != "laptop" {
			t.Errorf("the file's entry for the same text is doubled: %v", s.Keys)
		}
	})
}

func TestDemo(t *testing.T) { // CFG-3, OBJ-26
	s := build(t, Sources{Demo: true})
	if d := s.Provider("demo"); d.Category != APIKey || len(d.Connections) != 2 || d.Connections[0].ID != "demo-a" || d.Connections[1].ManagedBy != ByDemo {
		t.Errorf("%+v", d)
	}
	if build(t, Sources{}).Provider("demo") != nil {
		t.Error("the demo is there without being asked for")
	}
}

func TestConnections(t *testing.T) {
	t.Run("order and activity", func(t *testing.T) {
		in := of(account("z", "openai"), account("b", "openai"), account("a", "openai"), account("off", "openai"))
		in[0].Object.Priority, in[3].Object.IsActive = p(0+1), p(false)
		in[1].Object.Priority, in[2].Object.Priority = p(2), p(2)
		o := build(t, Sources{Stored: &Input{Connections: in}}).Provider("openai")
		var order []string
		for _, c := range o.Connections {
			order = append(order, c.ID)
		}
		if strings.Join(order, " ") != "z a b" || len(o.All) != 4 {
			t.Errorf("%v of %d", order, len(o.All))
		}
	})
	t.Run("COOL-19 disableCooling is a boolean", func(t *testing.T) {
		in := of(account("a", "openai"), account("b", "openai"))
		in[0].Object.ProviderSpecificData = map[string]json.RawMessage{"disableCooling": json.RawMessage("true"), "nested": json.RawMessage(`{"a":1}`)}
		in[1].Object.ProviderSpecificData = map[string]json.RawMessage{"disableCooling": json.RawMessage(`"true"`)}
		s := build(t, Sources{Stored: &Input{Connections: in}})
		if !s.Connection("a").DisableCooling || s.Connection("b").DisableCooling {
			t.Error("wrong")
		}
		if d := cmp.Diff(map[string]string{"disableCooling": "true"}, s.Connection("a").Data); d != "" {
			t.Error("only scalar fields are for plugins", d)
		}
	})
	t.Run("COOL-20 rotationOverrides.rateLimitResetSeconds", func(t *testing.T) {
		for text, want := range map[string]time.Duration{
			`{"rateLimitResetSeconds":20,"rotateOn429":true}`: 20 * time.Second, `{"rateLimitResetSeconds":0}`: 0, `{"rateLimitResetSeconds":null}`: 0,
			`{}`: 0, `{"rateLimitResetSeconds":21600}`: 6 * time.Hour, `{"rateLimitResetSeconds":21601}`: -1, `{"rateLimitResetSeconds":-1}`: -1,
			`{"rateLimitResetSeconds":1.5}`: -1, `{"rateLimitResetSeconds":"20"}`: -1, `[]`: -1,
		} {
			in := of(account("a", "openai"))
			in[0].Saving = true
			in[0].Object.ProviderSpecificData = map[string]json.RawMessage{"rotationOverrides": json.RawMessage(text)}
			s, faults := Build(Sources{Described: described(), Stored: &Input{Name: "the store", Connections: in}})
			if want < 0 {
				if len(faults) != 1 || faults[0].Path != "providerSpecificData.rotationOverrides" {
					t.Errorf("%s: faults %v", text, faults)
				}
				continue
			}
			if len(faults) != 0 || s.Connection("a").RateLimitReset != want {
				t.Errorf("%s: %v, faults %v", text, s.Connection("a"), faults)
			}
		}
	})
	t.Run("OBJ-9 OBJ-8 QUE-4 faults of one that is being saved name the API's fields", func(t *testing.T) {
		c := ConnectionInput{
			ID: "-x", Provider: "openai", Name: strings.Repeat("n", 201), Priority: p(1001), AuthType: "basic", MaxConcurrent: p(-1), BaseURL: p("http://169.254.169.254/"),
			RateLimitOverrides: &RateLimitOverrides{RPM: p(int64(1_000_001)), MaxWait: p(Millis(-1)), ModelConcurrency: map[string]int64{"gpt-5": -1}},
			APIKey:             "a\nb",
		}
		_, faults := Build(Sources{Described: described(), Stored: &Input{Name: "the store", Connections: []Entry[ConnectionInput]{{Object: c, Saving: true, Path: "x"}}}})
		var fields []string
		for _, f := range faults {
			fields = append(fields, f.Path)
		}
		want := []string{
			"id", "name", "priority", "authType", "maxConcurrent", "rateLimitOverrides.rpm", "rateLimitOverrides.maxWaitMs",
			"rateLimitOverrides.modelConcurrency.gpt-5", "apiKey", "baseUrl",
		}
		if d := cmp.Diff(want, fields); d != "" {
			t.Error(d)
		}
	})
	t.Run("OBJ-9 what auth asks for is named", func(t *testing.T) {
		for auth, field := range map[wire.Auth]string{"": "apiKey", wire.AuthOAuth: "accessToken"} {
			_, faults := Build(Sources{Described: described(), Stored: &Input{Connections: []Entry[ConnectionInput]{{Object: ConnectionInput{ID: "a", Provider: "openai", AuthType: auth}, Saving: true}}}})
			if len(faults) != 1 || faults[0].Path != field {
				t.Error(lines(faults))
			}
		}
		build(t, Sources{File: &Input{Connections: of(ConnectionInput{ID: "a", Provider: "openai", AuthType: wire.AuthLocal})}})
	})
	t.Run("SEC-5 holds for the API and not for the operator's file", func(t *testing.T) {
		c := account("a", "openai")
		c.BaseURL = p("http://127.0.0.1:1234/v1")
		build(t, Sources{File: &Input{Connections: of(c)}})
		s := build(t, Sources{Stored: &Input{Connections: of(c)}})
		if s.Connection("a") != nil || !warned(s, "baseUrl") {
			t.Errorf("%q", s.Warnings)
		}
		c.AllowPrivate = true
		if build(t, Sources{Stored: &Input{Connections: of(c)}}).Connection("a") == nil {
			t.Error("allowPrivate has no effect")
		}
		c.AllowPrivate, c.Provider = false, "ollama"
		if build(t, Sources{Stored: &Input{Connections: of(c)}}).Connection("a") == nil {
			t.Error("category local has no effect")
		}
	})
}

// A stored object with a fault is left out with a warning, and all else works.
// A local server may have been started with a key: a connection that gives one authenticates with it, so that a plan for keys
// is taken. Nothing else of the provider changes (OBJ-8, ABI-2.2).
func TestKeyOfLocalServer(t *testing.T) {
	s := build(t, Sources{File: &Input{Connections: of(
		ConnectionInput{ID: "open", Provider: "ollama"}, account("guarded", "ollama"),
		ConnectionInput{ID: "told", Provider: "ollama", APIKey: "sk-told", AuthType: wire.AuthLocal},
	)}})
	for id, want := range map[string]wire.Auth{"open": wire.AuthLocal, "guarded": wire.AuthAPIKey, "told": wire.AuthLocal} {
		if got := s.Connection(id).AuthType; got != want {
			t.Errorf("%s authenticates by %s, want %s", id, got, want)
		}
	}
	if s.Provider("ollama").Category != Local {
		t.Error("the category changed with the connection")
	}
}

func TestStoredFaultsLeaveTheRest(t *testing.T) {
	s := build(t, Sources{
		Stored: &Input{
			Name:        "the store",
			Connections: of(account("good", "openai"), account("gone", "no-such-provider")),
			Combos: of(
				ComboInput{Name: "half", Strategy: "unheard-of", Targets: []TargetInput{{Model: "openai/gpt-5"}, {Model: "openai/gpt-5-mini", Connection: "gone"}, {Model: "lost/x"}}},
				ComboInput{Name: " bad ", Targets: []TargetInput{{Model: "openai/gpt-5"}}},
			),
			Aliases: of(AliasInput{"a", "lost/x"}),
		},
		File: &Input{
			Name:   "weir.yaml",
			Combos: of(ComboInput{Name: "files", Targets: []TargetInput{{Model: "openai/gpt-5", Connection: "gone"}, {Model: "openai/gpt-5-mini"}}}),
			Keys:   of(KeyInput{ID: "k", Key: "0123456789abcdef", AllowedConnections: []string{"gone", "good"}}),
		},
	})
	for name, want := range map[string]string{"half": "openai/gpt-5", "files": "openai/gpt-5-mini"} {
		r, err := s.Resolve(name)
		if err != nil || targets(r) != want || r.Strategy != Priority { // STR-6
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
	for _, part := range []string{
		`connection "gone"`, `combo " bad "`, `alias "a"`, `combo "half": targets[2].model`, `combo "half": targets[1].connection`,
		`strategy "unheard-of" is not known and is treated as priority`, `combo "files": targets[0].connection`,
	} {
		if !warned(s, part) {
			t.Errorf("no warning says %s: %s", part, strings.Join(s.Warnings, "\n"))
		}
	}
	if len(s.Combos) != 2 || len(s.Aliases) != 0 {
		t.Errorf("%v %v", s.Combos, s.Aliases)
	}
}

// A plugin that goes away takes its provider along, and nothing else: the file was good when it was loaded.
func TestFileInForce(t *testing.T) {
	in := Sources{FileInForce: true, Described: described()[:1], File: &Input{
		Name: "weir.yaml", Connections: of(account("o1", "openai"), account("g1", "groq")), Aliases: of(AliasInput{"a", "groq/shared"}),
		Combos: of(ComboInput{Name: "c", Targets: to("groq/shared", "openai/gpt-5")}),
		Keys:   of(KeyInput{ID: "k", Key: "0123456789abcdef", AllowedConnections: []string{"g1"}}),
	}}
	s := build(t, in)
	if r := route(t, s, "c"); targets(r) != "openai/gpt-5" || s.Connection("g1") != nil || s.Connection("o1") == nil || !warned(s, `connection "g1"`) {
		t.Errorf("%+v %q", r, s.Warnings)
	}
	if k, ok := s.KeyByText("0123456789abcdef"); !ok || k.AllowsConnection("o1") {
		t.Error("the key is gone, or allows more than before")
	}
	in.FileInForce = false
	if got := faultsOf(in); len(got) != 3 { // the key names a connection that has a fault of its own
		t.Errorf("a new file is not refused: %q", got)
	}
}

// A fault is said once: that a combo and a key name the connection that has it is no other one.
func TestFaultsWithoutConsequences(t *testing.T) {
	in := of(account("o1", "openai"))
	in[0].Object.Priority = p(0)
	got := faultsOf(Sources{File: &Input{Connections: in,
		Combos: of(ComboInput{Name: "c", Targets: []TargetInput{{Model: "openai/gpt-5", Connection: "o1"}}}),
		Keys:   of(KeyInput{ID: "k", Key: "0123456789abcdef", AllowedConnections: []string{"o1"}}),
	}})
	if len(got) != 1 || !strings.Contains(got[0], "priority") {
		t.Errorf("faults %q", got)
	}
}

func TestCFG1BothPlaces(t *testing.T) {
	file := &Input{
		Name: "weir.yaml", Connections: of(account("a", "openai")), Keys: of(KeyInput{ID: "k", Key: "0123456789abcdef"}), Aliases: of(AliasInput{"x", "openai/gpt-5"}),
		Combos:    of(ComboInput{Name: "c", Targets: []TargetInput{{Model: "openai/gpt-5"}}}),
		Providers: of(ProviderInput{ID: "groq", Name: p("G")}),
	}
	stored := *file
	stored.Name = "the store"
	got := faultsOf(Sources{File: file, Stored: &stored})
	for _, id := range []string{`provider id "groq"`, `connection id "a"`, `key id "k"`, `combo id "c"`, `alias id "x"`} {
		if !strings.Contains(strings.Join(got, "\n"), "the "+id+" is both in weir.yaml and in the store") {
			t.Errorf("%s goes unreported: %q", id, got)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d faults: %q", len(got), got)
	}
}

func TestCredentialRevision(t *testing.T) { // OBJ-9
	in := &Input{Connections: of(account("a", "openai"))}
	first := build(t, Sources{File: in})
	same := build(t, Sources{File: in, Previous: first})
	if first.Connection("a").CredentialRevision != 1 || same.Connection("a").CredentialRevision != 1 {
		t.Error("it moves without a change")
	}
	in.Connections[0].Object.APIKey = "new"
	changed := build(t, Sources{File: in, Previous: same})
	if changed.Connection("a").CredentialRevision != 2 {
		t.Error("a new key does not raise it")
	}
	in.Connections[0].Object.ProviderSpecificData = map[string]json.RawMessage{"org": json.RawMessage(`"o"`)}
	if again := build(t, Sources{File: in, Previous: changed}); again.Connection("a").CredentialRevision != 3 {
		t.Error("new data do not raise it")
	}
}

func TestKeys(t *testing.T) {
	s := build(t, Sources{File: &Input{Name: "weir.yaml", Connections: of(account("a", "openai")), Keys: of(
		KeyInput{ID: "empty"}, KeyInput{ID: "k", Key: "weir-0123456789abcdef", AllowedModels: []string{"best", "openai/*"}, AllowedConnections: []string{"a"}},
		KeyInput{ID: "off", Key: "weir-0123456789abcdeg", IsActive: p(false), Scopes: []string{"manage:read"}},
	)}})
	k, _ := s.KeyByText("weir-0123456789abcdef")
	if k.ID != "k" || k.Hint != "…cdef" || !k.HasScope(ScopeInference) || k.HasScope(ScopeManage) || len(s.Keys) != 2 || !warned(s, `the key "empty" in weir.yaml is empty and is skipped`) {
		t.Errorf("%+v %q", k, s.Warnings)
	}
	for name, want := range map[string]bool{"best": true, "openai/gpt-5": true, "groq/x": false} {
		if k.AllowsModel(name) != want {
			t.Errorf("OBJ-14: %s is %v", name, !want)
		}
	}
	if !k.AllowsConnection("a") || k.AllowsConnection("b") || !(&Key{}).AllowsConnection("b") || !(&Key{}).AllowsModel("x") {
		t.Error("OBJ-14: lists of connections")
	}
	at := time.Unix(100, 0)
	if e := (&Key{ExpiresAt: at}); e.Expired(at.Add(-1)) || !e.Expired(at) || (&Key{}).Expired(at) {
		t.Error("expiry")
	}
	if off, ok := s.KeyByText("weir-0123456789abcdeg"); !ok || off.Active {
		t.Error("an inactive key is known and inactive")
	}
	if build(t, Sources{File: &Input{Keys: of(KeyInput{ID: "e"})}}).NeedKey() {
		t.Error("SEC-2: an empty entry is no key")
	}
	same := faultsOf(Sources{File: &Input{Keys: of(KeyInput{ID: "a", Key: "0123456789abcdef"}, KeyInput{ID: "b", Key: "0123456789abcdef"})}})
	if len(same) != 1 || !strings.Contains(same[0], `the same text as the key "a"`) {
		t.Error(same)
	}
}

func TestSecretsArePrintedNowhere(t *testing.T) { // DATA-1
	s := build(t, Sources{File: &Input{Connections: of(account("a", "openai"))}})
	b, err := json.Marshal(s.Connection("a"))
	text := fmt.Sprintf("%v %+v %#v %s", s.Connection("a"), *s.Connection("a"), s.Connection("a").Secrets, b)
	if err != nil || strings.Contains(text, "sk-a") || !strings.Contains(text, "[redacted]") {
		t.Error(text, err)
	}
}
