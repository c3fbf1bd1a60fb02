package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// OTH-1, OTH-2, OTH-9: a provider that counts by address refuses one account; the other one behind the same address is not asked, the
// list of cooldowns says why and by whom, and an account with an address of its own answers. A plugin's own provider does the same.
func TestEgressLock(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.answers("key-a", fails(429, `{"error":{"message":"Rate limit exceeded"}}`, "Retry-After", "300"))
	g := serve(t, setup{config: fmt.Sprintf(`
providers: [{id: opencode, executor: openai-compatible, category: apikey, base_url: %[1]s/v1, allow_private: true}, {id: opencode-go, executor: openai-compatible, category: apikey, base_url: %[1]s/v1, allow_private: true}]
connections:
  - {id: a, provider: opencode, api_key: key-a}
  - {id: b, provider: opencode, api_key: key-b, priority: 2}
  - {id: far, provider: opencode, api_key: key-far, priority: 3, provider_data: {egressIp: 192.0.2.7}}
  - {id: g, provider: opencode-go, api_key: key-g}
`, u.url)})
	for _, stream := range []bool{false, true} {
		if a := g.chat("opencode/m", stream); text(a, stream) != goodText {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if a := g.chat("opencode-go/m", false); a.status != http.StatusTooManyRequests || a.field("error", "code") != "model_cooldown" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if n, _ := u.counts(); n["key-a"] != 1 || n["key-b"] != 0 || n["key-g"] != 0 || n["key-far"] != 2 {
		t.Errorf("asked %v", n)
	}
	list := g.admin("GET", "/api/resilience/cooldowns?provider=opencode", "")
	rows, _ := list.field("connections").([]any)
	if len(rows) != 3 {
		t.Fatalf("%s", list.body)
	}
	own, sibling := rows[0].(map[string]any), rows[1].(map[string]any)
	cause, _ := sibling["cause"].(map[string]any)
	if own["lastErrorType"] != "rate_limit_exceeded" || sibling["lastErrorType"] != "egress_sibling" || sibling["testStatus"] != "unavailable" ||
		cause["connectionId"] != "a" || cause["requestId"] == nil || cause["requestId"] != own["cause"].(map[string]any)["requestId"] {
		t.Errorf("%s", list.body)
	}
	if said := g.weir("cooldowns", "list"); !strings.Contains(said.out, "egress_sibling") || !strings.Contains(said.out, "of connection a") {
		t.Errorf("%s%s", said.out, said.err)
	}
}

// OTH-21, OTH-22: the limit that a provider names is kept to from then on, and the client is told.
func TestToolLimit(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.answers("key-a", func(w http.ResponseWriter, r *http.Request, stream bool) {
		seen := u.record()
		if last := seen[strings.LastIndexByte(seen, '\n')+1:]; strings.Count(last, `"parameters"`) > 2 {
			fails(400, `{"error":{"message":"Maximum number of tools is 2.","type":"invalid_request_error"}}`)(w, r, stream)
			return
		}
		good(w, r, stream)
	})
	config := fmt.Sprintf(`
providers: [{id: acme, executor: openai-compatible, category: apikey, base_url: %s/v1, allow_private: true}]
connections: [{id: a, provider: acme, api_key: key-a}]
`, u.url)
	const tool = `{"type":"function","function":{"name":"t%d","parameters":{"type":"object"}}}`
	ask := func(g *gateway, stream bool) answer {
		tools := fmt.Sprintf(tool+","+tool+","+tool, 1, 2, 3)
		return g.call("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"acme/m","stream":%v,"messages":[{"role":"user","content":"hi"}],"tools":[%s]}`, stream, tools))
	}
	g := serve(t, setup{config: config})
	for i, stream := range []bool{false, true} {
		a := ask(g, stream)
		if text(a, stream) != goodText || a.header.Get("X-Weir-Degraded") != "tools; sent=2; of=3" {
			t.Errorf("%d %s %v", a.status, a.body, a.header)
		}
		if n, _ := u.counts(); n["key-a"] != 2-i {
			t.Errorf("asked %v", n)
		}
	}
	strict := serve(t, setup{config: config, env: []string{"WEIR_TOOL_TRUNCATE=false"}})
	if a := ask(strict, false); a.status != 400 || a.field("error", "code") == "too_many_tools" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := ask(strict, true); a.status != 400 || a.field("error", "code") != "too_many_tools" || a.field("error", "type") != "invalid_request_error" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// CLS-20: the switches are read from the environment, under either prefix.
func TestRotationSwitch(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.answers("key-a", fails(500, `{"error":{"message":"oops"}}`))
	g := serve(t, setup{env: []string{"OMNIROUTE_ROTATE_ON_500=false"}, config: fmt.Sprintf(`
providers: [{id: acme, executor: openai-compatible, category: apikey, base_url: %s/v1, allow_private: true}]
connections: [{id: a, provider: acme, api_key: key-a}, {id: b, provider: acme, api_key: key-b, priority: 2}]
`, u.url)})
	for range 2 {
		if a := g.chat("acme/m", false); a.status != 500 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n, _ := u.counts(); n["key-a"] != 2 || n["key-b"] != 0 {
		t.Errorf("asked %v", n)
	}
}

// CLS-6, RUL-41: with every pack loaded, an operator's default takes what no rule knows before the generic table does, and the texts of
// the detectors keep their meaning.
func TestOperatorDefaultsAmongThePacks(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	for key, message := range map[string]string{"plain": "try later", "weekly": "You have reached your weekly usage limit", "many": "Too many concurrent requests", "rate": "Rate limit"} {
		u.answers("key-"+key, fails(429, fmt.Sprintf(`{"error":{"message":%q}}`, message)))
	}
	g := serve(t, setup{config: fmt.Sprintf(`
settings: {providerErrorDefaults: {acme: {cooldownMs: 90000, reason: quota_exhausted}}}
resilience: {waitForCooldown: {enabled: false}}
providers: [{id: acme, executor: openai-compatible, category: apikey, base_url: %s/v1, allow_private: true}]
connections:
  - {id: plain, provider: acme, api_key: key-plain, models: [plain]}
  - {id: weekly, provider: acme, api_key: key-weekly, models: [weekly]}
  - {id: many, provider: acme, api_key: key-many, models: [many]}
  - {id: rate, provider: acme, api_key: key-rate, models: [rate]}
`, u.url)})
	for id, want := range map[string]string{"plain": "settings quota_exhausted", "rate": "settings quota_exhausted", "weekly": "generic quota_exhausted", "many": "generic concurrency_limited"} {
		g.chat("acme/"+id, false)
		seen := g.admin("GET", "/api/providers/"+id, "")
		got := fmt.Sprint(seen.field("connection", "health", "cause", "plugin"), " ", seen.field("connection", "health", "lastErrorType"))
		if got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}
