//go:build wasip1

package sdk

import (
	"runtime"
	"unsafe"

	"github.com/weirgate/weir/sdk/wire"
)

// The buffers that the host writes and reads; kept here so that the collector leaves them alone until the next call.
var (
	input  []byte
	output []byte
	calls  uint32
)

//go:wasmexport weir_abi
func weirABI() int32 { return 1 }

//go:wasmexport weir_alloc
func weirAlloc(size int32) int32 {
	if size < 0 || size > 1<<20 {
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
	output = registered.call(wire.Op(op), input[:n])
	if len(output) == 0 {
		return 0
	}
	return int64(uintptr(unsafe.Pointer(&output[0])))<<32 | int64(len(output))
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

//go:wasmimport weir cancelled
func hostCancelled() int32

func at(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func logLine(level int32, s string) {
	b := []byte(s)
	hostLog(level, at(b), uint32(len(b)))
}

func nowMS() int64 { return hostNowMS() }

func random(b []byte) bool { return hostRandom(at(b), uint32(len(b))) == int32(len(b)) }

func kvGet(key string) ([]byte, int32) {
	k := []byte(key)
	b := make([]byte, 1024)
	n := hostKVGet(at(k), uint32(len(k)), at(b), uint32(len(b)))
	if n == tooLarge {
		b = make([]byte, uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24)
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

func cancelled() bool { return hostCancelled() == 1 }
