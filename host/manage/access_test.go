package manage_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/manage"
)

// public are the endpoints that answer without a key.
var public = map[string]bool{"/healthz": true, "/readyz": true, "/api/monitoring/health": true, "/metrics": true}

// API-1, SEC-1: every endpoint of the table but the open ones wants a key.
func TestEveryEndpointNeedsAKey(t *testing.T) {
	r := newRig(t)
	for _, e := range manage.Table() {
		path := strings.NewReplacer("{id}", "x", "{name}", "x").Replace(e.Path)
		a := r.call(e.Method, path, "{}", "Authorization", "")
		if public[e.Path] {
			if a.status != 200 && a.status != 503 {
				t.Errorf("%s %s: %d without a key, want an answer", e.Method, e.Path, a.status)
			}
			continue
		}
		a.refused(401, "invalid_api_key").has("error.type", "authentication_error")
	}
	r.call("GET", "/debug/pprof/", "", "Authorization", "").refused(401, "invalid_api_key")
	r.call("GET", "/api/nothing", "", "Authorization", "").refused(401, "invalid_api_key")
	r.call("GET", "/api/nothing", "").refused(404, "not_found")
}

// OBJ-15: manage opens everything, manage:read the reads, inference nothing.
func TestScopesOfKeys(t *testing.T) {
	r := newRig(t)
	keys := map[string]string{}
	for _, scope := range []string{"manage", "manage:read", "inference"} {
		keys[scope] = r.call("POST", "/api/keys", `{"name":"k","scopes":["`+scope+`"]}`).is(201).at("key").(string)
	}
	for _, e := range manage.Table() {
		if public[e.Path] {
			continue
		}
		path := strings.NewReplacer("{id}", "x", "{name}", "x").Replace(e.Path)
		for scope, key := range keys {
			reads := e.Method == "GET" || e.Path == "/api/resilience/explain" || e.Path == "/api/resilience/rules/preview"
			allowed := scope == "manage" || scope == "manage:read" && reads
			a := r.call(e.Method, path, "{}", "Authorization", "Bearer "+key)
			if allowed == (a.status == 403) || a.status == 401 {
				t.Errorf("%s with %s: %s %s answers %d", key[:8], scope, e.Method, e.Path, a.status)
			}
			if !allowed {
				a.has("error.type", "permission_error")
			}
		}
	}
	id := r.call("POST", "/api/keys", `{"scopes":["manage"],"expiresAt":"2026-07-01T13:00:00Z"}`).is(201)
	key := id.at("key").(string)
	r.call("GET", "/api/keys", "", "Authorization", "Bearer "+key).is(200)
	r.pass(time.Hour)
	r.call("GET", "/api/keys", "", "Authorization", "Bearer "+key).refused(401, "invalid_api_key")
	r.call("PATCH", "/api/keys/"+id.at("id").(string), `{"expiresAt":null,"isActive":false}`).is(200)
	r.call("GET", "/api/keys", "", "Authorization", "Bearer "+key).refused(401, "invalid_api_key")
}

// SEC-1: after ten wrong keys in a minute an address has to wait, and only that one.
func TestTooManyWrongKeys(t *testing.T) {
	r := newRig(t)
	wrong := func(from string) answer {
		return r.call("GET", "/api/keys", "", "Authorization", "Bearer guess", "From", from)
	}
	for range 10 {
		wrong("10.0.0.1:1234").refused(401, "invalid_api_key")
	}
	a := wrong("10.0.0.1:9999").refused(429, "rate_limit_exceeded")
	if a.header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After %q, want 60", a.header.Get("Retry-After"))
	}
	r.call("GET", "/api/keys", "", "From", "10.0.0.1:5").refused(429, "rate_limit_exceeded") // the right key is a guess too
	wrong("10.0.0.2:1234").refused(401, "invalid_api_key")
	r.call("GET", "/api/keys", "", "From", "10.0.0.2:5").is(200)
	for range 10 {
		wrong("[2001:db8:1:2::1]:5")
	}
	wrong("[2001:db8:1:2:ffff::9]:5").refused(429, "rate_limit_exceeded") // one caller has the whole /64
	wrong("[2001:db8:1:3::1]:5").refused(401, "invalid_api_key")
	r.pass(time.Minute)
	r.call("GET", "/api/keys", "", "From", "10.0.0.1:5").is(200)
}

