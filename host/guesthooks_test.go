package host_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/sdk/sdktest"
	"github.com/weirgate/weir/sdk/wire"
)

// guestFolder is made once: the module, and a data folder whose cache keeps what it was compiled to.
var guestFolder struct {
	sync.Once
	path string
	err  error
}

func buildGuest(t *testing.T) string {
	t.Helper()
	f := &guestFolder
	f.Do(func() {
		var wasm []byte
		if wasm, f.err = sdktest.Build(t.Context(), "testdata/hooks"); f.err != nil {
			return
		}
		if f.path, f.err = os.MkdirTemp("", "weir-hooks"); f.err == nil {
			f.err = errors.Join(os.Mkdir(filepath.Join(f.path, "plugins"), 0o700), os.WriteFile(filepath.Join(f.path, "plugins", "hooks.wasm"), wasm, 0o600))
		}
	})
	if f.err != nil {
		t.Fatal(f.err)
	}
	return f.path
}

// withGuest starts a gateway whose provider hooks is executed by the guest in testdata/hooks; its account is at upstream.
func withGuest(t *testing.T, upstream, settings string) *host.Host {
	t.Helper()
	dir := buildGuest(t)
	o := options(t, upstream)
	o.DataDir, o.PluginsDir = filepath.Join(dir, "data"), filepath.Join(dir, "plugins")
	const slow = "wall_ms: {on_request: 1000, on_response: 1000, on_event: 1000, on_end: 1000}" // the race detector costs time
	text := "plugins: {settings: {hooks: {" + settings + "limits: {fuel: {on_request: 200000}, " + slow + "}}}}\n" +
		"connections:\n  - {id: h1, provider: hooks, api_key: sk-hooks-0123456789, base_url: " + upstream + "}\n"
	if err := os.WriteFile(o.ConfigFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, o)
}

// asked is what the upstream heard.
type asked struct {
	body   map[string]any
	header http.Header
	host   string
}

// told records requests and answers them.
func told(t *testing.T, answer string) (string, func() asked) {
	t.Helper()
	var mu sync.Mutex
	var last asked
	url := mock(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		last = asked{header: r.Header, host: r.Host}
		_ = json.Unmarshal(b, &last.body)
		mu.Unlock()
		w.Header().Set("X-Quota", "7")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	})
	return url, func() asked { mu.Lock(); defer mu.Unlock(); return last }
}

const plainText = `{"choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`

func chat(mode, model string, stream bool) string {
	return fmt.Sprintf(`{"model":"hooks/%s","stream":%v,"mode":%q,"messages":[{"role":"user","content":"hi"}]}`, model, stream, mode)
}

