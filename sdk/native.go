//go:build !wasip1

package sdk

import "sync"

// host stands in for the gateway when a plugin runs as an ordinary program: an empty kv, a clock that the example sets, random
// that is 0, and no network, as the gateway has it for examples (ABI-2.4). Guarded by mu.
var host = struct {
	mu  sync.Mutex
	now int64
	kv  map[string][]byte
	num map[string]int64
}{kv: map[string][]byte{}, num: map[string]int64{}}

// ResetHost gives host functions that are called outside of the sandbox, in tests, an empty kv and that time.
func ResetHost(nowMS int64) {
	host.mu.Lock()
	defer host.mu.Unlock()
	host.now, host.kv, host.num = nowMS, map[string][]byte{}, map[string]int64{}
}

func logLine(int32, string) {}

func nowMS() int64 {
	host.mu.Lock()
	defer host.mu.Unlock()
	return host.now
}

func random(b []byte) int32 {
	if len(b) > 256 {
		return int32(ErrTooLarge)
	}
	clear(b)
	return int32(len(b))
}

func keyCode(key string) int32 {
	switch {
	case key == "":
		return int32(ErrInvalid)
	case len(key) > 256:
		return int32(ErrTooLarge)
	}
	return 0
}

func kvGet(key string) ([]byte, int32) {
	host.mu.Lock()
	defer host.mu.Unlock()
	if code := keyCode(key); code < 0 {
		return nil, code
	}
	b, ok := host.kv[key]
	if !ok {
		return nil, int32(ErrNotFound)
	}
	return b, 0
}

func kvSet(key string, value []byte, ttlMS int64) int32 {
	host.mu.Lock()
	defer host.mu.Unlock()
	switch code := keyCode(key); {
	case code < 0:
		return code
	case len(value) > 64<<10:
		return int32(ErrTooLarge)
	case ttlMS < 0:
		return int32(ErrInvalid)
	}
	host.kv[key] = append([]byte(nil), value...)
	return 0
}

func kvAdd(key string, delta, _ int64) int64 {
	host.mu.Lock()
	defer host.mu.Unlock()
	host.num[key] += delta
	return host.num[key]
}

func httpFetch([]byte) ([]byte, int32) { return nil, int32(ErrDenied) }

func secretReady(string) int32 { return 0 }

func metric(string, float64) int32 { return int32(ErrDenied) }

func cancelled() bool { return false }
