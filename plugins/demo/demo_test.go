package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk"
)

func TestExamples(t *testing.T) { sdk.RunExamples(t) } // OBJ-26

// The committed module is what its source builds to (ABI-12).
func TestModuleIsReproducible(t *testing.T) {
	committed, err := os.ReadFile("demo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(committed, []byte(runtime.Version())) {
		t.Skipf("demo.wasm was built by another version of Go than %s", runtime.Version())
	}
	out := filepath.Join(t.TempDir(), "demo.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	built, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(built, committed) {
		t.Error("demo.wasm is not what its source builds to; run make plugins and commit it")
	}
}

// A guest must not pay for packages that double its size (ABI-12).
func TestImports(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		switch p {
		case "encoding/json", "fmt", "regexp", "reflect":
			t.Errorf("the guest imports %s", p)
		}
	}
}
