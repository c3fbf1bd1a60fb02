package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// again kills the gateway as kill -9 does and starts it on the same folder.
func (g *gateway) again(s setup) *gateway {
	g.t.Helper()
	g.kill()
	s.data = g.data
	return serve(g.t, s)
}

// What was known before kill -9 is known after it: the rest of a cooldown, a terminal state, and every object that was made
// through the API; a key that was shown once still works (OV-5, DATA-2, OBJ-14, OBJ-22, OBJ-23, SCN-20).
func TestStateSurvivesAKill(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.answers("key-cooling", fails(429, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`, "Retry-After", "300"))
	u.answers("key-banned", fails(403, `{"error":{"message":"Your account has been suspended","type":"x"}}`))
	s := setup{config: fmt.Sprintf(`
providers:
  - {id: acme, executor: openai-compatible, category: apikey, base_url: %[1]s/v1}
  - {id: spare, executor: openai-compatible, category: local, base_url: %[1]s/v1}
`, u.url)}
	g := serve(t, s)
	must := func(method, path, body string, want int) answer {
		t.Helper()
		a := g.admin(method, path, body)
		if a.status != want {
			t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
		}
		return a
	}
	must("POST", "/api/providers", `{"id":"cooling","provider":"acme","apiKey":"key-cooling","priority":1}`, 201)
	must("POST", "/api/providers", `{"id":"banned","provider":"acme","apiKey":"key-banned","priority":2}`, 201)
	must("POST", "/api/providers", `{"id":"good","provider":"acme","apiKey":"key-good","priority":3}`, 201)
	must("POST", "/api/combos", `{"name":"best","targets":[{"model":"acme/m"},{"model":"spare/m"}]}`, 201)
	must("PUT", "/api/models/alias", `{"alias":"gpt-4","model":"best"}`, 200)
	must("PATCH", "/api/resilience", `{"connectionCooldown":{"apikey":{"baseCooldownMs":7000}}}`, 200)
	must("PATCH", "/api/settings", `{"customBannedSignals":["the drawbridge is up"]}`, 200)
	key := fmt.Sprint(must("POST", "/api/keys", `{"name":"laptop","allowedModels":["gpt-4"]}`, 201).field("key"))
	if a := g.chat("gpt-4", false, "x-api-key", key); text(a, false) != goodText {
		t.Fatalf("%d %s", a.status, a.body)
	}
	before := g.remember()
	time.Sleep(100 * time.Millisecond) // events may be 50 ms late (OV-8)
	for range 2 {
		g = g.again(s)
		after := g.remember()
		for what, was := range before {
			if after[what] != was {
				t.Errorf("%s was %s, is %s", what, was, after[what])
			}
		}
		u.counts()
		if a := g.chat("gpt-4", true, "x-api-key", key); text(a, true) != goodText {
			t.Errorf("the key that was shown once: %d %s", a.status, a.body)
		}
		if a := g.chat("acme/m", true, "x-api-key", key); a.status != http.StatusForbidden {
			t.Errorf("the key's list of models: %d", a.status)
		}
		if byKey, total := u.counts(); total != 1 || byKey["key-good"] != 1 {
			t.Errorf("connections that are out were asked: %v", byKey)
		}
		if h := g.weir("history"); h.code != 0 || !strings.Contains(h.out, "cooling") || !strings.Contains(h.out, "banned") {
			t.Errorf("OBJ-23: weir history: %d %s %s", h.code, h.out, h.err)
		}
	}
}

// remember returns what must survive.
func (g *gateway) remember() map[string]string {
	g.t.Helper()
	out := map[string]string{}
	for _, id := range []string{"cooling", "banned", "good"} {
		a := g.admin("GET", "/api/providers/"+id, "")
		for _, field := range []string{"status", "testStatus", "rateLimitedUntil", "lastErrorType", "backoffLevel", "cause"} {
			out[id+" "+field] = jsonText(a.field("connection", "health", field))
		}
		out[id+" hint"] = jsonText(a.field("connection", "credentials"))
		out[id+" revision"] = jsonText(a.field("connection", "revision"))
	}
	if out["cooling status"] != `"cooling_down"` || out["cooling rateLimitedUntil"] == "null" || out["banned status"] != `"terminal"` {
		g.t.Errorf("unexpected state: %v", out)
	}
	for _, path := range []string{"/api/combos/best", "/api/models/alias", "/api/resilience", "/api/settings"} {
		out[path] = g.admin("GET", path, "").body
	}
	keys, _ := g.admin("GET", "/api/keys", "").field("keys").([]any)
	for _, k := range keys {
		m, _ := k.(map[string]any)
		delete(m, "lastUsedAt") // written at most once a minute
		out["key"] = jsonText(m)
	}
	return out
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// kills is how often TestKillsDuringWrites kills.
const kills = 12

// Whatever was acknowledged before a kill at a random instant is there after it, and the folder opens each time (DATA-2).
func TestKillsDuringWrites(t *testing.T) {
	t.Parallel()
	s := setup{env: []string{"WEIR_ADMIN_KEY=an-admin-key-for-the-crash-test"}}
	g := serve(t, s)
	var mu sync.Mutex
	acknowledged := map[string]bool{} // path: exists
	for round := range kills {
		var wg sync.WaitGroup
		for writer := range 4 {
			wg.Go(func() { g.scribble(round, writer, &mu, acknowledged) })
		}
		time.Sleep(time.Duration(5+rand.IntN(120)) * time.Millisecond)
		g.kill()
		wg.Wait()
		s.data = g.data
		g = serve(t, s)
		for path, exists := range acknowledged {
			if a := g.admin("GET", path, ""); exists != (a.status == http.StatusOK) {
				t.Fatalf("after kill %d: %s exists=%t was acknowledged, but %d %s", round+1, path, exists, a.status, a.body)
			}
		}
	}
	if len(acknowledged) < 2*kills {
		t.Errorf("only %d writes were acknowledged", len(acknowledged))
	}
	t.Logf("%d kills, %d acknowledged objects", kills, len(acknowledged))
}

// scribble makes and deletes objects until the gateway is gone.
func (g *gateway) scribble(round, writer int, mu *sync.Mutex, acknowledged map[string]bool) {
	for i := 0; ; i++ {
		id := fmt.Sprintf("w%d-%d-%d", round, writer, i)
		method, path, body, object := "POST", "/api/providers", fmt.Sprintf(`{"id":%q,"provider":"groq","apiKey":"gsk-%s"}`, id, id), "/api/providers/"+id
		if i%3 == 1 {
			path, body, object = "/api/combos", fmt.Sprintf(`{"name":%q,"targets":[{"model":"groq/m"}]}`, id), "/api/combos/"+id
		}
		if i%5 == 4 { // the connection of an earlier turn goes
			object = fmt.Sprintf("/api/providers/w%d-%d-%d", round, writer, i-i%3)
			method, path, body = "DELETE", object, ""
		}
		if method == "DELETE" { // unknown until it is acknowledged
			mu.Lock()
			known := acknowledged[object]
			delete(acknowledged, object)
			mu.Unlock()
			if !known {
				continue
			}
		}
		a, err := g.try(g.t.Context(), method, path, body, "Authorization", "Bearer an-admin-key-for-the-crash-test")
		if err != nil {
			return
		}
		if a.status >= 300 {
			g.t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
			return
		}
		mu.Lock()
		acknowledged[object] = method == "POST"
		mu.Unlock()
	}
}

// A second gateway on the same folder is refused with one sentence and does no harm to the first (DATA-2, CLI-3).
func TestSecondGatewayOnTheFolder(t *testing.T) {
	t.Parallel()
	g := serve(t, setup{})
	second := launch(t, setup{data: g.data})
	code := second.wait(20 * time.Second)
	log := withoutStart(second.log.String())
	if code != 1 || strings.Count(strings.TrimSpace(log), "\n") != 0 || !strings.Contains(log, "weir: ") || !strings.Contains(log, filepath.Base(g.data)) {
		t.Errorf("code %d: %s", code, log)
	}
	if a := g.admin("POST", "/api/providers", `{"id":"c","provider":"groq","apiKey":"gsk-1"}`); a.status != 201 {
		t.Errorf("the first one was harmed: %d %s", a.status, a.body)
	}
	if s := g.weir("status"); s.code != 0 {
		t.Errorf("the address of the first one is gone: %s", s.err)
	}
}

// Without the key that sealed the folder the start is refused, and nothing is overwritten (DATA-1).
func TestWrongSecretKey(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	s := setup{config: fmt.Sprintf("providers: [{id: acme, executor: openai-compatible, category: local, base_url: %s/v1}]\n", u.url)}
	g := serve(t, s)
	if a := g.admin("POST", "/api/providers", `{"id":"c","provider":"acme","apiKey":"key-of-the-store"}`); a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if code := g.end(15); code != 0 {
		t.Fatalf("code %d", code)
	}
	s.data = g.data
	secret := read(t, filepath.Join(g.data, "secret.key"))
	for _, wrong := range []string{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "short"} {
		s.env = []string{"WEIR_SECRET_KEY=" + wrong}
		bad := launch(t, s)
		if code := bad.wait(20 * time.Second); code != 1 || !strings.Contains(strings.ToLower(bad.log.String()), "secret") {
			t.Errorf("%s: code %d: %s", wrong, code, withoutStart(bad.log.String()))
		}
	}
	s.env = nil
	g = serve(t, s)
	if now := read(t, filepath.Join(g.data, "secret.key")); now != secret {
		t.Error("the key was overwritten")
	}
	if a := g.chat("acme/m", false); text(a, false) != goodText || !strings.Contains(u.record(), "key-of-the-store") {
		t.Errorf("the sealed key is lost: %d %s", a.status, a.body)
	}
}
