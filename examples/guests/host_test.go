package guests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/store/memory"
)

// gateway is a host with a guest in its plugin folder, and providers with one account each that answer as they are told.
type gateway struct {
	*testing.T
	h    *host.Host
	says atomic.Pointer[said]
}

// said is what the providers answer.
type said struct {
	status int
	body   string
}

const adminKey = "weir-admin-for-this-test"

// serve starts a gateway with the providers PREFIX-0 and so on; their accounts are account-0 and so on.
func serve(t *testing.T, wasm []byte, prefix string, providers int) *gateway {
	t.Helper()
	gw := &gateway{T: t}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		now := gw.says.Load()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(now.status)
		_, _ = io.WriteString(w, now.body)
	}))
	t.Cleanup(upstream.Close)
	config := "resilience: {waitForCooldown: {enabled: false}}\nproviders:\n" // each answer at once, not when the account is back
	for i := range providers {
		config += fmt.Sprintf("  - {id: %s-%d, executor: openai-compatible, category: apikey, base_url: %s/v1, models: [m-large]}\n", prefix, i, upstream.URL)
	}
	config += "connections:\n"
	for i := range providers {
		config += fmt.Sprintf("  - {id: account-%d, provider: %s-%d, api_key: sk-upstream-0123456789}\n", i, prefix, i)
	}
	for _, g := range append(guests(), quayGuest) { // the race detector slows the host down, and with it the guests
		if g.provider == prefix {
			config += fmt.Sprintf("plugins: {settings: {%s: {limits: {wall_ms: {restate: 1000, classify: 1000}}}}}\n", g.plugin)
		}
	}
	dir := t.TempDir()
	plugins, file := filepath.Join(dir, "plugins"), filepath.Join(dir, "weir.yaml")
	for _, err := range []error{
		os.Mkdir(plugins, 0o700), os.WriteFile(filepath.Join(plugins, "guest.wasm"), wasm, 0o600), os.WriteFile(file, []byte(config), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	st := memory.New(memory.Options{})
	t.Cleanup(func() { _ = st.Close() }) // nothing to lose
	var err error
	gw.h, err = host.New(t.Context(), host.Options{
		ConfigFile: file, PluginsDir: plugins, Listen: host.NoListener, Store: st,
		Env: func(name string) (string, bool) {
			if name == "WEIR_ADMIN_KEY" {
				return adminKey, true
			}
			return "", false
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := gw.h.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return gw
}

func (gw *gateway) call(method, path, body, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(gw.Context(), method, "http://127.0.0.1:8787"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:9"
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	gw.h.Handler().ServeHTTP(w, r)
	return w
}

func (gw *gateway) get(path string, into any) {
	gw.Helper()
	w := gw.call(http.MethodGet, path, "", adminKey)
	if w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), into) != nil {
		gw.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
}

// answer is what the client got.
type answer struct {
	Error           struct{ Code, Message string }
	restated, after string // headers
	status          int
}

// ask sends a chat request to a provider while it answers so.
func (gw *gateway) ask(provider string, status int, body string) answer {
	gw.Helper()
	gw.says.Store(&said{status, body})
	w := gw.call(http.MethodPost, "/v1/chat/completions", `{"model":"`+provider+`/m-large","messages":[{"role":"user","content":"hi"}]}`, "")
	a := answer{status: w.Code, restated: w.Header().Get("X-Weir-Restated"), after: w.Header().Get("Retry-After")}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		gw.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return a
}

// health is who said what about an account.
type health struct {
	LastErrorType string
	Cause         struct {
		Plugin, Rule           string
		Status, OriginalStatus int
	}
}

func (gw *gateway) health(account string) health {
	gw.Helper()
	var a struct{ Connection struct{ Health health } }
	gw.get("/api/providers/"+account, &a)
	return a.Connection.Health
}

// plugin is what a host says of its guest.
type plugin struct {
	Name, State, Origin, Loader string
	Rules                       int
	Fault                       *struct{ Step, Code string }
	Manifest                    struct{ Examples []any }
	Counters                    struct {
		Calls, Rules, NoOpinion int
		Violations              map[string]int
	}
}
