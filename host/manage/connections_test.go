package manage_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

const main = `{"id":"main","provider":"openai","name":"Main","apiKey":"sk-0123456789abcdefWXYZ","priority":3,
	"rateLimitOverrides":{"rpm":60,"maxWaitMs":20000},"maxConcurrent":4,"providerSpecificData":{"organization":"org-1"}}`

// OBJ-8, OBJ-9, OBJ-6: an account is made, shown without its secrets, changed and deleted.
func TestConnections(t *testing.T) {
	r := newRig(t)
	r.call("POST", "/api/providers", main).is(201).has(
		"connection.id", "main", "connection.provider", "openai", "connection.authType", "api_key", "connection.priority", 3,
		"connection.isActive", true, "connection.baseUrl", nil, "connection.maxConcurrent", 4,
		"connection.rateLimitOverrides.rpm", 60, "connection.rateLimitOverrides.maxWaitMs", 20000, "connection.rateLimitOverrides.tpm", nil,
		"connection.credentials.set.0", "api_key", "connection.credentials.hint", "…WXYZ", "connection.providerDataKeys.0", "organization",
		"connection.health.status", "healthy", "connection.health.testStatus", "active", "connection.health.rateLimitedUntil", nil,
		"connection.managedBy", "api", "connection.revision", 1, "connection.createdAt", "2026-07-01T12:00:00.000Z",
		"connection.quota", nil, "connection.lastTested", nil, "connection.discoveredModels.count", 0)
	r.pass(time.Minute)
	r.call("PATCH", "/api/providers/main", `{"name":"Other","maxConcurrent":null,"rateLimitOverrides":{"rpm":null,"tpm":5}}`).is(200).has(
		"connection.name", "Other", "connection.maxConcurrent", nil, "connection.rateLimitOverrides.rpm", nil,
		"connection.rateLimitOverrides.tpm", 5, "connection.rateLimitOverrides.maxWaitMs", 20000, "connection.priority", 3,
		"connection.revision", 2, "connection.updatedAt", "2026-07-01T12:01:00.000Z", "connection.createdAt", "2026-07-01T12:00:00.000Z")
	r.call("PUT", "/api/providers/main", `{"name":"Third","rateLimitProtection":true}`).is(200).has(
		"connection.name", "Third", "connection.priority", 1, "connection.rateLimitOverrides.tpm", nil, "connection.rateLimitProtection", false,
		"connection.credentials.hint", "…WXYZ", "connection.providerDataKeys.0", "organization")
	read := r.call("GET", "/api/providers/main", "").is(200)
	object := strings.TrimSuffix(strings.TrimPrefix(read.text, `{"connection":`), "}\n")
	r.call("PUT", "/api/providers/main", object).is(200).has("connection.name", "Third") // what was read may be sent back
	r.call("POST", "/api/providers", `{"provider":"local"}`).is(201)
	r.call("GET", "/api/providers", "").is(200).has("total", 2)
	r.call("GET", "/api/providers?provider=oai", "").is(200).has("total", 1, "connections.0.id", "main")
	r.call("GET", "/api/providers?limit=1&offset=1", "").is(200).has("total", 2, "connections.1", nil)
	r.call("GET", "/api/providers?limit=0", "").refused(400, "bad_request").has("error.details.0.field", "limit")
	r.call("DELETE", "/api/providers/main", "").is(200).has("ok", true)
	r.call("GET", "/api/providers/main", "").refused(404, "not_found")
}

