package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weirgate/weir/host/plugin/binary"
	"github.com/weirgate/weir/host/plugin/extism"
)

// The ways to compile (plugins.compile).
const (
	CompileInProcess = "inprocess"
	CompileInChild   = "child"
)

// Limits of the child process: what the largest module that passes the check needs, several times over.
const (
	childMemory = 1 << 30
	childCPU    = 60 * time.Second
)

func (l *loader) inChild() bool { return l.compileMode == CompileInChild && l.child != nil }

// compileApart has a child process fill the cache, killed when it takes too long (ABI-7 step 4).
func (l *loader) compileApart(ctx context.Context, metered []byte, dir string) *Fault {
	ctx, stop := context.WithTimeout(ctx, compileTime)
	defer stop()
	cmd := l.child()
	cmd.Args = append(cmd.Args, dir)
	cmd.Stdin = bytes.NewReader(metered)
	var said ring
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Start(); err != nil {
		return fault(StepCompile, CodeCompile, "the process that compiles does not start: %v", err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })() // it may have ended by itself
	err := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return tooLong()
	case err != nil:
		return fault(StepCompile, CodeCompile, "the module does not compile: the process that does it ended with %v: %s", err, firstLine(said.String()))
	}
	return nil
}

// CompileChild is the other side of plugins.compile: child, for a hidden command of the program: it compiles the metered module
// on in into the cache at dir, under limits of memory and processor time that it sets for its own process. The command line
// of Options.Child comes with the dir as its last argument.
func CompileChild(in io.Reader, dir string) error {
	if err := limitProcess(childMemory, childCPU); err != nil {
		return fmt.Errorf("limiting the process that compiles: %w", err)
	}
	wasm, err := io.ReadAll(io.LimitReader(in, 2*MaxFile+1))
	if err != nil {
		return fmt.Errorf("reading the module: %w", err)
	}
	if len(wasm) > 2*MaxFile {
		return errors.New("the metered module is too large")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(experimental.WithCompilationWorkers(context.Background(), compileWorkers), compileTime)
	defer stop()
	if o, err := binary.Parse(wasm); err == nil && kindOf(o) == loaderExtism {
		ctx = extism.Context(ctx)
	}
	defer cache.Close(ctx)
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(false).WithCompilationCache(cache))
	defer r.Close(ctx)
	code, err := r.CompileModule(ctx, wasm)
	if err != nil {
		return errors.New(firstLine(err.Error()))
	}
	return code.Close(ctx)
}

// Child is what Options.Child makes of the command that runs CompileChild.
type Child func() *exec.Cmd
