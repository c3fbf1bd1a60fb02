package rules_test

import (
	"testing"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// A table of any bytes is parsed without a panic, and what is left of it runs on any body.
func FuzzParse(f *testing.F) {
	for _, s := range []string{agentrouter, `[{"id":"a","status":["0"],"then":{}}]`, `[{"id":"a","header":[7],"json":[{"path":".","exists":true}],"then":{"keep":true}}]`,
		`[{"id":"a","then":{"reason":"unknown","retry_after":{"from":"json:a","match":"","unit":"s"}}}]`, `[null,7,[]]`, `{}`} {
		f.Add([]byte(s), `{"error":{"code":"a"}}`, 429)
	}
	f.Fuzz(func(t *testing.T, raw []byte, body string, status int) {
		table, problems := rules.Parse(raw, rules.Options{Builtin: true, Needs: full})
		for _, p := range problems {
			if p.Code == "" || p.Message == "" {
				t.Fatalf("problem without a code or a message: %+v", p)
			}
		}
		if table.Len() > rules.MaxRules {
			t.Fatal("too many rules")
		}
		rules.Lint(table)
		r := answer("p", status, body)
		m := rules.Compile(rules.Source{Table: table}).Match(r)
		if re, ok := restate(m, r, 1); ok && !re.Keep && (re.Status < 400 || re.Status > 599) {
			t.Fatalf("restated to %d", re.Status)
		}
		if v, ok := classify(m, 1); ok && (v.Reason == "" || v.RetryAfter < 0 || v.Terminal && v.Scope != wire.ScopeConnection) {
			t.Fatalf("verdict = %+v", v)
		}
	})
}

// The same rules find the same in any body, and a body that holds the marker is found.
func FuzzMatch(f *testing.F) {
	table, problems := rules.Parse([]byte(agentrouter), rules.Options{Builtin: true, Needs: full})
	if len(problems) > 0 {
		f.Fatal(problems)
	}
	set := rules.Compile(rules.Source{Table: table})
	f.Add("agentrouter", 403, "{", "}")
	f.Add("agentrouter", 400, "额额度", "足")
	f.Fuzz(func(t *testing.T, provider string, status int, before, after string) {
		r := answer(provider, status, before+"额度不足"+after)
		re, ok := restate(set.Match(r), r, 1)
		if ok && provider == "agentrouter" && re.Status != 429 {
			t.Fatalf("restatement = %+v", re)
		}
	})
}
