package rules_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/rules"
)

// ABI-9: a decision can name the parts of the answer that it rests on.
func TestBecause(t *testing.T) {
	r := &rules.Reply{Status: 429, Original: 429, Header: map[string][]string{"X-Left": {"0"}},
		Body: []byte(`{"error":{"message":"You exceeded\n your current QUOTA, please check","code":"insufficient_quota"}}`)}
	rules.Read(r)
	got := rules.Because(json.RawMessage(`{"status":[429],"code":["Insufficient_Quota"],"text_contains":["nothing","current quota"],
		"text_matches":["\\bplease\\b"],"header":{"name":"x-left","equals":"0"},"json":[{"path":"error.type","equals":"x"},{"path":"error.code","matches":"quota$"}]}`), r)
	want := []rules.Cause{
		{"status", "[429]", "429"},
		{"code", "Insufficient_Quota", "insufficient_quota"},
		{"text_contains", "current quota", `"error":{"message":"You exceeded\n your current QUOTA, please check","code":"insufficient_quo`},
		{"text_matches", `\bplease\b`, `ge":"You exceeded\n your current QUOTA, please check","code":"insufficient_quota"}}`},
		{"header x-left", "0", "0"},
		{"json error.code", "quota$", "insufficient_quota"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := rules.Because(json.RawMessage(`7`), r); got != nil {
		t.Errorf("got %v", got)
	}
}
