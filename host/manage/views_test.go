package manage_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/manage"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// OBJ-25, OTH-53: explain lists what would be tried and what is left out by which gate until when, and touches nothing.
func TestExplain(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		r.call("POST", "/api/providers", `{"id":"`+id+`","provider":"openai","apiKey":"sk-`+id+`-0123456789"}`).is(201)
	}
	r.call("PATCH", "/api/providers/c", `{"isActive":false}`).is(200)
	r.call("PATCH", "/api/providers/d", `{"excludedModels":["gpt-5"]}`).is(200)
	r.fail("a", "gpt-5", wire.Verdict{Reason: wire.QuotaExhausted, Scope: wire.ScopeConnection, Fallback: true, RetryAfter: time.Hour, Hinted: true, Plugin: "p", Rule: "r"})
	before := r.call("GET", "/api/providers/a", "").text
	a := r.call("POST", "/api/resilience/explain", `{"model":"oai/gpt-5"}`).is(200).has("model", "oai/gpt-5", "resolved.kind", "direct", "resolved.name", "openai/gpt-5",
		"candidates.0.connectionId", "a", "candidates.0.order", 1, "candidates.0.verdict", "excluded", "candidates.0.gate", "connection_cooldown",
		"candidates.0.reason", "quota_exhausted", "candidates.0.until", "2026-07-01T13:00:00.000Z", "candidates.0.cause.rule", "r",
		"candidates.1.connectionId", "b", "candidates.1.verdict", "would_try", "candidates.1.gate", nil,
		"candidates.2.connectionId", "c", "candidates.2.reason", "inactive", "candidates.3.connectionId", "d", "candidates.3.reason", "model_not_served", "candidates.4", nil)
	if a.at("candidates.0.cause.at") != "2026-07-01T12:00:00.000Z" {
		t.Errorf("cause.at is %v", a.at("candidates.0.cause.at"))
	}
	if after := r.call("GET", "/api/providers/a", "").text; after != before {
		t.Error("explain changed the state")
	}
	u := r.call("POST", "/api/resilience/explain", `{"model":"openai/gpt-55"}`).refused(404, "model_not_found")
	if !strings.Contains(u.text, "are openai/gpt-5") {
		t.Errorf("no near names: %s", u.text)
	}
	id := r.call("POST", "/api/keys", `{"allowedConnections":["b"],"allowedModels":["openai/*"]}`).is(201).at("id").(string)
	r.call("POST", "/api/resilience/explain", `{"model":"openai/gpt-5","apiKeyId":"`+id+`"}`).is(200).
		has("candidates.0.connectionId", "b", "candidates.1.connectionId", "a", "candidates.1.reason", "not_allowed_by_key")
	r.call("POST", "/api/resilience/explain", `{"model":"gpt-5","apiKeyId":"`+id+`"}`).is(403)
	r.call("POST", "/api/resilience/explain", `{}`).refused(400, "bad_request")
}