// SEC-3: names that a page could have been given, and pages of others, are refused; CORS is off.
func TestHostAndOrigin(t *testing.T) {
	r := newRig(t)
	for host, ok := range map[string]bool{
		"127.0.0.1:8787": true, "localhost:8787": true, "[::1]:8787": true, "127.0.0.1": true, "weir.localhost": true,
		"evil.example": false, "evil.example:8787": false, "192.168.1.4:8787": false, "localhost.evil.example": false, "": false,
	} {
		a := r.call("GET", "/api/keys", "", "Host", host)
		if ok {
			a.is(200)
		} else {
			a.refused(403, "origin_not_allowed")
		}
	}
	r.call("GET", "/healthz", "", "Host", "any.example").is(200)
	r.call("GET", "/metrics", "", "Host", "evil.example").refused(403, "origin_not_allowed")
	for origin, ok := range map[string]bool{
		"http://127.0.0.1:8787": true, "http://127.0.0.1:3000": false, "https://evil.example": false, "null": false,
	} {
		a := r.call("GET", "/api/keys", "", "Origin", origin)
		if ok {
			a.is(200)
		} else {
			a.refused(403, "origin_not_allowed")
		}
		if a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Error("CORS is on")
		}
	}
	beyond := newRig(t, func(r *rig) { r.ports.Listener = manage.Listener{Host: "0.0.0.0", Hosts: []string{"weir.example"}} })
	for host, ok := range map[string]bool{"10.1.2.3:8787": true, "weir:8787": true, "weir.example": true, "evil.example": false} {
		if got := beyond.call("GET", "/api/keys", "", "Host", host).status == 200; got != ok {
			t.Errorf("Host %s on a public listener: %v, want %v", host, got, ok)
		}
	}
}

// OBS-2: metrics are open on loopback only.
func TestMetricsBeyondLoopback(t *testing.T) {
	r := newRig(t, func(r *rig) { r.ports.Listener = manage.Listener{Host: "0.0.0.0"} })
	r.call("GET", "/metrics", "", "Authorization", "").refused(401, "invalid_api_key")
	r.call("GET", "/metrics", "").is(200)
	r.call("GET", "/healthz", "", "Authorization", "").is(200)
	local := newRig(t)
	if a := local.call("GET", "/metrics", "", "Authorization", "").is(200); !strings.Contains(a.text, "go_goroutines") {
		t.Error("no metrics in the answer")
	}
}

// SEC-1: with no admin key only a client key opens management.
func TestWithoutAdminKey(t *testing.T) {
	hash := catalog.HashKey("a-key-of-the-file-0123")
	r := newRig(t, func(r *rig) { r.ports.AdminKey = "" }, file(catalog.Input{Keys: entry(catalog.KeyInput{
		ID: "ops", Hash: hash[:], Scopes: []string{"manage"},
	})}))
	r.call("GET", "/api/keys", "", "Authorization", "Bearer ").refused(401, "invalid_api_key")
	r.call("GET", "/api/keys", "").refused(401, "invalid_api_key")
	r.call("GET", "/api/keys", "", "Authorization", "Bearer a-key-of-the-file-0123").is(200)
}

func TestMethodsAndLimits(t *testing.T) {
	r := newRig(t)
	if a := r.call("DELETE", "/api/keys", "").refused(405, "method_not_allowed"); a.header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow %q", a.header.Get("Allow"))
	}
	r.call("POST", "/api/keys", `{"name":"`+strings.Repeat("x", 1<<20)+`"}`).refused(http.StatusRequestEntityTooLarge, "request_too_large")
	if r.call("GET", "/api/keys", "").header.Get("X-Request-Id") == "" {
		t.Error("no request id")
	}
}
