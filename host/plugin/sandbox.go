package plugin

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weirgate/weir/host/plugin/binary"
	"github.com/weirgate/weir/host/plugin/extism"
)

// sandbox is where the code of one guest lives: a wazero runtime with the host's functions and the compiled module.
type sandbox struct {
	runtime wazero.Runtime
	cache   wazero.CompilationCache
	host    []wazero.CompiledModule
	code    wazero.CompiledModule

	apart *extism.Code // of a guest of Extism, which has all the others in itself
}

// runtimeConfig is how guests are compiled, also by the child process: code of another configuration would not be found in the
// cache. Guests stop by their fuel: being interruptible from outside makes them five to sixteen times slower.
func runtimeConfig(interpret bool) wazero.RuntimeConfig {
	config := wazero.NewRuntimeConfig()
	if interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	return config.
		WithCoreFeatures(api.CoreFeaturesV2 &^ api.CoreFeatureSIMD).
		WithMemoryLimitPages(mostMemoryMiB << 20 / pageBytes). // each instance has its own limit below that
		WithCloseOnContextDone(false).
		WithDebugInfoEnabled(false)
}

// close frees the sandbox: the compiled module before the runtime, or its code would stay in memory.
func (s *sandbox) close() {
	ctx := context.Background()
	if s.apart != nil {
		s.apart.Close()
	}
	if s.code != nil {
		_ = s.code.Close(ctx)
	}
	for _, m := range s.host {
		_ = m.Close(ctx)
	}
	if s.runtime != nil {
		_ = s.runtime.Close(ctx)
	}
	if s.cache != nil {
		_ = s.cache.Close(ctx)
	}
}

// link defines what a guest may import, and refuses imports beyond that by name.
func (s *sandbox) link(ctx context.Context, o *binary.Outline) *Fault {
	weir, err := linkHost(ctx, s.runtime)
	if err == nil {
		err = s.guard(ctx, weir)
	}
	if err == nil {
		err = s.wasi(ctx)
	}
	if err != nil {
		return fault(StepCompile, CodeCompile, "the host's own functions do not link: %v", err)
	}
	for _, im := range o.Imports {
		if f := s.importable(im); f != nil {
			return f
		}
	}
	for _, m := range s.host {
		if _, err := s.runtime.InstantiateModule(ctx, m, wazero.NewModuleConfig().WithName(m.Name())); err != nil {
			return fault(StepCompile, CodeCompile, "the host's own functions do not link: %v", err)
		}
	}
	return nil
}

// wasi defines the functions of WASI.
func (s *sandbox) wasi(ctx context.Context) error {
	m, err := wasi_snapshot_preview1.NewBuilder(s.runtime).Compile(ctx)
	if err != nil {
		return err
	}
	return s.guard(ctx, m)
}

