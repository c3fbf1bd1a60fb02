package rules_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// An expression that asks where a text begins or ends looks at the message too, which stands in the body as it is; one that
// needs several words is tried when all of them are there, wherever they stand (ABI-2.1, text_matches).
func TestExpressionsLookAtEachText(t *testing.T) {
	for _, c := range []struct {
		expr, body string
		want       bool
	}{
		{"^limit reached", `{"error":{"message":"Limit reached for you"}}`, true},
		{"for you$", `{"error":{"message":"Limit reached for you"}}`, true},
		{`(?m)^limit reached$`, `{"error":{"message":"limit reached"}}`, true},
		{`\blimit reached\b`, `{"error":{"message":"limit reached"}}`, true},
		{"^limit reached", `{"error":{"message":"The limit reached you"}}`, false},
		{`"message":"limit`, `{"error":{"message":"limit reached"}}`, true},
		{"limit .{0,9} reached", `{"error":{"message":"limit of 9 reached"}}`, true},
		{"limit .{0,9} reached", `{"error":{"message":"reached the limit of 9"}}`, false},
		{"limit .{0,9} reached", `{"error":{"message":"limit of 9 exceeded"}}`, false},
		{"(quota|limit) of (day|week)", `{"error":{"message":"the quota of week 3"}}`, true},
		{"(quota|limit) of (day|week)", `{"error":{"message":"the quota of month 3"}}`, false},
		{"额度.*不足", `{"error":{"message":"\u989d\u5ea6\u4e0d\u8db3"}}`, true},
		{`^额度`, `{"error":{"message":"\u989d\u5ea6\u4e0d\u8db3"}}`, true},
		{"up.*stream", "upstream is gone", true},
	} {
		t.Run(c.expr, func(t *testing.T) {
			expr, err := json.Marshal(c.expr)
			if err != nil {
				t.Fatal(err)
			}
			// Three rules share the expression, which is tried once.
			set := one(t, fmt.Sprintf(`[{"id":"a","text_matches":[%s],"text_all":["never said"],"then":{"reason":"unknown"}},
				{"id":"b","text_matches":[%s],"code":["none"],"then":{"reason":"unknown"}},
				{"id":"c","text_matches":[%s],"then":{"reason":"quota_exhausted"}}]`, expr, expr, expr))
			if _, ok := classify(set.Match(answer("p", 429, c.body)), 1); ok != c.want {
				t.Errorf("holds: %v, want %v", ok, c.want)
			}
		})
	}
}

// A message without an own boundary in the body: what \b says at its edge is true of the message alone.
func TestExpressionAtTheEdgeOfAMessage(t *testing.T) {
	r := answer("p", 429, `{"error":{"message":"limit"}}`)
	r.Facts.Message, r.Facts.Text = "limit", "the limits"
	set := one(t, `[{"id":"a","text_matches":["limit\\b"],"then":{"reason":"unknown"}}]`)
	if _, ok := classify(set.Match(r), 1); !ok {
		t.Error("an expression that matches the message does not hold")
	}
}
