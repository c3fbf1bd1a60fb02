package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func world(t *testing.T) *Snapshot {
	return build(t, Sources{File: &Input{
		Name:        "weir.yaml",
		Connections: of(account("o1", "openai"), account("g1", "groq"), ConnectionInput{ID: "r1", Provider: "openrouter", APIKey: "k", Models: []string{"x/special", "x/*"}}),
		Combos: of(
			ComboInput{Name: "best", Targets: []TargetInput{{Model: "openai/gpt-5"}, {Model: "groq/shared"}}},
			ComboInput{Name: "openai/gpt-5-mini", Targets: []TargetInput{{Model: "groq/shared"}}},
			ComboInput{Name: "taken", Targets: []TargetInput{{Model: "openai/gpt-5"}}},
		),
		Aliases: of(AliasInput{"gpt-4", "openai/gpt-5"}, AliasInput{"fast", "best"}, AliasInput{"groq/shared", "openai/gpt-5"}, AliasInput{"taken", "groq/meta/llama"}),
	}})
}

func TestResolveOrder(t *testing.T) { // CFG-4
	s := world(t)
	for _, tc := range []struct{ name, kind, route, targets string }{
		{"best", KindCombo, "best", "openai/gpt-5 groq/shared"},
		{"openai/gpt-5-mini", KindCombo, "openai/gpt-5-mini", "groq/shared"}, // CMB-2: a combo beats a model of the same name
		{"taken", KindCombo, "taken", "openai/gpt-5"},                        // and an alias
		{"gpt-4", KindDirect, "openai/gpt-5", "openai/gpt-5"},
		{"fast", KindCombo, "best", "openai/gpt-5 groq/shared"},
		{"groq/shared", KindDirect, "openai/gpt-5", "openai/gpt-5"}, // an alias beats provider/model
		{"openai/gpt-5", KindDirect, "openai/gpt-5", "openai/gpt-5"},
		{"oai/gpt-5", KindDirect, "openai/gpt-5", "openai/gpt-5"},
		{"openrouter/anthropic/claude", KindDirect, "openrouter/anthropic/claude", "openrouter/anthropic/claude"},
		{"gpt-5", KindDirect, "openai/gpt-5", "openai/gpt-5"},
		{"meta/llama", KindDirect, "groq/meta/llama", "groq/meta/llama"}, // meta is no provider: the whole text is a bare name
		{"x/special", KindDirect, "openrouter/x/special", "openrouter/x/special"},
	} {
		r, err := s.Resolve(tc.name)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if r.Kind != tc.kind || r.Name != tc.route || targets(r) != tc.targets {
			t.Errorf("%s is %s %s with %s", tc.name, r.Kind, r.Name, targets(r))
		}
	}
}

