package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A gateway that states a quota as 403 is understood after one restatement rule and one classification rule, dropped into the
// folder while requests are served: no host change, no restart (RUL-12). The operator's rule is heard before the built-in ones,
// and when it goes they are heard again (RST-8).
func TestMisstatingGatewayNeedsTwoRules(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.answers("key-empty", fails(403, `{"error":{"message":"Kontingent aufgebraucht"}}`))
	g := serve(t, setup{plugins: true, config: fmt.Sprintf(`
providers: [{id: odd, executor: openai-compatible, category: apikey, base_url: %s/v1}]
connections: [{id: empty, provider: odd, api_key: key-empty}, {id: full, provider: odd, api_key: key-full, priority: 2}]
`, u.url)})
	// ask tells how the empty account is seen now, and that the client got its answer all the same.
	ask := func() string {
		t.Helper()
		if a := g.admin("POST", "/api/providers/empty/reset", ""); a.status != 200 {
			t.Fatalf("reset: %d %s", a.status, a.body)
		}
		a := g.chat("odd/m", false)
		if text(a, false) != goodText {
			t.Errorf("the client got %d %s", a.status, a.body)
		}
		seen := g.admin("GET", "/api/providers/empty", "")
		cause := func(name string) any { return seen.field("connection", "health", "cause", name) }
		return fmt.Sprint(cause("status"), " ", cause("originalStatus"), " ", seen.field("connection", "health", "lastErrorType"), " ",
			cause("plugin"), " ", a.header.Get("X-Weir-Restated"))
	}
	before := ask()
	const after = "429 403 quota_exhausted odd-rules quota;from=403"
	if before == after {
		t.Fatalf("without the rules: %s", before)
	}
	file := filepath.Join(g.plugins, "odd.yaml")
	write(t, file, `name: odd-rules
version: 1.0.0
kinds: [restatement, classifier]
matches: [{providers: [odd]}]
needs: {error_text: prefix}
rules:
  - {id: quota, status: [403], text_contains: [kontingent aufgebraucht], then: {restate_status: 429}}
  - {id: empty, status: [429], text_contains: [kontingent aufgebraucht], then: {reason: quota_exhausted, scope: connection, cooldown: 1h}}
`)
	g.eventually(5*time.Second, "the rules are in force", func() bool { return ask() == after })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	g.eventually(5*time.Second, "the built-in reading is back", func() bool { return ask() == before })
}
