package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func combosOf(t *testing.T, combos ...ComboInput) *Snapshot {
	return build(t, Sources{File: &Input{Name: "f", Connections: of(account("o1", "openai"), account("o2", "openai"), account("g1", "groq")), Combos: of(combos...)}})
}

func comboFaults(combos ...ComboInput) []string {
	return faultsOf(Sources{File: &Input{Connections: of(account("o1", "openai"), account("g1", "groq")), Combos: of(combos...)}})
}

func to(models ...string) []TargetInput {
	var out []TargetInput
	for _, m := range models {
		if name, ok := strings.CutPrefix(m, ">"); ok {
			out = append(out, TargetInput{Kind: "combo-ref", ComboName: name})
			continue
		}
		out = append(out, TargetInput{Model: m})
	}
	return out
}

func route(t *testing.T, s *Snapshot, name string) *Route {
	t.Helper()
	r, err := s.Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestExpansion(t *testing.T) {
	t.Run("CMB-1 CMB-4 order, wildcard, nesting, exact duplicates", func(t *testing.T) {
		s := combosOf(t,
			ComboInput{Name: "inner", Models: to("groq/shared", "openai/gpt-5")},
			ComboInput{Name: "outer", Targets: append(to("openai/gpt-5", ">inner", "openai/*", "oai/gpt-5"), TargetInput{Model: "openai/gpt-5", ConnectionID: "o2"})},
		)
		if got, want := targets(route(t, s, "outer")), "openai/gpt-5 groq/shared openai/gpt-5-mini openai/shared openai/gpt-5@o2"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("CMB-4 targets that differ keep keys of their own", func(t *testing.T) {
		s := combosOf(t, ComboInput{Name: "c", Targets: []TargetInput{
			{Model: "openai/gpt-5"}, {Model: "openai/gpt-5", Prompt: "be brief"}, {Model: "openai/gpt-5", Allowed: []string{"o1"}},
			{Model: "openai/gpt-5", Connection: "o1"}, {Model: "openai/gpt-5", ConnectionID: "o1"},
		}})
		r := route(t, s, "c")
		if got := targets(r); got != "openai/gpt-5 openai/gpt-5#2 openai/gpt-5#3 openai/gpt-5@o1" {
			t.Error(got)
		}
		if r.Targets[1].Prompt != "be brief" || !r.Targets[2].Permits(s.Connection("o1")) || r.Targets[2].Permits(s.Connection("o2")) ||
			!r.Targets[3].Permits(s.Connection("o1")) || r.Targets[3].Permits(s.Connection("o2")) {
			t.Errorf("%+v", r.Targets)
		}
	})
	t.Run("CMB-1 weights multiply through references", func(t *testing.T) {
		s := combosOf(t,
			ComboInput{Name: "in", Targets: []TargetInput{{Model: "groq/shared", Weight: p(0.5)}}},
			ComboInput{Name: "out", Targets: []TargetInput{{Kind: "combo-ref", ComboName: "in", Weight: p(4.0)}, {Model: "openai/gpt-5"}}},
		)
		if r := route(t, s, "out"); r.Targets[0].Weight != 2 || r.Targets[1].Weight != 1 {
			t.Errorf("%+v", r.Targets)
		}
	})
	t.Run("CMB-3 cycles are cut and noted", func(t *testing.T) {
		s := combosOf(t,
			ComboInput{Name: "a", Targets: to("openai/gpt-5", ">b")}, ComboInput{Name: "b", Targets: to(">a", "groq/shared", ">b")},
		)
		r := route(t, s, "a")
		if targets(r) != "openai/gpt-5 groq/shared" || len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "a > b > a") {
			t.Errorf("%s %q", targets(r), r.Notes)
		}
	})
	t.Run("CMB-3 depth", func(t *testing.T) {
		chain := func(depth int, config ComboConfigInput) []ComboInput {
			out := []ComboInput{{Name: "l0", Targets: to("openai/gpt-5")}}
			for i := 1; i <= depth; i++ {
				out = append(out, ComboInput{Name: fmt.Sprintf("l%d", i), Targets: to(fmt.Sprintf(">l%d", i-1)), Config: config})
			}
			return out
		}
		if got := targets(route(t, combosOf(t, chain(3, ComboConfigInput{})...), "l3")); got != "openai/gpt-5" {
			t.Errorf("three levels give %q", got)
		}
		if got := comboFaults(chain(4, ComboConfigInput{})...); len(got) != 1 || !strings.Contains(got[0], "nest deeper than 3") {
			t.Error(got)
		}
		if got := comboFaults(chain(10, ComboConfigInput{MaxDepth: p(10)})...); len(got) > 0 {
			t.Error(got)
		}
		s := build(t, Sources{Stored: &Input{Connections: of(account("o1", "openai")), Combos: of(chain(4, ComboConfigInput{})...)}})
		if r := route(t, s, "l4"); len(r.Targets) != 0 || len(r.Notes) != 1 {
			t.Errorf("at run it is skipped: %+v", r)
		}
	})
	t.Run("inactive combos", func(t *testing.T) {
		s := combosOf(t, ComboInput{Name: "off", IsActive: p(false), Targets: to("groq/shared")}, ComboInput{Name: "on", Targets: to(">off", "openai/gpt-5")})
		if _, err := s.Resolve("off"); err == nil || s.Combo("off") == nil {
			t.Error("an inactive combo resolves")
		}
		if r := route(t, s, "on"); targets(r) != "openai/gpt-5" || len(r.Notes) != 1 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("hostile references end", func(t *testing.T) {
		var all []ComboInput
		for i := range 10 {
			var refs []string
			for j := range 10 {
				refs = append(refs, fmt.Sprintf(">c%d", j))
			}
			all = append(all, ComboInput{Name: fmt.Sprintf("c%d", i), Targets: append(to(refs...), to("openai/gpt-5")...), Config: ComboConfigInput{MaxDepth: p(3)}})
		}
		Build(Sources{Described: described(), Stored: &Input{Combos: of(all...)}})
	})
}

func TestComboFaults(t *testing.T) { // CMB-1, CMB-8, CMB-13, CMB-16, CMB-26
	ok := to("openai/gpt-5")
	for name, tc := range map[string]struct {
		combo ComboInput
		want  string
	}{
		"empty name":        {ComboInput{Targets: ok}, "id: must have 1 to 128 characters"},
		"blanks":            {ComboInput{Name: " a", Targets: ok}, "id: must not hold control characters, nor begin or end with a blank"},
		"control":           {ComboInput{Name: "a\nb", Targets: ok}, "id: must not hold control characters, nor begin or end with a blank"},
		"long":              {ComboInput{Name: strings.Repeat("ä", 129), Targets: ok}, "id: must have 1 to 128 characters"},
		"strategy":          {ComboInput{Name: "a", Strategy: "fastest", Targets: ok}, `strategy: "fastest" is not a strategy`},
		"both names":        {ComboInput{Name: "a", Targets: ok, Models: ok}, "models: and targets are one field under two names; give one of them"},
		"no target":         {ComboInput{Name: "a"}, "targets: must name at least one target"},
		"no model":          {ComboInput{Name: "a", Targets: []TargetInput{{}}}, "targets[0].model: is missing; write provider/model"},
		"weight":            {ComboInput{Name: "a", Targets: []TargetInput{{Model: "openai/gpt-5", Weight: p(-0.1)}}}, "targets[0].weight: must be 0 or more"},
		"kind":              {ComboInput{Name: "a", Targets: []TargetInput{{Kind: "x", Model: "openai/gpt-5"}}}, "targets[0].kind: must be model or combo-ref"},
		"ref and model":     {ComboInput{Name: "a", Targets: []TargetInput{{Kind: "combo-ref", Model: "openai/gpt-5"}}}, "targets[0]: a combo-ref has a comboName and no model"},
		"combo as model":    {ComboInput{Name: "a", Targets: to("a")}, `targets[0].model: "a" is a combo; write {kind: combo-ref, comboName: a}`},
		"bare model":        {ComboInput{Name: "a", Targets: to("gpt-5")}, `targets[0].model: "gpt-5" is not of the form provider/model`},
		"wildcard of none":  {ComboInput{Name: "a", Targets: to("openrouter/*")}, `targets[0].model: "openrouter/*" names no model, since provider openrouter lists none; name the models`},
		"foreign account":   {ComboInput{Name: "a", Targets: []TargetInput{{Model: "openai/gpt-5", Connection: "g1"}}}, `targets[0].connection: connection "g1" belongs to provider groq, not to openai`},
		"two accounts":      {ComboInput{Name: "a", Targets: []TargetInput{{Model: "openai/gpt-5", Connection: "o1", ConnectionID: "o2"}}}, "targets[0].connection: and connectionId are one field under two names; give one of them"},
		"retries":           {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{MaxRetries: p(11)}}, "config.max_retries: must be 0 to 10"},
		"retry delay":       {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{RetryDelay: p(Millis(60_001))}}, "config.retry_delay: must be 0 to 1m0s"},
		"fallback delay":    {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{FallbackDelay: p(Millis(-1))}}, "config.fallback_delay: must be 0 to 1m0s"},
		"set retries":       {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{MaxSetRetries: p(11)}}, "config.max_set_retries: must be 0 to 10"},
		"set retry delay":   {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{SetRetryDelay: p(Millis(60_001))}}, "config.set_retry_delay: must be 0 to 1m0s"},
		"hedge delay":       {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{HedgeDelay: p(Millis(60_001))}}, "config.hedge_delay: must be 0 to 1m0s"},
		"predictive":        {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{PredictiveTTFT: p(Millis(300_001))}}, "config.predictive_ttft: must be 0 to 5m0s"},
		"sticky weighted":   {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{StickyWeighted: p(0)}}, "config.sticky_weighted_limit: must be 1 to 1000"},
		"sticky rotation":   {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{StickyRoundRobin: p(1001)}}, "config.sticky_round_robin_limit: must be 1 to 1000"},
		"context window":    {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{Context: &ContextInput{MinWindow: p(10_000_001)}}}, "config.context_requirements.min_context_window: must be 0 to 10000000"},
		"context mode":      {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{Context: &ContextInput{Mode: "maybe"}}}, "config.context_requirements.context_filter_mode: must be lenient or strict"},
		"first content":     {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{FirstContentTimeout: p(Millis(600_001))}}, "config.first_content_timeout: must be 0 to 10m0s"},
		"stall":             {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{StallTimeout: p(Millis(600_001))}}, "config.stall_timeout: must be 0 to 10m0s"},
		"recovery":          {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{StreamRecovery: p("maybe")}}, "config.stream_recovery: must be off, hold or continue"}, // STM-64
		"encrypted state":   {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{EncryptedState: p("maybe")}}, "config.encrypted_state: must be strip or refuse"},       // SCN-16
		"depth":             {ComboInput{Name: "a", Targets: ok, Config: ComboConfigInput{MaxDepth: p(0)}}, "config.max_combo_depth: must be 1 to 10"},
		"unknown reference": {ComboInput{Name: "a", Targets: to(">b")}, `targets[0].combo_name: there is no combo "b"; did you mean a?`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := comboFaults(tc.combo); len(got) == 0 || got[0] != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStrategyNames(t *testing.T) { // STR-30
	if n := len(StrategyNames()); n != 20 {
		t.Errorf("there are %d names", n)
	}
	t.Run("STR-6 one that is not built yet is priority where it stands, with a warning", func(t *testing.T) {
		s := combosOf(t, ComboInput{Name: "c", Strategy: "auto", Targets: to("openai/gpt-5")})
		if route(t, s, "c").Strategy != Priority || !warned(s, "strategy auto is not implemented yet and is treated as priority") || s.Combo("c").Strategy != "auto" {
			t.Errorf("%q", s.Warnings)
		}
	})
	t.Run("STR-6 one that is not built yet is refused when it is saved", func(t *testing.T) {
		in := Entry[ComboInput]{Object: ComboInput{Name: "c", Strategy: "fusion", Targets: to("openai/gpt-5")}, Saving: true}
		got := faultsOf(Sources{Stored: &Input{Connections: of(account("o1", "openai")), Combos: []Entry[ComboInput]{in}}})
		if len(got) != 1 || !strings.Contains(got[0], `"fusion" is a strategy that this version does not have yet; it has priority, weighted`) {
			t.Error(got)
		}
	})
	for _, name := range ImplementedStrategies() {
		s := combosOf(t, ComboInput{Name: "c", Strategy: name, Targets: to("openai/gpt-5")})
		if route(t, s, "c").Strategy != name || warned(s, "strategy") {
			t.Errorf("%s: %q", name, s.Warnings)
		}
	}
}

// STR-2: what a strategy remembers is about one form of the combo.
func TestMark(t *testing.T) {
	mark := func(c ComboInput) uint64 {
		c.Name = "c"
		return route(t, combosOf(t, c), "c").Mark
	}
	base := ComboInput{Targets: to("openai/gpt-5", "groq/shared")}
	seen := map[uint64]string{mark(base): "base"}
	if first, second := mark(base), mark(base); first != second {
		t.Error("the same combo has two marks")
	}
	for what, c := range map[string]ComboInput{
		"strategy": {Strategy: "weighted", Targets: base.Targets},
		"targets":  {Targets: to("groq/shared", "openai/gpt-5")},
		"weight":   {Targets: []TargetInput{{Model: "openai/gpt-5", Weight: p(2.0)}, {Model: "groq/shared"}}},
		"config":   {Targets: base.Targets, Config: ComboConfigInput{StickyRoundRobin: p(2)}},
	} {
		if m := mark(c); seen[m] != "" {
			t.Errorf("a change of its %s has the mark of %s", what, seen[m])
		} else {
			seen[m] = what
		}
	}
}

func TestAliasOfInactiveCombo(t *testing.T) {
	s := build(t, Sources{Stored: &Input{
		Connections: of(account("g1", "groq")), Aliases: of(AliasInput{"a", "off"}),
		Combos: of(ComboInput{Name: "off", IsActive: p(false), Targets: to("groq/shared")}),
	}})
	if _, err := s.Resolve("a"); err == nil || s.Aliases["a"] != "off" || strings.Contains(strings.Join(s.ModelNames(nil), " "), "a ") {
		t.Errorf("%v %v %v", err, s.Aliases, s.ModelNames(nil))
	}
}

func TestAliases(t *testing.T) { // OBJ-13
	got := faultsOf(Sources{File: &Input{Aliases: of(AliasInput{"a", "b"}, AliasInput{"b", "openai/gpt-5"}, AliasInput{"c", "openai/*"}, AliasInput{"d", "nope"}, AliasInput{"", "openai/gpt-5"})}})
	want := []string{
		`alias_chain: "b" is itself an alias; point at what it points at`,
		"must name one model",
		`there is no combo "nope", and a model is written as provider/model`,
		"must have 1 to 128 characters",
	}
	if len(got) != len(want)+0 {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) && !strings.Contains(strings.Join(got, "\n"), want[i]) {
			t.Errorf("%q has no %q", got, want[i])
		}
	}
}

