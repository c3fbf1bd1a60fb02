package sdk

import (
	"math"
	"strconv"
)

// HostError is what a host function answers in place of a result (ABI-6).
type HostError int32

// The errors of host functions.
const (
	ErrNotFound    HostError = -1
	ErrDenied      HostError = -2 // not granted, or not allowed in this operation
	ErrTooLarge    HostError = -3
	ErrInvalid     HostError = -4
	ErrUnavailable HostError = -5
	ErrCancelled   HostError = -6
	ErrCounter     HostError = math.MinInt32 // of KVAdd, which cannot say more: not granted, no room, or no counter
)

// Error names the cause.
func (e HostError) Error() string {
	switch e {
	case ErrNotFound:
		return "host: not found"
	case ErrDenied:
		return "host: denied"
	case ErrTooLarge:
		return "host: too large"
	case ErrInvalid:
		return "host: invalid"
	case ErrUnavailable:
		return "host: unavailable"
	case ErrCancelled:
		return "host: cancelled"
	case ErrCounter:
		return "host: the counter was refused"
	}
	return "host: error " + strconv.Itoa(int(e))
}

// hostError is the error that a code is, nil for what is none.
func hostError(code int32) error {
	if code >= 0 {
		return nil
	}
	return HostError(code)
}

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

// Random fills b, at most 256 bytes.
func Random(b []byte) error { return hostError(random(b)) }

// Cancelled says whether the client has gone away.
func Cancelled() bool { return cancelled() }

// KVGet returns the value of key. The room is the plugin's own, shared by all its instances and kept over reloads and
// restarts. It needs Permissions.KV and the operator's grant; the errors are ErrNotFound, ErrDenied and ErrInvalid.
func KVGet(key string) ([]byte, error) {
	b, code := kvGet(key)
	return b, hostError(code)
}

// KVSet stores a value for ttlMS milliseconds, 0: for ever. The errors are ErrDenied, ErrTooLarge and ErrInvalid.
func KVSet(key string, value []byte, ttlMS int64) error { return hostError(kvSet(key, value, ttlMS)) }

// KVAdd adds delta to the counter at key, atomically, and returns it. ttlMS counts from the first KVAdd. The error is
// ErrCounter.
func KVAdd(key string, delta, ttlMS int64) (int64, error) {
	n := kvAdd(key, delta, ttlMS)
	if n == math.MinInt64 {
		return 0, ErrCounter
	}
	return n, nil
}

// Fetch is a request that the host makes for the plugin.
type Fetch struct {
	Method    string // absent: GET
	URL       string // https, of a host in Permissions.HTTP that was granted
	Headers   map[string]string
	Body      string
	TimeoutMS int64 // absent, and at most: 5 s
}

// Fetched is the answer to a Fetch.
type Fetched struct {
	Status  int
	Headers map[string]string
	Body    []byte
}

// JSON is the value at path in the body.
func (f *Fetched) JSON(path string) Value { return Parse(f.Body).Get(path) }

// HTTPFetch asks a granted host, from Plan and Configure only. Values of headers may hold {{secret.NAME}}, which the host
// fills in; the plugin never sees a secret. The errors are ErrDenied (no grant, a redirect elsewhere, a private address),
// ErrInvalid, ErrTooLarge (256 KiB), ErrUnavailable and ErrCancelled.
func HTTPFetch(f Fetch) (*Fetched, error) {
	raw, code := httpFetch(f.json())
	if code < 0 {
		return nil, HostError(code)
	}
	return fetched(raw)
}

func (f *Fetch) json() []byte {
	w := &Writer{}
	w.Object(func() {
		w.text("method", f.Method)
		w.Key("url").Text(f.URL)
		w.mapping("headers", f.Headers)
		w.text("body", f.Body)
		w.int("timeout_ms", f.TimeoutMS)
	})
	return w.Bytes()
}

func fetched(raw []byte) (*Fetched, error) {
	v := Parse(raw)
	status, ok := v.Member("status").Int()
	if !ok {
		return nil, ErrInvalid
	}
	out := &Fetched{Status: int(status), Headers: map[string]string{}}
	v.Member("headers").Each(func(name string, item Value) bool {
		out.Headers[name], _ = item.Text()
		return true
	})
	body, _ := v.Member("body").Text()
	out.Body = []byte(body)
	return out, nil
}

// SecretReady says whether a secret of that name is set. Its value never crosses.
func SecretReady(name string) bool { return secretReady(name) == 1 }

// Metric adds value to the counter weir_plugin_custom_total with that name. A plugin has at most 32 names; beyond that, and
// where the host keeps no such counters, it is an error that needs no care.
func Metric(name string, value float64) error { return hostError(metric(name, value)) }
