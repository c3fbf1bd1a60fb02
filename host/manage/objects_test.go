package manage_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/store"
)

func deletion(kind, id string) store.Write { return store.Write{Kind: kind, ID: id, Delete: true} }

// OBJ-2: the operator's own providers, and changes of built-in ones.
func TestCatalogue(t *testing.T) {
	r := newRig(t)
	r.call("GET", "/api/catalog/providers", "").is(200).has("total", 2, "providers.1.id", "openai")
	r.call("GET", "/api/catalog/providers/openai", "").is(200).has("name", "OpenAI", "category", "apikey", "auth", "api_key",
		"baseUrl", "https://api.openai.com/v1", "keyEnv.0", "OPENAI_API_KEY", "plugin", "openai", "managedBy", "plugin",
		"models.0.id", "gpt-5", "passthroughModels", false, "perModelQuota", false, "connections.total", 0, "connections.usable", 0)
	r.call("PUT", "/api/catalog/providers/openai", `{"baseUrl":"https://proxy.example/v1"}`).is(200).
		has("baseUrl", "https://proxy.example/v1", "name", "OpenAI", "managedBy", "api", "revision", 1)
	r.call("DELETE", "/api/catalog/providers/openai", "").is(200)
	r.call("GET", "/api/catalog/providers/openai", "").is(200).has("baseUrl", "https://api.openai.com/v1", "managedBy", "plugin")
	r.call("DELETE", "/api/catalog/providers/openai", "").refused(409, "managed_by_plugin")
	r.call("POST", "/api/catalog/providers", `{"id":"vllm","executor":"openai","category":"local","baseUrl":"http://127.0.0.1:8000/v1",
		"models":["qwen3",{"id":"big","contextWindow":9}],"headers":{"X-Team":"a"}}`).is(201).
		has("id", "vllm", "models.0.id", "qwen3", "models.1.contextWindow", 9, "headerNames.0", "X-Team", "auth", "local")
	r.call("POST", "/api/catalog/providers", `{"id":"vllm","executor":"openai","baseUrl":"http://127.0.0.1/v1"}`).refused(409, "conflict")
	for body, field := range map[string]string{
		`{"id":"Bad","executor":"openai","baseUrl":"https://x.example"}`:           "id",
		`{"id":"x","executor":"openai","baseUrl":"http://169.254.169.254/latest"}`: "baseUrl",
		`{"id":"x","executor":"openai","baseUrl":"http://10.0.0.1/v1"}`:            "baseUrl",
		`{"id":"x","executor":"nobody","baseUrl":"https://x.example"}`:             "executor",
		`{"executor":"openai"}`: "id",
	} {
		r.call("POST", "/api/catalog/providers", body).refused(400, "bad_request").has("error.details.0.field", field)
	}
	r.call("POST", "/api/providers", `{"id":"v","provider":"vllm"}`).is(201)
	r.call("DELETE", "/api/catalog/providers/vllm", "").refused(409, "in_use")
	r.call("DELETE", "/api/providers/v", "").is(200)
	r.call("DELETE", "/api/catalog/providers/vllm", "").is(200)
	r.call("GET", "/api/catalog/providers/vllm", "").refused(404, "not_found")
	// OBJ-4: what was seen and is gone is not made anew
	r.call("PUT", "/api/catalog/providers/vllm", `{"executor":"openai","baseUrl":"https://v.example/v1"}`, "If-Match", `"1"`).refused(409, "conflict")
	r.call("PUT", "/api/combos/gone", `{"targets":["openai/gpt-5"]}`, "If-Match", `"1"`).refused(409, "conflict")
	// an entry over a provider of a plugin can go while there are connections: the provider stays
	r.call("POST", "/api/providers", main).is(201)
	r.call("PUT", "/api/catalog/providers/openai", `{"baseUrl":"https://proxy.example/v1"}`).is(200)
	r.call("DELETE", "/api/catalog/providers/openai", "").is(200)
	r.call("GET", "/api/providers/main", "").is(200)
	// one that is left out for a fault can be mended and deleted
	lost := store.Write{Kind: catalog.DocProvider, ID: "lost", Data: []byte(`{"id":"lost","executor":"gone","baseUrl":"https://l.example/v1"}`)}
	if _, err := r.store.Change(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	r.rebuild()
	r.call("GET", "/api/catalog/providers/lost", "").refused(404, "not_found")
	r.call("POST", "/api/catalog/providers", `{"id":"lost","executor":"openai","baseUrl":"https://l.example/v1"}`).refused(409, "conflict")
	r.call("DELETE", "/api/catalog/providers/lost", "").is(200)
	if _, err := r.store.Change(t.Context(), store.Write{Kind: catalog.DocProvider, ID: "lost", Data: []byte(`{"id":"lost","executor":"gone"}`)}); err != nil {
		t.Fatal(err)
	}
	r.rebuild()
	r.call("PUT", "/api/catalog/providers/lost", `{"executor":"openai","baseUrl":"https://l.example/v1"}`).is(200)
}

// OBJ-12, CMB-2: combos, their targets with execution keys, names with a slash, the warning.
func TestCombos(t *testing.T) {
	r := newRig(t)
	r.call("POST", "/api/providers", main).is(201)
	r.call("POST", "/api/combos", `{"name":"best","models":["openai/gpt-5",{"model":"openai/gpt-5-mini","connectionId":"main","weight":2}],
		"config":{"maxRetries":1,"targetTimeoutMs":2000,"stallTimeoutMs":5000,"streamRecovery":"hold","encryptedState":"refuse"}}`).is(201).has("name", "best", "id", "best", "strategy", "priority", "isActive", true,
		"targets.0.model", "openai/gpt-5", "targets.0.executionKey", "openai/gpt-5", "targets.0.weight", 1,
		"targets.1.executionKey", "openai/gpt-5-mini@main", "targets.1.connectionId", "main", "targets.1.weight", 2,
		"config.maxRetries", 1, "config.targetTimeoutMs", 2000, "config.stallTimeoutMs", 5000, "config.streamRecovery", "hold", "config.encryptedState", "refuse", "warning", nil, "revision", 1, "managedBy", "api")
	r.call("POST", "/api/combos", `{"name":"best","targets":["openai/gpt-5"]}`).refused(409, "conflict")
	read := r.call("GET", "/api/combos/best", "").is(200)
	r.call("PUT", "/api/combos/best", read.text).is(200).has("targets.1.connectionId", "main", "revision", 2)
	r.call("PUT", "/api/combos/team%2Fbest", `{"targets":[{"kind":"combo-ref","comboName":"best"}]}`).is(200).
		has("name", "team/best", "targets.0.kind", "combo-ref", "targets.0.comboName", "best", "targets.0.executionKey", nil)
	r.call("GET", "/api/combos/team%2Fbest", "").is(200).has("name", "team/best")
	r.call("GET", "/api/combos", "").is(200).has("total", 2)
	r.call("POST", "/api/combos", `{"name":"gpt-5","targets":["openai/gpt-5"]}`).is(201).
		has("warning.code", "COMBO_NAME_SHADOWS_MODEL", "warning.modelId", "gpt-5", "warning.providerId", "openai")
	for body, field := range map[string]string{
		`{"name":"x"}`: "targets",
		`{"name":"x","targets":["openai/gtp-5"]}`:                                   "targets[0].model",
		`{"name":"x","targets":["openai/gpt-5"],"models":[]}`:                       "models",
		`{"name":"x","targets":["openai/gpt-5"],"strategy":"fastest"}`:              "strategy",
		`{"name":"x","targets":["openai/gpt-5"],"config":{"maxRetrys":1}}`:          "config.maxRetrys",
		`{"name":"x","targets":[{"model":"openai/gpt-5","connectionId":"nobody"}]}`: "targets[0].connection",
		`{"targets":["openai/gpt-5"]}`:                                              "name",
	} {
		r.call("POST", "/api/combos", body).refused(400, "bad_request").has("error.details.0.field", field)
	}
	r.call("DELETE", "/api/combos/best", "").refused(409, "in_use")
	r.call("DELETE", "/api/providers/main", "").refused(409, "in_use")
	r.call("DELETE", "/api/combos/team%2Fbest", "").is(200)
	r.call("PUT", "/api/models/alias", `{"alias":"a","model":"best"}`).is(200)
	r.call("DELETE", "/api/combos/best", "").refused(409, "in_use")
	r.call("DELETE", "/api/models/alias?alias=a", "").is(200)
	r.call("DELETE", "/api/combos/best", "").is(200)
	r.call("GET", "/api/combos/best", "").refused(404, "not_found")
}

// OBJ-13: aliases point at models and combos, not at each other.
func TestAliases(t *testing.T) {
	r := newRig(t)
	r.call("GET", "/api/models/alias", "").is(200).has("aliases", map[string]any{})
	r.call("PUT", "/api/models/alias", `{"alias":"gpt-4","model":"openai/gpt-5-mini"}`).is(200).has("aliases.gpt-4", "openai/gpt-5-mini")
	r.call("PUT", "/api/models/alias", `{"alias":"gpt-4","model":"openai/gpt-5"}`).is(200).has("aliases.gpt-4", "openai/gpt-5")
	r.call("PUT", "/api/models/alias", `{"alias":"old","model":"gpt-4"}`).refused(400, "alias_chain")
	r.call("PUT", "/api/models/alias", `{"alias":"x","model":"openai/none"}`).refused(400, "bad_request").has("error.details.0.field", "model")
	r.call("PUT", "/api/models/alias", `{}`).refused(400, "bad_request").has("error.details.1.field", "model")
	r.call("DELETE", "/api/models/alias", "").refused(400, "bad_request")
	r.call("DELETE", "/api/models/alias?alias=none", "").refused(404, "not_found")
	// a new alias does not take away what another one points at
	r.call("PUT", "/api/models/alias", `{"alias":"openai/gpt-5","model":"openai/gpt-5-mini"}`).refused(400, "alias_chain").
		has("error.details.0.field", "alias")
	r.call("GET", "/api/models/alias", "").is(200).has("aliases.gpt-4", "openai/gpt-5")
	r.call("DELETE", "/api/models/alias?alias=gpt-4", "").is(200).has("ok", true)
	// one that is left out for a fault can be deleted
	if _, err := r.store.Change(t.Context(), store.Write{Kind: catalog.DocAlias, ID: "lost", Data: []byte(`{"model":"gone/gpt-5"}`)}); err != nil {
		t.Fatal(err)
	}
	r.rebuild()
	r.call("GET", "/api/models/alias", "").is(200).has("aliases", map[string]any{})
	r.call("DELETE", "/api/models/alias?alias=lost", "").is(200)
	r.call("DELETE", "/api/models/alias?alias=lost", "").refused(404, "not_found")
}

// OBJ-14: a key is shown once, kept as a hash, and ends when it is replaced, switched off or revoked.
func TestKeys(t *testing.T) {
	r := newRig(t)
	a := r.call("POST", "/api/keys", `{"name":"laptop","allowedModels":["openai/*"]}`).is(201).
		has("name", "laptop", "scopes.0", "inference", "isActive", true, "allowedModels.0", "openai/*", "expiresAt", nil, "lastUsedAt", nil, "revision", 1)
	text, id := a.at("key").(string), a.at("id").(string)
	if !regexp.MustCompile(`^weir-[A-Za-z0-9_-]{43}$`).MatchString(text) {
		t.Errorf("key %q", text)
	}
	if hint := a.at("hint").(string); hint != "…"+text[len(text)-4:] {
		t.Errorf("hint %q of %q", hint, text)
	}
	if k, ok := r.registry.Current().KeyByText(text); !ok || k.ID != id {
		t.Error("the key does not work")
	}
	for doc, err := range r.store.List(t.Context(), catalog.DocKey) {
		if err != nil || strings.Contains(string(doc.Data), text) {
			t.Errorf("the text is in the store: %s %v", doc.Data, err)
		}
	}
	for _, path := range []string{"/api/keys", "/api/keys/" + id} {
		if again := r.call("GET", path, "").is(200); strings.Contains(again.text, text) {
			t.Errorf("%s shows the text again", path)
		}
	}
	r.call("PATCH", "/api/keys/"+id, `{"allowedModels":null,"scopes":["manage:read"]}`).is(200).has("allowedModels.0", nil, "scopes.0", "manage:read", "key", nil)
	next := r.call("POST", "/api/keys/"+id+"/regenerate", "").is(200).at("key").(string)
	if _, ok := r.registry.Current().KeyByText(text); ok || next == text {
		t.Error("the old text still works")
	}
	if k, ok := r.registry.Current().KeyByText(next); !ok || k.Scopes[0] != "manage:read" {
		t.Error("the new text does not work as the key did")
	}
	for body, field := range map[string]string{
		`{"scopes":["mange"]}`: "scopes[0]", `{"allowedConnections":["nobody"]}`: "allowedConnections[0]",
		`{"expiresAt":"2026-07-01T11:00:00Z"}`: "expiresAt", `{"expiresAt":"soon"}`: "expiresAt", `{"key":"mine"}`: "key",
	} {
		r.call("POST", "/api/keys", body).refused(400, "bad_request").has("error.details.0.field", field)
	}
	r.call("DELETE", "/api/keys/"+id, "").is(200)
	if _, ok := r.registry.Current().KeyByText(next); ok {
		t.Error("a revoked key still works")
	}
	r.call("GET", "/api/keys/"+id, "").refused(404, "not_found")
}

// API-10, API-11, API-14, API-15, OV-25, OBJ-16: settings. CFG-5: what is stored wins over the environment, what the file says
// over both, and explain says which it was.
func TestSettings(t *testing.T) {
	r := newRig(t, file(catalog.Input{Settings: settings.Stored{"connectionCooldown.local.baseCooldownMs": []byte("7000")}}),
		func(r *rig) { r.env["WEIR_EXPOSE_CONNECTION"] = "off" })
	r.call("GET", "/api/settings?explain=true", "").is(200).has("exposeRoutingHeaders.value", "off", "exposeRoutingHeaders.source", "env")
	r.call("GET", "/api/resilience", "").is(200).has("connectionCooldown.apikey.baseCooldownMs", 3000, "connectionCooldown.local.baseCooldownMs", 7000)
	r.call("PATCH", "/api/resilience", `{"connectionCooldown":{"apikey":{"baseCooldownMs":5000}}}`).is(200).
		has("ok", true, "connectionCooldown.apikey.baseCooldownMs", 5000)
	if got := r.registry.Current().Settings.ConnectionCooldown.APIKey.Base.Milliseconds(); got != 5000 {
		t.Errorf("in force are %d ms, want 5000 (OV-26)", got)
	}
	r.call("GET", "/api/resilience?explain=true", "").is(200).has(
		"connectionCooldown.apikey.baseCooldownMs.source", "stored", "connectionCooldown.apikey.baseCooldownMs.value", 5000,
		"connectionCooldown.local.baseCooldownMs.source", "file", "connectionCooldown.oauth.baseCooldownMs.source", "default")
	r.call("PATCH", "/api/resilience", `{}`).refused(400, "bad_request").has("error.message", "Must provide resilience settings to update")
	r.call("PATCH", "/api/resilience", `{"connectionCooldown":{"apikey":{"baseCooldownMs":-1}}}`).refused(400, "bad_request").
		has("error.details.0.field", "connectionCooldown.apikey.baseCooldownMs")
	r.call("PATCH", "/api/resilience", `{"conectionCooldown":{}}`).refused(400, "bad_request").has("error.details.0.field", "conectionCooldown")
	r.call("PATCH", "/api/resilience", `{"connectionCooldown":{"apikey":{"baseCooldownMs":1},"local":{"baseCooldownMs":1}}}`).
		refused(409, "managed_by_file").has("error.details.0.field", "connectionCooldown.local.baseCooldownMs")
	r.call("GET", "/api/resilience", "").is(200).has("connectionCooldown.apikey.baseCooldownMs", 5000) // nothing of it was applied
	r.call("PATCH", "/api/resilience", `{"connectionCooldown":{"apikey":{"baseCooldownMs":null}}}`).is(200).has("connectionCooldown.apikey.baseCooldownMs", 3000)
	r.call("PATCH", "/api/settings", `{"exposeRoutingHeaders":"on","customBannedSignals":["go away now"]}`).is(200).
		has("exposeRoutingHeaders", "on", "customBannedSignals.0", "go away now")
	r.call("GET", "/api/settings", "").is(200).has("exposeRoutingHeaders", "on")
	r.call("GET", "/api/settings?explain=true", "").is(200).has("exposeRoutingHeaders.value", "on", "exposeRoutingHeaders.source", "stored")
	r.call("PATCH", "/api/settings", `{"exposeRoutingHeaders":"maybe"}`).refused(400, "bad_request")
	r.call("POST", "/api/providers", main).is(201)
	r.call("GET", "/api/providers/main?explain=true", "").is(200).has("explain.rpm.source", "connection", "explain.rpm.value", 60, "explain.tpm.source", "default")
}
