package e2e_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Beyond loopback nothing starts without a client key, and the refusal says which command makes one; with one it starts and asks
// for it (SEC-2, CFG-2, CLI-3, SCN-18).
func TestBeyondLoopbackNeedsAKey(t *testing.T) {
	t.Parallel()
	g := launch(t, setup{args: []string{"--listen", "0.0.0.0:0"}})
	if code := g.wait(20 * time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if log := withoutStart(g.log.String()); !strings.Contains(log, "weir keys create") || !strings.Contains(log, "WEIR_CLIENT_KEY") || strings.Contains(log, "goroutine") {
		t.Errorf("the refusal names no command: %s", log)
	}
	g = launch(t, setup{args: []string{"--listen", "0.0.0.0:0"}, env: []string{"WEIR_CLIENT_KEY=client-key-of-the-environment"}})
	g.ready()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	g.url = "http://127.0.0.1:" + port
	if a := g.call(http.MethodGet, "/v1/models", ""); a.status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", a.status)
	}
	if a := g.call(http.MethodGet, "/v1/models", "", "Authorization", "Bearer client-key-of-the-environment"); a.status != http.StatusOK {
		t.Errorf("with the key: %d %s", a.status, a.body)
	}
	if log := g.log.String(); !strings.Contains(log, "a client key was made from the environment") || strings.Contains(log, "client-key-of-the-environment") {
		t.Error("CFG-2: the log does not say where the client key is from, or says too much")
	}
	if a := g.call(http.MethodGet, "/metrics", ""); a.status != http.StatusUnauthorized {
		t.Errorf("OBS-2: metrics beyond loopback: %d", a.status)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := g.call(http.MethodGet, path, ""); a.status == http.StatusUnauthorized {
			t.Errorf("OBS-1: %s asks for a key", path)
		}
	}
}

// Management asks for the admin key or a key with the scope, on loopback too, and stops listening to one that guesses (SEC-1,
// OBJ-15, SCN-18).
func TestManagementNeedsTheAdminKey(t *testing.T) {
	t.Parallel()
	g := serve(t, setup{})
	for _, path := range []string{"/api/providers", "/api/status", "/api/plugins", "/api/keys", "/api/openapi.json", "/api/no-such", "/debug/pprof/"} {
		if a := g.call(http.MethodGet, path, ""); a.status != http.StatusUnauthorized {
			t.Errorf("%s without a key: %d", path, a.status)
		}
	}
	create := func(scopes string) string {
		a := g.admin(http.MethodPost, "/api/keys", fmt.Sprintf(`{"name":"k","scopes":[%s]}`, scopes))
		key, _ := a.field("key").(string)
		if a.status != http.StatusCreated || !strings.HasPrefix(key, "weir-") {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return "Bearer " + key
	}
	inference, reader, manager := create(`"inference"`), create(`"manage:read"`), create(`"manage"`)
	for _, c := range []struct {
		key, method, path string
		want              int
	}{
		{inference, "GET", "/api/status", 403}, {inference, "GET", "/v1/models", 200},
		{reader, "GET", "/api/status", 200}, {reader, "POST", "/api/providers", 403}, {reader, "GET", "/v1/models", 403},
		{manager, "GET", "/api/status", 200}, {manager, "POST", "/api/providers", 400}, {manager, "GET", "/v1/models", 403},
		{"Bearer " + g.adminKey(), "GET", "/v1/models", 401},
	} {
		if a := g.call(c.method, c.path, "{}", "Authorization", c.key); a.status != c.want {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, a.status, c.want, a.body)
		}
	}
	for i := range 10 {
		if a := g.call(http.MethodGet, "/api/status", "", "Authorization", "Bearer wrong"); a.status != http.StatusUnauthorized {
			t.Fatalf("guess %d: %d", i, a.status)
		}
	}
	if a := g.call(http.MethodGet, "/api/status", "", "Authorization", "Bearer wrong"); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("the eleventh guess: %d %v", a.status, a.header)
	}
}

// A web page can neither manage nor, while inference is open, spend the operator's accounts (SEC-3, SEC-7).
func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := serve(t, setup{config: openProvider(u.url)})
	own := strings.TrimPrefix(g.url, "http://")
	_, port, err := net.SplitHostPort(own)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		header, value string
		refused       bool
	}{
		{"Host", "evil.example", true}, {"Host", "evil.example:" + port, true}, {"Host", "127.0.0.1.evil.example:" + port, true},
		{"Origin", "https://evil.example", true}, {"Origin", "null", true}, {"Origin", "http://127.0.0.1.evil.example", true},
		{"Host", own, false}, {"Host", "localhost:" + port, false}, {"Host", "[::1]:" + port, false}, {"Origin", "http://" + own, false},
	}
	for _, c := range cases {
		for what, a := range map[string]answer{
			"management": g.admin(http.MethodGet, "/api/status", "", c.header, c.value),
			"inference":  g.chat("open/m", false, c.header, c.value, "Content-Type", "text/plain"),
		} {
			if refused := a.status == http.StatusForbidden && a.field("error", "code") == "origin_not_allowed"; refused != c.refused {
				t.Errorf("%s with %s %s: %d %s", what, c.header, c.value, a.status, a.body)
			}
		}
	}
	if a := g.chat("open/m", false, "Origin", "http://localhost:3000"); a.status != http.StatusOK {
		t.Errorf("a page of this machine: %d %s", a.status, a.body)
	}
	if h := g.chat("open/m", false, "Origin", "http://localhost:3000").header; h.Get("Access-Control-Allow-Origin") != "" {
		t.Error("CORS is on")
	}
}

