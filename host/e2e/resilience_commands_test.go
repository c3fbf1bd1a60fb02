package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The commands over the resilience tell what is out, by which answer and until when, and clear it (OBJ-23, OBJ-24, OBJ-25,
// API-20, API-31, API-42, OBJ-10); with --json they print the answer of the API.
func TestResilienceCommands(t *testing.T) {
	t.Parallel()
	_, at := script(t, `
key cooling: 429 retry-after 300
key banned: 403 body {"error":{"message":"Your account has been suspended","type":"x"}}
key locked model M1: 429 retry-after 600 body {"error":{"message":"Rate limit reached for M1 on requests per day","type":"requests","code":"rate_limit_exceeded"}}
provider mistral: 503
`)
	g := serve(t, setup{config: fmt.Sprintf(`
providers:
  - {id: openai, base_url: %[1]s/openai/v1}
  - {id: mistral, base_url: %[1]s/mistral/v1}
  - {id: groq, base_url: %[1]s/groq/v1}
connections:
  - {id: cooling, provider: openai, api_key: cooling, priority: 1, provider_data: {passthroughModels: false}}
  - {id: banned, provider: openai, api_key: banned, priority: 2}
  - {id: locked, provider: openai, api_key: locked, priority: 3}
  - {id: down, provider: mistral, api_key: down}
  - {id: good, provider: groq, api_key: good}
combos:
  - {id: best, targets: [{model: openai/M1}, {model: mistral/m}, {model: groq/m}]}
resilience: {providerBreaker: {apikey: {failureThreshold: 1, resetTimeoutMs: 600000}}}
`, at)})
	g.chat("best", false)
	says := func(command string, wants ...string) string {
		t.Helper()
		s := g.weir(strings.Fields(command)...)
		if s.code != 0 {
			t.Errorf("weir %s: %d %s", command, s.code, s.err)
		}
		line := strings.Join(strings.Fields(s.out), " ")
		for _, w := range wants {
			if !strings.Contains(line, w) {
				t.Errorf("weir %s does not say %q:\n%s", command, w, s.out)
			}
		}
		return line
	}
	isJSON := func(command, field string) {
		t.Helper()
		var v map[string]any
		if s := g.weir(append(strings.Fields(command), "--json")...); json.Unmarshal([]byte(s.out), &v) != nil || v[field] == nil {
			t.Errorf("weir %s --json: %s %s", command, s.out, s.err)
		}
	}
	says("status", "mistral OPEN 1", "openai - 3 1 1 1 1")
	says("explain best", "cooling M1 left out by connection_cooldown: rate_limit_exceeded", "429, rule generic/", "time from header:retry-after",
		"left out by terminal: banned", "left out by model_lockout: quota_exhausted", "left out by circuit_open", "good m would be tried")
	says("cooldowns list", "cooling openai cooling_down rate_limit_exceeded 5m0s", "banned openai banned banned", "locked openai model_locked quota_exhausted - - M1 (10m0s)")
	if all := says("cooldowns list --provider groq --all", "good groq healthy"); strings.Contains(all, "cooling_down") {
		t.Errorf("other providers are listed: %s", all)
	}
	says("lockouts list", "openai locked M1", "quota_exhausted 10m0s 1 429, rule generic/")
	says("breakers list", "mistral OPEN 1 transient")
	g.eventually(5*time.Second, "the events are written", func() bool { return strings.Contains(g.weir("history").out, "down (m)") })
	says("history", "cooling (M1) cools down until", "for rate_limit_exceeded", "banned (M1) is banned until a person or new credentials help",
		"the quota of M1 on locked is locked out until", "the breaker of mistral opened after 1 failure, the last a 503", "it lets a probe through at")
	for command, field := range map[string]string{
		"status": "providers", "explain best": "candidates", "cooldowns list": "connections", "lockouts list": "items", "breakers list": "breakers",
		"settings get": "providerBreaker", "cooldowns clear nobody": "clearedIds",
	} {
		isJSON(command, field)
	}
	says("lockouts clear openai M1", "The model M1 of openai is enabled again.")
	says("lockouts clear openai M1 --connection locked", "was not locked out")
	says("lockouts clear --all", "All lockouts are cleared.")
	says("breakers reset nobody", "Reset 0 circuit breaker(s).")
	says("breakers reset mistral --include lockouts,cooldowns", "Reset 1 circuit breaker(s).")
	says("cooldowns clear --all", "Cleared 2 connection(s) and 0 lockout(s);", "1 in a terminal state stayed as they are; weir connections reset ID ends one.")
	says("connections reset banned", "The connection banned was banned and is healthy now.")
	g.eventually(5*time.Second, "the events are written", func() bool { // up to 50 ms late (OV-8)
		return strings.Contains(g.weir("history").out, "banned is healthy again")
	})
	says("history", "the breaker of mistral closed, for a person reset it", "M1 on locked is enabled again", "banned is healthy again")
	says("settings set providerBreaker.apikey.degradationThreshold 1", "providerBreaker.apikey.degradationThreshold is 1 now.")
	for _, wrong := range []string{"cooldowns clear", "cooldowns clear x --all", "cooldowns clear x --provider y", "lockouts clear", "lockouts clear openai", "lockouts clear openai m --all"} {
		if s := g.weir(strings.Fields(wrong)...); s.code != 2 {
			t.Errorf("weir %s: code %d", wrong, s.code)
		}
	}
	if s := g.weir("breakers", "reset", "--include", "terminal"); s.code != 1 || !strings.Contains(s.err, "providerCooldown, lockouts, cooldowns") {
		t.Errorf("%d %s", s.code, s.err)
	}
}
