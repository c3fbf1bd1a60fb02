package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirgate/weir/rules"
)

// manyRules are 256 rules as packs have them: phrases, some codes, an expression in every eighth, none of which holds.
func manyRules() string {
	var rs []string
	for i := range 256 {
		cond := fmt.Sprintf(`"text_contains": ["phrase number %d is said", "额度 %d 不足", "your plan %d has"], "text_none": ["temporary %d"]`, i, i, i, i)
		if i%8 == 0 {
			cond += fmt.Sprintf(`, "text_matches": ["try (again|later) in [0-9.]+ ?s .* plan %d", "limit %d of ([0-9]+)"]`, i, i)
		}
		if i%4 == 1 {
			cond = fmt.Sprintf(`"code": ["code_%d"]`, i)
		}
		if i%3 == 0 {
			cond += `, "status": [400, 403, "429-599"]`
		}
		rs = append(rs, fmt.Sprintf(`{"id": "r%d", %s, "then": {"reason": "unknown"}}`, i, cond))
	}
	return "[" + strings.Join(rs, ",") + "]"
}

func errorOf(size int) string {
	const part = "Your request could not be done: the phrase number is said, 额度, try again in 20s, your plan has limits. "
	return `{"error":{"type":"x","code":"code_x","message":"` + strings.Repeat(part, size/len(part)) + `"}}`
}

// design.md: 256 rules over an error of 2 KB below 50 µs, over 64 KiB below 2 ms.
func BenchmarkMatch(b *testing.B) {
	for _, size := range []int{2 << 10, 64 << 10} {
		r := answer("p", 429, errorOf(size))
		for name, table := range map[string]string{
			"phrases":     manyRules(),
			"expressions": strings.ReplaceAll(manyRules(), `["try (`, `["try again in 20s .* and then no more of it", "try (`),
		} {
			set := one(b, table)
			set.Match(r)
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if v, ok := classify(set.Match(r), 1); ok {
						b.Fatalf("decided by %s, so that not all rules were tried", v.Rule)
					}
				}
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, size := range []int{2 << 10, 64 << 10} {
		body := []byte(errorOf(size))
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules.Read(&rules.Reply{Status: 429, Original: 429, Body: body, Now: now})
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	table := parse(b, rules.Options{Builtin: true}, manyRules())
	r := answer("p", 429, "x")
	for b.Loop() {
		rules.Compile(rules.Source{Table: table}).Match(r)
	}
}
