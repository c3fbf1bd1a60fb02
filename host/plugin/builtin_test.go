package plugin

import (
	"strings"
	"testing"

	"github.com/weirgate/weir/plugins"
	"github.com/weirgate/weir/rules/packs"
)

// shipped are the packs that come with the program.
func shipped(t testing.TB) []Builtin {
	t.Helper()
	providers, err := Packs(plugins.Packs, "*/plugin.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Packs(packs.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return append(providers, rules...)
}

// The examples of built-in packs run here instead of at each start (ABI-2.4).
func TestShippedPacks(t *testing.T) {
	for _, b := range shipped(t) {
		t.Run(b.Name, func(t *testing.T) {
			r := New(Options{})
			l := r.loader()
			v, f := l.load(t.Context(), source{origin: OriginBuiltin, file: b.Name, yaml: true, bytes: b.YAML})
			if f != nil {
				t.Fatal(f, f.Problems)
			}
			defer v.release()
			if v.loader != loaderPack {
				t.Errorf("ABI-2.3: a built-in pack is loaded as %s, so its code runs", v.loader)
			}
			if f := v.examples(t.Context()); f != nil {
				t.Error(f)
			}
			for _, w := range v.warnings {
				switch {
				case w.Code == CodeNoExamples: // rule packs have the corpus instead
				case b.Name == "azure-openai" && strings.Contains(w.Message, "no base_url"): // each customer has an address of its own
				default:
					t.Error("warning:", w)
				}
			}
		})
	}
}
