package e2e_test

import (
	"fmt"
	"testing"

	"github.com/weirgate/weir/host/e2e/scripted"
)

// OV-26: a change of settings holds from the next request on, without a restart, and a stream that runs meanwhile ends well.
func TestSettingsChangeWhileAStreamRuns(t *testing.T) {
	t.Parallel()
	u, at := script(t, `
model slow: each 150ms
key a model m: 503
`)
	g := serve(t, setup{config: fmt.Sprintf(`
providers: [{id: openai, base_url: %s/openai/v1}]
connections: [{id: a, provider: openai, api_key: a}]
`, at)})
	came := make(chan answer, 1)
	go func() {
		a, _ := g.try(t.Context(), "POST", "/v1/chat/completions", question("openai/slow", true)) // what is wrong shows in the answer
		came <- a
	}()
	g.eventually(5e9, "the stream runs", func() bool { now, _ := u.Open(); return now == 1 })
	patch := `{"providerBreaker":{"apikey":{"failureThreshold":1}},"waitForCooldown":{"enabled":false}}`
	if a := g.admin("PATCH", "/api/resilience", patch); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if now, _ := u.Open(); now != 1 {
		t.Error("the stream was dropped")
	}
	if a := g.chat("openai/m", false); a.status != 503 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := g.chat("openai/m", false); a.status != 503 || a.header.Get("X-Weir-Provider-Breaker") != "open" { // BRK-44
		t.Errorf("one failure did not open the breaker: %d %v %s", a.status, a.header, a.body)
	}
	if a := <-came; text(a, true) != scripted.Text {
		t.Errorf("the stream that ran meanwhile: %d %s", a.status, a.body)
	}
}
