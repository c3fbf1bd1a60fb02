//go:build wasip1

package sdk

import (
	"runtime"
	"unsafe"

	"github.com/weirgate/weir/sdk/wire"
)

// maxInput is the most that a host passes (ABI-8).
const maxInput = 256 << 10

// The buffer that the host writes, and the machine with the one that it reads; kept here so that the collector leaves them
// alone until the next call.
var (
	input []byte
	guest machine
	calls uint32
)

//go:wasmexport weir_abi
func weirABI() int32 { return 1 }

//go:wasmexport weir_alloc
func weirAlloc(size int32) int32 {
	if size < 0 || size > maxInput {
		return 0
	}
	if int(size) > len(input) || len(input) == 0 {
		input = make([]byte, max(size, 64))
	}
	return int32(uintptr(unsafe.Pointer(&input[0])))
}

// weirCall yields every 16 calls: without that Go never collects inside the sandbox and dies at its memory limit.
//
//go:wasmexport weir_call
func weirCall(op, n int32) int64 {
	if calls++; calls%16 == 0 {
		runtime.Gosched()
	}
	if registered == nil || n < 0 || int(n) > len(input) {
		return 0
	}
	guest.plugin = registered
	out := guest.call(wire.Op(op), input[:n])
	if len(out) == 0 {
		return 0
	}
	return int64(uintptr(unsafe.Pointer(&out[0])))<<32 | int64(len(out))
}

//go:wasmimport weir log
func hostLog(level int32, p unsafe.Pointer, n uint32)

//go:wasmimport weir now_ms
func hostNowMS() int64

//go:wasmimport weir random
func hostRandom(p unsafe.Pointer, n uint32) int32

//go:wasmimport weir kv_get
func hostKVGet(key unsafe.Pointer, keyLen uint32, dst unsafe.Pointer, size uint32) int32

//go:wasmimport weir kv_set
func hostKVSet(key unsafe.Pointer, keyLen uint32, value unsafe.Pointer, valueLen uint32, ttlMS int64) int32

//go:wasmimport weir kv_add
func hostKVAdd(key unsafe.Pointer, keyLen uint32, delta, ttlMS int64) int64

//go:wasmimport weir http_fetch
func hostHTTPFetch(request unsafe.Pointer, n uint32, dst unsafe.Pointer, size uint32) int32

//go:wasmimport weir secret_ready
func hostSecretReady(name unsafe.Pointer, n uint32) int32

//go:wasmimport weir metric
func hostMetric(name unsafe.Pointer, n uint32, value float64) int32

//go:wasmimport weir cancelled
func hostCancelled() int32

func at(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func logLine(level int32, s string) {
	b := []byte(s)
	hostLog(level, at(b), uint32(len(b)))
}

func nowMS() int64 { return hostNowMS() }

func random(b []byte) int32 { return hostRandom(at(b), uint32(len(b))) }

// needed is the length that the host wrote when a buffer was too small (ABI-6).
func needed(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func kvGet(key string) ([]byte, int32) {
	k := []byte(key)
	b := make([]byte, 1024)
	n := hostKVGet(at(k), uint32(len(k)), at(b), uint32(len(b)))
	if HostError(n) == ErrTooLarge && needed(b) > uint32(len(b)) && needed(b) <= 64<<10 {
		b = make([]byte, needed(b))
		n = hostKVGet(at(k), uint32(len(k)), at(b), uint32(len(b)))
	}
	if n < 0 {
		return nil, n
	}
	return b[:n], 0
}

func kvSet(key string, value []byte, ttlMS int64) int32 {
	k := []byte(key)
	return hostKVSet(at(k), uint32(len(k)), at(value), uint32(len(value)), ttlMS)
}

func kvAdd(key string, delta, ttlMS int64) int64 {
	k := []byte(key)
	return hostKVAdd(at(k), uint32(len(k)), delta, ttlMS)
}

// httpFetch asks once only, with room for the largest body in its envelope: asking again would send the request again.
func httpFetch(request []byte) ([]byte, int32) {
	b := make([]byte, 512<<10)
	n := hostHTTPFetch(at(request), uint32(len(request)), at(b), uint32(len(b)))
	if n < 0 {
		return nil, n
	}
	return b[:n], 0
}

func secretReady(name string) int32 {
	b := []byte(name)
	return hostSecretReady(at(b), uint32(len(b)))
}

func metric(name string, value float64) int32 {
	b := []byte(name)
	return hostMetric(at(b), uint32(len(b)), value)
}

func cancelled() bool { return hostCancelled() == 1 }