// API-2, OBJ-9: what is wrong is named field by field.
func TestConnectionFaults(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ body, field, message string }{
		{`{"provider":"openai"}`, "apiKey", "missing"},
		{`{"apiKey":"sk-1"}`, "provider", "required"},
		{`{"provider":"opnai","apiKey":"sk-1"}`, "provider", "openai"},
		{`{"provider":"openai","apiKey":"sk-1","prioritty":1}`, "prioritty", "priority"},
		{`{"provider":"openai","apiKey":"sk-1","priority":0}`, "priority", "1 to 1000"},
		{`{"provider":"openai","apiKey":"sk-1","priority":"1"}`, "priority", "number"},
		{`{"provider":"openai","apiKey":"sk-1","id":"a b"}`, "id", "letters"},
		{`{"provider":"openai","apiKey":"sk-1","health":{}}`, "health", "not known"},
		{`{"provider":"openai","apiKey":"sk-1","baseUrl":"http://169.254.169.254/v1"}`, "baseUrl", "never allowed"}, // SEC-5, SCN-18
		{`{"provider":"openai","apiKey":"sk-1","baseUrl":"http://10.0.0.7/v1"}`, "baseUrl", "allowPrivate"},
	} {
		a := r.call("POST", "/api/providers", c.body).refused(400, "bad_request").has("error.details.0.field", c.field)
		if m, _ := a.at("error.details.0.message").(string); !strings.Contains(m, c.message) {
			t.Errorf("%s: message %q does not say %q", c.body, m, c.message)
		}
		if strings.Contains(a.text, "sk-1") {
			t.Errorf("the answer repeats the key: %s", a.text)
		}
	}
	for _, body := range []string{"", "[]", "{", `{"a":1}x`, "null"} {
		r.call("POST", "/api/providers", body).refused(400, "bad_request").
			has("error.message", "Invalid request", "error.details.0.field", "body", "error.details.0.message", "Invalid JSON body")
	}
	r.call("POST", "/api/providers", `{"provider":"x","priority":0,"provider":"y"}`).refused(400, "bad_request").has("error.details.0.field", "provider")
	two := r.call("POST", "/api/providers", `{"provider":"openai","priority":0}`).refused(400, "bad_request")
	if two.at("error.details.1.field") == nil {
		t.Errorf("two faults, one entry: %s", two.text)
	}
	r.call("PATCH", "/api/providers/nobody", `{}`).refused(404, "not_found")
	r.call("POST", "/api/providers", main).is(201)
	r.call("POST", "/api/providers", main).refused(409, "conflict")
	r.call("PATCH", "/api/providers/main", `{"provider":"local"}`).refused(400, "bad_request").has("error.details.0.field", "provider")
}

// OBJ-4: a stale If-Match is a conflict that names the present revision; without it the last write wins.
func TestRevisions(t *testing.T) {
	r := newRig(t)
	r.call("POST", "/api/providers", main).is(201)
	r.call("PATCH", "/api/providers/main", `{"priority":2}`, "If-Match", `"1"`).is(200).has("connection.revision", 2)
	r.call("PATCH", "/api/providers/main", `{"priority":4}`, "If-Match", `"1"`).refused(409, "conflict").has("error.details.0.message", "2")
	r.call("DELETE", "/api/providers/main", "", "If-Match", `"1"`).refused(409, "conflict")
	r.call("PATCH", "/api/providers/main", `{"priority":4}`, "If-Match", "x").refused(400, "bad_request")
	r.call("PATCH", "/api/providers/main", `{"priority":5}`).is(200).has("connection.priority", 5)
	r.call("POST", "/api/combos", `{"name":"best","targets":["openai/gpt-5"]}`).is(201).has("revision", 1)
	r.call("PUT", "/api/combos/best", `{"targets":["openai/gpt-5-mini"]}`, "If-Match", `"7"`).refused(409, "conflict")
	r.call("PUT", "/api/combos/best", `{"targets":["openai/gpt-5-mini"]}`, "If-Match", `"1"`).is(200).has("revision", 2)
	id := r.call("POST", "/api/keys", `{}`).is(201).at("id").(string)
	r.call("PATCH", "/api/keys/"+id, `{"name":"n"}`, "If-Match", `"9"`).refused(409, "conflict")
	r.call("DELETE", "/api/providers/main", "", "If-Match", `"3"`).is(200)
}

