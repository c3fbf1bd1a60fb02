package ledger

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// OBJ-17: a row that is written by hand is the one that encoding/json writes and reads.
func TestEncode(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\"b\\", "\n\t\x01", "<&>\u2028", "😀"}))
	some := rapid.Ptr(text, true)
	whole := rapid.Ptr(rapid.Int64Range(0, 1<<50), true)
	status := rapid.Ptr(rapid.IntRange(100, 599), true)
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.Custom(func(t *rapid.T) Attempt {
			return Attempt{
				text.Draw(t, "p"), text.Draw(t, "c"), text.Draw(t, "m"), "2026-07-01T12:00:00.000Z", whole.Draw(t, "fb"), rapid.Int64Range(0, 1<<40).Draw(t, "d"),
				status.Draw(t, "s"), status.Draw(t, "o"), some.Draw(t, "r"), some.Draw(t, "sc"), some.Draw(t, "rb"), some.Draw(t, "db"), rapid.Bool().Draw(t, "b"),
			}
		})
		r := Row{
			RequestID: text.Draw(t, "id"), At: "2026-07-01T12:00:00.000Z", DurationMS: rapid.Int64Range(0, 1<<40).Draw(t, "d"), Endpoint: text.Draw(t, "e"),
			ClientDialect: text.Draw(t, "cd"), APIKeyID: some.Draw(t, "k"), Client: some.Draw(t, "c"), RequestedModel: text.Draw(t, "rm"),
			Provider: some.Draw(t, "p"), ConnectionID: some.Draw(t, "con"), Model: some.Draw(t, "m"), Stream: rapid.Bool().Draw(t, "st"),
			Status: rapid.IntRange(100, 599).Draw(t, "s"), Outcome: text.Draw(t, "o"), Reason: some.Draw(t, "r"), WaitedMS: rapid.Int64Range(0, 1e9).Draw(t, "w"),
			TTFTMS: whole.Draw(t, "ttft"), Attempts: rapid.SliceOfN(attempt, 0, 3).Draw(t, "a"), Notes: rapid.SliceOfN(text, 0, 3).Draw(t, "n"),
			Tokens:      Tokens{whole.Draw(t, "i"), whole.Draw(t, "cr"), whole.Draw(t, "cw"), whole.Draw(t, "ou"), whole.Draw(t, "re"), rapid.Bool().Draw(t, "es")},
			ClientRetry: whole.Draw(t, "cl"), Prices: text.Draw(t, "pr"),
		}
		if rapid.Bool().Draw(t, "route") {
			r.Route = &Route{text.Draw(t, "kind"), text.Draw(t, "name")}
		}
		if rapid.Bool().Draw(t, "cost") {
			r.CostUSD = usd(rapid.Int64Range(0, 1e15).Draw(t, "nano"))
		}
		if rapid.Bool().Draw(t, "bodies") {
			r.Bodies = &Bodies{text.Draw(t, "req"), text.Draw(t, "ans"), rapid.Bool().Draw(t, "cut")}
		}
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(&r); err != nil {
			t.Fatal(err)
		}
		var a, b, read any
		line := r.encode(nil)
		if json.Unmarshal(line, &a) != nil || json.Unmarshal(want.Bytes(), &b) != nil {
			t.Fatalf("%s", line)
		}
		if d := cmp.Diff(b, a); d != "" {
			t.Fatal(d)
		}
		var back Row
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatal(err)
		}
		again, _ := json.Marshal(&back)
		if json.Unmarshal(again, &read) != nil || !cmp.Equal(read, a) {
			t.Fatalf("read back as %s", again)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	id, n := "acme", int64(12)
	r := Row{RequestID: "abcdefghijkl-1", At: "2026-07-01T12:00:00.000Z", Provider: &id, Model: &id, Tokens: Tokens{Input: &n, Output: &n},
		Attempts: []Attempt{{Provider: id, ConnectionID: id, Model: id, At: "2026-07-01T12:00:00.000Z"}}}
	b.ReportAllocs()
	for b.Loop() {
		r.encode(make([]byte, 0, 1024))
	}
}
