package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestAuthorScripts runs what the author of a plugin does, with no gateway running; SOURCES is this repository.
func TestAuthorScripts(t *testing.T) {
	sources, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Skip("there is no Go toolchain here")
	}
	cache := strings.Fields(string(caches))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/authors",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("SOURCES", sources)
			e.Setenv("GOCACHE", cache[0])
			e.Setenv("GOMODCACHE", cache[1])
			e.Setenv("GOPROXY", "off") // what it needs is there
			e.Setenv("GOFLAGS", "")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "fake": fake, "ready": ready, "signal": signalAll},
	})
}