// A guest in Go changes a request and a buffered answer.
func TestGuestHooks(t *testing.T) { // ABI-3, ABI-5
	url, heard := told(t, plainText)
	h := withGuest(t, url, "")
	rec := call(h, "POST", "/v1/chat/completions", chat("good", "m", false))
	got := heard()
	if rec.Code != 200 || got.header.Get("X-Tier") != "hook" || got.body["tier"] != "hook" || got.body["mode"] != nil || got.body["model"] != "m" ||
		got.header.Get("Authorization") != "Bearer sk-hooks-0123456789" {
		t.Errorf("%d %s: the upstream heard %+v", rec.Code, rec.Body, got)
	}
	if !strings.Contains(rec.Body.String(), `"prompt_tokens":4`) || rec.Header().Get("X-Left") != "7" || rec.Header().Get("Content-Length") != strconv.Itoa(rec.Body.Len()) {
		t.Errorf("%v %s", rec.Header(), rec.Body)
	}
	metrics := call(h, "GET", "/metrics", "", "Authorization", "Bearer "+adminKey).Body.String()
	for _, want := range []string{
		`weir_plugin_calls_total{op="on_request",plugin="hooks",result="ok"} 1`, `weir_plugin_calls_total{op="on_response",plugin="hooks",result="ok"} 1`,
		`weir_plugin_calls_total{op="plan",plugin="hooks",result="ok"} 1`, `weir_plugin_state{plugin="hooks"} 2`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
	if strings.Contains(metrics, `weir_plugin_memory_bytes{plugin="hooks"} 0`) {
		t.Error("the guest has no memory")
	}
}

// says answers with a stream of {"say": ...}, the words of mode, and [DONE].
func says(w http.ResponseWriter, r *http.Request) {
	var body struct{ Mode string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	w.Header().Set("Content-Type", "text/event-stream")
	for word := range strings.FieldsSeq(body.Mode) {
		fmt.Fprintf(w, "event: x\ndata: {\"say\":%q,\"choices\":[]}\n\n", word)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// A guest in Go writes streams anew, keeps their state, ends them, and traps without harm to them.
func TestGuestStreams(t *testing.T) { // ABI-5, ABI-8
	h := withGuest(t, mock(t, says), "")
	said := func(n int, word string) string {
		return fmt.Sprintf("event: x\ndata: {\"choices\":[{\"delta\":{\"content\":%q}}],\"n\":%d}\n\n", word, n)
	}
	for words, want := range map[string]string{
		"one hush two":  said(1, "one") + said(3, "two") + "data: [DONE]\n\n",
		"three":         said(1, "three") + "data: [DONE]\n\n",
		"one panic two": said(1, "one") + "event: x\ndata: {\"say\":\"panic\",\"choices\":[]}\n\nevent: x\ndata: {\"say\":\"two\",\"choices\":[]}\n\ndata: [DONE]\n\n",
	} {
		rec := call(h, "POST", "/v1/chat/completions", chat(words, "m", true))
		if got := rec.Body.String(); rec.Code != 200 || got != want {
			t.Errorf("%s: %d %q", words, rec.Code, got)
		}
	}
	rec := call(h, "POST", "/v1/chat/completions", chat("stop", "m", true))
	if rec.Code != http.StatusBadGateway || !strings.Contains(rec.Body.String(), "stopped by the guest") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	metrics := call(h, "GET", "/metrics", "", "Authorization", "Bearer "+adminKey).Body.String()
	for _, want := range []string{ // the stream of the trap has no end that the guest could hear of; the one that was stopped is tried twice
		`weir_plugin_calls_total{op="on_end",plugin="hooks",result="no_opinion"} 4`, `weir_plugin_calls_total{op="on_event",plugin="hooks",result="trap"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
}

// Whatever a hook does wrong, the request is answered; after five times the plugin is quarantined, and the plan that is cached
// stays in use.
func TestGuestThatBreaksTheRules(t *testing.T) { // ABI-8, PLG-5
	if raceEnabled {
		t.Skip("the guest is not compiled for the race detector; the small ones below are")
	}
	url, heard := told(t, plainText)
	h := withGuest(t, url, "")
	call(h, "POST", "/v1/chat/completions", chat("good", "m", false))
	for _, mode := range []string{"spin", "panic", "host", "panic", "host", "spin"} {
		rec := call(h, "POST", "/v1/chat/completions", chat(mode, "m", false))
		if got := heard(); rec.Code != 200 || got.body["tier"] != "plan" || got.body["mode"] != mode || got.host == "elsewhere.example" {
			t.Fatalf("%s: %d %s, the upstream heard %+v", mode, rec.Code, rec.Body, got)
		}
	}
	state, counted := pluginState(t, h, "hooks")
	if want := map[string]int64{"fuel": 1, "trap": 2, "garbage": 2}; state != "quarantined" || !maps.Equal(counted, want) {
		t.Errorf("%s: %v", state, counted)
	}
	rec := call(h, "POST", "/v1/chat/completions", chat("good", "m", false))
	if got := heard(); rec.Code != 200 || got.body["tier"] != "plan" {
		t.Errorf("a cached plan: %d %s", rec.Code, rec.Body)
	}
	if rec := call(h, "POST", "/v1/chat/completions", chat("good", "other", false)); rec.Code != http.StatusBadGateway || !strings.Contains(rec.Body.String(), "plugin_unavailable") {
		t.Errorf("a plan that is not cached: %d %s", rec.Code, rec.Body)
	}
	if rec := call(h, "GET", "/api/providers/h1", "", "Authorization", "Bearer "+adminKey); !strings.Contains(rec.Body.String(), `"status":"healthy"`) {
		t.Errorf("something was counted against the connection: %s", rec.Body)
	}
	for asked := time.Now(); ; time.Sleep(20 * time.Millisecond) { // the journal is written in batches
		rec := call(h, "GET", "/api/events?kind=plugin.quarantined", "", "Authorization", "Bearer "+adminKey)
		if strings.Contains(rec.Body.String(), `"until"`) && strings.Contains(rec.Body.String(), `"garbage"`) {
			break
		}
		if time.Since(asked) > 5*time.Second {
			t.Fatalf("the quarantine is not in the journal: %s", rec.Body)
		}
	}
}

// Bad executors of the kit, two for each operation: the request is answered all the same, or its target left out when only the
// guest knows how to call it. A plugin that fails closed rejects the target instead.
func TestEvilExecutors(t *testing.T) { // ABI-8
	tried := map[wire.Op]int{}
	for _, e := range sdktest.Evil() {
		hook := e.Op == wire.OpRequest || e.Op == wire.OpEvent
		if !hook && e.Op != wire.OpPlan && e.Op != wire.OpRespond || tried[e.Op] == 2 {
			continue
		}
		tried[e.Op]++
		t.Run(e.Name, func(t *testing.T) { tryEvil(t, e, "fail_open", hook) })
		if hook && tried[e.Op] == 1 {
			t.Run(e.Name+" fail_closed", func(t *testing.T) { tryEvil(t, e, "fail_closed", false) })
		}
	}
	if len(tried) != 4 {
		t.Errorf("tried %v", tried)
	}
}

func tryEvil(t *testing.T, e sdktest.EvilGuest, onViolation string, answered bool) {
	h := withEvil(t, e, onViolation)
	rec := call(h, "POST", "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[]}`, sdktest.EvilProvider+"/m", e.Op == wire.OpEvent))
	if answered != (rec.Code == 200 && strings.Contains(rec.Body.String(), "hello")) || !answered && rec.Code != http.StatusBadGateway {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if _, counted := pluginState(t, h, "evil-"+e.Name); !slices.ContainsFunc(e.Violations, func(v string) bool { return counted[v] > 0 }) {
		t.Errorf("counted is %v, and not %v", counted, e.Violations)
	}
}

// withEvil starts a gateway with a guest of the kit, and an upstream that says hello, in a stream too.
func withEvil(t *testing.T, e sdktest.EvilGuest, onViolation string) *host.Host {
	t.Helper()
	url := mock(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); !strings.Contains(string(b), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"hello"}}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\ndata: [DONE]\n\n")
	})
	o := options(t, url)
	o.PluginsDir = t.TempDir()
	text := "plugins: {settings: {evil-" + e.Name + ": {on_violation: " + onViolation + "}}}\n" +
		"connections:\n  - {id: e1, provider: " + sdktest.EvilProvider + ", api_key: sk-evil-0123456789, base_url: " + url + "}\n"
	if err := errors.Join(os.WriteFile(filepath.Join(o.PluginsDir, "evil.wasm"), e.Wasm, 0o600), os.WriteFile(o.ConfigFile, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return start(t, o)
}

func pluginState(t *testing.T, h *host.Host, name string) (state string, violations map[string]int64) {
	t.Helper()
	var list struct {
		Plugins []struct {
			Name, State string
			Counters    struct{ Violations map[string]int64 }
		}
	}
	rec := call(h, "GET", "/api/plugins", "", "Authorization", "Bearer "+adminKey)
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil {
		t.Fatal(err, rec.Body)
	}
	for _, p := range list.Plugins {
		if p.Name == name {
			return p.State, p.Counters.Violations
		}
	}
	t.Fatal("the plugin is not there:", rec.Body)
	return "", nil
}
