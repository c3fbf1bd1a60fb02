package pricing

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

func usd(v float64) *float64 { return &v }

func table() *Table {
	return New(
		Source{Plugin: "ours", Version: "2.0.0", Prices: []wire.Price{{Provider: "openai", Model: "gpt-5", Input: usd(1), Output: usd(2)}}},
		Source{Plugin: "empty", Version: "1.0.0"},
		Source{Plugin: "pricing", Version: "1.4.0", Prices: []wire.Price{
			{Provider: "openai", Model: "gpt-5", Input: usd(100), Output: usd(100)},
			{Provider: "openai", Model: "gpt-5-*", Input: usd(0.25), Output: usd(2), CachedRead: usd(0.025)},
			{Provider: "anthropic", Model: "claude-sonnet-*", Input: usd(3), Output: usd(15), CachedRead: usd(0.3), CacheWrite: usd(3.75),
				Tiers: []wire.Tier{{Above: 200_000, Input: usd(6), Output: usd(22.5), CachedRead: usd(0.6), CacheWrite: usd(7.5)}}},
			{Provider: "*", Model: "*think*-x", Input: usd(1), Output: usd(1), Reasoning: usd(5)},
			{Provider: "local", Model: "*", Input: usd(0), Output: usd(0)},
		}},
	)
}

func tokens(in, read, write, out, thought int64) neutral.Usage {
	return neutral.Usage{Input: in, CachedRead: read, CacheWrite: write, Output: out, Reasoning: thought}
}

func TestFirstMatchCounts(t *testing.T) {
	t.Run("OBJ-21", func(t *testing.T) {
		for _, c := range []struct{ provider, model, origin string }{
			{"openai", "gpt-5", "ours@2.0.0"},
			{"OpenAI", "GPT-5-mini", "pricing@1.4.0"},
			{"anthropic", "claude-sonnet-4-5", "pricing@1.4.0"},
			{"any", "deep-thinker-x", "pricing@1.4.0"},
			{"openai", "gpt-5x", ""},
			{"any", "thin-x", ""},
			{"anthropic", "claude-opus-4", ""},
		} {
			r := table().Find(c.provider, c.model)
			if r == nil != (c.origin == "") || r != nil && r.Origin != c.origin {
				t.Errorf("%s/%s: %+v, want %q", c.provider, c.model, r, c.origin)
			}
		}
		if n := len(table().Sources()); n != 2 {
			t.Errorf("%d sources, want those with prices", n)
		}
	})
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		name, provider, model string
		u                     neutral.Usage
		nano                  int64 // -1: not known
	}{
		{"OBJ-21 input and output", "openai", "gpt-5-mini", tokens(1000, -1, -1, 500, -1), 250_000 + 1_000_000},
		{"TR-5 cached tokens are a part of the input", "openai", "gpt-5-mini", tokens(1000, 400, -1, 0, -1), 150_000 + 10_000},
		{"TR-5 cache writes", "anthropic", "claude-sonnet-4-5", tokens(1000, 100, 200, 10, -1), 2_100_000 + 30_000 + 750_000 + 150_000},
		{"TR-5 reasoning is output unless it has a price", "openai", "gpt-5-mini", tokens(0, -1, -1, 500, 300), 1_000_000},
		{"TR-5 reasoning with a price of its own", "a", "think-x", tokens(0, -1, -1, 10, 4), 6_000 + 20_000},
		{"GOV-30 a tier above its bound", "anthropic", "claude-sonnet-4-5", tokens(200_001, 0, 0, 10, -1), 200_001*6000 + 225_000},
		{"GOV-30 none at its bound", "anthropic", "claude-sonnet-4-5", tokens(200_000, 0, 0, 10, -1), 200_000*3000 + 150_000},
		{"OBJ-21 free is zero, not unknown", "local", "llama", tokens(1000, -1, -1, 500, -1), 0},
		{"OBJ-21 no price", "nobody", "nothing", tokens(1000, -1, -1, 500, -1), -1},
		{"OBJ-21 input not stated", "openai", "gpt-5-mini", tokens(-1, -1, -1, 500, -1), -1},
		{"OBJ-21 output not stated", "openai", "gpt-5-mini", tokens(10, -1, -1, -1, -1), -1},
		{"OBJ-21 cache writes without a price", "openai", "gpt-5-mini", tokens(1000, -1, 5, 500, -1), -1},
		{"OBJ-21 more cached than sent", "openai", "gpt-5-mini", tokens(10, 11, -1, 5, -1), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			nano, known := table().Find(c.provider, c.model).Cost(c.u)
			if known != (c.nano >= 0) || known && nano != c.nano {
				t.Errorf("%d, %v; want %d", nano, known, c.nano)
			}
		})
	}
}

// OBJ-21: more tokens never cost less.
func TestCostRises(t *testing.T) {
	r := table().Find("anthropic", "claude-sonnet-4-5")
	rapid.Check(t, func(t *rapid.T) {
		u := tokens(rapid.Int64Range(0, 1e9).Draw(t, "in"), -1, -1, rapid.Int64Range(0, 1e9).Draw(t, "out"), -1)
		less, _ := r.Cost(u)
		u.Output += rapid.Int64Range(0, 1e6).Draw(t, "more")
		if more, known := r.Cost(u); !known || more < less {
			t.Fatalf("%d, then %d", less, more)
		}
	})
}