func TestResolveErrors(t *testing.T) { // CFG-4
	s := world(t)
	_, err := s.Resolve("shared")
	var ambiguous *AmbiguousModel
	if !errors.As(err, &ambiguous) || strings.Join(ambiguous.Providers, " ") != "groq openai" || !strings.Contains(err.Error(), "groq, openai") {
		t.Errorf("a name of two providers: %v", err)
	}
	var unknown *UnknownModel
	if _, err = s.Resolve("openai/gtp-5"); !errors.As(err, &unknown) || len(unknown.Nearest) == 0 || unknown.Nearest[0] != "openai/gpt-5" || len(unknown.Nearest) > 3 {
		t.Errorf("a misspelt name: %v", err)
	}
	for _, name := range []string{"", "/", "openai/", "openai", "nowhere/x", strings.Repeat("x", 100_000)} {
		if _, err := s.Resolve(name); !errors.As(err, &unknown) {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

// A bare name counts only providers that are configured: those with an active account that serves it.
func TestBareNamesAreOfConfiguredProviders(t *testing.T) {
	off := false
	in := &Input{Connections: of(account("o1", "openai"), ConnectionInput{ID: "g1", Provider: "groq", APIKey: "k", IsActive: &off})}
	r, err := build(t, Sources{File: in}).Resolve("shared")
	if err != nil || r.Name != "openai/shared" {
		t.Error(r, err)
	}
	in.Connections = of(ConnectionInput{ID: "o1", Provider: "openai", APIKey: "k", ExcludedModels: []string{"sh*"}}, account("g1", "groq"))
	if r, err = build(t, Sources{File: in}).Resolve("shared"); err != nil || r.Name != "groq/shared" {
		t.Error(r, err)
	}
}

func TestServes(t *testing.T) {
	for _, tc := range []struct {
		models, excluded []string
		model            string
		want             bool
	}{
		{nil, nil, "a", true},
		{[]string{"a"}, nil, "a", true},
		{[]string{"a"}, nil, "b", false},
		{[]string{"a*"}, []string{"ab"}, "ab", false},
		{[]string{"*-mini"}, nil, "gpt-5-mini", true},
		{[]string{"g*5*i"}, nil, "gpt-5-mini", true},
		{[]string{"g*6*i"}, nil, "gpt-5-mini", false},
	} {
		c := Connection{Models: tc.models, ExcludedModels: tc.excluded}
		if got := c.Serves(tc.model); got != tc.want {
			t.Errorf("%v without %v serves %s: %v", tc.models, tc.excluded, tc.model, got)
		}
	}
}

func TestModelNames(t *testing.T) { // INF-51
	s := world(t)
	want := []string{
		"groq/shared", "groq/meta/llama", "openai/gpt-5", "openai/gpt-5-mini", "openai/shared", "openrouter/x/special",
		"fast", "gpt-4", "taken", "best",
	}
	if d := cmp.Diff(want, s.ModelNames(nil)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"openai/gpt-5", "openai/gpt-5-mini", "gpt-4"}, s.ModelNames(&Key{AllowedModels: []string{"openai/gpt*", "gpt-4"}})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"groq/meta/llama", "openai/gpt-5-mini", "fast", "best"}, s.ModelNames(&Key{AllowedConnections: []string{"g1"}})); d != "" {
		t.Error("only what the key's accounts can reach (openai/gpt-5-mini is a combo of groq/shared here):", d)
	}
	if got := build(t, Sources{}).ModelNames(nil); len(got) != 0 || got == nil {
		t.Errorf("without accounts the list is %#v", got)
	}
}

func TestRegistry(t *testing.T) {
	first, second := &Snapshot{}, &Snapshot{}
	r := NewRegistry(first)
	if r.Current() != first || first.Number != 1 {
		t.Error("the first snapshot is not in force")
	}
	if r.Swap(second) != first || r.Current() != second || second.Number != 2 {
		t.Error("the second snapshot is not in force")
	}
}

func TestResolveAllocations(t *testing.T) {
	s := world(t)
	for name, most := range map[string]float64{"best": 0, "gpt-4": 0, "openai/gpt-5": 1, "gpt-5": 2} {
		if got := testing.AllocsPerRun(100, func() { _, _ = s.Resolve(name) }); got > most {
			t.Errorf("%s costs %v allocations", name, got)
		}
	}
}

func BenchmarkResolveDirect(b *testing.B) {
	s, _ := Build(Sources{Described: described(), File: &Input{Connections: of(account("o1", "openai"))}})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Resolve("openai/gpt-5"); err != nil {
			b.Fatal(err)
		}
	}
}

// CFG-4: a mistyped bare name finds the models of providers, too.
func TestNearestOfABareName(t *testing.T) {
	s := &Snapshot{names: []string{"openai/gpt-5", "openai/o3"}, bare: map[string][]*Provider{"gpt-5": {{ID: "openai"}}, "o3": {{ID: "openai"}}}}
	_, err := s.Resolve("gpt-55")
	unknown, ok := errors.AsType[*UnknownModel](err)
	if !ok || !slices.Equal(unknown.Nearest, []string{"openai/gpt-5"}) {
		t.Errorf("%v", err)
	}
}
