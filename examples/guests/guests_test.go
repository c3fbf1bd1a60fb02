// Package guests proves the guests of the folders below: plugins that are not written in Go.
package guests

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk/sdktest"
)

// guest is one example and how to build it.
type guest struct {
	dir, wasm string
	plugin    string // its name
	provider  string // that it speaks for
	expects   string // in one of its examples
	decisions []decision
	compiler  func(t *testing.T) (compiler, error)
	variable  string // of the Makefile, for the compiler
}

// compiler is one that is installed. A module that it builds holds its name and version.
type compiler struct{ path, name, version string }

// Each guest conforms, is loaded and decides: as it is committed, and as its source builds to where that makes other bytes.
// Without a compiler the latter is skipped, but in CI it fails.
func TestGuests(t *testing.T) {
	for _, g := range []guest{
		{"c", "classifier.wasm", "acme-windows", "acme", `"retry_after_ms": 12000`, windows, clang, "CLANG"},
		{"rust", "relay.wasm", "relay-status", "relay", `"retry_after_ms": 20000`, relay, rustc, "RUSTC"},
	} {
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

func (g guest) prove(t *testing.T, wasm []byte) {
	t.Run("conforms", func(t *testing.T) { g.conforms(t, wasm) })
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
	return compiler{path, name, version}, nil
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
			return compiler{path, "rustc", strings.TrimPrefix(output(t, path, "--version"), "rustc ")}, nil
		}
	}
	return compiler{}, errors.New("there is no rustc with the target wasm32-unknown-unknown (Debian: rustc, libstd-rust-dev-wasm32)")
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
