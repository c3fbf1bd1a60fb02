// Package guests proves the guests of the folders below: plugins in several languages, for both loaders.
package guests

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirgate/weir/sdk/sdktest"
)

// guest is one example and how to build it.
type guest struct {
	dir, wasm string
	plugin    string // its name
	provider  string // that it speaks for
	expects   string // in one of its examples
	loader    string
	wide      bool // its texts are UTF-16
	decisions []decision
	compiler  func(t *testing.T) (compiler, error)
	variable  string // of the Makefile, for the compiler
}

// compiler is one that is installed. A module that it builds holds its name and version.
type compiler struct {
	path, name, version string
	pinned              bool // it is the one that the committed module was built by
}

// guests are those that are written in another language than Go.
func guests() []guest {
	return []guest{
		{
			dir: "c", wasm: "classifier.wasm", plugin: "acme-windows", provider: "acme", expects: `"retry_after_ms": 12000`, loader: "raw",
			decisions: windows, compiler: clang, variable: "CLANG",
		},
		{
			dir: "rust", wasm: "relay.wasm", plugin: "relay-status", provider: "relay", expects: `"retry_after_ms": 20000`, loader: "raw",
			decisions: relay, compiler: rustc, variable: "RUSTC",
		},
		{
			dir: "assemblyscript", wasm: "harbor.wasm", plugin: "harbor-clock", provider: "harbor", expects: `"retry_after_ms": 1000000`, loader: "raw", wide: true,
			decisions: harbor, compiler: asc, variable: "ASC",
		},
		{
			dir: "extism-c", wasm: "bay.wasm", plugin: "bay-status", provider: "bay", expects: `"cooldown_ms": 2000`, loader: "extism",
			decisions: bay, compiler: clang, variable: "CLANG",
		},
	}
}

// Each guest conforms, is loaded and decides: as it is committed, and as its source builds to where that makes other bytes.
// Without a compiler the latter is skipped, but in CI it fails.
func TestGuests(t *testing.T) {
	for _, g := range guests() {
		t.Run(g.dir, func(t *testing.T) {
			committed, err := os.ReadFile(filepath.Join(g.dir, g.wasm))
			if err != nil {
				t.Fatal(err)
			}
			t.Run("committed", func(t *testing.T) { g.prove(t, committed) })
			t.Run("rebuilt", func(t *testing.T) {
				c, err := g.compiler(t)
				if ci := os.Getenv("CI"); err != nil && ci != "" && ci != "false" {
					t.Fatalf("%v; .ci/run installs it", err)
				}
				if err != nil {
					t.Skipf("only the committed %s is tested: %v", g.wasm, err)
				}
				built := g.build(t, c)
				switch {
				case bytes.Equal(built, committed): // and those were proved
					return
				case c.made(committed):
					t.Errorf("%s is not what its source builds to; run make -C examples/guests/%s and commit it", g.wasm, g.dir)
				default:
					t.Logf("the committed %s was built by another compiler than %s %s", g.wasm, c.name, c.version)
				}
				g.prove(t, built)
			})
		})
	}
}

// quayGuest is some megabytes, and so it is not committed.
var quayGuest = guest{dir: "extism-go", plugin: "quay-status", provider: "quay", expects: `"retry_after_ms": 7200000`, loader: "extism", decisions: quay}

// ABI-10: what a stranger builds with a PDK of the Extism project, in a module of its own that knows nothing of Weir, is loaded
// and decides.
func TestExtismPDK(t *testing.T) {
	t.Parallel()
	quayGuest.prove(t, moduleOf(t, quayGuest.dir))
}

func (g guest) prove(t *testing.T, wasm []byte) {
	if g.loader == "raw" { // the kit knows no other
		t.Run("conforms", func(t *testing.T) { g.conforms(t, wasm) })
	}
	t.Run("decides", func(t *testing.T) { g.decides(t, wasm) })
	t.Run("examples are run", func(t *testing.T) { g.refused(t, wasm) })
}

// conforms runs the kit (ABI-1, 2, 4, 6, 8): every step passes, and a call costs little of what it may.
func (g guest) conforms(t *testing.T, wasm []byte) {
	r := sdktest.Run(t, wasm)
	if !r.OK || r.Name != g.plugin || len(r.Costs) == 0 {
		t.Errorf("%s: %+v", r.Name, r)
	}
	for _, c := range r.Costs {
		if c.MaxFuel == 0 || c.MaxFuel > c.Budget/10 {
			t.Errorf("%v took %d of its %d fuel", c.Op, c.MaxFuel, c.Budget)
		}
	}
}

