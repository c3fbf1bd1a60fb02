package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// zoo is a provider whose connections are bad in every way; the last one is good. All ask the same upstream, which tells them
// apart by their keys.
func zoo(url string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
providers:
  - {id: zoo, executor: openai-compatible, category: local, base_url: %[1]s/v1}
  - {id: agentrouter, base_url: %[1]s/v1, category: local}
connections:
`, url)
	for i, kind := range []string{"limited", "broken", "resetting", "hanging", "stalling", "good"} {
		fmt.Fprintf(&b, "  - {id: %s, provider: zoo, api_key: key-%s, priority: %d}\n", kind, kind, i+1)
	}
	b.WriteString(`
  - {id: lying, provider: agentrouter, api_key: key-lying, priority: 1}
  - {id: honest, provider: agentrouter, api_key: key-honest, priority: 2}
combos:
  - id: all
    strategy: priority
    targets: [{model: agentrouter/m, connection: lying}, {model: zoo/m}]
resilience:
  routeDefaults: {targetTimeoutMs: 500, firstContentTimeoutMs: 500}
  providerBreaker: {local: {failureThreshold: 100}} # the bad ones must not speak for the provider
`)
	return b.String()
}

func zooUpstream(t *testing.T) *upstream {
	u := newUpstream(t)
	u.answers("key-limited", fails(429, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`))
	u.answers("key-broken", fails(500, `{"error":{"message":"The server had an error","type":"server_error"}}`))
	u.answers("key-resetting", resets)
	u.answers("key-hanging", hangs)
	u.answers("key-stalling", stalls)
	u.answers("key-lying", fails(403, `{"error":{"message":"用户额度不足","type":"new_api_error"}}`))
	return u
}

// With bad connections in front of a good one every request is answered, and once the bad ones are known a request costs one
// call (CMB-10, CMB-19, COOL-2, COOL-11, COOL-33, RST-1, STM-10).
func TestBadConnectionsAreLeftOut(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for _, model := range []string{"zoo/m", "all", "agentrouter/m"} {
			t.Run(fmt.Sprintf("%s stream=%t", strings.TrimSuffix(model, "/m"), stream), func(t *testing.T) {
				t.Parallel()
				u := zooUpstream(t)
				g := serve(t, setup{config: zoo(u.url), binary: checked})
				g.learn(model, stream)
				u.counts()
				const n = 60
				began := time.Now()
				for range n {
					if a := g.chat(model, stream); text(a, stream) != goodText {
						t.Fatalf("not answered: %d %s", a.status, a.body)
					}
				}
				byKey, total := u.counts()
				// The first cooldown of a local account is 2 s and doubles, so on a slow machine the three that cool come again.
				took := time.Since(began)
				if again := total - n; again > 3*(1+int(took/(2*time.Second))) {
					t.Errorf("%d calls for %d requests in %v: %v", total, n, took, byKey)
				}
				if byKey["key-hanging"] > 1 || byKey["key-stalling"] > 1 {
					t.Errorf("a connection that hangs was asked again: %v", byKey)
				}
			})
		}
	}
}

// learn sends the first requests, which find out which connections are bad. They are answered too, and the one that needed
// several attempts says so (OBS-5).
func (g *gateway) learn(model string, stream bool) {
	g.t.Helper()
	for i := range 4 {
		a := g.chat(model, stream)
		if text(a, stream) != goodText {
			g.t.Fatalf("request %d was not answered: %d %s", i, a.status, a.body)
		}
		if i > 0 {
			continue
		}
		want := map[string]string{"zoo/m": "6", "all": "7", "agentrouter/m": "2"}[model]
		if got := a.header.Get("X-Weir-Attempts"); got != want {
			g.t.Errorf("X-Weir-Attempts is %q, want %s; answered by %s", got, want, a.header.Get("X-Weir-Connection"))
		}
		if model != "zoo/m" && !strings.HasPrefix(a.header.Get("X-Weir-Restated"), "agentrouter-quota-misstatus;from=403") {
			g.t.Errorf("X-Weir-Restated is %q", a.header.Get("X-Weir-Restated"))
		}
	}
}

