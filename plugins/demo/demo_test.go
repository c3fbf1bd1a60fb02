package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
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

// Whatever the text, its parts are the text, and an answer stays within 256 KiB (ABI-3).
func TestWords(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "one": 1, "one two": 2, "  one\n\ntwo ": 3, strings.Repeat("a ", 2040): maxEvents,
	} {
		parts := words(text)
		if strings.Join(parts, "") != text || len(parts) > maxEvents || want < maxEvents && len(parts) != want {
			t.Errorf("%.20q: %d parts, want %d", text, len(parts), want)
		}
		p := reply{id: "chatcmpl-demo-0123456789abcdef", model: "misstating", text: text, created: 1_790_000_000}
		size := 0
		for _, e := range p.events(true, 0, 200) {
			size += len(strconv.Quote(e.Data)) + len(`{"delay_ms":200,"data":},`)
		}
		if size > 256<<10 {
			t.Errorf("%.20q: the answer has %d bytes", text, size)
		}
	}
}
