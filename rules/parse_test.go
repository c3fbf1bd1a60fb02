package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// "Bad input (rule load)" of 09-restatement-classification.md, ABI-2.1, RUL-2: what is refused, and under which code.
func TestRefused(t *testing.T) {
	const ok = `"then": {"reason": "unknown"}`
	const id = `"id": "r", `
	markers := func(n int) string { return `["a` + strings.Repeat(`", "a`, n-1) + `"]` }
	for _, c := range []struct{ name, rule, field, code string }{
		{"no object", `7`, "", rules.CodeInvalid},
		{"null", `null`, "", rules.CodeInvalid},
		{"no id", `{` + ok + `}`, "id", rules.CodeInvalid},
		{"id with a line feed", `{"id": "a\nb", ` + ok + `}`, "id", rules.CodeInvalid},
		{"id too long", `{"id": "` + strings.Repeat("a", 129) + `", ` + ok + `}`, "id", rules.CodeInvalid},
		{"no then", `{"id": "r"}`, "then", rules.CodeInvalid},
		{"then is null", `{` + id + `"then": null}`, "then", rules.CodeInvalid},
		{"restated status too low", `{` + id + `"then": {"restate_status": 399}}`, "then.restate_status", rules.CodeInvalid},
		{"restated status too high", `{` + id + `"then": {"restate_status": 600}}`, "then.restate_status", rules.CodeInvalid},
		{"restated status missing", `{` + id + `"then": {"restate_code": "x"}}`, "then.restate_status", rules.CodeInvalid},
		{"status below 100", `{` + id + `"status": [99], ` + ok + `}`, "status", rules.CodeInvalid},
		{"status above 599", `{` + id + `"status": [600], ` + ok + `}`, "status", rules.CodeInvalid},
		{"range turned round", `{` + id + `"status": ["599-500"], ` + ok + `}`, "status", rules.CodeInvalid},
		{"range from 0", `{` + id + `"status": ["0-500"], ` + ok + `}`, "status", rules.CodeInvalid},
		{"status words", `{` + id + `"original_status": ["5xx"], ` + ok + `}`, "original_status", rules.CodeInvalid},
		{"no status", `{` + id + `"status": [], ` + ok + `}`, "status", rules.CodeInvalid},
		{"empty marker", `{` + id + `"text_contains": [""], ` + ok + `}`, "text_contains", rules.CodeInvalid},
		{"blank marker", `{` + id + `"text_none": [" "], ` + ok + `}`, "text_none", rules.CodeInvalid},
		{"marker of 257 characters", `{` + id + `"text_all": ["` + strings.Repeat("额", 257) + `"], ` + ok + `}`, "text_all", rules.CodeInvalid},
		{"65 markers", `{` + id + `"text_contains": ` + markers(60) + `, "text_none": ` + markers(5) + `, ` + ok + `}`, "text_contains", rules.CodeInvalid},
		{"negative wait", `{` + id + `"then": {"restate_status": 429, "retry_after": "-1s"}}`, "then.retry_after", rules.CodeInvalid},
		{"wait over 30 days", `{` + id + `"then": {"reason": "unknown", "retry_after": "721h"}}`, "then.retry_after", rules.CodeInvalid},
		{"wait as a number", `{` + id + `"then": {"reason": "unknown", "retry_after": 60}}`, "then.retry_after", rules.CodeInvalid},
		{"negative cooldown", `{` + id + `"then": {"reason": "unknown", "cooldown": "-1s"}}`, "then.cooldown", rules.CodeInvalid},
		{"cooldown of days", `{` + id + `"then": {"reason": "unknown", "cooldown": "2d"}}`, "then.cooldown", rules.CodeInvalid},
		{"17 patterns", `{` + id + `"text_matches": ` + markers(17) + `, ` + ok + `}`, "text_matches", rules.CodeInvalid},
		{"pattern of 513 bytes", `{` + id + `"text_matches": ["` + strings.Repeat("a", 513) + `"], ` + ok + `}`, "text_matches", rules.CodeInvalid},
		{"pattern is no RE2", `{` + id + `"text_matches": ["(?=a)"], ` + ok + `}`, "text_matches", rules.CodeInvalid},
		{"auth", `{` + id + `"auth": ["password"], ` + ok + `}`, "auth", rules.CodeInvalid},
		{"provider of a wrong type", `{` + id + `"providers": [1], ` + ok + `}`, "providers", rules.CodeInvalid},
		{"stream of a wrong type", `{` + id + `"stream": "yes", ` + ok + `}`, "stream", rules.CodeInvalid},
		{"header without a name", `{` + id + `"header": {"equals": "0"}, ` + ok + `}`, "header.name", rules.CodeInvalid},
		{"header asks nothing", `{` + id + `"header": {"name": "x-a"}, ` + ok + `}`, "header", rules.CodeInvalid},
		{"header asks two things", `{` + id + `"header": {"name": "x-a", "equals": "0", "present": true}, ` + ok + `}`, "header", rules.CodeInvalid},
		{"json without a path", `{` + id + `"json": {"exists": true}, ` + ok + `}`, "json.path", rules.CodeInvalid},
		{"json equals an object", `{` + id + `"json": {"path": "a", "equals": {}}, ` + ok + `}`, "json.equals", rules.CodeInvalid},
		{"unknown reason", `{` + id + `"then": {"reason": "sad"}}`, "then.reason", rules.CodeInvalid},
		{"no reason", `{` + id + `"then": {"scope": "model"}}`, "then.reason", rules.CodeInvalid},
		{"unknown scope", `{` + id + `"then": {"reason": "unknown", "scope": "world"}}`, "then.scope", rules.CodeInvalid},
		{"scope none", `{` + id + `"then": {"reason": "unknown", "scope": "none"}}`, "then.scope", rules.CodeInvalid},
		{"confidence", `{` + id + `"then": {"reason": "unknown", "confidence": 101}}`, "then.confidence", rules.CodeInvalid},
		{"message", `{` + id + `"then": {"reason": "unknown", "message": "` + strings.Repeat("a", 1025) + `"}}`, "then.message", rules.CodeInvalid},
		{"terminal with another scope", `{` + id + `"then": {"reason": "banned", "scope": "model", "terminal": true}}`, "then.terminal", rules.CodeInvalid},
		{"terminal without a state", `{` + id + `"then": {"reason": "quota_exhausted", "terminal": true}}`, "then.set_status", rules.CodeInvalid},
		{"set_status alone", `{` + id + `"then": {"reason": "banned", "set_status": "banned"}}`, "then.set_status", rules.CodeInvalid},
		{"set_status unknown", `{` + id + `"then": {"reason": "banned", "terminal": true, "set_status": "gone"}}`, "then.set_status", rules.CodeInvalid},
		{"keep with a status", `{` + id + `"then": {"keep": true, "restate_status": 429}}`, "then.keep", rules.CodeInvalid},
		{"both kinds", `{` + id + `"then": {"restate_status": 429, "reason": "unknown"}}`, "then", rules.CodeMixed},
		{"keep and a verdict", `{` + id + `"then": {"keep": true, "cooldown": "1s"}}`, "then", rules.CodeMixed},
		{"reading without a unit", `{` + id + `"then": {"reason": "unknown", "retry_after": {"from": "json:a"}}}`, "then.retry_after.unit", rules.CodeInvalid},
		{"reading of an unknown zone", `{` + id + `"then": {"reason": "unknown", "retry_after": {"from": "text", "unit": "next_midnight:Moon"}}}`, "then.retry_after.unit", rules.CodeInvalid},
		{"reading of text without a pattern", `{` + id + `"then": {"reason": "unknown", "retry_after": {"from": "text", "unit": "s"}}}`, "then.retry_after.match", rules.CodeInvalid},
		{"reading from nowhere", `{` + id + `"then": {"reason": "unknown", "retry_after": {"from": "sky", "unit": "s"}}}`, "then.retry_after.from", rules.CodeInvalid},
		{"guard of a stranger", `{` + id + `"phase": "guard", ` + ok + `}`, "phase", rules.CodePhaseReserved},
		{"late of a stranger", `{` + id + `"phase": "late", ` + ok + `}`, "phase", rules.CodePhaseReserved},
		{"unknown phase", `{` + id + `"phase": "early", ` + ok + `}`, "phase", rules.CodeInvalid},
		{"a header that is not declared", `{` + id + `"header": {"name": "server", "present": true}, ` + ok + `}`, "header", rules.CodeNeedsHeader},
		{"a header that is never passed", `{` + id + `"header": {"name": "X-Api-Key", "present": true}, ` + ok + `}`, "header", rules.CodeNeedsHeader},
		{"a reading of such a header", `{` + id + `"then": {"reason": "unknown", "retry_after": {"from": "header:server", "unit": "s"}}}`, "then.retry_after", rules.CodeNeedsHeader},
		{"a credit signal", `{` + id + `"text_contains": ["Insufficient Balance"], "then": {"restate_status": 429}}`, "text_contains", rules.CodeMarkerGeneric},
		{"a credit signal among all", `{` + id + `"text_all": ["x", "out of credits"], "then": {"restate_status": 402}}`, "text_all", rules.CodeMarkerGeneric},
	} {
		t.Run(c.name, func(t *testing.T) {
			good := `{"id": "good", ` + ok + `}`
			table, problems := rules.Parse([]byte(`[`+c.rule+`, `+good+`]`), rules.Options{Needs: full})
			if len(problems) != 1 || problems[0].Field != c.field || problems[0].Code != c.code || problems[0].Index != 0 || problems[0].Message == "" {
				t.Errorf("problems = %v, want one %s at %s", problems, c.code, c.field)
			}
			if diff := cmp.Diff([]string{"good"}, table.IDs()); diff != "" { // the rest of the set loads
				t.Error(diff)
			}
		})
	}
}

