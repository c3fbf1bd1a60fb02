package guests

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/store/memory"
)

// ABI-10, ABI-13, PLG-1: every folder here builds, and what they build to is loaded by one gateway, through the loader that it
// is for, with its own examples passed. A folder that nobody builds fails.
func TestEveryGuest(t *testing.T) {
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	plugins, want := t.TempDir(), map[string]string{}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		wasm := moduleOf(t, f.Name())
		want[f.Name()] = "raw"
		if bytes.Contains(wasm, []byte("extism:host/env")) {
			want[f.Name()] = "extism"
		}
		if err := os.WriteFile(filepath.Join(plugins, f.Name()+".wasm"), wasm, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gw, err := host.New(t.Context(), host.Options{
		PluginsDir: plugins, Listen: host.NoListener, Store: memory.New(memory.Options{}), DataDir: t.TempDir(),
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
	t.Cleanup(func() { _ = gw.Stop(t.Context()) })
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list struct{ Plugins []plugin }
	w := (&gateway{T: t, h: gw}).call(http.MethodGet, "/api/plugins", "", adminKey)
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	loaders := map[string]int{}
	for _, p := range list.Plugins {
		if p.Origin != "folder" {
			continue
		}
		loaders[p.Loader]++
		if p.State != "active" || p.Fault != nil {
			t.Errorf("%s is %s: %+v", p.Name, p.State, p.Fault)
		}
	}
	if loaders["raw"]+loaders["extism"] != len(want) || loaders["extism"] == 0 {
		t.Errorf("%v are loaded of %v", loaders, want)
	}
}

// moduleOf builds the guest of a folder: by its Makefile, or as Go. Without its compiler the committed module stands in for it,
// but not in CI.
func moduleOf(t *testing.T, dir string) []byte {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "main.go")); err == nil {
		out := filepath.Join(t.TempDir(), "guest.wasm")
		build := exec.CommandContext(t.Context(), "go", "build", "-C", dir, "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, ".")
		build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
		began := time.Now()
		if said, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", dir, err, said)
		}
		t.Logf("%s built in %s", dir, time.Since(began).Round(time.Millisecond))
		return read(t, out)
	}
	g, ok := byFolder(dir)
	if !ok {
		t.Fatalf("nobody builds the guest in %s; add it to the list of guests", dir)
	}
	c, err := g.compiler(t)
	if err != nil {
		if ci := os.Getenv("CI"); ci != "" && ci != "false" {
			t.Fatalf("%v; .ci/run installs it", err)
		}
		t.Logf("the committed %s stands in: %v", g.wasm, err)
		return read(t, filepath.Join(dir, g.wasm))
	}
	return g.build(t, c)
}

func byFolder(dir string) (guest, bool) {
	for _, g := range guests() {
		if g.dir == dir {
			return g, true
		}
	}
	return guest{}, false
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The committed modules are small, so that a clone of the repository is.
func TestCommittedModulesAreSmall(t *testing.T) {
	files, err := filepath.Glob("*/*.wasm")
	if err != nil || len(files) != len(guests()) {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if n := len(read(t, f)); n > 100<<10 {
			t.Errorf("%s has %d bytes", strings.TrimPrefix(f, "./"), n)
		}
	}
}
