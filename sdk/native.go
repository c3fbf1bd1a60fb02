//go:build !wasip1

package sdk

import "sync"

// host stands in for the gateway when a plugin runs as an ordinary program: an empty kv, a clock that the example sets, and
// random that is 0, as the gateway has it for examples. Guarded by mu.
var host = struct {
	mu  sync.Mutex
	now int64
	kv  map[string][]byte
	num map[string]int64
}{}

func resetHost(now int64) {
	host.mu.Lock()
	defer host.mu.Unlock()
	host.now, host.kv, host.num = now, map[string][]byte{}, map[string]int64{}
}

func logLine(int32, string) {}

func nowMS() int64 {
	host.mu.Lock()
	defer host.mu.Unlock()
	return host.now
}

func random(b []byte) bool {
	clear(b)
	return len(b) <= 256
}

func kvGet(key string) ([]byte, int32) {
	host.mu.Lock()
	defer host.mu.Unlock()
	b, ok := host.kv[key]
	if !ok {
		return nil, notFound
	}
	return b, 0
}

func kvSet(key string, value []byte, _ int64) int32 {
	host.mu.Lock()
	defer host.mu.Unlock()
	host.kv[key] = append([]byte(nil), value...)
	return 0
}

func kvAdd(key string, delta, _ int64) int64 {
	host.mu.Lock()
	defer host.mu.Unlock()
	host.num[key] += delta
	return host.num[key]
}

func cancelled() bool { return false }