// COOL-52, OBJ-9: new credentials raise the revision that plan caches see; other changes do not.
func TestCredentialRevision(t *testing.T) {
	r := newRig(t)
	revision := func() uint64 { return r.registry.Current().Connection("main").CredentialRevision }
	r.call("POST", "/api/providers", main).is(201)
	first := revision()
	r.call("PATCH", "/api/providers/main", `{"name":"x"}`).is(200)
	if revision() != first {
		t.Error("a new name counts as new credentials")
	}
	r.call("PATCH", "/api/providers/main", `{"apiKey":"sk-new-0123456789abcdef"}`).is(200).has("connection.credentials.hint", "…cdef")
	second := revision()
	r.call("PATCH", "/api/providers/main", `{"secrets":{"cookie":"c-0123456789"}}`).is(200).has("connection.credentials.set.0", "api_key", "connection.credentials.set.1", "cookie")
	third := revision()
	if second <= first || third <= second {
		t.Errorf("credential revisions %d, %d, %d do not rise", first, second, third)
	}
	r.call("PATCH", "/api/providers/main", `{"secrets":{"cookie":""}}`).is(200).has("connection.credentials.set.1", nil)
}

// OBJ-10, COOL-50: the reset ends a terminal state, whoever owns the connection.
func TestReset(t *testing.T) {
	r := newRig(t, file(catalog.Input{Connections: entry(catalog.ConnectionInput{ID: "filed", Provider: "openai", APIKey: "sk-file-0123456789abcd"})}))
	r.fail("filed", "gpt-5", wire.Verdict{Reason: wire.ReasonBanned, Scope: wire.ScopeConnection, Terminal: true, SetStatus: wire.Banned})
	r.call("GET", "/api/providers/filed", "").is(200).has("connection.health.status", "terminal", "connection.health.testStatus", "banned")
	r.call("POST", "/api/providers/filed/reset", "").is(200).has("was", "banned", "connection.health.status", "healthy", "connection.id", "filed")
	r.call("POST", "/api/providers/nobody/reset", "").refused(404, "not_found")
	r.call("POST", "/api/providers/filed/test", "").is(200).has("ok", false, "status", 401, "reason", "auth_error", "rule", "generic/auth")
}

// OBJ-7: a deleted connection leaves no state behind.
func TestDeletedConnectionIsForgotten(t *testing.T) {
	r := newRig(t)
	r.call("POST", "/api/providers", main).is(201)
	r.fail("main", "gpt-5", wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeConnection, Fallback: true})
	r.call("GET", "/api/providers/main", "").is(200).has("connection.health.status", "cooling_down")
	r.call("DELETE", "/api/providers/main", "").is(200)
	r.call("POST", "/api/providers", main).is(201).has("connection.health.status", "healthy", "connection.health.lastError", nil)
}

// OBJ-5, API-70: the protection of limits is state, so it is set also on a connection of the file, and stays over a new snapshot.
func TestProtectionOfAConnectionOfTheFile(t *testing.T) {
	r := newRig(t, file(catalog.Input{Connections: entry(catalog.ConnectionInput{ID: "filed", Provider: "openai", APIKey: "sk-file-0123456789abcd"})}))
	for _, on := range []bool{true, true, false} {
		r.call("POST", "/api/rate-limits", fmt.Sprintf(`{"connectionId":"filed","enabled":%v}`, on)).is(200).has("success", true, "enabled", on)
		r.rebuild()
		r.call("GET", "/api/providers/filed", "").is(200).has("connection.rateLimitProtection", on, "connection.managedBy", "file")
		r.call("GET", "/api/rate-limits", "").is(200).has("connections.0.enabled", on)
	}
}