// Whatever refers to whatever: expansion ends, keys are unique, and every target is one that some combo names.
func TestExpansionProperties(t *testing.T) { // CMB-3, CMB-4
	rapid.Check(t, func(t *rapid.T) {
		var combos []ComboInput
		for i := range rapid.IntRange(1, 6).Draw(t, "combos") {
			items := rapid.SliceOfN(rapid.SampledFrom([]string{">c0", ">c1", ">c2", ">c3", "openai/gpt-5", "openai/*", "groq/shared"}), 1, 6).Draw(t, "targets")
			combos = append(combos, ComboInput{Name: fmt.Sprintf("c%d", i), Targets: to(items...)})
		}
		s, faults := Build(Sources{Described: described(), Stored: &Input{Connections: of(account("o1", "openai"), account("g1", "groq")), Combos: of(combos...)}})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		for _, c := range s.Combos {
			r, err := s.Resolve(c.Name)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, target := range r.Targets {
				if seen[target.Key] {
					t.Fatalf("%s has %s twice", c.Name, target.Key)
				}
				seen[target.Key] = true
			}
			if len(r.Targets) > 4 { // gpt-5, gpt-5-mini, shared of openai; shared of groq
				t.Fatalf("%s has targets that nobody named: %s", c.Name, targets(r))
			}
		}
	})
}