func TestTextNeedsText(t *testing.T) { // RUL-2
	for _, c := range []string{`"text_contains": ["x"]`, `"text_all": ["x"]`, `"text_none": ["x"]`, `"text_matches": ["x"]`,
		`"json": {"path": "a", "exists": true}`, `"json_all": {"path": "a", "exists": true}`} {
		_, problems := rules.Parse([]byte(`[{"id": "r", `+c+`, "then": {"reason": "unknown"}}]`), rules.Options{Needs: wire.Needs{ErrorText: "none"}})
		if len(problems) != 1 || problems[0].Code != rules.CodeNeedsText {
			t.Errorf("%s: %v", c, problems)
		}
	}
	_, problems := rules.Parse([]byte(`[{"id": "r", "then": {"reason": "unknown", "retry_after": {"from": "json:a", "unit": "s"}}}]`),
		rules.Options{Needs: wire.Needs{ErrorText: "none"}})
	if len(problems) != 1 || problems[0].Code != rules.CodeNeedsText {
		t.Errorf("reading: %v", problems)
	}
	if _, problems := rules.Parse([]byte(`[{"id": "r", "code": ["x"], "type": ["y"], "then": {"reason": "unknown"}}]`),
		rules.Options{Needs: wire.Needs{ErrorText: "none"}}); len(problems) != 0 {
		t.Errorf("code and type need no text: %v", problems)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, problems := rules.Parse([]byte(`[{"id": "a", "status": [1, 2], "auth": ["x"], "then": {"reason": "sad"}},
	  {"id": "b", "then": {"reason": "unknown"}}, {"id": "b", "then": {"reason": "unknown"}}]`), rules.Options{})
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprint(p.Index, " ", p.Rule, " ", p.Field))
	}
	want := []string{"0 a auth", "0 a status", "0 a status", "0 a then.reason", "2 b id"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s := problems[0].Error(); !strings.HasPrefix(s, "rules[0] a: auth: ") || !strings.Contains(s, "rule_invalid") {
		t.Errorf("error text = %s", s)
	}
}

