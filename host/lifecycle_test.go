package host_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/store/memory"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if guestFolder.path != "" {
			_ = os.RemoveAll(guestFolder.path)
		}
		os.Exit(code)
	}))
}

const adminKey = "admin-key-0123456789abcdef"

// options are those of a host in memory with one provider, whose address is upstream.
func options(t testing.TB, upstream string) host.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := "providers:\n  - {id: mock, executor: openai-compatible, category: local, base_url: " + upstream + "/v1, models: [{id: m}]}\n" +
		"connections:\n  - {id: c1, provider: mock, api_key: sk-upstream-0123456789}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() }) //nolint:errcheck // nothing to lose
	return host.Options{
		ConfigFile: file, Listen: host.NoListener, Store: st,
		Env: func(name string) (string, bool) {
			if name == "WEIR_ADMIN_KEY" {
				return adminKey, true
			}
			return "", false
		},
	}
}

func start(t testing.TB, o host.Options) *host.Host {
	t.Helper()
	h, err := host.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, h) })
	return h
}

func stop(t testing.TB, h *host.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := h.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func mock(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	return srv.URL
}

func hello(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"hello"}}]}`)
}

const ask = `{"model":"mock/m","messages":[{"role":"user","content":"hi"}]}`

// call asks a host's handler as an embedding program's server would.
func call(h *host.Host, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:8787"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:9"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	return w
}

// Two hosts live in one process and answer for themselves.
func TestTwoHosts(t *testing.T) {
	url := mock(t, hello)
	one, two := start(t, options(t, url)), start(t, options(t, url))
	stop(t, one)
	if w := call(two, "POST", "/v1/chat/completions", ask); w.Code != 200 || !strings.Contains(w.Body.String(), "hello") {
		t.Error(w.Code, w.Body)
	}
	if w := call(one, "POST", "/v1/chat/completions", ask); w.Code != 503 {
		t.Error("a stopped host answers", w.Code)
	}
}

// Stop may come before Start, and twice; a start behind it is refused and opens nothing.
func TestStopBeforeStart(t *testing.T) {
	o := options(t, "http://127.0.0.1:1")
	o.Listen = "127.0.0.1:0"
	h, err := host.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	stop(t, h)
	stop(t, h)
	if err := h.Start(t.Context()); err == nil {
		t.Error("a stopped host was started")
	}
}

// What a configuration asks of plugins and no plugin may have is a fault with its place, and a way to compile that the program
// does not offer ends the start.
func TestSettingsOfPluginsThatCannotBe(t *testing.T) { // ABI-7, ABI-8, CFG-6
	for text, want := range map[string]string{
		"plugins:\n  settings:\n    p: {limits: {memory_mib: 300, fuel: {plan: 0, dance: 1}}}\n": ":3:9: plugins.settings.p.limits: limits.fuel.dance is no operation that has a limit",
		"plugins: {settings: {p: {limits: {memory_mib: 300}}}}\n":                                "limits.memory_mib is 300; give 1 to 256",
		"plugins: {settings: {p: {limits: {wall_ms: {on_event: 1001}}}}}\n":                      "limits.wall_ms.on_event is 1001; give 1 to 1000",
		"plugins: {compile: child}\n":                                                            "plugins.compile is child, but this program has no command that compiles",
	} {
		o := options(t, "http://127.0.0.1:1")
		if err := os.WriteFile(o.ConfigFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if h, err := host.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
			if err == nil {
				stop(t, h)
			}
		}
	}
}

// A host that cannot be made leaves nothing behind; goleak sees the rest.
func TestNewFails(t *testing.T) {
	o := options(t, "http://127.0.0.1:1")
	o.Store, o.DataDir = nil, t.TempDir()
	if err := os.WriteFile(o.ConfigFile, []byte("combos:\n  - {name: c, targets: [{model: nobody/m}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := host.New(t.Context(), o); err == nil {
		stop(t, h)
		t.Fatal("a faulty file was taken")
	}
	if err := os.WriteFile(o.ConfigFile, []byte("combos: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.New(t.Context(), o) // the folder was closed, and opens again
	if err != nil {
		t.Fatal(err)
	}
	stop(t, h)
}

// CLI-4: requests that run are waited for, with a listener and without one, and those that outlast the grace are ended before
// anything under them is closed.
func TestStopWaitsForRequests(t *testing.T) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	url := mock(t, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-release
		hello(w, r)
	})
	h := start(t, options(t, url))
	var w *httptest.ResponseRecorder
	var wg sync.WaitGroup
	wg.Go(func() { w = call(h, "POST", "/v1/chat/completions", ask) })
	<-entered
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	stop(t, h)
	wg.Wait()
	if w.Code != 200 {
		t.Error(w.Code, w.Body)
	}
}

func TestStopEndsWhatOutlastsTheGrace(t *testing.T) {
	entered := make(chan struct{}, 1)
	url := mock(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-r.Context().Done()
	})
	o := options(t, url)
	o.Listen = "127.0.0.1:0"
	h := start(t, o)
	var wg sync.WaitGroup
	wg.Go(func() {
		resp, err := http.Post("http://"+h.Addr()+"/v1/chat/completions", "application/json", strings.NewReader(ask)) //nolint:noctx // Stop ends it
		if err == nil {
			resp.Body.Close()
			t.Error("answered", resp.Status)
		}
	})
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := h.Stop(ctx); err != nil {
		t.Error("what was acknowledged must be written all the same:", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Error(took)
	}
	wg.Wait()
	http.DefaultClient.CloseIdleConnections()
}

// OV-26: a change through the API is in force when its answer is there, and many at once all are.
func TestChangesAreInForce(t *testing.T) {
	h := start(t, options(t, mock(t, hello)))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			alias := "name-" + string(rune('a'+i))
			w := call(h, "POST", "/api/providers", `{"provider":"mock","name":"`+alias+`","apiKey":"sk-0123456789-`+alias+`"}`,
				"Authorization", "Bearer "+adminKey, "Content-Type", "application/json")
			if w.Code/100 != 2 {
				t.Error(w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if n := h.Ready().Connections; n != 9 {
		t.Errorf("%d connections", n)
	}
}

// CLI-5: a file may switch a plugin on or off together with what needs it, and is in force when Reload returns.
func TestReloadWithPlugins(t *testing.T) {
	o := options(t, mock(t, hello))
	with, err := os.ReadFile(o.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	without := []byte("plugins: {modes: {openai-compatible: \"off\"}}\n")
	write := func(b []byte) {
		if err := os.WriteFile(o.ConfigFile, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(without)
	h := start(t, o)
	for range 2 {
		write(with)
		if err := h.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w := call(h, "POST", "/v1/chat/completions", ask); w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
		write(without)
		if err := h.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w := call(h, "POST", "/v1/chat/completions", ask); w.Code != 404 {
			t.Fatal(w.Code, w.Body)
		}
	}
	write(append([]byte("plugins: {modes: {generic: \"off\"}}\ncombos: [{name: c, targets: [nobody/m]}]\n"), with...))
	if err := h.Reload(t.Context()); err == nil {
		t.Fatal("a faulty file was taken")
	}
	if w := call(h, "POST", "/v1/chat/completions", ask); w.Code != 404 {
		t.Error("a faulty file changed something:", w.Code, w.Body)
	}
}