// guard puts a gate before every function of a host module, where the wall clock is checked (ABI-8).
func (s *sandbox) guard(ctx context.Context, m wazero.CompiledModule) error {
	defer m.Close(ctx)
	b := s.runtime.NewHostModuleBuilder(m.Name())
	for name, f := range m.ExportedFunctions() {
		var run func(ctx context.Context, m api.Module, stack []uint64)
		switch inner := f.GoFunction().(type) {
		case api.GoModuleFunction:
			run = inner.Call
		case api.GoFunction:
			run = func(ctx context.Context, _ api.Module, stack []uint64) { inner.Call(ctx, stack) }
		default:
			return fmt.Errorf("%s.%s is no function of Go", m.Name(), name)
		}
		b.NewFunctionBuilder().WithGoModuleFunction(gate(m.Name(), name, f.ResultTypes(), run), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	guarded, err := b.Compile(ctx)
	if err == nil {
		s.host = append(s.host, guarded)
	}
	return err
}

// gate is f behind the check of the wall clock. Once the time is over, a guest gets errors for everything that costs: it comes
// back by itself, or its fuel ends.
func gate(module, name string, results []api.ValueType, f func(context.Context, api.Module, []uint64)) api.GoModuleFunc {
	if module != hostModule {
		return gateWASI(name, f)
	}
	slow := name == "http_fetch" || name == "log"
	return func(ctx context.Context, m api.Module, stack []uint64) {
		in := ctx.Value(guestKey{}).(*instance)
		if in.enter(slow) {
			f(ctx, m, stack)
			if slow {
				in.look()
			}
			return
		}
		switch {
		case name == "cancelled":
			stack[0] = 1
		case name == "kv_add":
			stack[0] = 1 << 63
		case len(results) == 1 && results[0] == vi32:
			result(stack, errCancelled)
		case name == "now_ms":
			f(ctx, m, stack)
		}
	}
}

const (
	hostModule = "weir"

	wasiInvalid   = 28
	wasiCancelled = 11
	maxVectors    = 1 << 10 // of one read or write
	maxSeed       = 1 << 20 // of one random_get
)

// gateWASI is gate for the functions of WASI. Those that take a length work for as long as it says, so it is bounded: a guest
// pays nothing for what the host does.
func gateWASI(name string, f func(context.Context, api.Module, []uint64)) api.GoModuleFunc {
	length, most := -1, uint32(maxVectors)
	switch name {
	case "clock_time_get", "clock_res_get", "sched_yield", "proc_exit":
		return f // they take no time, and a guest may need them to end
	case "fd_write", "fd_read", "fd_pwrite", "fd_pread", "poll_oneoff":
		length = 2
	case "random_get":
		length, most = 1, maxSeed
	}
	return func(ctx context.Context, m api.Module, stack []uint64) {
		in := ctx.Value(guestKey{}).(*instance)
		switch {
		case length >= 0 && uint32(stack[length]) > most:
			stack[0] = wasiInvalid
		case !in.enter(true):
			stack[0] = wasiCancelled
		default:
			f(ctx, m, stack)
		}
	}
}

func (s *sandbox) importable(im binary.Import) *Fault {
	if im.Kind != binary.Func {
		return fault(StepPrecheck, CodeUnknownImport, "imports the %s %s.%s; a plugin imports functions only", im.Kind, im.Module, im.Name)
	}
	for _, m := range s.host {
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
	return signatureOf(f.ParamTypes(), f.ResultTypes())
}

func signatureOf(params, results []api.ValueType) binary.Signature {
	list := func(ts []api.ValueType) string {
		names := make([]string, len(ts))
		for i, t := range ts {
			names[i] = api.ValueTypeName(t)
		}
		return strings.Join(names, " ")
	}
	return binary.Signature("(" + list(params) + ")->(" + list(results) + ")")
}

// memoryLimit is a memory that does not grow beyond the limit of its plugin (ABI-8; ABI-2, limits).
type memoryLimit struct {
	b       []byte
	pages   uint32
	refused bool // a growth, in the present call
}

// Reallocate returns the memory with that size, nil when the limit is reached.
func (l *memoryLimit) Reallocate(size uint64) []byte {
	if size > uint64(l.pages)*pageBytes {
		l.refused = true
		return nil
	}
	if grow := int(size) - len(l.b); grow > 0 {
		l.b = append(l.b, make([]byte, grow)...)
	}
	l.b = l.b[:size]
	return l.b
}

// Free gives the memory to the collector.
func (l *memoryLimit) Free() { l.b = nil }

// instantiate makes a fresh instance and asks for its ABI. kv and random are what the guest reads: the plugin's own, or
// empty ones for examples. The start section runs on the fuel that the module begins with, _initialize on its own.
func (g *guest) instantiate(ctx context.Context, kv *space, random io.Reader, now time.Time) (_ *instance, err error) {
	in := &instance{owner: g, kv: kv, random: random, now: now, deadline: g.clock().Add(g.limits.wall[opInitialize]), limit: &memoryLimit{pages: g.limits.pages}}
	in.ctx = context.WithValue(context.Background(), guestKey{}, in)
	if g.apart != nil {
		return g.instantiateExtism(ctx, in)
	}
	made := experimental.WithMemoryAllocator(in.ctx, experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return in.limit }))
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(random).WithStderr(&in.stderr)
	if in.mod, err = g.runtime.InstantiateModule(made, g.code, config); err != nil {
		return nil, &violation{op: opInitialize, kind: violationTrap, cause: trapOf(err), stderr: in.stderr.String()}
	}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	in.memory, in.alloc, in.run = in.mod.Memory(), in.mod.ExportedFunction("weir_alloc"), in.mod.ExportedFunction("weir_call")
	in.fuel = in.mod.ExportedGlobal("weir_fuel").(api.MutableGlobal)
	for _, name := range []string{"_initialize", "weir_abi"} {
		f := in.mod.ExportedFunction(name)
		if f == nil { // only _initialize is optional (precheck)
			continue
		}
		in.begin(ctx, opInitialize, opInitialize, now, in.deadline)
		err := f.CallWithStack(in.ctx, in.stack[:1])
		if err != nil {
			err = in.broke(err)
		}
		in.end()
		if err != nil {
			return nil, err
		}
	}
	in.calls = 0
	if major := uint32(in.stack[0]); major != 1 {
		return nil, errABI(major)
	}
	return in, nil
}

// errABI is a module that answers another major version.
type errABI uint32

func (e errABI) Error() string { return "unknown ABI version" }
