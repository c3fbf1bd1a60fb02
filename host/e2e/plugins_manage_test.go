package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// oddConfig has the provider odd, whose key is refused with a 403 that nobody but a pack understands.
func oddConfig(u *upstream, plugins string) string {
	return fmt.Sprintf(`
plugins: {%s}
providers:
  - {id: odd, executor: openai-compatible, category: apikey, base_url: %s/v1}
connections:
  - {id: odd-1, provider: odd, api_key: key-odd}
`, plugins, u.url)
}

func oddUpstream(t *testing.T) *upstream {
	u := newUpstream(t)
	u.answers("key-odd", fails(403, `{"error":{"message":"no, ask me later, jane@odd.example, Bearer abcd1234efgh5678"}}`))
	return u
}

// does runs a command and checks how it ends; the words must stand in what it printed.
func (g *gateway) does(code int, words []string, args ...string) said {
	g.t.Helper()
	s := g.weir(args...)
	for _, w := range words {
		if !strings.Contains(s.out+s.err, w) {
			g.t.Errorf("weir %s does not say %q", strings.Join(args, " "), w)
		}
	}
	if s.code != code || g.t.Failed() {
		g.t.Fatalf("weir %s: %d, want %d\n%s%s", strings.Join(args, " "), s.code, code, s.out, s.err)
	}
	return s
}

// says waits until the connection's answer is judged by that rule.
func (g *gateway) judgedBy(want string) {
	g.t.Helper()
	var got string
	g.eventually(5*time.Second, "judged by "+want, func() bool { got = g.verdict("odd/m", "odd-1"); return got == want })
}

func (g *gateway) put(name, text string) string {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	write(g.t, path, text)
	return path
}

// A plugin's whole life through the commands of an operator, on a running gateway.
func TestPluginLife(t *testing.T) {
	t.Parallel()
	s := setup{config: oddConfig(oddUpstream(t), "")}
	g := serve(t, s)
	before := g.verdict("odd/m", "odd-1")
	if strings.Contains(before, "odd-rules") {
		t.Fatalf("before anything was added it is judged by %s", before)
	}
	g.eventually(5*time.Second, "OBJ-19: the answer is recorded", func() bool {
		return strings.Contains(g.admin("GET", "/api/errors", "").body, `"provider":"odd"`)
	})
	v1, v2 := g.put("odd.yaml", pack(1)), g.put("odd2.yaml", pack(2))

	// PLG-9: a candidate is told from what is in force, and nothing changes
	t.Log("PLG-9 replay")
	events := g.admin("GET", "/api/events?limit=1000", "").body
	health := g.admin("GET", "/api/providers/odd-1", "").body
	replay := g.does(0, []string{"COUNT", "overloaded (connection)", "by odd-rules/says-v1", "Nothing was changed."}, "plugin", "replay", v1, "--provider", "odd")
	if !strings.Contains(replay.out, "1 replayed, 1 would change") {
		t.Errorf("replay says %s", replay.out)
	}
	if g.admin("GET", "/api/events?limit=1000", "").body != events || g.admin("GET", "/api/providers/odd-1", "").body != health {
		t.Error("PLG-9: a replay changed something")
	}
	if _, known := g.plugin("odd-rules"); known != "" || g.admin("GET", "/api/plugins/odd-rules", "").status != 404 {
		t.Error("PLG-9: a replay left a plugin behind")
	}

	// PLG-4: shadow sees the difference and decides nothing
	t.Log("PLG-4 shadow")
	g.does(0, []string{"ok           examples", "runs in shadow"}, "plugin", "add", v1, "--mode", "shadow")
	if got := g.verdict("odd/m", "odd-1"); got != before {
		t.Errorf("PLG-4: with a shadow it is judged by %s", got)
	}
	g.eventually(5*time.Second, "PLG-4: the difference is counted", func() bool {
		a := g.admin("GET", "/api/plugins/odd-rules", "")
		d, _ := a.field("differences").([]any)
		return a.field("shadow", "differed") != float64(0) && len(d) > 0
	})
	g.does(0, []string{"1 differed", "by odd-rules/says-v1"}, "plugin", "show", "odd-rules")

	// PLG-10: promote, replace, roll back, switch, remove
	t.Log("PLG-10 the rest of its life")
	g.does(0, []string{"odd-rules 1.0.1 is active"}, "plugin", "promote", "odd-rules")
	g.judgedBy("odd-rules/says-v1")
	g.does(0, []string{"odd-rules 1.0.2 is active"}, "plugin", "add", v2)
	g.judgedBy("odd-rules/says-v2")
	if versions, _ := g.admin("GET", "/api/plugins/odd-rules/versions", "").field("versions").([]any); len(versions) != 2 {
		t.Errorf("PLG-15: %d versions are kept", len(versions))
	}
	g.does(0, []string{"odd-rules 1.0.1 is active"}, "plugin", "rollback", "odd-rules")
	g.judgedBy("odd-rules/says-v1")
	g.does(1, []string{"no version of odd-rules before"}, "plugin", "rollback", "odd-rules")
	g.does(0, nil, "plugin", "mode", "odd-rules", "off")
	g.judgedBy(before)

	// DATA-2: all of it is there after kill -9, and what was recorded is, but for the last second (OV-8)
	recorded := func() bool {
		return strings.Contains(g.admin("GET", "/api/errors?provider=odd&limit=1000", "").body, `"rule":"says-v2"`)
	}
	g.eventually(1500*time.Millisecond, "OBJ-19: an answer is recorded within a second", recorded)
	g = g.again(s)
	g.judgedBy(before)
	g.does(0, nil, "plugin", "mode", "odd-rules", "active")
	g.judgedBy("odd-rules/says-v1")
	g = g.again(s)
	g.judgedBy("odd-rules/says-v1")
	if !recorded() {
		t.Error("OBJ-19: the record of errors is gone after a restart")
	}

	// PLG-2, PLG-15: what does not pass changes nothing, and says where
	t.Log("PLG-2 a faulty version")
	bad := g.put("bad.yaml", strings.Replace(pack(3), "[403]", "[seventy]", 1))
	g.does(1, []string{"fault", "validate", "bad.yaml:8:5", "rule_invalid", "goes on as before"}, "plugin", "add", bad)
	g.judgedBy("odd-rules/says-v1")
	failing := g.put("failing.yaml", strings.Replace(pack(3), "expect: {reason: overloaded", "expect: {reason: timeout", 1))
	g.does(1, []string{"examples"}, "plugin", "add", failing)
	g.does(1, []string{"The candidate cannot be tried"}, "plugin", "replay", failing)
	g.does(1, nil, "plugin", "add", g.put("none.wasm", "\x00asm\x01\x00\x00\x00"))
	g.judgedBy("odd-rules/says-v1")

	g.does(0, []string{"odd-rules is removed"}, "plugin", "remove", "odd-rules")
	g.judgedBy(before)
	g.does(1, []string{"there is no plugin odd-rules"}, "plugin", "remove", "odd-rules")
	g.does(1, []string{"switched off"}, "plugin", "remove", "generic")
}

