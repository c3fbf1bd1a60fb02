package plugin

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weirgate/weir/host/plugin/binary"
	"github.com/weirgate/weir/sdk/wire"
)

// compileTime bounds a compilation (ABI-7 step 4).
const compileTime = 20 * time.Second

// compiling is held while a module compiles: one at a time in the process, whatever number of hosts runs in it (ABI-7).
var compiling = make(chan struct{}, 1)

// guest is the compiled code of one plugin version with the sandbox that it runs in.
type guest struct {
	log      *slog.Logger
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	host     []wazero.CompiledModule
	code     wazero.CompiledModule
	pages    uint32
	kvQuota  int
	kv       *space
	settings []byte // input of configure
	hookTime time.Duration
	counters *counters
	pool     pool
}

// compile makes a guest of a module that passed precheck. cacheDir may be empty.
func (l *loader) compile(ctx context.Context, wasm []byte, o *binary.Outline, cacheDir string) (_ *guest, f *Fault) {
	g := &guest{log: l.log, pages: memoryPages, hookTime: l.hookTime, counters: &counters{}}
	config := wazero.NewRuntimeConfig()
	if l.interpret || slowCompiler && len(wasm) > 1<<20 {
		config, cacheDir = wazero.NewRuntimeConfigInterpreter(), ""
	}
	config = config.
		WithCoreFeatures(api.CoreFeaturesV2 &^ api.CoreFeatureSIMD).
		WithMemoryLimitPages(memoryPages).
		WithCloseOnContextDone(true).
		WithDebugInfoEnabled(false)
	if cacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
		if err != nil {
			return nil, fault(StepCompile, CodeCompile, "cannot use the cache directory %s: %v", cacheDir, err)
		}
		g.cache, config = cache, config.WithCompilationCache(cache)
	}
	g.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if f != nil {
			g.close()
		}
	}()
	if f = g.link(ctx, o); f != nil {
		return nil, f
	}
	select {
	case compiling <- struct{}{}:
		defer func() { <-compiling }()
	case <-ctx.Done():
		return nil, fault(StepCompile, CodeCompile, "the load was cancelled")
	}
	ctx, stop := context.WithTimeout(experimental.WithCompilationWorkers(ctx, 2), compileTime)
	defer stop()
	code, err := g.runtime.CompileModule(ctx, wasm)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fault(StepCompile, CodeCompileTimeout, "the module did not compile within %s; make it smaller", compileTime)
	case err != nil:
		return nil, fault(StepCompile, CodeCompile, "the module does not compile: %s", firstLine(err.Error()))
	}
	g.code = code
	return g, nil
}

// link defines what a guest may import, and refuses imports beyond that by name.
func (g *guest) link(ctx context.Context, o *binary.Outline) *Fault {
	weir, err := linkHost(ctx, g.runtime)
	if err == nil {
		g.host = append(g.host, weir)
		var wasi wazero.CompiledModule
		if wasi, err = wasi_snapshot_preview1.NewBuilder(g.runtime).Compile(ctx); err == nil {
			g.host = append(g.host, wasi)
		}
	}
	if err != nil {
		return fault(StepCompile, CodeCompile, "the host's own functions do not link: %v", err)
	}
	for _, im := range o.Imports {
		if f := g.importable(im); f != nil {
			return f
		}
	}
	for _, m := range g.host {
		if _, err := g.runtime.InstantiateModule(ctx, m, wazero.NewModuleConfig().WithName(m.Name())); err != nil {
			return fault(StepCompile, CodeCompile, "the host's own functions do not link: %v", err)
		}
	}
	return nil
}

func (g *guest) importable(im binary.Import) *Fault {
	if im.Kind != binary.Func {
		return fault(StepPrecheck, CodeUnknownImport, "imports the %s %s.%s; a plugin imports functions only", im.Kind, im.Module, im.Name)
	}
	if strings.HasPrefix(im.Module, "extism:") {
		return fault(StepPrecheck, CodeUnknownImport, "needs %s.%s: this host does not load Extism guests yet", im.Module, im.Name)
	}
	for _, m := range g.host {
		if m.Name() != im.Module {
			continue
		}
		has, ok := m.ExportedFunctions()[im.Name]
		if !ok {
			break
		}
		if t := signature(has); t != im.Type {
			return fault(StepPrecheck, CodeUnknownImport, "imports %s.%s as %s, host has it as %s", im.Module, im.Name, im.Type, t)
		}
		return nil
	}
	return fault(StepPrecheck, CodeUnknownImport, "needs %s.%s, host has ABI 1.0", im.Module, im.Name)
}

