package fuel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

func config() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2 &^ api.CoreFeatureSIMD).
		WithMemoryLimitPages(512).WithDebugInfoEnabled(false)
}

// compiled keeps the code of the big guests for all tests.
var compiled = wazero.NewCompilationCache()

// rig is one instance of a module with what it needs from a host.
type rig struct {
	t   testing.TB
	rt  wazero.Runtime
	mod api.Module

	alloc, run api.Function // of the ABI, if the module has it
}

// start makes an instance. Functions imported from "weir" answer the same in each rig: a counter for kv_add, else zero.
func start(t testing.TB, wasm []byte) *rig {
	t.Helper()
	r, err := tryStart(t, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryStart(t testing.TB, wasm []byte) (*rig, error) {
	ctx := context.Background()
	c := config()
	if len(wasm) > 1<<16 {
		c = c.WithCompilationCache(compiled)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, c)
	t.Cleanup(func() { rt.Close(ctx) })
	guest, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		return nil, err
	}
	if len(guest.ImportedFunctions()) > 0 {
		if err := link(ctx, rt, guest); err != nil {
			return nil, err
		}
	}
	mod, err := rt.InstantiateModule(ctx, guest, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		return nil, err
	}
	return &rig{t, rt, mod, mod.ExportedFunction("weir_alloc"), mod.ExportedFunction("weir_call")}, nil
}

func link(ctx context.Context, rt wazero.Runtime, guest wazero.CompiledModule) error {
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	host := rt.NewHostModuleBuilder("weir")
	count := uint64(0)
	for _, f := range guest.ImportedFunctions() {
		if module, name, _ := f.Import(); module == "weir" {
			host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
				if len(f.ResultTypes()) > 0 {
					stack[0] = 0
				}
				if name == "kv_add" {
					count++
					stack[0] = count
				}
			}), f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	_, err := host.Instantiate(ctx)
	return err
}

// close frees the instance before the end of the test.
func (r *rig) close() { r.rt.Close(context.Background()) }

// metered rewrites and starts a module.
func metered(t testing.TB, wasm []byte) *rig {
	t.Helper()
	return start(t, rewritten(t, wasm))
}

func rewritten(t testing.TB, wasm []byte) []byte {
	t.Helper()
	out, _, err := Rewrite(wasm, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r *rig) setFuel(n int64) {
	r.mod.ExportedGlobal(fuelExport).(api.MutableGlobal).Set(uint64(n))
}

func (r *rig) fuel() int64 { return int64(r.mod.ExportedGlobal(fuelExport).Get()) }

func (r *rig) call(name string, args ...uint64) ([]uint64, error) {
	return r.mod.ExportedFunction(name).Call(context.Background(), args...)
}

// op runs an op of the ABI on the input and returns the answer.
func (r *rig) op(op int, input string) (string, error) {
	stack := [2]uint64{uint64(len(input))}
	if err := r.alloc.CallWithStack(context.Background(), stack[:]); err != nil {
		return "", err
	}
	if !r.mod.Memory().WriteString(uint32(stack[0]), input) {
		return "", errors.New("the input does not fit")
	}
	stack = [2]uint64{uint64(op), uint64(len(input))}
	if err := r.run.CallWithStack(context.Background(), stack[:]); err != nil {
		return "", err
	}
	res := stack[:1]
	b, ok := r.mod.Memory().Read(uint32(res[0]>>32), uint32(res[0]))
	if !ok {
		return "", fmt.Errorf("bad answer %#x", res[0])
	}
	return string(b), nil
}

// trapOf is the kind of a trap, without the stack trace and its offsets.
func trapOf(err error) string {
	if err == nil {
		return ""
	}
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
