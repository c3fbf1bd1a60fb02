package sdktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weirgate/weir/host/plugin/fuel"
	"github.com/weirgate/weir/sdk/wire"
)

// Limits of one call (ABI-8).
const (
	maxInput   = 256 << 10
	memoryMiB  = 32
	longFuel   = 20_000_000 // plan, respond, describe, configure, _initialize, one example
	hookFuel   = 2_000_000  // on_request, on_response, restate, classify
	eventFuel  = 200_000    // on_event, on_end
	maxStderr  = 4 << 10
	pageSize   = 64 << 10
	compileMax = 20 * time.Second
)

func budget(op wire.Op) int64 {
	switch op {
	case wire.OpRequest, wire.OpResponse, wire.OpRestate, wire.OpClassify:
		return hookFuel
	case wire.OpEvent, wire.OpEnd:
		return eventFuel
	}
	return longFuel
}

func outputLimit(op wire.Op) uint32 {
	switch op {
	case wire.OpDescribe:
		return 1 << 20
	case wire.OpRespond:
		return 256 << 10
	}
	return 64 << 10
}

// broken is a guest that broke a rule: a row of ABI-8.
type broken struct {
	kind, cause, stderr string
}

func (b *broken) Error() string {
	s := b.kind + ": " + b.cause
	if b.stderr != "" {
		s += "; the guest wrote: " + b.stderr
	}
	return s
}

func broke(kind, format string, args ...any) *broken {
	return &broken{kind: kind, cause: fmt.Sprintf(format, args...)}
}

// sandbox is a metered, compiled module.
type sandbox struct {
	runtime wazero.Runtime
	host    map[string]wazero.CompiledModule // by import module
	code    wazero.CompiledModule
	limit   uint64 // bytes of memory
}

