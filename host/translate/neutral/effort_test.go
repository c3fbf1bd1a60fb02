package neutral_test

import (
	"testing"

	"github.com/weirgate/weir/host/translate/neutral"
)

// TR-17: efforts and budgets, forwards and backwards by the nearest lower step.
func TestEffort(t *testing.T) {
	budget := func(n int64) neutral.Reasoning { return neutral.Reasoning{Budget: &n} }
	for _, c := range []struct {
		in    neutral.Reasoning
		level string
	}{
		{neutral.Reasoning{}, ""},
		{neutral.Reasoning{Effort: "high"}, "high"},
		{neutral.Reasoning{Off: true}, "none"},
		{neutral.Reasoning{Adaptive: true}, "medium"},
		{neutral.Reasoning{Adaptive: true, Effort: "low"}, "low"},
		{budget(-1), "medium"},
		{budget(0), "none"},
		{budget(511), "none"},
		{budget(512), "minimal"},
		{budget(8191), "low"},
		{budget(8192), "medium"},
		{budget(24_576), "high"},
		{budget(100_000), "xhigh"},
	} {
		if got := c.in.Level(); got != c.level {
			t.Errorf("%+v: level %q, want %q", c.in, got, c.level)
		}
	}
	for effort, want := range map[string]int64{"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24_576, "xhigh": 32_768, "max": 64_000} {
		if got, ok := (neutral.Reasoning{Effort: effort}).Tokens(64_000); !ok || got != want {
			t.Errorf("%s: %d %v, want %d", effort, got, ok, want)
		}
	}
	if _, ok := budget(-1).Tokens(0); ok {
		t.Error("a budget of -1 is the model's choice")
	}
}
