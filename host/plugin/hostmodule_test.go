package plugin

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirgate/weir/sdk/wire"
)

// forwarder is a guest that calls one host function with arguments that the test chooses. Its input is the number of bytes to
// answer, then 64 bytes of arguments for each call, then whatever the arguments point at; its answer is 8 bytes of result
// for each call, then what the host wrote behind them.
type forwarder struct {
	manifest  string
	function  string
	calls     int  // of the function, within one op
	configure bool // also in configure, for an input of the test
	inAlloc   bool // while weir_alloc runs, and not in weir_call
}

const (
	inputAt  = 0x40000
	outputAt = 0x80000
	dataAt   = 0x4000 // behind the head of the input
)

func (f forwarder) wasm() []byte {
	fs := hostFunctions()
	h := fs[slices.IndexFunc(fs, func(h hostFunction) bool { return h.name == f.function })]
	types := func(ts []api.ValueType) []byte { return append(number(uint64(len(ts))), ts...) }
	var once []byte
	for call := range max(f.calls, 1) {
		constant := func(op byte, v int64) { once = append(append(once, op), signed(v)...) }
		if len(h.results) > 0 {
			constant(0x41, outputAt)
		}
		for i, p := range h.params {
			constant(0x41, inputAt)
			load := map[api.ValueType]byte{vi32: 0x28, vi64: 0x29, vf64: 0x2b}[p]
			once = append(append(once, load, 0), number(uint64(8+64*call+8*i))...)
		}
		once = append(once, 0x10, 0)
		if len(h.results) > 0 {
			store := map[api.ValueType]byte{vi32: 0x36, vi64: 0x37}[h.results[0]]
			once = append(append(once, store, 0), number(uint64(8*call))...)
		}
	}
	alloc := append([]byte{0x41}, signed(inputAt)...)
	answer := append(append([]byte{0x42}, signed(outputAt<<32)...), 0x41)
	answer = append(append(answer, signed(inputAt)...), 0x29, 0, 0, 0x84) // i64.load, or
	configure := []byte{0x42, 0}
	if f.configure { // not with the host's own JSON
		configure = append(append([]byte{0x41}, signed(inputAt)...), 0x2d, 0, 0, 0x41)
		configure = append(append(append(configure, signed('{')...), 0x47, 0x04, 0x40), once...)
		configure = append(configure, 0x0b, 0x42, 0)
	}
	call := append(slices.Clone(once), answer...)
	if f.inAlloc {
		alloc, call = append(slices.Clone(once), alloc...), answer
	}
	body := append([]byte{0x20, 0, 0x41, 1, 0x46, 0x04, 0x7e}, place(manifestAt, uint64(len(f.manifest)))...)
	body = append(append(body, 0x05, 0x20, 0, 0x41, 2, 0x46, 0x04, 0x7e), configure...)
	body = append(append(append(body, 0x05), call...), 0x0b, 0x0b)

	b := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	b = part(b, 1, vec([]byte{0x60, 0, 1, 0x7f}, []byte{0x60, 1, 0x7f, 1, 0x7f}, []byte{0x60, 2, 0x7f, 0x7f, 1, 0x7e},
		slices.Concat([]byte{0x60}, types(h.params), types(h.results))))
	b = part(b, 2, vec(slices.Concat(text("weir"), text(h.name), []byte{0, 3})))
	b = part(b, 3, []byte{3, 0, 1, 2})
	b = part(b, 5, []byte{1, 0, 16})
	b = part(b, 7, vec(append(text("weir_abi"), 0, 1), append(text("weir_alloc"), 0, 2), append(text("weir_call"), 0, 3), append(text("memory"), 2, 0)))
	b = part(b, 10, vec(function([]byte{0x41, 1}, 0), function(alloc, 0), function(body, 0)))
	return part(b, 11, vec(slices.Concat([]byte{0, 0x41, manifestAt, 0x0b}, number(uint64(len(f.manifest))), []byte(f.manifest))))
}

// world is a plugin with its ports, and one instance of it.
type world struct {
	testing.TB
	r     *Runtime
	rooms *rooms
	now   atomic.Int64 // Unix milliseconds
	v     *version
	in    *instance
}

const askAll = `{"name":"acme","version":"1.0.0","kinds":["classifier","executor"],"hooks":["plan","classify"],"permissions":{` +
	`"kv":{"bytes":200000},"http":{"hosts":["127.0.0.1:PORT","other.test"]},"secrets":[{"name":"key"},{"name":"empty"}]}}`

func grantAll() Grants { return Grants{KVBytes: 200_000} }

// newWorld loads the guest of f as a third-party plugin with the grants of g.
func newWorld(t testing.TB, p Ports, g Grants, f forwarder) *world {
	t.Helper()
	w := &world{TB: t}
	w.now.Store(1_790_000_000_000)
	w.r = New(Options{Settings: map[string]Settings{"acme": {Grants: g}}, Now: w.time})
	w.rooms = newRooms(p, w.r.secret, w.time, w.r.o.Log)
	w.v = w.load(f)
	w.in = w.fresh(w.v)
	return w
}

func (w *world) time() time.Time { return time.UnixMilli(w.now.Load()) }

func (w *world) load(f forwarder) *version {
	w.Helper()
	if f.manifest == "" {
		f.manifest = strings.Replace(askAll, "PORT", "443", 1)
	}
	l := w.r.loader()
	l.space = w.rooms.space
	v, fault := l.load(w.Context(), source{origin: OriginFolder, file: "acme.wasm", bytes: f.wasm()})
	if fault != nil {
		w.Fatal(fault)
	}
	w.Cleanup(v.release)
	return v
}

func (w *world) fresh(v *version) *instance {
	w.Helper()
	in, err := v.guest.fresh(w.Context(), w.time())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(in.close)
	return in
}

// arguments of one call: numbers, and texts for which an address and a length stand.
func input(answer int, calls ...[]any) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(answer))
	b = append(b, make([]byte, dataAt-8)...)
	for i, args := range calls {
		at := 8 + 64*i
		put := func(v uint64) { binary.LittleEndian.PutUint64(b[at:], v); at += 8 }
		for _, a := range args {
			switch a := a.(type) {
			case int:
				put(uint64(a))
			case uint64:
				put(a)
			case float64:
				put(math.Float64bits(a))
			case string:
				put(uint64(inputAt + len(b)))
				put(uint64(len(a)))
				b = append(b, a...)
			}
		}
	}
	return b
}

// ask calls the function once in op and returns its result and what it wrote.
func (w *world) ask(op wire.Op, wrote int, args ...any) (int64, []byte) {
	w.Helper()
	return askInstance(w.Context(), w, w.in, op, wrote, args...)
}

// call runs op with an input of the test's.
func (w *world) call(ctx context.Context, in *instance, op wire.Op, input []byte, limit time.Duration) ([]byte, error) {
	return in.call(ctx, op, input, w.time(), limit)
}

func askInstance(ctx context.Context, w *world, in *instance, op wire.Op, wrote int, args ...any) (int64, []byte) {
	w.Helper()
	out, err := w.call(ctx, in, op, input(8+wrote, args), longCall)
	if err != nil {
		w.Fatal(err)
	}
	return int64(binary.LittleEndian.Uint64(out)), out[8:]
}

// code is a result of 32 bits.
func code(n int64) int { return int(int32(n)) }

// dst is where a function may write n bytes: the address and the length.
func dst(n int) []any { return []any{outputAt + 8, n} }