func TestCheckBaseURL(t *testing.T) { // SEC-5
	never := []string{
		"http://169.254.169.254/latest", "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/", "http://metadata.google.internal/", "http://METADATA.google.internal./",
		"http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://2852039166/", "http://0xa9fea9fe/", "http://0251.0376.0251.0376/", "http://169.254.43518/",
		"http://[64:ff9b::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::]/", "http://0.0.0.0/", "http://224.0.0.1/", "http://[fe80::1%25eth0]/",
	}
	private := []string{
		"http://127.0.0.1:8000/v1", "http://localhost/v1", "http://a.localhost", "http://10.1.2.3", "http://192.168.0.1", "http://172.16.0.1", "http://[::1]:1", "http://[fd00::1]",
		"http://127.1/", "http://0x7f000001/", "http://[::ffff:10.0.0.1]/", "http://100.64.0.1", "http://vllm:8000", "http://nas.local/v1", "http://gpu.corp.internal/v1",
	}
	public := []string{"https://api.openai.com/v1", "http://8.8.8.8/", "https://[2606:4700::1111]/", "https://xn--bcher-kva.example/a"}
	broken := []string{"", "api.openai.com", "ftp://a.example", "https://", "https://user:pw@a.example", "https://a.example/?key=1", "https://a.example/#x", "http://a b/", "https://:443"}
	for _, u := range never {
		if CheckBaseURL(u, Local, true) == nil {
			t.Errorf("%s is allowed", u)
		}
	}
	for _, u := range private {
		if CheckBaseURL(u, APIKey, false) == nil {
			t.Errorf("%s is allowed without a word", u)
		}
		if err := CheckBaseURL(u, APIKey, true); err != nil {
			t.Errorf("%s with allowPrivate: %v", u, err)
		}
		if err := CheckBaseURL(u, Local, false); err != nil {
			t.Errorf("%s with category local: %v", u, err)
		}
	}
	for _, u := range public {
		if err := CheckBaseURL(u, APIKey, false); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	for _, u := range broken {
		if CheckBaseURL(u, Local, true) == nil {
			t.Errorf("%q is allowed", u)
		}
	}
}

func TestFileNames(t *testing.T) { // OBJ-1
	want := map[string]string{
		"baseUrl": "base_url", "headers.X-Ms": "headers.X-Ms", "rateLimitOverrides.modelConcurrency.GPT": "rate_limit_overrides.model_concurrency.GPT", "maxWaitMs": "max_wait", "providerSpecificData.cookie": "provider_data.cookie", "config.retryDelayMs": "config.retry_delay",
		"targets[0].comboName": "targets[0].combo_name", "allowedConnectionIds": "allowed_connection_ids", "name": "name", `dialects["/v1"]`: `dialects["/v1"]`,
	}
	for field, name := range want {
		if got := fileName("connection", field); got != name {
			t.Errorf("%s is %s in the file, want %s", field, got, name)
		}
	}
	if d := cmp.Diff("id", fileName("combo", "name")); d != "" {
		t.Error(d)
	}
}
