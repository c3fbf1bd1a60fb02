package examples_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/host/config"
	"github.com/weirgate/weir/store/memory"
)

// Every example pack loads with its own examples passed, and puts what it says into the catalogue.
func TestPacksLoad(t *testing.T) {
	dir := t.TempDir()
	files, err := filepath.Glob("packs/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const key = "weir-admin-for-this-test"
	gw, err := host.New(t.Context(), host.Options{
		Listen: host.NoListener, Store: memory.New(memory.Options{}), PluginsDir: dir,
		Env: func(name string) (string, bool) {
			if name == "WEIR_ADMIN_KEY" {
				return key, true
			}
			return "", false
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gw.Stop(t.Context()) })
	var list struct {
		Plugins []struct {
			Name, Origin, State string
			Fault               any
		} `json:"plugins"`
	}
	get(t, gw.Handler(), key, "/api/plugins", &list)
	found := 0
	for _, p := range list.Plugins {
		if p.Origin == "folder" {
			found++
			if p.State != "active" || p.Fault != nil {
				t.Errorf("%s: %s %v", p.Name, p.State, p.Fault)
			}
		}
	}
	if found != len(files) {
		t.Errorf("%d of %d packs are there", found, len(files))
	}
	var acme struct{ BaseURL, Plugin string }
	get(t, gw.Handler(), key, "/api/catalog/providers/acme", &acme)
	if acme.BaseURL != "https://api.acme.example/v1" || acme.Plugin != "acme" {
		t.Errorf("%+v", acme)
	}
}

func get(t *testing.T, h http.Handler, key, path string, into any) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
	req.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), into) != nil {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
}

// The example configuration has no fault.
func TestConfiguration(t *testing.T) {
	if _, faults := config.Load("weir.yaml", func(string) (string, bool) { return "", false }); len(faults) > 0 {
		t.Error(faults)
	}
}
