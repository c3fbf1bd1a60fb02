package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weirgate/weir/host/plugin/binary"
	"github.com/weirgate/weir/host/plugin/extism"
	"github.com/weirgate/weir/host/plugin/fuel"
)

// compileTime bounds a compilation (ABI-7 step 4).
const compileTime = 20 * time.Second

// compiling is held while a module compiles: one at a time in the process, whatever number of hosts runs in it (ABI-7).
var compiling = make(chan struct{}, 1)

// meter checks a module and gives it fuel (ABI-7, steps 2 and 3).
func (l *loader) meter(wasm []byte, o *binary.Outline, budgets *limits) ([]byte, fuel.Report, *Fault) {
	options := fuel.Options{BodyKiB: l.widest.bodyKiB, MemoryPages: l.widest.pages}
	var metered []byte
	var report fuel.Report
	var err error
	if kindOf(o) == loaderExtism {
		metered, report, err = fuel.RewriteExtism(wasm, options, budgets.wrappers()...)
	} else {
		metered, report, err = fuel.Rewrite(wasm, options)
	}
	if err == nil {
		if report.Body > defaultBodyKiB<<10 && !l.inChild() {
			return nil, report, fault(StepPrecheck, string(fuel.BodyTooLarge),
				"the largest function has %d bytes; above %d KiB a module is compiled in a process of its own only: set plugins.compile to child", report.Body, defaultBodyKiB)
		}
		return metered, report, nil
	}
	if e, ok := errors.AsType[*fuel.Error](err); ok {
		where := fmt.Sprintf("byte %d", e.Offset)
		if e.Function >= 0 {
			where = fmt.Sprintf("function %d, byte %d", e.Function, e.Offset)
		}
		return nil, report, fault(StepPrecheck, string(e.Code), "%s: %s", where, e.Message)
	}
	return nil, report, fault(StepPrecheck, CodeMalformed, "the module cannot be metered: %v", err)
}

// compile makes the sandbox of a metered module and returns the digest of its bytes, which is the key of the cache.
func (l *loader) compile(ctx context.Context, metered []byte, o *binary.Outline) (_ sandbox, digest string, f *Fault) {
	sum := sha256.Sum256(metered)
	digest = hex.EncodeToString(sum[:])
	s := sandbox{}
	defer func() {
		if f != nil {
			s.close()
		}
	}()
	interpret := l.interpret || slowCompiler && len(metered) > 1<<20
	config, dir := runtimeConfig(interpret), ""
	if !interpret && l.cacheDir != "" {
		dir = filepath.Join(l.cacheDir, digest)
	}
	select {
	case compiling <- struct{}{}:
		defer func() { <-compiling }()
	case <-ctx.Done():
		return s, digest, fault(StepCompile, CodeCompile, "the load was cancelled")
	}
	if kindOf(o) == loaderExtism {
		if f := linkExtism(ctx, o); f != nil {
			return s, digest, f
		}
	}
	if l.inChild() && !interpret {
		if dir == "" { // the child hands its work over in a folder
			temporary, err := os.MkdirTemp("", "weir-compile-")
			if err != nil {
				return s, digest, fault(StepCompile, CodeCompile, "no folder for the compiled code: %v", err)
			}
			defer os.RemoveAll(temporary)
			dir = temporary
		}
		if f := l.compileApart(ctx, metered, dir); f != nil {
			return s, digest, f
		}
	}
	if dir != "" && kindOf(o) != loaderExtism {
		cache, err := wazero.NewCompilationCacheWithDir(dir)
		if err != nil {
			return s, digest, fault(StepCompile, CodeCompile, "cannot use the cache directory %s: %v", dir, err)
		}
		s.cache, config = cache, config.WithCompilationCache(cache)
	}
	if kindOf(o) == loaderExtism {
		s.apart, f = compileExtism(ctx, metered, extism.Options{Runtime: runtimeConfig(interpret), CacheDir: dir})
		return s, digest, f
	}
	s.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if f := s.link(ctx, o); f != nil {
		return s, digest, f
	}
	ctx, stop := context.WithTimeout(experimental.WithCompilationWorkers(ctx, compileWorkers), compileTime)
	defer stop()
	code, err := s.runtime.CompileModule(ctx, metered)
	switch {
	case err != nil && ctx.Err() != nil:
		return s, digest, tooLong()
	case err != nil:
		return s, digest, fault(StepCompile, CodeCompile, "the module does not compile: %s", firstLine(err.Error()))
	}
	s.code = code
	return s, digest, nil
}

// compileWorkers: with two the compiler looks at its context between functions, with one it does not.
const compileWorkers = 2

func tooLong() *Fault {
	return fault(StepCompile, CodeCompileTimeout, "the module did not compile within %s; make it smaller", compileTime)
}

// pruneCache removes compiled code of digests that nobody uses any more; wazero never does.
func pruneCache(dir string, used func(digest string) bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if len(e.Name()) == 64 && !used(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