func signature(f api.FunctionDefinition) binary.Signature {
	list := func(ts []api.ValueType) string {
		names := make([]string, len(ts))
		for i, t := range ts {
			names[i] = api.ValueTypeName(t)
		}
		return strings.Join(names, " ")
	}
	return binary.Signature("(" + list(f.ParamTypes()) + ")->(" + list(f.ResultTypes()) + ")")
}

// instantiate makes a fresh instance and asks for its ABI. kv and random are what the guest reads: the plugin's own, or
// empty ones for examples.
func (g *guest) instantiate(ctx context.Context, kv *space, random io.Reader, now time.Time) (*instance, error) {
	in := &instance{owner: g, kv: kv, random: random, now: now}
	ctx, stop := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), guestKey{}, in), longCall)
	defer stop()
	if g.pages < memoryPages { // the plugin lowered its own limit
		ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory {
			return &lowered{most: uint64(g.pages) * 65536}
		}))
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithRandSource(random).WithStderr(&in.stderr)
	mod, err := g.runtime.InstantiateModule(ctx, g.code, config)
	if err != nil {
		return nil, &violation{kind: violationTrap, cause: firstLine(err.Error()), stderr: in.stderr.String()}
	}
	in.mod, in.memory = mod, mod.Memory()
	in.alloc, in.run = mod.ExportedFunction("weir_alloc"), mod.ExportedFunction("weir_call")
	in.stack[0] = 0
	if err := mod.ExportedFunction("weir_abi").CallWithStack(ctx, in.stack[:1]); err != nil {
		err = in.broke(ctx, err)
		in.close()
		return nil, err
	}
	if major := uint32(in.stack[0]); major != 1 {
		in.close()
		return nil, errABI(major)
	}
	return in, nil
}

// lowered is a memory that does not grow beyond the plugin's own limit (ABI-2, limits).
type lowered struct {
	b    []byte
	most uint64
}

// Reallocate returns the memory with that size, nil when the limit is reached.
func (l *lowered) Reallocate(size uint64) []byte {
	if size > l.most {
		return nil
	}
	if grow := int(size) - len(l.b); grow > 0 {
		l.b = append(l.b, make([]byte, grow)...)
	}
	l.b = l.b[:size]
	return l.b
}

// Free gives the memory to the collector.
func (l *lowered) Free() { l.b = nil }

// errABI is a module that answers another major version.
type errABI uint32

func (e errABI) Error() string { return "unknown ABI version" }

// fresh makes an instance with the plugin's own kv.
func (g *guest) fresh(ctx context.Context, now time.Time) (*instance, error) {
	in, err := g.instantiate(ctx, g.kv, rand.Reader, now)
	if err != nil {
		return nil, err
	}
	if err := in.configure(ctx, now); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// call runs op on a pooled instance. A violation discards the instance; busy is no violation (ABI-7).
func (g *guest) call(ctx context.Context, op wire.Op, input []byte, now time.Time, limit time.Duration) ([]byte, error) {
	began := time.Now() //nolint:forbidigo // the wait for an instance counts against the deadline of the call
	wait, stop := context.WithTimeout(ctx, limit)
	in, err := g.pool.get(wait, func() (*instance, error) { return g.fresh(ctx, now) })
	stop()
	if err != nil {
		if errors.Is(err, errBusy) {
			g.counters.busy.Add(1)
		} else {
			g.counters.violated(err)
		}
		return nil, err
	}
	g.counters.calls.Add(1)
	b, err := in.call(ctx, op, input, now, max(limit-time.Since(began), limit/2)) // what the host was slow in is not the guest's fault
	if err != nil {
		g.counters.violated(err)
	}
	g.pool.put(in, err != nil || in.worn())
	return b, err
}

// close frees everything, in the order that leaks nothing: instances, compiled module, runtime, cache.
func (g *guest) close() {
	ctx := context.Background()
	g.pool.close()
	if g.code != nil {
		_ = g.code.Close(ctx)
	}
	for _, m := range g.host {
		_ = m.Close(ctx)
	}
	_ = g.runtime.Close(ctx)
	if g.cache != nil {
		_ = g.cache.Close(ctx)
	}
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