// openProvider is a provider with one good connection.
func openProvider(url string) string {
	return fmt.Sprintf(`
providers: [{id: open, executor: openai-compatible, category: local, base_url: %s/v1, models: [m, n]}]
connections: [{id: only, provider: open, api_key: key-only}]
`, url)
}

// Bodies and headers have a limit, and a client that is slow with its headers is cut (SEC-4, INF-17).
func TestLimitsOfRequests(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := serve(t, setup{config: "max_body: 64KiB\n" + openProvider(u.url)})
	fits, large := question("open/m", false), fmt.Sprintf(`{"model":"open/m","messages":[{"role":"user","content":%q}]}`, strings.Repeat("x", 64<<10))
	if a := g.call("POST", "/v1/chat/completions", fits); a.status != http.StatusOK {
		t.Errorf("%d", a.status)
	}
	a := g.call("POST", "/v1/chat/completions", large)
	if a.status != http.StatusRequestEntityTooLarge || a.field("error", "type") != "invalid_request_error" || a.field("error", "message") == nil {
		t.Errorf("large body: %d %s", a.status, a.body)
	}
	if a := g.admin("POST", "/api/providers", `{"name":"`+strings.Repeat("x", 2<<20)+`"}`); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("large management body: %d", a.status)
	}
	if a, err := g.try(t.Context(), "GET", "/v1/models", "", "X-Long", strings.Repeat("x", 100<<10)); err == nil && a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("100 KiB of headers: %d", a.status)
	}
	slow, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	began := time.Now()
	if _, err := io.WriteString(slow, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	if err := slow.SetReadDeadline(began.Add(15 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, slow); err != nil {
		t.Errorf("the slow client was not cut: %v", err)
	}
	if took := time.Since(began); took < 8*time.Second || took > 13*time.Second {
		t.Errorf("the slow client was cut after %v", took)
	}
}

// What is no route answers in the shape of the asking SDK, and never touches an upstream (INF-5, INF-6, INF-3, INF-18, INF-30).
func TestShapesOfRefusals(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := serve(t, setup{config: openProvider(u.url), env: []string{"WEIR_CLIENT_KEY=client-key-of-the-environment"}})
	a := g.call("GET", "/v1/nothing/here", "")
	if a.status != 404 || a.field("error", "type") != "invalid_request_error" || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") || a.header.Get("X-Request-Id") == "" {
		t.Errorf("unknown path: %d %v %s", a.status, a.header, a.body)
	}
	if a := g.call("GET", "/v1/nothing", "", "anthropic-version", "2023-06-01"); a.field("type") != "error" || a.field("error", "type") != "not_found_error" {
		t.Errorf("unknown path for an Anthropic SDK: %s", a.body)
	}
	if a := g.call("GET", "/v1/nothing", "", "x-goog-api-key", "k"); a.field("error", "status") != "NOT_FOUND" {
		t.Errorf("unknown path for a Google SDK: %s", a.body)
	}
	for _, path := range []string{"/", "/favicon.ico", "/v1", "/v2/x"} {
		if a := g.call("GET", path, ""); strings.Contains(a.body, "<html") || a.status == 200 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := g.call("GET", "/v1/chat/completions", ""); a.status != 405 || !strings.Contains(a.header.Get("Allow"), "POST") {
		t.Errorf("wrong method: %d %v", a.status, a.header)
	}
	for _, method := range []string{"OPTIONS", "HEAD"} {
		for _, path := range []string{"/v1/chat/completions", "/v1/models", "/v1/models/open/m"} {
			if a := g.call(method, path, ""); a.status >= 300 || a.body != "" {
				t.Errorf("%s %s: %d %q", method, path, a.status, a.body)
			}
		}
	}
	if _, total := u.counts(); total != 0 {
		t.Errorf("the upstream was asked %d times", total)
	}
}

// A client key is taken from the places where SDKs put it; two different ones are not guessed between (INF-10, INF-11).
func TestPlacesOfTheClientKey(t *testing.T) {
	t.Parallel()
	const key, other = "client-key-of-the-environment", "another-key-that-is-not-known"
	u := newUpstream(t)
	g := serve(t, setup{config: openProvider(u.url), env: []string{"WEIR_CLIENT_KEY=" + key}, args: []string{"--log-level", "debug", "--access-log"}})
	for _, headers := range [][]string{
		{"Authorization", "Bearer " + key}, {"Authorization", "bearer " + key}, {"x-api-key", key}, {"x-goog-api-key", key},
		{"Authorization", "Bearer " + key, "x-api-key", key},
	} {
		if a := g.chat("open/m", false, headers...); a.status != http.StatusOK {
			t.Errorf("%v: %d %s", headers, a.status, a.body)
		}
	}
	if a := g.call("POST", "/v1/chat/completions?key="+key, question("open/m", false)); a.status != http.StatusOK {
		t.Errorf("in the query: %d %s", a.status, a.body)
	}
	if a := g.chat("open/m", false, "Authorization", "Bearer "+key, "x-api-key", other); a.status != http.StatusBadRequest {
		t.Errorf("two keys: %d %s", a.status, a.body)
	}
	for _, headers := range [][]string{nil, {"x-api-key", other}, {"Authorization", key}, {"Authorization", "Basic " + key}} {
		if a := g.chat("open/m", false, headers...); a.status != http.StatusUnauthorized || a.field("error", "code") != "invalid_api_key" {
			t.Errorf("%v: %d %s", headers, a.status, a.body)
		}
	}
	if seen := u.record(); strings.Contains(seen, key) || strings.Contains(seen, other) || !strings.Contains(seen, "key-only") {
		t.Error("INF-11: the client's key reached the upstream")
	}
	if log := g.log.String(); strings.Contains(log, key) || strings.Contains(log, other) {
		t.Error("INF-11: the client's key is in the log")
	}
}