// OBJ-24, OBS-1, API-60.
func TestStatusAndHealth(t *testing.T) {
	r := newRig(t)
	r.call("GET", "/readyz", "", "Authorization", "").is(503).has("ready", false, "store", "ok", "plugins", "loaded", "connections", "none is usable")
	r.call("POST", "/api/providers", main).is(201)
	r.call("GET", "/readyz", "", "Authorization", "").is(200).has("ready", true)
	r.fail("main", "gpt-5", wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeConnection, Fallback: true})
	r.call("GET", "/api/status", "").is(200).has("version", "v1", "uptimeMs", 60000, "address", "http://127.0.0.1:8787", "demo", false,
		"store.kind", "memory", "store.state", "ok", "config.file", nil, "providers.1.id", "openai", "providers.1.breaker", nil,
		"providers.1.connections.total", 1, "providers.1.connections.cooling", 1, "providers.1.connections.usable", 0,
		"providers.1.earliestEnd", "2026-07-01T12:00:03.000Z", "plugins.active", 1, "requests.lastMinute", 0, "requests.p50Ms", nil)
	r.call("GET", "/readyz", "").is(503)
	r.call("GET", "/api/monitoring/health", "").is(200).has("status", "healthy", "version", "v1", "uptime", 60, "activeConnections", 0,
		"circuitBreakers.total", 0, "connectionHealth.main.status", "cooling_down", "providerHealth.openai.cooling", 1, "lockouts", []any{})
	short := r.call("GET", "/api/monitoring/health", "", "Authorization", "").is(200).has("status", "healthy", "uptime", 60)
	if strings.Contains(short.text, "main") || strings.Contains(short.text, "activeConnections") {
		t.Errorf("a stranger learns %s", short.text)
	}
	loading := newRig(t, func(r *rig) {
		facts := r.ports.Facts
		r.ports.Facts = func() manage.Facts { f := facts(); f.PluginsLoaded = false; return f }
	})
	loading.call("GET", "/readyz", "").is(503).has("plugins", "loading")
}

// PLG-15, as far as plugins are read.
func TestPlugins(t *testing.T) {
	r := newRig(t)
	r.call("GET", "/api/plugins", "").is(200).has("total", 1, "plugins.0.name", "openai", "plugins.0.state", "active", "plugins.0.loadedAt", "2026-07-01T12:00:00.000Z", "plugins.0.manifest", nil)
	r.call("GET", "/api/plugins/openai", "").is(200).has("version", "1.0.0", "manifest.name", "openai")
	r.call("GET", "/api/plugins/nobody", "").refused(404, "not_found")
	// OBJ-1: every time in UTC with milliseconds
	at := time.Date(2026, 7, 1, 14, 0, 0, 123456789, time.FixedZone("", 7200))
	r = newRig(t, func(r *rig) {
		r.ports.Plugins = func() []plugin.Status {
			return []plugin.Status{{Name: "p", Fault: &plugin.Fault{Step: "read", At: at}, Quarantine: &plugin.Quarantine{Until: at, Trial: true},
				Violation: &plugin.Violation{Op: "classify", At: at}}}
		}
	})
	const shown = "2026-07-01T12:00:00.123Z"
	r.call("GET", "/api/plugins", "").is(200).has("plugins.0.fault.at", shown, "plugins.0.fault.step", "read",
		"plugins.0.quarantine.until", shown, "plugins.0.quarantine.trial", true, "plugins.0.violation.at", shown, "plugins.0.violation.op", "classify")
	if _, err := r.store.Append(t.Context(), store.Event{Kind: "plugin.quarantined", Key: "p", Data: []byte(`{"violation":{"at":"2026-07-01T14:00:00.123456789+02:00"}}`)}); err != nil {
		t.Fatal(err)
	}
	r.call("GET", "/api/events", "").is(200).has("events.0.data.violation.at", shown)
}

// PLG-5: a quarantine can be lifted by hand; what is in none, or not there, says so.
func TestUnquarantine(t *testing.T) {
	state := "quarantined"
	r := newRig(t, func(r *rig) {
		r.ports.Plugins = func() []plugin.Status { return []plugin.Status{{Name: "p", State: state}} }
		r.ports.Unquarantine = func(name string) bool {
			lifted := name == "p" && state == "quarantined"
			if lifted {
				state = plugin.StateActive
			}
			return lifted
		}
	})
	r.call("POST", "/api/plugins/p/unquarantine", "").is(200).has("name", "p", "state", "active")
	r.call("POST", "/api/plugins/p/unquarantine", "").refused(409, "not_quarantined")
	r.call("POST", "/api/plugins/nobody/unquarantine", "").refused(404, "not_found")
}

