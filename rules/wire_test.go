package rules_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// ABI-2.4: an example's input takes the path of a real answer.
func TestFromWire(t *testing.T) {
	r := rules.FromWire(wire.Reply{Provider: "acme", Status: 429, OriginalStatus: 403, NowMS: now.UnixMilli(),
		Headers: map[string]string{"Retry-After": "20"}, ElapsedMS: 840,
		Error: wire.ErrorFacts{Text: `{"error":{"code":"c","type":"t","message":"m"}}`, Type: "given"}})
	if diff := cmp.Diff([]string{"m", "c", "given"}, []string{r.Facts.Message, r.Facts.Code, r.Facts.Type}); diff != "" {
		t.Error(diff)
	}
	if r.Restated == "" || !r.Facts.HasBody || r.Source != wire.SourceHTTP || r.Hint.Wait != 20*time.Second || !r.Now.Equal(now) ||
		r.Elapsed != 840*time.Millisecond {
		t.Errorf("reply = %+v", r)
	}
	if r := rules.FromWire(wire.Reply{Status: 502, OriginalStatus: 520, Error: wire.ErrorFacts{Message: "m"}}); r.Restated != "" || r.Facts.Text != "m" {
		t.Errorf("the host's own reading is taken for a restatement: %+v", r)
	}
	lost := rules.FromWire(wire.Reply{Error: wire.ErrorFacts{Code: "eof", Message: "closed"}})
	if lost.Source != wire.SourceTransport || lost.Facts.Code != "eof" || lost.Facts.Message != "closed" || lost.Facts.HasBody {
		t.Errorf("reply = %+v", lost)
	}
}

func TestMarshal(t *testing.T) { // ABI-4: the words
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{rules.MarshalVerdict(wire.Verdict{Reason: wire.ReasonBanned, Scope: wire.ScopeConnection, Fallback: true, Terminal: true,
			SetStatus: wire.Banned, RetryAfter: time.Second, Cooldown: 2 * time.Second, Confidence: 5, Plugin: "p", Rule: "r"}),
			`{"reason":"banned","scope":"connection","fallback":true,"count_for_breaker":false,"terminal":true,"set_status":"banned",
			  "retry_after_ms":1000,"cooldown_ms":2000,"exact":false,"request_scoped":false,"message":"","confidence":5,"plugin":"p","rule":"r"}`},
		{rules.MarshalRestatement(wire.Restatement{Status: 429, Code: "c", Note: "n", RetryAfter: time.Minute, Keep: true, Plugin: "p", Rule: "r"}),
			`{"status":429,"code":"c","note":"n","retry_after_ms":60000,"keep":true,"plugin":"p","rule":"r"}`},
	} {
		var got, want any
		if err := json.Unmarshal(c.got, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}
