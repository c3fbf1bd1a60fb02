package e2e_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// weir check prints every fault with its place and exits 1; a good file exits 0 (CLI-2, CLI-3, CFG-1, CFG-6).
func TestCheckPrintsEveryFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	write(t, file, `listen: 127.0.0.1:0
conections: []
shutdown_grace: soon
connections:
  - {id: a, provider: opneai, api_key: "${NO_SUCH_VARIABLE}"}
  - {id: b, provider: groq, api_key: k, priority: 0}
api_keys:
  - {id: short, key: abc}
resilience:
  connectionCooldown: {apikey: {baseCooldownMs: -1}}
settings: {exposeRoutingHeader: on}
`)
	s := command(t, dir, bare(dir), "check", "weir.yaml")
	if s.code != 1 {
		t.Errorf("exit code %d", s.code)
	}
	for place, word := range map[string]string{
		"weir.yaml:2:1: ": "connections", "weir.yaml:3:17: ": "30s", "weir.yaml:5:40: ": "NO_SUCH_VARIABLE", "weir.yaml:5:13: ": "openai",
		"weir.yaml:6:41: ": "priority", "weir.yaml:8:17: ": "16", "weir.yaml:10:49: ": "86400000", "weir.yaml:11:12: ": "exposeRoutingHeaders",
	} {
		if !hasLine(s.out, place, word) {
			t.Errorf("no line with %q and %q in:\n%s%s", place, word, s.out, s.err)
		}
	}
	write(t, file, `connections:
  - {id: a, provider: opneai, api_key: k}
  - {id: b, provider: groq, api_key: k, priority: 0}
  - {id: c, provider: groq}
api_keys: [{id: short, key: abc}]
combos: [{id: best, targets: [{model: nobody/m}]}]
aliases: {one: two, two: groq/m}
resilience: {connectionCooldown: {apikey: {baseCooldownMs: -1}}}
settings: {exposeRoutingHeader: "on"}
`)
	s = command(t, dir, bare(dir), "check") // weir.yaml is the usual name
	for place, word := range map[string]string{
		"weir.yaml:2:": "openai", "weir.yaml:3:": "priority", "weir.yaml:4:": "api", "weir.yaml:5:": "16", "weir.yaml:6:": "nobody",
		"weir.yaml:7:": "alias", "weir.yaml:8:": "baseCooldownMs", "weir.yaml:9:": "exposeRoutingHeaders",
	} {
		if !hasLine(s.out, place, word) {
			t.Errorf("no line with %q and %q in:\n%s%s", place, word, s.out, s.err)
		}
	}
	if s := command(t, dir, bare(dir), "check", "--json"); s.code != 1 || len(answer{body: s.out}.field("faults").([]any)) < 8 {
		t.Errorf("--json: %d %s", s.code, s.out)
	}
	write(t, file, "connections: [{id: a, provider: groq, api_key: \"${KEY:-none}\"}]\n")
	if s := command(t, dir, bare(dir), "check"); s.code != 0 || s.err != "" {
		t.Errorf("a good file: %d %s%s", s.code, s.out, s.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "weir-data")); err == nil {
		t.Error("a check made a data folder")
	}
}