// OBS-7: the description has every route of management and inference, and no other.
func TestOpenAPI(t *testing.T) {
	r := newRig(t)
	a := r.call("GET", "/api/openapi.json", "").is(200).has("openapi", "3.1.0", "info.version", "v1",
		"paths./v1/chat/completions.post.security.0.key", "[]")
	var doc struct {
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(a.text), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"POST /v1/chat/completions": true}
	for _, e := range manage.Table() {
		want[e.Method+" "+e.Path] = true
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			name := strings.ToUpper(method) + " " + path
			if !want[name] {
				t.Errorf("%s is described and does not exist", name)
			}
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("%s is not described", name)
	}
	for ref := range strings.SplitSeq(a.text, `"$ref":"#/components/schemas/`) {
		name, _, ok := strings.Cut(ref, `"`)
		if ok && !strings.HasPrefix(ref, "{") && doc.Components.Schemas[name] == nil {
			t.Errorf("the schema %s is referred to and missing", name)
		}
	}
}

// OBJ-22, OBJ-23: the journal by parts, filtered.
func TestEvents(t *testing.T) {
	r := newRig(t)
	r.call("POST", "/api/providers", main).is(201)
	r.fail("main", "gpt-5", wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeConnection, Fallback: true})
	r.recorder.Append(store.Event{Kind: "config.reloaded", Key: "config", Data: []byte(`{"file":"weir.yaml"}`)})
	r.settle(2)
	r.call("GET", "/api/events", "").is(200).has("events.0.seq", 1, "events.0.kind", "connection.cooldown", "events.0.connectionId", "main",
		"events.0.provider", "openai", "events.0.at", "2026-07-01T12:00:00.000Z", "events.0.v", 1, "events.0.data.lastErrorType", "rate_limit_exceeded",
		"events.0.data.rateLimitedUntil", "2026-07-01T12:00:03.000Z", "events.0.data.cause.at", "2026-07-01T12:00:00.000Z", "events.0.data.cause.status", 429,
		"events.1.data.file", "weir.yaml", "next", 2, "events.0.key", nil)
	r.call("GET", "/api/events?after=1", "").is(200).has("events.0.seq", 2, "events.1", nil)
	r.call("GET", "/api/events?kind=config.reloaded", "").is(200).has("events.0.seq", 2, "events.1", nil)
	r.call("GET", "/api/events?limit=1", "").is(200).has("next", 1, "events.1", nil)
	r.call("GET", "/api/events?after=x", "").refused(400, "bad_request")
}

// settle waits until the journal has n events.
func (r *rig) settle(n store.Seq) {
	r.t.Helper()
	events, cancel := r.recorder.Subscribe(0)
	defer cancel()
	timeout := time.After(5 * time.Second)
	for {
		select {
		case e := <-events:
			if e.Seq >= n {
				return
			}
		case <-timeout:
			r.t.Fatalf("the journal has no event %d", n)
		}
	}
}

// OBJ-23: the live feed resumes after Last-Event-ID, goes on with what happens, and ends with the host.
func TestFeed(t *testing.T) {
	stopping := make(chan struct{})
	r := newRig(t, func(r *rig) { r.ports.Stopping = stopping })
	srv := httptest.NewServer(r.server.Handler())
	defer srv.Close()
	for i := range 3 {
		r.recorder.Append(store.Event{Kind: "config.reloaded", Key: "config", Data: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	r.settle(3)
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/api/events?kind=config.reloaded", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminKey)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", "2")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	next := func(prefix string) string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				return text
			}
		}
		t.Fatalf("the feed ended without %q", prefix)
		return ""
	}
	if id := next("id: "); id != "3" {
		t.Errorf("the feed began with %s, want 3", id)
	}
	if data := next("data: "); !strings.Contains(data, `"n":2`) {
		t.Errorf("data %s", data)
	}
	r.recorder.Append(store.Event{Kind: "plugin.loaded", Key: "p", Data: []byte(`{}`)}, store.Event{Kind: "config.reloaded", Key: "config", Data: []byte(`{"n":9}`)})
	if id := next("id: "); id != "5" {
		t.Errorf("the next is %s, want 5: 4 is of another kind", id)
	}
	close(stopping)
	for lines.Scan() {
	}
	if lines.Err() != nil {
		t.Errorf("the feed did not end properly: %v", lines.Err())
	}
}

