package plugin

import (
	"context"
	"io"
	"math"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirgate/weir/host/plugin/extism"
)

// userFunctions are the functions of ABI-6 with handles of blocks in place of pointers (ABI-10): 0 is "not found", a negative
// number an error.
func userFunctions() []extism.Function {
	i64 := func(n int) []api.ValueType { return slices.Repeat([]api.ValueType{vi64}, n) }
	one := []api.ValueType{vi32}
	list := []struct {
		name            string
		params, results []api.ValueType
		run             func(ctx context.Context, in *instance, b extism.Blocks, stack []uint64)
	}{
		{"log", []api.ValueType{vi32, vi64}, nil, userLog},
		{"now_ms", nil, i64(1), func(ctx context.Context, in *instance, _ extism.Blocks, stack []uint64) { hostNow(ctx, in, nil, stack) }},
		{"random", one, i64(1), userRandom},
		{"kv_get", i64(1), i64(1), userKVGet},
		{"kv_set", i64(3), one, userKVSet},
		{"kv_add", i64(3), i64(1), userKVAdd},
		{"http_fetch", i64(1), i64(1), userFetch},
		{"secret_ready", i64(1), one, func(_ context.Context, in *instance, b extism.Blocks, stack []uint64) {
			result(stack, in.secretReady(string(b.Read(stack[0]))))
		}},
		{"metric", []api.ValueType{vi64, vf64}, one, func(_ context.Context, in *instance, b extism.Blocks, stack []uint64) {
			result(stack, in.metric(string(b.Read(stack[0])), api.DecodeF64(stack[1])))
		}},
		{"cancelled", nil, one, func(ctx context.Context, in *instance, _ extism.Blocks, stack []uint64) {
			hostCancelled(ctx, in, nil, stack)
		}},
	}
	all := make([]extism.Function, len(list))
	for i, f := range list {
		all[i] = extism.Function{Name: f.name, Params: f.params, Results: f.results, Run: func(ctx context.Context, b extism.Blocks, stack []uint64) {
			in := ctx.Value(guestKey{}).(*instance)
			f.run(ctx, in, b, stack)
			if f.name == "http_fetch" || f.name == "log" {
				in.look()
			}
		}}
	}
	return all
}

func userSignature(name string) (string, bool) {
	for _, f := range userFunctions() {
		if f.Name == name {
			return string(signatureOf(f.Params, f.Results)), true
		}
	}
	return "", false
}

// handle answers a handle or a negative error.
func handle(stack []uint64, code int) { stack[0] = uint64(int64(code)) }

func userLog(_ context.Context, in *instance, b extism.Blocks, stack []uint64) {
	in.say(int32(stack[0]), b.Read(stack[1]))
}

func userRandom(_ context.Context, in *instance, b extism.Blocks, stack []uint64) {
	n := int32(stack[0])
	if n <= 0 || n > maxRandom {
		handle(stack, errTooLarge)
		return
	}
	bytes := make([]byte, n)
	if _, err := io.ReadFull(in.random, bytes); err != nil {
		handle(stack, errUnavailable)
		return
	}
	stack[0] = b.Write(bytes)
}

// userKey reads a key, after the grant was looked at.
func userKey(in *instance, b extism.Blocks, at uint64) (key string, code int) {
	raw := b.Read(at)
	return string(raw), in.keyed(uint32(len(raw)))
}

func userKVGet(_ context.Context, in *instance, b extism.Blocks, stack []uint64) {
	key, code := userKey(in, b, stack[0])
	if code != 0 {
		handle(stack, code)
		return
	}
	value, ok := in.kv.get(key, in.now)
	if !ok {
		stack[0] = 0
		return
	}
	stack[0] = b.Write(value)
}

func userKVSet(_ context.Context, in *instance, b extism.Blocks, stack []uint64) {
	key, code := userKey(in, b, stack[0])
	if code == 0 {
		code = in.keep(key, b.Read(stack[1]), stack[2])
	}
	result(stack, code)
}

func userKVAdd(_ context.Context, in *instance, b extism.Blocks, stack []uint64) {
	n := int64(math.MinInt64)
	if key, code := userKey(in, b, stack[0]); code == 0 {
		n = in.count(key, int64(stack[1]), stack[2])
	}
	stack[0] = uint64(n)
}

func userFetch(ctx context.Context, in *instance, b extism.Blocks, stack []uint64) {
	answer, code := in.fetch(ctx, b.Read(stack[0]))
	if code != 0 {
		handle(stack, code)
		return
	}
	stack[0] = b.Write(answer)
}
