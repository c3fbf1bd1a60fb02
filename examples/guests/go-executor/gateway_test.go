package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/sdk/sdktest"
	"github.com/weirgate/weir/store/memory"
)

// A gateway that finds the Go guests in its folder loads them, their examples passed.
func TestGatewayLoads(t *testing.T) { // ABI-2.4, ABI-7
	dir := t.TempDir()
	want := map[string]string{"acme-stream": ".", "acme-errors": "../go-classifier"}
	for name, source := range want {
		wasm, err := sdktest.Build(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".wasm"), wasm, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const key = "weir-admin-for-this-test"
	env := map[string]string{"WEIR_ADMIN_KEY": key}
	gw, err := host.New(t.Context(), host.Options{
		Listen: host.NoListener, Store: memory.New(memory.Options{}), PluginsDir: dir,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gw.Stop(t.Context()) })
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/api/plugins", nil)
	req.Header.Set("Authorization", "Bearer "+key)
	rec := httptest.NewRecorder()
	gw.Handler().ServeHTTP(rec, req)
	var list struct {
		Plugins []struct {
			Name, State string
			Fault       *struct{ Code, Message string }
		}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || rec.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
	}
	for _, p := range list.Plugins {
		p.Name = strings.TrimSuffix(p.Name, ".wasm") // a file that is refused is called by its name
		if _, ok := want[p.Name]; !ok {
			continue
		}
		delete(want, p.Name)
		if p.Fault != nil && p.Fault.Code == "unsupported" && p.Name == "acme-stream" {
			t.Log(p.Fault.Message) // a gateway without event hooks says so
			continue
		}
		if p.State != "active" || p.Fault != nil {
			t.Errorf("%s is %s: %+v", p.Name, p.State, p.Fault)
		}
	}
	if len(want) > 0 {
		t.Errorf("not loaded: %v; in the list are %+v", want, list.Plugins)
	}
}