// build compiles a copy of the folder with its Makefile, so that the tree stays as it is.
func (g guest) build(t *testing.T, c compiler) []byte {
	t.Helper()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), g.wasm)
	if err := os.CopyFS(dir, os.DirFS(g.dir)); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "make", "-C", dir, "OUT="+out, g.variable+"="+c.path)
	build.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=") // not those of make test
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", c.path, c.version, err, said)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// clang finds a clang that links WebAssembly.
func clang(t *testing.T) (compiler, error) {
	path, err := exec.LookPath("clang")
	if err != nil {
		return compiler{}, errors.New("there is no clang")
	}
	if _, err := exec.LookPath("wasm-ld"); err != nil {
		return compiler{}, errors.New("there is no wasm-ld, the linker that clang needs for WebAssembly (Debian: lld)")
	}
	first, _, _ := strings.Cut(output(t, path, "--version"), "\n")
	name, version, _ := strings.Cut(first, " version ")
	return compiler{path: path, name: name, version: version}, nil
}

// rustc finds a rustc that has the target, which need not be the first in PATH.
func rustc(t *testing.T) (compiler, error) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path, err := exec.LookPath(filepath.Join(dir, "rustc"))
		if err != nil {
			continue
		}
		lib := output(t, path, "--print", "target-libdir", "--target", "wasm32-unknown-unknown")
		if _, err := os.Stat(lib); lib != "" && err == nil {
			return compiler{path: path, name: "rustc", version: strings.TrimPrefix(output(t, path, "--version"), "rustc ")}, nil
		}
	}
	return compiler{}, errors.New("there is no rustc with the target wasm32-unknown-unknown (Debian: rustc, libstd-rust-dev-wasm32)")
}

// asc finds the compiler of AssemblyScript that package-lock.json pins, in a cache of the user's; it is fetched there once.
func asc(t *testing.T) (compiler, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return compiler{}, errors.New("there is no node (Debian: nodejs, npm)")
	}
	lock, err := os.ReadFile("assemblyscript/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "weir-guests", fmt.Sprintf("assemblyscript-%x", sha256.Sum256(lock)))
	path := filepath.Join(dir, "node_modules", "assemblyscript", "bin", "asc.js")
	if _, err := os.Stat(path); err != nil {
		if err := fetch(t, dir); err != nil {
			return compiler{}, err
		}
	}
	return compiler{path: path, name: "asc", version: strings.TrimPrefix(output(t, node, path, "--version"), "Version "), pinned: true}, nil
}

// fetch installs what package-lock.json names, beside the folder and then in its place, so that nobody finds half of it.
func fetch(t *testing.T, dir string) error {
	t.Helper()
	beside := fmt.Sprintf("%s.%d", dir, os.Getpid())
	defer os.RemoveAll(beside)
	if err := os.MkdirAll(beside, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join("assemblyscript", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(beside, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = beside
	if said, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci fetches no AssemblyScript: %w: %s", err, said)
	}
	if err := os.Rename(beside, dir); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		t.Fatal(err)
	}
	return nil
}

// output is what a command says, empty when it fails.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Logf("%s %s: %v", name, strings.Join(args, " "), err)
		return ""
	}
	return strings.TrimSpace(string(out))
}

// made says whether this very compiler built a module, by its section of producers, where texts follow their lengths.
func (c compiler) made(wasm []byte) bool {
	if c.pinned {
		return true
	}
	for _, text := range []string{c.name, c.version} {
		if !bytes.Contains(wasm, append([]byte{byte(len(text))}, text...)) {
			return false
		}
	}
	return true
}

// A header for the raw ABI is one that a person reads in a minute.
func TestHeaderIsShort(t *testing.T) {
	text, err := os.ReadFile("c/weir.h")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) > 80 {
		t.Errorf("weir.h has %d lines, at most 80", len(lines))
	}
	for i, line := range lines {
		if len(line) > 130 {
			t.Errorf("line %d of weir.h has %d characters", i+1, len(line))
		}
	}
}
