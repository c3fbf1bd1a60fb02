package sdktest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// Build compiles the guest in Go whose package main is in dir, as ABI-12 says, and returns the module. It needs the go command;
// the error has the compiler's own words.
func Build(ctx context.Context, dir string) ([]byte, error) {
	temp, err := os.MkdirTemp("", "sdktest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	out := filepath.Join(temp, "guest.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, &buildError{err, string(said)}
	}
	return os.ReadFile(out)
}

type buildError struct {
	err  error
	said string
}

func (e *buildError) Error() string { return "go build: " + e.err.Error() + "\n" + e.said }

func (e *buildError) Unwrap() error { return e.err }

// RunGo builds the guest in dir and runs the kit on it: what an author's test calls beside sdk.RunExamples.
func RunGo(t TB, dir string) Report {
	t.Helper()
	return Kit{}.RunGo(t, dir)
}

// RunGo builds the guest in dir and runs the kit on it.
func (k Kit) RunGo(t TB, dir string) Report {
	t.Helper()
	wasm, err := Build(t.Context(), dir)
	if err != nil {
		t.Errorf("%v", err)
		return Report{}
	}
	return k.Run(t, wasm)
}
