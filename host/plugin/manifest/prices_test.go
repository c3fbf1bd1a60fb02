package manifest

import (
	"strings"
	"testing"
)

func TestPrices(t *testing.T) {
	t.Run("OBJ-21 a pack with prices needs no kinds", func(t *testing.T) {
		m, bad := read(t, head+`prices:
  - {provider: openai, model: gpt-5*, input: 1.25, output: 10, cached_read: 0.125, since: 2026-07-01}
  - {provider: google, model: "*", input: 0, output: 0, reasoning: 1, tiers: [{above: 200000, input: 2, output: 3, cache_write: 1}]}
`, Options{})
		if len(bad) > 0 || len(m.Prices) != 2 || *m.Prices[0].CachedRead != 0.125 || m.Prices[1].Tiers[0].Above != 200_000 {
			t.Fatalf("%v, %+v", bad, m)
		}
		if p := m.Prices[0]; p.CacheWrite != nil || p.Reasoning != nil || p.Since != "2026-07-01" {
			t.Errorf("what is not given is not known: %+v", p)
		}
	})
	for row, want := range map[string]string{
		`{model: a, input: 1, output: 1}`:                                                        "prices[0].provider: is missing",
		`{provider: "a?", model: a, input: 1, output: 1}`:                                        "the only wildcard is *",
		`{provider: a, input: 1, output: 1}`:                                                     "prices[0].model: is missing",
		`{provider: a, model: a, output: 1}`:                                                     "prices[0].input: is missing",
		`{provider: a, model: a, input: 1, output: -1}`:                                          "prices[0].output: -1 is outside",
		`{provider: a, model: a, input: 1, output: 200000}`:                                      "is outside 0 to 100000",
		`{provider: a, model: a, input: free, output: 1}`:                                        "must be a number",
		`{provider: a, model: a, input: 1, output: 1, since: July}`:                              "not a day such as",
		`{provider: a, model: a, input: 1, output: 1, tiers: [{above: 0, input: 1, output: 1}]}`: "tiers[0].above: 0 must be above 0",
		`{provider: a, model: a, input: 1, output: 1, tiers: [{above: 9, input: 1, output: 1}, {above: 9, input: 1, output: 1}]}`: "tiers[1].above: 9 must be above 9",
		`{provider: a, model: a, input: 1, output: 1, tiers: [{above: 9, input: 1}]}`:                                             "tiers[0].output: is missing",
	} {
		t.Run("OBJ-21 "+want, func(t *testing.T) {
			_, bad := read(t, head+"prices: ["+row+"]\n", Options{})
			if !strings.Contains(bad, want) {
				t.Errorf("%s\nsays %q, want %q", row, bad, want)
			}
		})
	}
}
