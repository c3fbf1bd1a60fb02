package rules_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parts are pieces of expressions of every kind that is looked at in its own way: words, gaps, edges, anchors, repeated words.
var parts = []string{"quota", "limits?", "(tokens?|keys?)", "(quota|额度)", ".{0,3}", ".{0,9}", ".*", "[^。]{0,4}", ".{1,3}", `( \w+){0,2}`, `\w+`, `\S+ `,
	`\b`, `\B`, "^", "$", " ", " ?", "(is |was )?", "(gone|used up)", "(gone.{0,4}today|today.{0,4}gone)", "(?-i:Quota)", "(?s:.{0,5})", "(abc){2,3}", "(quota )+", "k", "s{2,}"}

// spoken are pieces of texts that come close to matching them.
var spoken = []string{"quota", "QUOTA", "Quota", "limit", "limits", "token", "keys", "key", "额度", "。", " ", "  ", "\n", "is ", "was ", "gone", "used up", "today",
	"abc", "abcabc", "x", "xy-", "_", "1", "é", "\u212Aeys", "que\u017Ft", "ss", "one two ", "longerwordthanothers"}

// A rule with an expression holds exactly where package regexp matches one of the texts, however it is looked for
// (ABI-2.1, text_matches; RUL-2).
func TestExpressionsAgreeWithRegexp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string, from []string, least, most int) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(from), least, most).Draw(rt, name), "")
		}
		expr := draw("expr", parts, 1, 6)
		if rapid.IntRange(0, 3).Draw(rt, "branches") == 0 {
			expr += "|" + draw("other", parts, 1, 4)
		}
		if rapid.IntRange(0, 3).Draw(rt, "long") == 0 {
			expr = "(quota|key).{0,200}(" + expr + ")"
		}
		re, err := regexp.Compile("(?i)" + expr)
		if err != nil {
			rt.Skip(err)
		}
		quoted, _ := json.Marshal(expr)
		set := one(t, fmt.Sprintf(`[{"id":"a","text_matches":[%s],"then":{"reason":"unknown"}}]`, quoted))
		for range 4 {
			body := draw("text", spoken, 1, 30)
			if rapid.Bool().Draw(rt, "json") {
				message, _ := json.Marshal(body)
				body = fmt.Sprintf(`{"error":{"message":%s}}`, message)
			}
			r := answer("p", 429, body)
			want := re.MatchString(r.Facts.Text) || r.Facts.Message != "" && re.MatchString(r.Facts.Message) ||
				r.Facts.Decoded != "" && re.MatchString(r.Facts.Decoded)
			if _, got := classify(set.Match(r), 1); got != want {
				rt.Fatalf("%s on %q: %v, package regexp says %v", expr, body, got, want)
			}
		}
	})
}