// What the record keeps can be read by weir classify, and holds no secret and no address (OBJ-19).
func TestRecordedErrors(t *testing.T) {
	t.Parallel()
	g := serve(t, setup{config: oddConfig(oddUpstream(t), "")})
	g.verdict("odd/m", "odd-1")
	var lines string
	g.eventually(time.Second+500*time.Millisecond, "OBJ-19: at most a second late", func() bool {
		lines = g.admin("GET", "/api/errors?format=jsonl", "").body
		return lines != ""
	})
	for _, hidden := range []string{"jane@", "abcd1234efgh5678", "key-odd", "uthorization"} {
		if strings.Contains(lines, hidden) {
			t.Errorf("OBJ-19: %q is in the record: %s", hidden, lines)
		}
	}
	for _, there := range []string{"ask me later, [redacted], Bearer [redacted]", `"connectionId":"odd-1"`, `"requestId":"`, `"verdict":{`, `"status":403`} {
		if !strings.Contains(lines, there) {
			t.Errorf("OBJ-19: %q is not in the record: %s", there, lines)
		}
	}
	file := g.put("errors.jsonl", lines)
	said := command(t, g.dir, g.env, "classify", "--json", file)
	recorded, _ := g.admin("GET", "/api/errors", "").field("errors").([]any)
	first, _ := recorded[0].(map[string]any)
	verdict, _ := first["verdict"].(map[string]any)
	if said.code != 0 || !strings.Contains(said.out, fmt.Sprintf(`"reason":"%v"`, verdict["reason"])) {
		t.Errorf("weir classify: %d %s%s; recorded was %v", said.code, said.out, said.err, verdict["reason"])
	}
	if a := g.admin("PATCH", "/api/settings", `{"errorRecord":{"enabled":false}}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := g.admin("DELETE", "/api/errors", ""); a.status != 200 || a.field("removed") != float64(1) {
		t.Errorf("%d %s", a.status, a.body)
	}
	g.verdict("odd/m", "odd-1")
	time.Sleep(1200 * time.Millisecond)
	if a := g.admin("GET", "/api/errors", ""); a.field("total") != float64(0) {
		t.Errorf("OBJ-19: switched off, it still records: %s", a.body)
	}
}

// ending is a pack that asks for the permission to end a connection, and uses it.
const ending = `name: odd-ends
version: 1.0.0
kinds: [classifier]
matches: [{providers: [odd]}]
needs: {error_text: prefix}
permissions: {terminate: {reason: odd says so when an account is closed}}
rules:
  - {id: closed, status: [403], text_contains: [ask me later], then: {reason: banned, scope: connection, terminal: true}}
`

// PLG-12: nothing is granted that nobody granted; a grant is never wider than the manifest.
func TestGrantsOfAPlugin(t *testing.T) {
	t.Parallel()
	g := serve(t, setup{config: oddConfig(oddUpstream(t), "")})
	file := g.put("ends.yaml", ending)
	g.does(2, []string{"terminate", "odd says so when an account is closed", "nobody to ask", "--grant none"}, "plugin", "add", file)
	if a := g.admin("GET", "/api/plugins/odd-ends", ""); a.status != 404 {
		t.Errorf("PLG-12: it was added without an answer: %s", a.body)
	}
	g.does(2, []string{"does not ask for", "it asks for terminate"}, "plugin", "add", file, "--grant", "kv")
	status := func() any {
		g.verdict("odd/m", "odd-1")
		return g.admin("GET", "/api/providers/odd-1", "").field("connection", "health", "testStatus")
	}
	g.does(0, []string{"is active"}, "plugin", "add", file, "--grant", "none")
	if s := status(); s == "banned" {
		t.Error("PLG-12: without the grant the plugin ended the connection")
	}
	g.does(0, []string{"odd-ends has now: terminate"}, "plugin", "grant", "odd-ends", "terminate")
	g.eventually(5*time.Second, "PLG-12: with the grant it may", func() bool { return status() == "banned" })
	a := g.admin(http.MethodPost, "/api/plugins/odd-ends/grants", `{"kv":{"bytes":10}}`)
	if a.status != 400 || a.field("error", "code") != "grant_too_wide" {
		t.Errorf("PLG-15: a grant wider than the manifest: %d %s", a.status, a.body)
	}
	g.does(0, nil, "plugin", "grant", "odd-ends", "none")
	if s := status(); s == "banned" {
		t.Error("PLG-12: a grant that was taken back still holds")
	}
	g.does(0, nil, "plugin", "add", file, "--yes")
	if s := status(); s != "banned" {
		t.Errorf("PLG-12: with all granted the connection is %v", s)
	}
}

// PLG-11: in locked mode only what was added is loaded, and a file that changed is refused.
func TestLockedPlugins(t *testing.T) {
	t.Parallel()
	s := setup{config: oddConfig(oddUpstream(t), "trust: locked"), packs: map[string]string{"odd-rules.yaml": pack(1)}}
	g := serve(t, s)
	if _, fault := g.plugin("odd-rules.yaml"); !strings.Contains(fault, "not_locked") || !strings.Contains(fault, "weir plugin add") {
		t.Errorf("PLG-11: a file that nobody added: %q", fault)
	}
	file := filepath.Join(g.plugins, "odd-rules.yaml")
	g.does(0, []string{"odd-rules 1.0.1 is active"}, "plugin", "add", file)
	g.judgedBy("odd-rules/says-v1")
	lock := strings.ReplaceAll(read(t, filepath.Join(g.data, "plugins.lock.json")), `": `, `":`)
	for _, field := range []string{`"name":"odd-rules"`, `"version":"1.0.1"`, `"sha256":"`, `"size":`, `"granted":`, `"source":"`, `"signed_by":`} {
		if !strings.Contains(lock, field) {
			t.Errorf("ABI-11: the lock file has no %s: %s", field, lock)
		}
	}
	refused := func() bool {
		_, fault := g.plugin("odd-rules")
		return strings.Contains(fault, "digest_differs") && strings.Contains(fault, "weir plugin add")
	}
	write(t, file, pack(2))
	g.eventually(5*time.Second, "PLG-11: the changed file is refused, with the mend", refused)
	g.judgedBy("odd-rules/says-v1")
	if s := g.weir("plugin", "list"); !strings.Contains(s.out, "digest_differs") {
		t.Errorf("PLG-2: weir plugin list says %s", s.out)
	}
	g.does(0, []string{"odd-rules 1.0.2 is active"}, "plugin", "add", file)
	g.judgedBy("odd-rules/says-v2")

	// what changed while the gateway was away is refused as well
	g = g.again(setup{config: s.config, packs: map[string]string{"odd-rules.yaml": pack(3)}})
	if v := g.verdict("odd/m", "odd-1"); v == "odd-rules/says-v3" {
		t.Error("PLG-11: a file that changed while nobody looked is in force")
	}
}

// PLG-11: in signed mode only what a trusted key signed is loaded; missing, wrong and unknown signatures are told apart.
func TestSignedPlugins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := bare(dir)
	key := func(name string) (public string) {
		s := command(t, dir, env, "plugin", "keygen", name)
		_, rest, _ := strings.Cut(s.out, "trusted_keys: [")
		public, _, ok := strings.Cut(rest, "]")
		if s.code != 0 || !ok {
			t.Fatalf("keygen: %d %s%s", s.code, s.out, s.err)
		}
		return public
	}
	mine := key("mine.key")
	key("other.key")
	g := serve(t, setup{config: oddConfig(oddUpstream(t), "trust: signed, trusted_keys: ['"+mine+"']"), plugins: true})
	file := g.put("odd.yaml", pack(1))
	sign := func(name string) {
		t.Helper()
		if s := command(t, dir, env, "plugin", "sign", file, "--key", filepath.Join(dir, name)); s.code != 0 {
			t.Fatalf("sign: %d %s%s", s.code, s.out, s.err)
		}
	}
	g.does(1, []string{"signature_missing"}, "plugin", "add", file)
	sign("other.key")
	g.does(1, []string{"signature_unknown", "plugins.trusted_keys"}, "plugin", "add", file)
	sign("mine.key")
	write(t, file, pack(2))
	g.does(1, []string{"signature_invalid"}, "plugin", "add", file)
	if a := g.admin("GET", "/api/plugins/odd-rules", ""); a.status != 404 {
		t.Errorf("PLG-11: a refused file left a plugin: %s", a.body)
	}
	write(t, file, pack(1))
	g.does(0, []string{"is active"}, "plugin", "add", file)
	g.judgedBy("odd-rules/says-v1")
	if by, _ := g.admin("GET", "/api/plugins/odd-rules", "").field("signedBy").(string); by == "" {
		t.Error("PLG-11: who signed it is not shown")
	}
	// the folder asks for the same
	write(t, filepath.Join(g.plugins, "folder.yaml"), strings.ReplaceAll(pack(5), "odd-rules", "odd-folder"))
	g.eventually(5*time.Second, "PLG-11: an unsigned file of the folder is refused", func() bool {
		_, fault := g.plugin("folder.yaml")
		return strings.Contains(fault, "signature_missing")
	})
}

// PLG-15, PLG-16: a file of the folder is switched through the API, not replaced or removed there; what it hides takes over again.
func TestFolderBeforeAPI(t *testing.T) {
	t.Parallel()
	g := serve(t, setup{config: oddConfig(oddUpstream(t), ""), plugins: true})
	g.does(0, nil, "plugin", "add", g.put("api.yaml", pack(1)))
	file := filepath.Join(g.plugins, "odd.yaml")
	write(t, file, pack(2))
	g.judgedBy("odd-rules/says-v2")
	for _, args := range [][]string{{"add", g.put("api3.yaml", pack(3))}, {"rollback", "odd-rules"}} {
		g.does(1, []string{"file of the plugin folder"}, append([]string{"plugin"}, args...)...)
	}
	a := g.admin(http.MethodPut, "/api/plugins/odd-rules", pack(3))
	if a.status != 409 || a.field("error", "code") != "managed_by_file" {
		t.Errorf("PLG-15: %d %s", a.status, a.body)
	}
	g.does(0, nil, "plugin", "mode", "odd-rules", "off")
	g.eventually(5*time.Second, "PLG-15: a file is switched", func() bool { return !strings.Contains(g.verdict("odd/m", "odd-1"), "odd-rules") })
	g.does(0, nil, "plugin", "mode", "odd-rules", "active")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	g.judgedBy("odd-rules/says-v1")
}