func TestTableLimits(t *testing.T) { // ABI-2.1
	table := func(n int) string {
		var rs []string
		for i := range n {
			rs = append(rs, fmt.Sprintf(`{"id":"r%d","then":{"reason":"unknown"}}`, i))
		}
		return "[" + strings.Join(rs, ",") + "]"
	}
	for _, c := range []struct {
		name, raw, code string
		rules           int
	}{
		{"256 rules", table(256), "", 256},
		{"257 rules", table(257), rules.CodeTooMany, 0},
		{"256 KiB", table(2) + strings.Repeat(" ", 256<<10-len(table(2))), "", 2},
		{"one byte more", table(2) + strings.Repeat(" ", 256<<10-len(table(2))+1), rules.CodeTooLarge, 0},
		{"no array", `{}`, rules.CodeInvalid, 0},
		{"no JSON", `[`, rules.CodeInvalid, 0},
		{"nothing", ``, "", 0},
		{"null", ` null `, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := rules.Parse([]byte(c.raw), rules.Options{})
			codes := []string{}
			for _, p := range problems {
				codes = append(codes, p.Code)
			}
			if got.Len() != c.rules || strings.Join(codes, ",") != c.code {
				t.Errorf("%d rules, problems %v", got.Len(), problems)
			}
		})
	}
}

func TestLargestRule(t *testing.T) {
	marker := `"` + strings.Repeat("额", 256) + `"`
	rule := `[{"id": "` + strings.Repeat("a", 128) + `", "text_contains": [` + strings.Repeat(marker+",", 63) + marker + `],
	  "text_matches": [` + strings.Repeat(`"`+strings.Repeat("a", 512)+`",`, 15) + `"b"], "evidence": {"seen": "here"}, "then": {"reason": "unknown"}}]`
	parse(t, rules.Options{}, rule)
}

