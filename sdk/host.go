package sdk

import "math"

// Errors of host functions (ABI-6).
const (
	notFound = -1
	tooLarge = -3
)

// Level is how much a line of Log matters.
type Level int32

// The levels.
const (
	Debug Level = iota
	Info
	Warn
	Severe
)

// Log writes a line of at most 1 KiB to the host's log; after 20 lines in one call the rest is dropped.
func Log(level Level, line string) { logLine(int32(level), line) }

// NowMS is the host's clock in Unix milliseconds; it stands still within one call.
func NowMS() int64 { return nowMS() }

// Random fills b, at most 256 bytes; false when the host refused.
func Random(b []byte) bool { return random(b) }

// Cancelled says whether the client has gone away.
func Cancelled() bool { return cancelled() }

// KV is the plugin's own key-value room, shared by all its instances and kept over reloads. It needs Permissions.KV and
// the operator's grant; without one, Get finds nothing, and Set and Add return false.
var KV kv

type kv struct{}

// Get returns the value of key.
func (kv) Get(key string) ([]byte, bool) {
	b, code := kvGet(key)
	return b, code == 0
}

// Set stores a value for ttlMS milliseconds, 0: for ever.
func (kv) Set(key string, value []byte, ttlMS int64) bool { return kvSet(key, value, ttlMS) == 0 }

// Add adds delta to the counter at key, atomically, and returns it. ttlMS counts from the first Add.
func (kv) Add(key string, delta, ttlMS int64) (int64, bool) {
	n := kvAdd(key, delta, ttlMS)
	return n, n != math.MinInt64
}