// OBJ-5, CFG-1: what the API does not own it does not change, and it says where to.
func TestOwnership(t *testing.T) {
	hash := catalog.HashKey("a-key-of-the-file-0123")
	r := newRig(t, file(catalog.Input{
		Connections: entry(catalog.ConnectionInput{ID: "filed", Provider: "openai", APIKey: "sk-file-0123456789abcd"}),
		Combos:      entry(catalog.ComboInput{Name: "filed", Targets: []catalog.TargetInput{{Model: "openai/gpt-5"}}}),
		Keys:        entry(catalog.KeyInput{ID: "filed", Hash: hash[:]}),
		Aliases:     entry(catalog.AliasInput{Alias: "filed", Model: "openai/gpt-5"}),
	}), func(r *rig) { r.env["WEIR_CLIENT_KEY"] = "a-key-of-the-env-01234" })
	r.call("GET", "/api/providers/filed", "").is(200).has("connection.managedBy", "file")
	for _, c := range [][2]string{
		{"PATCH", "/api/providers/filed"}, {"PUT", "/api/providers/filed"}, {"DELETE", "/api/providers/filed"},
		{"PUT", "/api/combos/filed"}, {"DELETE", "/api/combos/filed"}, {"PATCH", "/api/keys/filed"}, {"DELETE", "/api/keys/filed"},
		{"POST", "/api/keys/filed/regenerate"}, {"DELETE", "/api/models/alias?alias=filed"},
	} {
		body := `{}`
		if c[1] == "/api/combos/filed" {
			body = `{"targets":["openai/gpt-5"]}`
		}
		a := r.call(c[0], c[1], body).refused(409, "managed_by_file")
		if !strings.Contains(a.text, "configuration file") {
			t.Errorf("%s %s does not say where to change it: %s", c[0], c[1], a.text)
		}
	}
	r.call("PUT", "/api/models/alias", `{"alias":"filed","model":"openai/gpt-5"}`).refused(409, "managed_by_file")
	r.call("DELETE", "/api/keys/env", "").refused(409, "managed_by_env")
	env := newRig(t, func(r *rig) { r.env["OPENAI_API_KEY"] = "sk-env-0123456789abcd" })
	env.call("DELETE", "/api/providers/env-openai", "").refused(409, "managed_by_env")
}

// DATA-5: while the store does not write, a change is refused, not acknowledged.
func TestStoreDegraded(t *testing.T) {
	r := newRig(t)
	r.call("POST", "/api/providers", main).is(201)
	r.degraded = true
	for _, c := range [][3]string{
		{"POST", "/api/providers", `{"provider":"local"}`}, {"PATCH", "/api/providers/main", `{"priority":2}`},
		{"DELETE", "/api/providers/main", ""}, {"POST", "/api/keys", `{}`}, {"PUT", "/api/combos/a", `{"targets":["openai/gpt-5"]}`},
		{"PATCH", "/api/resilience", `{"connectionCooldown":{"apikey":{"baseCooldownMs":1000}}}`},
	} {
		r.call(c[0], c[1], c[2]).refused(507, "store_degraded")
	}
	r.call("GET", "/api/providers/main", "").is(200)
	r.call("GET", "/api/status", "").is(200).has("store.state", "degraded", "store.fault", "no space left")
	r.call("GET", "/api/monitoring/health", "").is(200).has("status", "degraded")
	r.call("GET", "/readyz", "").is(200) // inference goes on
}

// A stored object that the catalogue leaves out for a fault can still be mended and deleted.
func TestLeftOutObjectsCanBeDeleted(t *testing.T) {
	r := newRig(t)
	r.call("POST", "/api/combos", `{"name":"inner","targets":["openai/gpt-5"]}`).is(201)
	r.call("POST", "/api/catalog/providers", `{"id":"mine","executor":"openai","baseUrl":"https://mine.example/v1"}`).is(201)
	r.call("POST", "/api/providers", `{"id":"lost","provider":"mine","apiKey":"sk-lost-0123456789"}`).is(201)
	if _, err := r.store.Change(t.Context(), deletion("provider", "mine")); err != nil {
		t.Fatal(err)
	}
	r.rebuild()
	r.call("GET", "/api/providers/lost", "").refused(404, "not_found")
	r.call("DELETE", "/api/providers/lost", "").is(200)
	r.call("DELETE", "/api/providers/lost", "").refused(404, "not_found")
}

// Changes of different fields at the same time are all kept: read, merge and write are one step.
func TestConcurrentPatches(t *testing.T) {
	r := newRig(t)
	r.call("POST", "/api/providers", main).is(201)
	fields := []string{`{"name":"n"}`, `{"priority":9}`, `{"maxConcurrent":7}`, `{"models":["gpt-5"]}`, `{"rateLimitOverrides":{"tpd":3}}`}
	var wg sync.WaitGroup
	for _, body := range fields {
		wg.Go(func() { r.call("PATCH", "/api/providers/main", body).is(200) })
	}
	wg.Wait()
	r.call("GET", "/api/providers/main", "").is(200).has("connection.name", "n", "connection.priority", 9, "connection.maxConcurrent", 7,
		"connection.models.0", "gpt-5", "connection.rateLimitOverrides.tpd", 3, "connection.rateLimitOverrides.rpm", 60, "connection.revision", 6)
}