func TestKinds(t *testing.T) { // ABI-9: a rule of a kind that the plugin is not would never run
	const both = `[{"id": "r", "then": {"restate_status": 429}}, {"id": "c", "then": {"reason": "unknown"}}]`
	for _, c := range []struct {
		kinds []string
		want  []string
	}{
		{nil, []string{"r", "c"}},
		{[]string{"restatement", "classifier"}, []string{"r", "c"}},
		{[]string{"executor", "restatement"}, []string{"r"}},
		{[]string{"classifier"}, []string{"c"}},
	} {
		table, problems := rules.Parse([]byte(both), rules.Options{Kinds: c.kinds})
		if diff := cmp.Diff(c.want, table.IDs()); diff != "" || len(problems) != 2-len(c.want) {
			t.Errorf("%v: %s %v", c.kinds, diff, problems)
		}
	}
}

// A built-in rule may restate to 402 by a credit signal, which then says the same; no other may.
func TestBuiltinCreditRestatement(t *testing.T) {
	for _, signal := range rules.CreditSignals() {
		for status, builtin := range map[int]bool{402: true, 429: false} {
			raw := fmt.Sprintf(`[{"id": "r", "text_contains": [%q], "then": {"restate_status": %d}}]`, signal, status)
			_, problems := rules.Parse([]byte(raw), rules.Options{Builtin: true})
			if (len(problems) == 0) != builtin {
				t.Errorf("%s to %d: %v", signal, status, problems)
			}
		}
	}
}

func TestLintOfBuiltins(t *testing.T) {
	const table = `[{"id": "r", "text_contains": ["account has been disabled"], "then": {"restate_status": 403}},
	 {"id": "k", "text_contains": ["your account has been disabled"], "status": [403], "then": {"keep": true}},
	 {"id": "bad", "status": [500], "text_contains": ["account has been disabled"], "then": {"restate_status": 503}}]`
	var got []string
	for _, p := range rules.Lint(parse(t, rules.Options{Builtin: true}, table)) {
		if p.Code == rules.CodeMarkerGeneric {
			got = append(got, p.Rule)
		}
	}
	if diff := cmp.Diff([]string{"bad"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLint(t *testing.T) {
	table := parse(t, rules.Options{}, `[
	 {"id": "wide", "providers": ["ac*"], "status": ["400-499"], "text_contains": ["quota", "limit"], "then": {"reason": "quota_exhausted"}},
	 {"id": "narrow", "providers": ["acme"], "status": [429], "text_contains": ["quota reached", "limit reached"], "then": {"reason": "unknown"}},
	 {"id": "all", "providers": ["acme"], "status": [429], "text_all": ["the quota", "x"], "then": {"reason": "unknown"}},
	 {"id": "other-status", "providers": ["acme"], "status": [429, 500], "text_contains": ["quota"], "then": {"reason": "unknown"}},
	 {"id": "other-text", "providers": ["acme"], "status": [429], "text_contains": ["quota", "x"], "then": {"reason": "unknown"}},
	 {"id": "other-stage", "providers": ["acme"], "status": [429], "text_contains": ["quota"], "then": {"restate_status": 503}},
	 {"id": "generic", "text_contains": ["you are out of credits now"], "moon": 1, "then": {"reason": "unknown", "terminl": true}},
	 {"id": "ends", "status": [401], "then": {"reason": "banned", "terminal": true}}]`)
	example := func(op, input string) wire.Example { return wire.Example{Op: op, Input: wire.Raw(input)} }
	problems := rules.Lint(table,
		example("classify", `{"provider": "acme", "status": 429, "error": {"text": "quota"}}`),
		example("restate", `{"provider": "acme", "status": 429, "error": {"text": "quota"}}`),
		example("classify", `{"provider": "x", "status": 401, "error": {"message": "no"}}`),
		example("classify", `7`))
	var got []string
	for _, p := range problems {
		got = append(got, p.Rule+" "+p.Field+" "+p.Code)
	}
	want := []string{
		"narrow  rule_shadowed", "narrow  rule_no_example",
		"all  rule_shadowed", "all  rule_no_example",
		"other-status  rule_no_example",
		"other-text  rule_no_example",
		"generic moon rule_unknown_field", "generic then.terminl rule_unknown_field",
		"generic text_contains rule_marker_generic", "generic  rule_no_example",
		"ends then.terminal rule_terminal_ignored",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !slices.IsSortedFunc(problems, func(a, b rules.Problem) int { return a.Index - b.Index }) {
		t.Error("not in the order of the table")
	}
}