// newSandbox compiles a metered module. The caller closes the sandbox, also after an error.
func newSandbox(ctx context.Context, metered []byte) (*sandbox, error) {
	config := wazero.NewRuntimeConfig()
	if slowCompiler && len(metered) > 1<<20 {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithCoreFeatures(api.CoreFeaturesV2 &^ api.CoreFeatureSIMD).
		WithMemoryLimitPages(memoryMiB << 20 / pageSize).WithDebugInfoEnabled(false)
	s := &sandbox{runtime: wazero.NewRuntimeWithConfig(ctx, config), limit: memoryMiB << 20}
	if err := s.link(ctx); err != nil {
		return s, err
	}
	ctx, stop := context.WithTimeout(experimental.WithCompilationWorkers(ctx, 2), compileMax)
	defer stop()
	var err error
	if s.code, err = s.runtime.CompileModule(ctx, metered); err != nil && ctx.Err() != nil {
		return s, fmt.Errorf("it did not compile within %s", compileMax)
	}
	return s, err
}

// link defines what a guest may import: the functions of ABI-6 and WASI.
func (s *sandbox) link(ctx context.Context) error {
	weir, err := compileHost(ctx, s.runtime)
	if err != nil {
		return err
	}
	wasi, err := wasi_snapshot_preview1.NewBuilder(s.runtime).Compile(ctx)
	if err != nil {
		return err
	}
	s.host = map[string]wazero.CompiledModule{"weir": weir, wasi_snapshot_preview1.ModuleName: wasi}
	for name, m := range s.host {
		if _, err := s.runtime.InstantiateModule(ctx, m, wazero.NewModuleConfig().WithName(name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *sandbox) close() {
	ctx := context.Background()
	if s.code != nil {
		_ = s.code.Close(ctx) // before the runtime, or its code stays in memory
	}
	_ = s.runtime.Close(ctx)
}

// guest is one instance.
type guest struct {
	mod    api.Module
	memory api.Memory
	fuel   api.MutableGlobal
	alloc  api.Function
	run    api.Function
	limit  uint64
	at     uint32 // of the input buffer
	size   uint32
	spent  int64 // by the last call
	world  world
	stderr tail
	stack  [2]uint64
}

// fresh makes an instance whose host functions say that it is now, and runs its _initialize. Its random is 0, or real.
func (s *sandbox) fresh(ctx context.Context, now int64, realRandom bool) (*guest, error) {
	g := &guest{limit: s.limit, world: world{now: now, random: zeros{}, kv: map[string][]byte{}, counts: map[string]int64{}}}
	if realRandom {
		g.world.random = rand.Reader
	}
	ctx = experimental.WithMemoryAllocator(g.in(ctx), experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory {
		return &bounded{most: s.limit}
	}))
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(g.world.random).WithStderr(&g.stderr)
	mod, err := s.runtime.InstantiateModule(ctx, s.code, config)
	if err != nil {
		return nil, broke(violationTrap, "%s", firstLine(err))
	}
	g.mod, g.memory = mod, mod.Memory()
	g.fuel, _ = mod.ExportedGlobal("weir_fuel").(api.MutableGlobal)
	g.alloc, g.run = mod.ExportedFunction("weir_alloc"), mod.ExportedFunction("weir_call")
	if init := mod.ExportedFunction("_initialize"); init != nil {
		if err := g.metered(ctx, longFuel, init, nil); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

func (g *guest) close() { _ = g.mod.Close(context.Background()) }

func (g *guest) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, worldKey{}, &g.world)
}

// metered runs f on so much fuel.
func (g *guest) metered(ctx context.Context, budget int64, f api.Function, stack []uint64) error {
	g.fuel.Set(uint64(budget))
	g.stderr.b = g.stderr.b[:0]
	err := f.CallWithStack(ctx, stack)
	g.spent = budget - int64(g.fuel.Get())
	if err == nil {
		return nil
	}
	b := broke(violationTrap, "%s", firstLine(err))
	b.stderr = g.stderr.String()
	exited, isExit := errors.AsType[*sys.ExitError](err)
	switch {
	case isExit:
		b.kind, b.cause = violationExit, fmt.Sprintf("it ended itself with code %d", exited.ExitCode())
	case int64(g.fuel.Get()) < 0:
		b.kind, b.cause = violationFuel, fmt.Sprintf("it spent all its fuel, %d", budget)
	case uint64(g.memory.Size()) >= g.limit || strings.Contains(b.stderr, "out of memory"):
		b.kind = violationMemory
	}
	return b
}

// abi is what weir_abi answers.
func (g *guest) abi(ctx context.Context) (int32, error) {
	var stack [1]uint64
	err := g.metered(g.in(ctx), longFuel, g.mod.ExportedFunction("weir_abi"), stack[:])
	return int32(stack[0]), err
}

// call runs op as a host does: nil is no opinion, and every error but ctx's is a *broken.
func (g *guest) call(ctx context.Context, op wire.Op, input []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx = g.in(ctx)
	if err := g.input(ctx, input); err != nil {
		return nil, err
	}
	g.stack[0], g.stack[1] = uint64(uint32(op)), uint64(len(input))
	if err := g.metered(ctx, budget(op), g.run, g.stack[:]); err != nil {
		return nil, err
	}
	if g.stack[0] == 0 {
		return nil, nil
	}
	at, n := uint32(g.stack[0]>>32), uint32(g.stack[0])
	if most := outputLimit(op); n > most {
		return nil, broke(violationOutput, "it answered %d bytes, at most %d are allowed", n, most)
	}
	b, ok := g.memory.Read(at, n)
	if !ok {
		return nil, broke(violationGarbage, "it answered %d bytes at %d, outside of its memory of %d", n, at, g.memory.Size())
	}
	return append([]byte(nil), b...), nil
}

func (g *guest) input(ctx context.Context, b []byte) error {
	if n := uint32(len(b)); n > g.size {
		g.stack[0] = uint64(n)
		if err := g.metered(ctx, longFuel, g.alloc, g.stack[:1]); err != nil {
			return err
		}
		if g.at, g.size = uint32(g.stack[0]), n; g.at == 0 {
			return broke(violationGarbage, "weir_alloc refused %d bytes", n)
		}
	}
	if len(b) > 0 && !g.memory.Write(g.at, b) {
		return broke(violationGarbage, "weir_alloc gave %d bytes at %d, outside of its memory of %d", len(b), g.at, g.memory.Size())
	}
	return nil
}

func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}

// refusal is why the structure of a module was refused.
func refusal(err error) (code, message string) {
	if f, ok := errors.AsType[*fuel.Error](err); ok {
		return string(f.Code), f.Error()
	}
	return "compile_failed", firstLine(err)
}

// bounded is a memory that does not grow beyond the limit.
type bounded struct {
	b    []byte
	most uint64
}

// Reallocate returns the memory with that size, nil when the limit is reached.
func (m *bounded) Reallocate(size uint64) []byte {
	if size > m.most {
		return nil
	}
	if size > uint64(cap(m.b)) {
		grown := make([]byte, size, min(m.most, size+size/4))
		copy(grown, m.b)
		m.b = grown
	}
	m.b = m.b[:size]
	return m.b
}

// Free gives the memory to the collector.
func (m *bounded) Free() { m.b = nil }

// tail keeps the last bytes written.
type tail struct{ b []byte }

// Write keeps the end of p.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - maxStderr; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.b)), "?") }

// zeros is the random of examples.
type zeros struct{}

// Read fills p with 0.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

var _ io.Reader = zeros{}
