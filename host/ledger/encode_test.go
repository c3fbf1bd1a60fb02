package ledger

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// OBJ-17: a line that is written by hand is the document of Row, with every field of it and nothing more.
func TestEncode(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\"b\\", "\n\t\x01", "<&>\u2028", "😀"}))
	duration := rapid.Map(rapid.Int64Range(0, 1<<40), func(n int64) time.Duration { return time.Duration(n) })
	moment := rapid.Map(rapid.Int64Range(0, 1<<41), time.UnixMilli)
	tokens := rapid.Int64Range(-1, 1<<50)
	status := rapid.IntRange(0, 599)
	attempt := rapid.Custom(func(t *rapid.T) dispatch.Attempt {
		return dispatch.Attempt{
			Provider: text.Draw(t, "p"), Connection: text.Draw(t, "c"), Model: text.Draw(t, "m"), At: moment.Draw(t, "at"), FirstByte: duration.Draw(t, "fb"),
			Took: duration.Draw(t, "took"), Status: status.Draw(t, "s"), Original: status.Draw(t, "o"), OK: rapid.Bool().Draw(t, "ok"),
			Left: rapid.Bool().Draw(t, "left"), Told: rapid.Bool().Draw(t, "told"), RestatedBy: text.Draw(t, "rb"),
			Verdict: wire.Verdict{Reason: wire.Reason(text.Draw(t, "r")), Scope: wire.Scope(text.Draw(t, "sc")), Plugin: text.Draw(t, "pl"), Rule: text.Draw(t, "ru")},
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		e := entry{
			id: text.Draw(t, "id"), endpoint: text.Draw(t, "e"), dialect: text.Draw(t, "d"), key: text.Draw(t, "k"), client: text.Draw(t, "cl"),
			retry: rapid.SampledFrom([]string{"", "3", "x", "-1"}).Draw(t, "retry"), route: Route{text.Draw(t, "kind"), text.Draw(t, "name")},
			model: text.Draw(t, "model"), stream: rapid.Bool().Draw(t, "stream"), outcome: text.Draw(t, "out"), provider: text.Draw(t, "pr"),
			trail: &dispatch.Trail{
				Began: moment.Draw(t, "began"), Took: duration.Draw(t, "took"), FirstByte: duration.Draw(t, "fb"), Waited: duration.Draw(t, "w"),
				Status: status.Draw(t, "s"), Estimated: rapid.Bool().Draw(t, "es"), Attempts: rapid.SliceOfN(attempt, 0, 3).Draw(t, "a"),
				Notes: rapid.SliceOfN(text, 0, 3).Draw(t, "n"),
				Usage: neutral.Usage{
					Input: tokens.Draw(t, "i"), CachedRead: tokens.Draw(t, "cr"), CacheWrite: tokens.Draw(t, "cw"), Output: tokens.Draw(t, "ou"), Reasoning: tokens.Draw(t, "re"),
				},
			},
		}
		v := worth{known: rapid.Bool().Draw(t, "known"), nano: rapid.Int64Range(0, 1e15).Draw(t, "nano"), prices: "pricing@1.0.0"}
		if rapid.Bool().Draw(t, "bodies") {
			v.bodies = &Bodies{text.Draw(t, "req"), text.Draw(t, "ans"), rapid.Bool().Draw(t, "cut")}
		}
		before := "before"
		line := e.encode([]byte(before), v)
		if string(line[:len(before)]) != before {
			t.Fatalf("what stood there is %q", line[:len(before)])
		}
		line = line[len(before):]
		var r Row
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		again, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(line, &a) != nil || json.Unmarshal(again, &b) != nil {
			t.Fatal("not JSON")
		}
		if d := cmp.Diff(b, a); d != "" {
			t.Fatal(d)
		}
		if r.DurationMS != e.trail.Took.Milliseconds() || len(r.Attempts) != len(e.trail.Attempts) || len(r.Notes) != len(e.trail.Notes) || r.Status != e.trail.Status {
			t.Fatalf("read as %s", again)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	e := entry{
		id: "abcdefghijkl-1", endpoint: "/v1/chat/completions", dialect: "openai_chat", key: "laptop", client: "claude-cli/2.1.332", model: "gpt-5", outcome: "ok",
		trail: &dispatch.Trail{Began: time.Now(), Attempts: []dispatch.Attempt{{Provider: "openai", Connection: "c-1", Model: "gpt-5", OK: true}}},
	}
	dst := make([]byte, 0, 2048)
	b.ReportAllocs()
	for b.Loop() {
		dst = e.encode(dst[:0], worth{})
	}
}