func hasLine(text, start, word string) bool {
	for line := range strings.Lines(text) {
		if strings.Contains(line, start) && strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// A changed file is put in force while requests run; a faulty one changes nothing and shows in weir status until it is mended;
// SIGHUP does the same at once (CLI-5, CFG-1, OV-26).
func TestFileChangesWhileServing(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	base := openProvider(u.url)
	g := serve(t, setup{config: base})
	stop := g.busy(4, "open/m")
	serves := func(model string) bool { return g.chat(model, false).status == http.StatusOK }
	if serves("short") {
		t.Fatal("the alias is there before")
	}
	write(t, g.config, base+"aliases: {short: open/m}\n")
	g.eventually(10*time.Second, "the alias is in force", func() bool { return serves("short") })
	write(t, g.config, base+"aliases: {other: open/m}\nnonsense: 1\n")
	g.eventually(10*time.Second, "the fault shows", func() bool { return strings.Contains(g.weir("status").out, "nonsense") })
	if s := g.weir("status"); s.code != 0 || !strings.Contains(s.out, "weir.yaml:5:1") {
		t.Errorf("status without the place: %s", s.out)
	}
	if !serves("short") || serves("other") {
		t.Error("a faulty file changed something")
	}
	if log := g.log.String(); !strings.Contains(log, "weir.yaml:5:1") {
		t.Error("the fault is not in the log")
	}
	write(t, g.config, base+"aliases: {other: open/m}\n")
	if err := g.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	g.eventually(900*time.Millisecond*patience, "SIGHUP puts the mended file in force", func() bool { return serves("other") && !serves("short") })
	if s := g.weir("status"); strings.Contains(s.out, "nonsense") {
		t.Errorf("the fault of a mended file stays: %s", s.out)
	}
	if a := g.admin("DELETE", "/api/models/alias?alias=other", ""); a.status != http.StatusConflict || a.field("error", "code") != "managed_by_file" {
		t.Errorf("CFG-1: %d %s", a.status, a.body)
	}
	if a := g.admin("PATCH", "/api/providers/only", `{"name":"x"}`); a.status != http.StatusConflict || a.field("error", "code") != "managed_by_file" {
		t.Errorf("CFG-1: %d %s", a.status, a.body)
	}
	if sent, failures := stop(); len(failures) > 0 || sent < 20 {
		t.Errorf("%d of %d requests failed: %v", len(failures), sent, failures[:min(1, len(failures))])
	}
}

// Without any configuration each usual key variable that is set makes a connection; one that the file has already does not
// (CFG-2, OBJ-5).
func TestConnectionsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	g := serve(t, setup{
		config: "connections: [{id: mine, provider: mistral, api_key: k-1}]\n",
		env:    []string{"GROQ_API_KEY=gsk-0123456789", "DEEPSEEK_API_KEY=", "MISTRAL_API_KEY=m-0123456789", "OPENAI_API_KEY=sk-0123456789"},
	})
	a := g.admin("GET", "/api/providers", "")
	var ids []string
	list, _ := a.field("connections").([]any)
	for _, c := range list {
		m, _ := c.(map[string]any)
		ids = append(ids, fmt.Sprint(m["id"], " ", m["managedBy"]))
	}
	for _, want := range []string{"env-groq env", "env-openai env", "mine file"} {
		if !strings.Contains(strings.Join(ids, ","), want) {
			t.Errorf("%s is missing: %v", want, ids)
		}
	}
	if len(ids) != 3 {
		t.Errorf("%v", ids)
	}
	if a := g.admin("DELETE", "/api/providers/env-groq", ""); a.status != http.StatusConflict || a.field("error", "code") != "managed_by_env" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if log := g.log.String(); !strings.Contains(log, "GROQ_API_KEY") || strings.Contains(log, "gsk-0123456789") {
		t.Error("the log does not say which variable was found, or says too much")
	}
}

// The first SIGTERM lets a running stream end and exits 0; new requests are refused; the grace ends even that; a second signal
// ends at once with 130 (CLI-4).
func TestStopping(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.answers("key-only", slowly(15, 100*time.Millisecond, nil))
	begin := func(config string) (*gateway, *bufio.Reader) {
		g := serve(t, setup{config: config})
		resp, err := client.Post(g.url+"/v1/chat/completions", "application/json", strings.NewReader(question("open/m", true)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		r := bufio.NewReader(resp.Body)
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		return g, r
	}
	rest := func(r *bufio.Reader) string {
		var b strings.Builder
		_, _ = r.WriteTo(&b) // a cut ends it as well
		return b.String()
	}
	signal := func(g *gateway, s syscall.Signal) {
		if err := g.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("the stream ends first", func(t *testing.T) {
		g, r := begin(openProvider(u.url))
		signal(g, syscall.SIGTERM)
		g.eventually(2*time.Second, "new connections are refused", func() bool {
			c, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
			if err == nil {
				c.Close()
			}
			return err != nil
		})
		if body := rest(r); !strings.HasSuffix(body, "data: [DONE]\n\n") || !strings.Contains(body, "word14") {
			t.Errorf("the stream was cut: %s", tail(body, 300))
		}
		if code := g.wait(5 * time.Second); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if _, err := os.Stat(filepath.Join(g.data, "addr")); err == nil {
			t.Error("the address file stays")
		}
	})
	t.Run("the grace ends", func(t *testing.T) {
		g, r := begin("shutdown_grace: 200ms\n" + openProvider(u.url))
		began := time.Now()
		signal(g, syscall.SIGINT)
		if body := rest(r); strings.Contains(body, "[DONE]") {
			t.Errorf("the stream was not cut: %s", tail(body, 300))
		}
		if code := g.wait(5 * time.Second); code != 0 || time.Since(began) > time.Second*patience {
			t.Errorf("exit code %d after %v", code, time.Since(began))
		}
	})
	t.Run("a second signal", func(t *testing.T) {
		g, _ := begin(openProvider(u.url))
		signal(g, syscall.SIGTERM)
		time.Sleep(200 * time.Millisecond)
		signal(g, syscall.SIGTERM)
		if code := g.wait(time.Second); code != 130 {
			t.Errorf("exit code %d", code)
		}
	})
}

// A port in use, a stale address file, no gateway, wrong usage and a wrong key: each has its sentence and its exit code (CLI-1,
// CLI-2, CLI-3, CLI-6, CFG-6).
func TestCommandsThatFail(t *testing.T) {
	t.Parallel()
	g := serve(t, setup{})
	addr := strings.TrimPrefix(g.url, "http://")
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	sentence := func(what string, s said, code int, words ...string) {
		t.Helper()
		if s.code != code || strings.Count(strings.TrimSpace(s.err), "\n") != 0 || !strings.HasPrefix(s.err, "weir: ") || strings.Contains(s.err, "goroutine") {
			t.Errorf("%s: exit code %d, want %d: %q", what, s.code, code, s.err)
		}
		for _, w := range words {
			if !strings.Contains(s.err, w) {
				t.Errorf("%s: no %q in %q", what, w, s.err)
			}
		}
	}
	taken := launch(t, setup{args: []string{"--listen", addr}})
	sentence("port in use", said{taken.wait(20 * time.Second), "", withoutStart(taken.log.String())}, 1, port, "--listen")
	empty := t.TempDir()
	run := func(args ...string) said { return command(t, empty, bare(empty), args...) }
	sentence("no gateway", run("status"), 3, "weir-data/addr", "--addr")
	sentence("wrong key", run("status", "--addr", addr, "--admin-key", "wrong"), 4, "--admin-key")
	sentence("no key", run("status", "--addr", addr), 4)
	sentence("unknown command", run("statsu"), 2)
	sentence("unknown flag", run("status", "--al"), 2)
	sentence("missing argument", run("explain"), 2)
	sentence("no file", run("serve", "--config", "nowhere.yaml"), 1, "nowhere.yaml")
	sentence("unknown model", g.weir("explain", "nobody/m"), 1, "nobody/m")
	if s := run("status", "--addr", "http://"+addr+"/", "--admin-key", g.adminKey(), "--json"); s.code != 0 || (answer{body: s.out}).field("address") != g.url {
		t.Errorf("%d %s %s", s.code, s.out, s.err)
	}
	g.kill()
	sentence("stale address file", g.weir("status"), 3, "addr", "stale")
}

// Flags beat the environment, and that beats the file (CFG-6).
func TestWhoWins(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "other.yaml")
	write(t, file, "listen: 127.0.0.1:1\nlog_format: text\n"+openProvider(u.url))
	g := launch(t, setup{env: []string{"WEIR_LISTEN=127.0.0.1:2", "WEIR_CONFIG=" + file, "WEIR_LOG_FORMAT=json", "WEIR_LOG_LEVEL=debug"}})
	g.ready()
	if a := g.chat("open/m", false); text(a, false) != goodText {
		t.Errorf("WEIR_CONFIG: %d %s", a.status, a.body)
	}
	if !strings.HasPrefix(g.log.String(), `{"time"`) || !strings.Contains(g.log.String(), `"level":"DEBUG"`) {
		t.Errorf("WEIR_LOG_FORMAT, WEIR_LOG_LEVEL: %s", g.log.String()[:min(200, len(g.log.String()))])
	}
}

// The commands that manage objects do what they say, and the key that is printed works (CLI-1, OBJ-9, OBJ-11, OBJ-12, OBJ-14).
func TestCommandsThatManage(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := serve(t, setup{config: fmt.Sprintf("providers: [{id: acme, executor: openai-compatible, category: local, base_url: %s/v1}]\n", u.url)})
	ok := func(args ...string) string {
		t.Helper()
		s := g.weir(args...)
		if s.code != 0 || s.out == "" {
			t.Fatalf("weir %s: %d %s%s", strings.Join(args, " "), s.code, s.out, s.err)
		}
		return s.out
	}
	ok("connections", "add", "acme", "--id", "one", "--api-key", "key-of-one")
	ok("connections", "add", "acme", "--id", "two", "--api-key", "key-of-two", "--priority", "2")
	if out := ok("connections", "test", "one"); !strings.Contains(out, "one") {
		t.Error(out)
	}
	one := g.admin("GET", "/api/providers/one", "")
	if n := one.field("connection", "discoveredModels", "count"); n != 1.0 || one.field("connection", "lastTested") == nil {
		t.Errorf("OBJ-11: what the test heard is not kept: %s", one.body)
	}
	if a := g.call("GET", "/v1/models", ""); !strings.Contains(a.body, `"id":"acme/m"`) {
		t.Errorf("OBJ-11: the model that the test heard of is not listed: %s", a.body)
	}
	if a := g.admin("PUT", "/api/combos/best", `{"targets":["acme/m"],"config":{"comboTimeoutMs":54321}}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	ok("combos", "set", "best", "acme/m@two", "acme/m")
	if a := g.admin("GET", "/api/combos/best", ""); a.field("config", "comboTimeoutMs") != 54321.0 {
		t.Errorf("combos set lost what it was not given: %s", a.body)
	}
	key := strings.Fields(ok("keys", "create", "laptop", "--model", "best"))[0]
	u.counts()
	if a := g.chat("best", false, "x-api-key", key); text(a, false) != goodText {
		t.Errorf("%d %s", a.status, a.body)
	}
	if byKey, _ := u.counts(); byKey["key-of-two"] != 1 {
		t.Errorf("the pin has no effect: %v", byKey)
	}
	if out := ok("explain", "best"); !strings.Contains(out, "would be tried") || strings.Index(out, "two") > strings.Index(out, "one") {
		t.Error(out)
	}
	u.answers("key-of-one", fails(403, `{"error":{"message":"Your account has been suspended"}}`))
	g.chat("acme/m", false, "x-api-key", strings.Fields(ok("keys", "create", "all"))[0])
	if out := ok("explain", "acme/m"); !strings.Contains(out, "left out by terminal: banned") {
		t.Error(out)
	}
	g.eventually(time.Second*patience, "the ban is in the history", func() bool { // the journal is written behind (OV-8)
		out := g.weir("history", "--connection", "one").out
		return strings.Contains(out, "one") && strings.Contains(out, "banned")
	})
	if out := ok("connections", "reset", "one"); !strings.Contains(out, "banned") {
		t.Error(out)
	}
	if out := ok("explain", "acme/m"); strings.Contains(out, "left out") {
		t.Error(out)
	}
	if s := g.weir("connections", "remove", "two"); s.code != 1 || !strings.Contains(s.err, "best") {
		t.Errorf("OBJ-7: a pinned connection was removed: %d %s", s.code, s.err)
	}
	ok("combos", "remove", "best")
	ok("connections", "remove", "two")
	if out := ok("connections", "list"); strings.Contains(out, "two") || !strings.Contains(out, "one") {
		t.Error(out)
	}
}