// When nothing is left the answer is an honest 429 with the time to come back, and nothing is sent upstream; when a connection
// is refused for good it does not look like the client's own 401 (COOL-72, COOL-73, INF-38, INF-40).
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.answers("key-limited", fails(429, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`, "Retry-After", "40"))
	u.answers("key-banned", fails(401, `{"error":{"message":"Your account has been deactivated","code":"account_deactivated"}}`))
	g := serve(t, setup{config: fmt.Sprintf(`
providers:
  - {id: one, executor: openai-compatible, category: apikey, base_url: %[1]s/v1}
  - {id: two, executor: openai-compatible, category: apikey, base_url: %[1]s/v1}
connections:
  - {id: limited, provider: one, api_key: key-limited}
  - {id: banned, provider: two, api_key: key-banned}
resilience: {waitForCooldown: {enabled: false}}
`, u.url)})
	for _, stream := range []bool{false, true} {
		g.chat("one/m", stream)
		u.counts()
		a := g.chat("one/m", stream)
		if a.status != http.StatusTooManyRequests || a.field("error", "code") != "model_cooldown" {
			t.Errorf("stream=%t: %d %s", stream, a.status, a.body)
		}
		if after := a.header.Get("Retry-After"); after < "30" || after > "40" || a.header.Get("Retry-After-Ms") == "" {
			t.Errorf("stream=%t: Retry-After %q, Retry-After-Ms %q", stream, after, a.header.Get("Retry-After-Ms"))
		}
		if _, total := u.counts(); total != 0 {
			t.Errorf("a cooling connection was asked")
		}
	}
	first, then := g.chat("two/m", false), g.chat("two/m", false)
	if first.status != http.StatusBadGateway || first.field("error", "code") != "upstream_auth" {
		t.Errorf("the upstream's 401 became %d %s", first.status, first.body)
	}
	if then.status != http.StatusServiceUnavailable || then.field("error", "code") != "no_usable_connection" || strings.Contains(then.body, "key-banned") {
		t.Errorf("only a banned account left: %d %s", then.status, then.body)
	}
}

// Seven keys of which six are bad for good or for a while: the request reaches the seventh at once, each bad one keeps its reason,
// and when all are bad the answer does not look like the client's own fault (SCN-7, COOL-50, COOL-55, COOL-73, CMB-19).
func TestPermanentFailuresReachTheGoodKey(t *testing.T) {
	t.Parallel()
	bad := []struct {
		id, body, health string
		status           int
	}{
		{"k1", `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`, "terminal", 401},
		{"k2", `{"error":{"message":"Insufficient balance"}}`, "terminal", 402},
		{"k3", `{"error":{"message":"Your account has been suspended"}}`, "terminal", 403},
		{"k4", `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota","type":"insufficient_quota"}}`, "", 429},
		{"k5", `{"error":{"message":"Forbidden"}}`, "", 403},
		{"k6", `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`, "cooling_down", 429},
	}
	for _, stream := range []bool{false, true} {
		u := newUpstream(t)
		config := fmt.Sprintf("providers: [{id: groq, base_url: %s/v1}]\nconnections:\n", u.url)
		for i, b := range bad {
			u.answers("key-"+b.id, fails(b.status, b.body))
			config += fmt.Sprintf("  - {id: %[1]s, provider: groq, api_key: key-%[1]s, priority: %[2]d}\n", b.id, i+1)
		}
		g := serve(t, setup{config: config + "  - {id: good, provider: groq, api_key: key-good, priority: 9}\nresilience: {waitForCooldown: {enabled: false}}\n"})
		began := time.Now()
		a := g.chat("groq/m", stream)
		if text(a, stream) != goodText || a.header.Get("X-Weir-Attempts") != "7" || a.header.Get("X-Weir-Connection") != "good" {
			t.Errorf("stream=%t: %d %v %s", stream, a.status, a.header, a.body)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the good key was reached after %v", took)
		}
		for _, b := range bad {
			h := g.admin("GET", "/api/providers/"+b.id, "")
			status := fmt.Sprint(h.field("connection", "health", "status"))
			if status == "healthy" || b.health != "" && status != b.health || h.field("connection", "health", "lastErrorType") == nil {
				t.Errorf("%s: %s", b.id, h.body)
			}
		}
		u.answers("key-good", fails(401, bad[0].body))
		first, then := g.chat("groq/m", stream), g.chat("groq/m", stream)
		if first.status != http.StatusBadGateway || first.field("error", "code") != "upstream_auth" || then.status == http.StatusUnauthorized || then.status < 402 {
			t.Errorf("all bad: %d %s, then %d %s", first.status, first.body, then.status, then.body)
		}
	}
}
