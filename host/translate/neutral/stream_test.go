package neutral_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/translate/neutral"
)

// TR-26, INF-27: what is played and collected again is the same answer.
func TestPlayAndCollect(t *testing.T) {
	want := neutral.Answer{
		ID: "u-1", Model: "m",
		Parts: []neutral.Part{
			{Kind: neutral.Thought, Text: "hm", Signature: neutral.Signature{Value: "sig"}},
			{Kind: neutral.Text, Text: "Let me look."},
			{Kind: neutral.Call, Call: neutral.ToolCall{ID: "call_1", Name: "get", Arguments: `{"a":1}`}},
		},
		Stop: neutral.StopToolCall, Usage: neutral.Usage{Input: 10, CachedRead: 3, CacheWrite: -1, Output: 5, Reasoning: -1},
	}
	var c neutral.Collector
	open := -1
	neutral.Play(&want, func(e *neutral.Event) {
		switch e.Kind {
		case neutral.Open:
			if open >= 0 {
				t.Errorf("part %d opens while %d is open (TR-27)", e.Index, open)
			}
			open = e.Index
		case neutral.Close:
			open = -1
		}
		c.Take(e)
	})
	if diff := cmp.Diff(want, c.Answer()); diff != "" {
		t.Error(diff)
	}
}

// TR-6: usage is cumulative; the last value wins, and what a later event does not state stays.
func TestUsageMerges(t *testing.T) {
	u := neutral.Usage{Input: 10, CachedRead: 4, CacheWrite: -1, Output: 1, Reasoning: -1}
	u.Merge(neutral.Usage{Input: -1, CachedRead: -1, CacheWrite: -1, Output: 40, Reasoning: 7})
	if want := (neutral.Usage{Input: 10, CachedRead: 4, CacheWrite: -1, Output: 40, Reasoning: 7}); u != want {
		t.Errorf("got %+v", u)
	}
	if neutral.NoUsage().Stated() || !u.Stated() {
		t.Error("absent is not zero")
	}
}
