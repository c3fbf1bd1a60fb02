package plugin

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Errors that host functions return to a guest (ABI-6).
const (
	errNotFound = -1
	errDenied   = -2
	errTooLarge = -3
	errInvalid  = -4
)

// hostFunction is one function of the import module weir.
type hostFunction struct {
	name    string
	params  []api.ValueType
	results []api.ValueType
	run     func(g *instance, mem api.Memory, stack []uint64)
}

const (
	vi32 = api.ValueTypeI32
	vi64 = api.ValueTypeI64
	vf64 = api.ValueTypeF64
)

// hostFunctions are all functions that the host has under ABI 1.0. One that a plugin was not granted answers denied.
func hostFunctions() []hostFunction {
	i := func(n int) []api.ValueType {
		t := make([]api.ValueType, n)
		for k := range t {
			t[k] = vi32
		}
		return t
	}
	return []hostFunction{
		{"log", i(3), nil, hostLog},
		{"now_ms", nil, []api.ValueType{vi64}, func(g *instance, _ api.Memory, s []uint64) { s[0] = uint64(g.now.UnixMilli()) }},
		{"random", i(2), i(1), hostRandom},
		{"kv_get", i(4), i(1), hostKVGet},
		{"kv_set", append(i(4), vi64), i(1), hostKVSet},
		{"kv_add", append(i(2), vi64, vi64), []api.ValueType{vi64}, hostKVAdd},
		{"http_fetch", i(4), i(1), denied},
		{"secret_ready", i(2), i(1), func(_ *instance, _ api.Memory, s []uint64) { s[0] = 0 }},
		{"metric", append(i(2), vf64), i(1), denied},
		{"cancelled", nil, i(1), func(g *instance, _ api.Memory, s []uint64) {
			s[0] = 0
			if g.caller != nil && g.caller.Err() != nil {
				s[0] = 1
			}
		}},
	}
}

// guestKey marks the instance in the context of a call. wazero hands a host function nothing else of ours.
type guestKey struct{}

// linkHost defines the import module weir. Functions are bound without reflection, which would allocate per call.
func linkHost(ctx context.Context, r wazero.Runtime) (wazero.CompiledModule, error) {
	b := r.NewHostModuleBuilder("weir")
	for _, f := range hostFunctions() {
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			f.run(ctx.Value(guestKey{}).(*instance), m.Memory(), stack)
		}), f.params, f.results).Export(f.name)
	}
	return b.Compile(ctx)
}

// bytesAt reads guest memory. A bad pointer traps the guest (ABI-6).
func bytesAt(mem api.Memory, at, n uint64) []byte {
	b, ok := mem.Read(uint32(at), uint32(n))
	if !ok {
		panic(fmt.Errorf("a host function was given %d bytes at %d, outside of the memory", uint32(n), uint32(at)))
	}
	return b
}

func result(stack []uint64, code int) { stack[0] = api.EncodeI32(int32(code)) }

func denied(g *instance, _ api.Memory, stack []uint64) {
	g.owner.counters.denied.Add(1)
	result(stack, errDenied)
}

func hostLog(g *instance, mem api.Memory, stack []uint64) {
	text := bytesAt(mem, stack[1], stack[2])
	g.logLine(int32(stack[0]), text[:min(len(text), maxLogLine)])
}

func hostRandom(g *instance, mem api.Memory, stack []uint64) {
	if uint32(stack[1]) > 256 {
		result(stack, errTooLarge)
		return
	}
	b := bytesAt(mem, stack[0], stack[1])
	if _, err := g.random.Read(b); err != nil {
		result(stack, errInvalid)
		return
	}
	result(stack, len(b))
}

// key reads a key, after the grant was looked at; ok is false when an error was returned.
func (g *instance) key(mem api.Memory, at, n uint64) (key string, code int) {
	switch {
	case g.owner.kvQuota == 0:
		g.owner.counters.denied.Add(1)
		return "", errDenied
	case uint32(n) == 0:
		return "", errInvalid
	case uint32(n) > maxKey:
		return "", errTooLarge
	}
	return string(bytesAt(mem, at, n)), 0
}

func hostKVGet(g *instance, mem api.Memory, stack []uint64) {
	key, code := g.key(mem, stack[0], stack[1])
	if code != 0 {
		result(stack, code)
		return
	}
	value, ok := g.kv.get(key, g.now)
	if !ok {
		result(stack, errNotFound)
		return
	}
	dst := bytesAt(mem, stack[2], stack[3])
	if len(dst) < len(value) {
		if len(dst) >= 4 {
			binary.LittleEndian.PutUint32(dst, uint32(len(value)))
		}
		result(stack, errTooLarge)
		return
	}
	result(stack, copy(dst, value))
}

func hostKVSet(g *instance, mem api.Memory, stack []uint64) {
	key, code := g.key(mem, stack[0], stack[1])
	switch {
	case code == 0 && uint32(stack[3]) > maxValue:
		code = errTooLarge
	case code == 0 && int64(stack[4]) < 0:
		code = errInvalid
	case code == 0 && !g.kv.set(key, bytesAt(mem, stack[2], stack[3]), ttl(stack[4]), g.owner.kvQuota, g.now):
		code = errTooLarge
	}
	result(stack, code)
}

func hostKVAdd(g *instance, mem api.Memory, stack []uint64) {
	failed := int64(math.MinInt64)
	key, code := g.key(mem, stack[0], stack[1])
	if code != 0 || int64(stack[3]) < 0 {
		stack[0] = uint64(failed)
		return
	}
	n, ok := g.kv.add(key, int64(stack[2]), ttl(stack[3]), g.owner.kvQuota, g.now)
	if !ok {
		n = failed
	}
	stack[0] = uint64(n)
}

// ttl reads a time to live, capped so that it fits a Duration.
func ttl(ms uint64) time.Duration {
	return time.Duration(min(ms, uint64(math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
}