// API-3, DATA-1: marker secrets in every field that takes one are in no answer and no log line.
func TestNoEndpointShowsASecret(t *testing.T) {
	const marker = "MARKER"
	secret := func(i int) string { return fmt.Sprintf("%s-%d-0123456789abcdef-end%d", marker, i, i) }
	hash := catalog.HashKey(secret(0))
	r := newRig(t, file(catalog.Input{
		Connections: entry(catalog.ConnectionInput{ID: "filed", Provider: "openai", APIKey: secret(1)}),
		Keys:        entry(catalog.KeyInput{ID: "filed", Hash: hash[:]}),
	}), func(r *rig) { r.env["WEIR_CLIENT_KEY"] = secret(2) })
	r.call("POST", "/api/catalog/providers", `{"id":"mine","executor":"openai","baseUrl":"https://mine.example/v1","headers":{"X-Api-Key":"`+secret(3)+`"}}`).is(201)
	body := fmt.Sprintf(`{"id":"x","provider":"mine","apiKey":%q,"accessToken":%q,"refreshToken":%q,"secrets":{"cookie":%q},
		"providerSpecificData":{"email":"%s@example.com","nested":{"deep":%q},"plain":%q}}`,
		secret(4), secret(5), secret(6), secret(7), marker, secret(8), secret(9))
	if a := r.call("POST", "/api/providers", body).is(201); strings.Contains(a.text, marker) {
		t.Errorf("create shows a secret: %s", a.text)
	}
	r.fail("x", "gpt-5", wire.Verdict{Reason: wire.AuthError, Scope: wire.ScopeConnection, Fallback: true})
	r.call("POST", "/api/combos", `{"name":"x","targets":["openai/gpt-5"]}`).is(201)
	for _, e := range manage.Table() {
		path := strings.NewReplacer("{id}", "x", "{name}", "x").Replace(e.Path)
		for _, query := range []string{"", "?explain=true"} {
			if e.Method == "DELETE" {
				continue
			}
			for _, sent := range []string{"", `{}`, body, `{"apiKey":"` + secret(4) + `","x":1}`, `{"model":"mine/` + marker + `"}`} {
				if e.Method == "GET" && sent != "" || strings.Contains(sent, "model") && e.Path == "/api/resilience/explain" {
					continue // what a caller asks about may be repeated
				}
				a := r.call(e.Method, path+query, sent)
				if strings.Contains(a.text, marker) || strings.Contains(fmt.Sprint(a.header), marker) {
					t.Errorf("%s %s with %s shows a secret: %s", e.Method, path+query, sent, a.text)
				}
			}
		}
	}
	if strings.Contains(r.log.String(), marker) {
		t.Errorf("the log has a secret: %s", r.log.String())
	}
}

// API-2: a failure that nobody foresaw says nothing about the inside, and the log has it with the request's id.
func TestUnexpectedFailure(t *testing.T) {
	for name, plugins := range map[string]func() []plugin.Status{
		"panic": func() []plugin.Status { panic("/secret/path/file.go:7 broke") },
	} {
		r := newRig(t, func(r *rig) { r.ports.Plugins = plugins })
		a := r.call("GET", "/api/plugins", "").is(500)
		if text, ok := a.at("error").(string); !ok || strings.Contains(text, "secret") {
			t.Errorf("%s: answer %s", name, a.text)
		}
		if !strings.Contains(r.log.String(), "broke") || !strings.Contains(r.log.String(), a.header.Get("X-Request-Id")) {
			t.Errorf("%s: the log says %s", name, r.log.String())
		}
	}
	failing := newRig(t)
	_ = failing.store.Close()
	failing.call("PATCH", "/api/keys/x", `{}`).refused(503, "service_unavailable")
}
