package sdktest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// world is what the host functions of ABI-6 show to one instance: a clock that stands still, random, a kv of its own, no
// network, no secrets.
type world struct {
	now    int64
	random io.Reader
	kv     map[string][]byte
	counts map[string]int64
	lines  []string // of log
}

type worldKey struct{}

// The errors of host functions.
const (
	errNotFound = -1
	errDenied   = -2
	errTooLarge = -3
	errInvalid  = -4
)

// hostFunction is one function of the import module weir, with its type as i, l (i64) and d (f64).
type hostFunction struct {
	name, params, results string
	run                   func(w *world, mem api.Memory, s []uint64)
}

var hostFunctions = []hostFunction{
	{"log", "iii", "", func(w *world, mem api.Memory, s []uint64) {
		if text := bytesAt(mem, s[1], s[2]); len(w.lines) < 20 {
			w.lines = append(w.lines, string(text[:min(len(text), 1024)]))
		}
	}},
	{"now_ms", "", "l", func(w *world, _ api.Memory, s []uint64) { s[0] = uint64(w.now) }},
	{"random", "ii", "i", func(w *world, mem api.Memory, s []uint64) {
		if uint32(s[1]) > 256 {
			result(s, errTooLarge)
			return
		}
		n, _ := w.random.Read(bytesAt(mem, s[0], s[1])) // neither source fails
		result(s, n)
	}},
	{"kv_get", "iiii", "i", kvGet},
	{"kv_set", "iiiil", "i", kvSet},
	{"kv_add", "iill", "l", func(w *world, mem api.Memory, s []uint64) {
		key := string(bytesAt(mem, s[0], s[1]))
		if keyCode(key) != 0 || int64(s[3]) < 0 {
			s[0] = 1 << 63 // math.MinInt64
			return
		}
		w.counts[key] += int64(s[2])
		s[0] = uint64(w.counts[key])
	}},
	{"http_fetch", "iiii", "i", func(_ *world, mem api.Memory, s []uint64) { bytesAt(mem, s[0], s[1]); result(s, errDenied) }},
	{"secret_ready", "ii", "i", func(_ *world, mem api.Memory, s []uint64) { bytesAt(mem, s[0], s[1]); result(s, 0) }},
	{"metric", "iid", "i", func(_ *world, mem api.Memory, s []uint64) { bytesAt(mem, s[0], s[1]); result(s, errDenied) }},
	{"cancelled", "", "i", func(_ *world, _ api.Memory, s []uint64) { result(s, 0) }},
}

func kvGet(w *world, mem api.Memory, s []uint64) {
	key := string(bytesAt(mem, s[0], s[1]))
	value, ok := w.kv[key]
	switch code := keyCode(key); {
	case code != 0:
		result(s, code)
		return
	case !ok:
		result(s, errNotFound)
		return
	}
	dst := bytesAt(mem, s[2], s[3])
	if len(dst) < len(value) {
		if len(dst) >= 4 {
			binary.LittleEndian.PutUint32(dst, uint32(len(value)))
		}
		result(s, errTooLarge)
		return
	}
	result(s, copy(dst, value))
}

func kvSet(w *world, mem api.Memory, s []uint64) {
	key, value := string(bytesAt(mem, s[0], s[1])), bytesAt(mem, s[2], s[3])
	code := keyCode(key)
	switch {
	case code != 0:
	case len(value) > 64<<10:
		code = errTooLarge
	case int64(s[4]) < 0:
		code = errInvalid
	default:
		w.kv[key] = append([]byte(nil), value...)
	}
	result(s, code)
}

func keyCode(key string) int {
	switch {
	case key == "":
		return errInvalid
	case len(key) > 256:
		return errTooLarge
	}
	return 0
}

// bytesAt reads guest memory. A bad pointer traps the guest (ABI-6).
func bytesAt(mem api.Memory, at, n uint64) []byte {
	b, ok := mem.Read(uint32(at), uint32(n))
	if !ok {
		panic(fmt.Errorf("a host function was given %d bytes at %d, outside of the memory", uint32(n), uint32(at)))
	}
	return b
}

func result(s []uint64, code int) { s[0] = api.EncodeI32(int32(min(code, math.MaxInt32))) }

// compileHost makes the import module weir.
func compileHost(ctx context.Context, r wazero.Runtime) (wazero.CompiledModule, error) {
	b := r.NewHostModuleBuilder("weir")
	for _, f := range hostFunctions {
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			f.run(ctx.Value(worldKey{}).(*world), m.Memory(), stack)
		}), valueTypes(f.params), valueTypes(f.results)).Export(f.name)
	}
	return b.Compile(ctx)
}

func valueTypes(letters string) []api.ValueType {
	list := make([]api.ValueType, len(letters))
	for i, c := range letters {
		list[i] = map[rune]api.ValueType{'i': api.ValueTypeI32, 'l': api.ValueTypeI64, 'd': api.ValueTypeF64}[c]
	}
	return list
}
