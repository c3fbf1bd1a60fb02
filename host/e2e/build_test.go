package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var (
	scratch string // binaries; removed when all tests are over

	// released is the program as make build makes it; checked has the race detector, when the tests have it.
	released = sync.OnceValues(func() (string, error) { return build("weir", false) })
	checked  = sync.OnceValues(func() (string, error) {
		if !raceDetector {
			return released()
		}
		return build("weir-race", true)
	})
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // a leftover of a test that was cut is no failure
	os.Exit(code)
}

func build(name string, race bool) (string, error) {
	path := filepath.Join(scratch, name)
	args := []string{"build", "-o", path, "-trimpath", "-ldflags", "-s -w"}
	env := append(os.Environ(), "CGO_ENABLED=0")
	if race {
		args = []string{"build", "-o", path, "-race"}
		env = append(os.Environ(), "CGO_ENABLED=1")
	}
	cmd := exec.Command("go", append(args, "github.com/weirgate/weir/cmd/weir")...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build of %s: %w\n%s", name, err, out)
	}
	return path, nil
}

func binary(t *testing.T, which func() (string, error)) string {
	t.Helper()
	path, err := which()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
