package rules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

func patternTable(n int, expr string) wire.Raw {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"id":"r%d","status":[400],"text_matches":["%s"],"then":{"reason":"quota_exhausted","scope":"connection"}}`,
			i, strings.ReplaceAll(expr, "#", fmt.Sprint(i+1)))
	}
	return wire.Raw("[" + strings.Join(list, ",") + "]")
}

// ABI-2.1: a few bytes that declare a large program are refused.
func TestProgramsAreBounded(t *testing.T) {
	o := rules.Options{Plugin: "p", Needs: wire.Needs{ErrorText: "full"}, Kinds: []string{"classifier"}}
	for _, x := range []struct {
		n    int
		expr string
	}{{1, "(x{0,30}a{0,30}){0,30}"}, {200, "(x{0,30}a{0,30}){0,5}[0-9]{#}"}} {
		if _, problems := rules.Parse(patternTable(x.n, x.expr), o); len(problems) == 0 || !strings.Contains(problems[0].Message, "repeat less") {
			t.Errorf("%d of %s: %v", x.n, x.expr, problems)
		}
	}
}

// ABI-8: a plugin whose expressions cost too much for one answer matches nothing any more; the others do.
func TestExpressionsOfOnePluginAreBounded(t *testing.T) {
	parse := func(raw wire.Raw) *rules.Table {
		table, problems := rules.Parse(raw, rules.Options{Plugin: "p", Needs: wire.Needs{ErrorText: "full"}, Kinds: []string{"classifier"}})
		if len(problems) > 0 {
			t.Fatal(problems[0])
		}
		return table
	}
	text := strings.Repeat("a", 60<<10) + " fine"
	slow := parse(patternTable(100, "(x?a?){0,40}[0-9]{#}"))
	set := rules.Compile(rules.Source{Table: slow, Plugin: "slow"}, rules.Source{Table: parse(patternTable(1, "fine$")), Plugin: "good"})
	began := time.Now()
	_, who, ok := set.Match(rules.FromWire(wire.Reply{Provider: "p", Status: 400, Error: wire.ErrorFacts{Text: text}})).Classify(rules.Normal, 0, 2)
	if took := time.Since(began); !ok || who != 1 || took > 10*time.Second {
		t.Errorf("%v by %d after %s", ok, who, took)
	}
}
