package plugin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/plugin/fetch"
	"github.com/weirgate/weir/sdk/wire"
)

// Errors that host functions return to a guest (ABI-6).
const (
	errNotFound    = -1
	errDenied      = -2
	errTooLarge    = -3
	errInvalid     = -4
	errUnavailable = -5
	errCancelled   = -6
)

// Sizes of host functions (ABI-6).
const (
	maxRandom     = 256
	maxSecretName = 64
	maxMetricName = 64
	maxMetrics    = 32                     // names per plugin
	redactWindow  = 8 * maxLogLine         // of a line, so that no secret is cut in two at its end
	lastWord      = 100 * time.Millisecond // that a guest has left of its call when a fetch is given up
)

// Ports are what host functions reach outside of the sandbox. Every field may be nil: then there is no such thing, and what
// needs it is denied or kept in memory only.
type Ports struct {
	KV     KVStore                              // keeps kv over restarts
	Fetch  *fetch.Client                        // sends http_fetch
	Count  func(plugin, name string, n float64) // adds to weir_plugin_custom_total; it must not block
	Redact func(text string) string             // takes known secrets out of what guests log
}

// lent is what the host does for one plugin name, over all its versions. Safe for concurrent use.
type lent struct {
	plugin string
	ports  *Ports
	secret func(plugin, name string) catalog.Secret
	lane   *fetch.Lane // nil: no http_fetch

	mu      sync.Mutex
	metrics map[string]string // names that were used, guarded by mu
}

func newLent(plugin string, p *Ports, secret func(plugin, name string) catalog.Secret) *lent {
	l := &lent{plugin: plugin, ports: p, secret: secret, metrics: map[string]string{}}
	if p.Fetch != nil {
		l.lane = p.Fetch.Lane()
	}
	return l
}

// hostFunction is one function of the import module weir.
type hostFunction struct {
	name    string
	params  []api.ValueType
	results []api.ValueType
	run     func(ctx context.Context, g *instance, mem api.Memory, stack []uint64)
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
		{"now_ms", nil, []api.ValueType{vi64}, hostNow},
		{"random", i(2), i(1), hostRandom},
		{"kv_get", i(4), i(1), hostKVGet},
		{"kv_set", append(i(4), vi64), i(1), hostKVSet},
		{"kv_add", append(i(2), vi64, vi64), []api.ValueType{vi64}, hostKVAdd},
		{"http_fetch", i(4), i(1), hostFetch},
		{"secret_ready", i(2), i(1), hostSecretReady},
		{"metric", append(i(2), vf64), i(1), hostMetric},
		{"cancelled", nil, i(1), hostCancelled},
	}
}

// guestKey marks the instance in the context of a call. wazero hands a host function nothing else of ours.
type guestKey struct{}

// linkHost defines the import module weir. Functions are bound without reflection, which would allocate per call.
func linkHost(ctx context.Context, r wazero.Runtime) (wazero.CompiledModule, error) {
	b := r.NewHostModuleBuilder("weir")
	for _, f := range hostFunctions() {
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			f.run(ctx, ctx.Value(guestKey{}).(*instance), m.Memory(), stack)
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

// textAt is bytesAt as a text, without a copy: it is valid only until the host function returns and must not be kept.
func textAt(mem api.Memory, at, n uint64) string {
	b := bytesAt(mem, at, n)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func result(stack []uint64, code int) { stack[0] = api.EncodeI32(int32(code)) }

// deny counts a host function that was not granted.
func (in *instance) deny() (code int) {
	in.owner.counters.denied.Add(1)
	return errDenied
}

// hand copies an answer into the guest's buffer, or tells it how large that must be.
func hand(dst, answer []byte) int {
	if len(dst) < len(answer) {
		if len(dst) >= 4 {
			binary.LittleEndian.PutUint32(dst, uint32(len(answer)))
		}
		return errTooLarge
	}
	return copy(dst, answer)
}

func hostLog(_ context.Context, g *instance, mem api.Memory, stack []uint64) {
	g.say(int32(stack[0]), bytesAt(mem, stack[1], stack[2]))
}

// say writes a line of the guest to the log, without known secrets.
func (g *instance) say(level int32, text []byte) {
	text = text[:min(len(text), redactWindow)]
	if l := g.kv.lent; l != nil && l.ports.Redact != nil && g.lines < maxLogLines {
		text = []byte(l.ports.Redact(string(text)))
	}
	g.logLine(level, text[:min(len(text), maxLogLine)])
}

func hostNow(_ context.Context, g *instance, _ api.Memory, stack []uint64) {
	stack[0] = uint64(g.now.UnixMilli())
}

func hostCancelled(_ context.Context, g *instance, _ api.Memory, stack []uint64) {
	stack[0] = 0
	if g.caller != nil && g.caller.Err() != nil {
		stack[0] = 1
	}
}

func hostRandom(_ context.Context, g *instance, mem api.Memory, stack []uint64) {
	if uint32(stack[1]) > maxRandom {
		result(stack, errTooLarge)
		return
	}
	b := bytesAt(mem, stack[0], stack[1])
	if _, err := g.random.Read(b); err != nil {
		result(stack, errUnavailable)
		return
	}
	result(stack, len(b))
}

// key reads a key, after the grant was looked at. It is valid until the host function returns.
func (in *instance) key(mem api.Memory, at, n uint64) (key string, code int) {
	if code := in.keyed(uint32(n)); code != 0 {
		return "", code
	}
	return textAt(mem, at, n), 0
}

// keyed says whether the guest may use a key of n bytes.
func (in *instance) keyed(n uint32) (code int) {
	switch {
	case in.owner.kvQuota == 0:
		return in.deny()
	case n == 0:
		return errInvalid
	case n > maxKey:
		return errTooLarge
	}
	return 0
}

func hostKVGet(_ context.Context, g *instance, mem api.Memory, stack []uint64) {
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
	result(stack, hand(bytesAt(mem, stack[2], stack[3]), value))
}

func hostKVSet(_ context.Context, g *instance, mem api.Memory, stack []uint64) {
	key, code := g.key(mem, stack[0], stack[1])
	switch {
	case code == 0 && uint32(stack[3]) > maxValue:
		code = errTooLarge
	case code == 0:
		code = g.keep(key, bytesAt(mem, stack[2], stack[3]), stack[4])
	}
	result(stack, code)
}

// keep sets a key that the guest may use.
func (in *instance) keep(key string, value []byte, ms uint64) (code int) {
	switch {
	case len(value) > maxValue:
		return errTooLarge
	case int64(ms) < 0:
		return errInvalid
	case !in.kv.set(key, value, ttl(ms), in.owner.kvQuota, in.now):
		return errTooLarge
	}
	return 0
}

func hostKVAdd(_ context.Context, g *instance, mem api.Memory, stack []uint64) {
	key, code := g.key(mem, stack[0], stack[1])
	n := int64(math.MinInt64)
	if code == 0 {
		n = g.count(key, int64(stack[2]), stack[3])
	}
	stack[0] = uint64(n)
}

// count adds to a key that the guest may use; the smallest number is the error.
func (in *instance) count(key string, delta int64, ms uint64) int64 {
	if int64(ms) < 0 {
		return math.MinInt64
	}
	n, ok := in.kv.add(key, delta, ttl(ms), in.owner.kvQuota, in.now)
	if !ok {
		return math.MinInt64
	}
	return n
}

// ttl reads a time to live, capped so that it fits a Duration.
func ttl(ms uint64) time.Duration {
	return time.Duration(min(ms, uint64(math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
}

func hostSecretReady(_ context.Context, g *instance, mem api.Memory, stack []uint64) {
	if n := uint32(stack[1]); n == 0 || n > maxSecretName {
		result(stack, errInvalid)
		return
	}
	result(stack, g.secretReady(string(bytesAt(mem, stack[0], stack[1]))))
}

// secretReady is 1 when the operator has set the secret, 0 when not.
func (in *instance) secretReady(name string) (code int) {
	l := in.kv.lent
	if name == "" || len(name) > maxSecretName {
		return errInvalid
	}
	if _, ok := in.owner.grants().Secrets[name]; !ok || l == nil {
		return in.deny()
	}
	if l.secret(l.plugin, name).Set() {
		return 1
	}
	return 0
}

func hostMetric(_ context.Context, g *instance, mem api.Memory, stack []uint64) {
	if uint32(stack[1]) > maxMetricName {
		result(stack, errTooLarge)
		return
	}
	result(stack, g.metric(textAt(mem, stack[0], stack[1]), api.DecodeF64(stack[2])))
}

// metric counts for the plugin. Names beyond the bound are refused, so that no guest can fill the metrics. The name is not kept.
func (in *instance) metric(name string, n float64) (code int) {
	switch {
	case len(name) > maxMetricName:
		return errTooLarge
	case !metricName(name) || math.IsNaN(n) || math.IsInf(n, 0) || n < 0:
		return errInvalid
	}
	l := in.kv.lent
	if l == nil { // describe and examples count nothing
		return 0
	}
	known, ok := l.metric(name)
	if !ok {
		return errTooLarge
	}
	if l.ports.Count != nil {
		l.ports.Count(l.plugin, known, n)
	}
	return 0
}

// metric returns the lasting text of one of the plugin's metrics, and takes a new one while there is room.
func (l *lent) metric(name string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.metrics[name]; ok {
		return known, true
	}
	if len(l.metrics) >= maxMetrics {
		return "", false
	}
	name = strings.Clone(name)
	l.metrics[name] = name
	return name, true
}

func metricName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return s != ""
}

// hostFetch is http_fetch. It may wait, so it is for plan and configure only: no request waits for it but the one that asks.
func hostFetch(ctx context.Context, g *instance, mem api.Memory, stack []uint64) {
	request, dst := bytesAt(mem, stack[0], stack[1]), bytesAt(mem, stack[2], stack[3])
	var held []byte
	if l := g.kv.lent; l != nil && l.lane != nil && g.mayFetch() {
		held = l.lane.Held(ctx, request)
	}
	answer, code := held, 0
	if held == nil {
		if answer, code = g.fetch(ctx, request); code != 0 {
			if code == errTooLarge {
				clear(dst[:min(len(dst), 4)]) // no buffer would be large enough
			}
			result(stack, code)
			return
		}
	}
	code = hand(dst, answer)
	if code == errTooLarge {
		g.kv.lent.lane.Hold(ctx, request, answer)
	}
	result(stack, code)
}

// mayFetch says whether http_fetch is for the present call.
func (in *instance) mayFetch() bool {
	return (in.op == wire.OpPlan || in.op == wire.OpConfigure) && len(in.owner.grants().HTTPHosts) > 0
}

// fetch sends a request, or says why not.
func (in *instance) fetch(ctx context.Context, request []byte) (answer []byte, code int) {
	l := in.kv.lent
	if l == nil || l.lane == nil || !in.mayFetch() {
		return nil, in.deny()
	}
	answer, err := l.fetch(ctx, in, in.owner.grants(), request)
	if err == nil {
		return answer, 0
	}
	in.owner.log.Debug("http_fetch failed", "error", err.Error())
	if code = fetchCode(err); code == errDenied {
		return nil, in.deny()
	}
	return nil, code
}

// fetch sends a request. It ends with the call, or when the client goes away, and leaves the guest the time to say something
// all the same.
func (l *lent) fetch(ctx context.Context, g *instance, grants Grants, request []byte) ([]byte, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if end, ok := ctx.Deadline(); ok {
		var late context.CancelFunc
		ctx, late = context.WithDeadline(ctx, end.Add(-lastWord))
		defer late()
	}
	if g.caller != nil {
		defer context.AfterFunc(g.caller, stop)()
	}
	return l.lane.Do(ctx, fetch.Grant{
		Hosts: grants.HTTPHosts, Private: grants.HTTPPrivate,
		Secret: func(name string) (catalog.Secret, bool) {
			if _, ok := grants.Secrets[name]; !ok {
				return catalog.Secret{}, false
			}
			return l.secret(l.plugin, name), true
		},
	}, request)
}

func fetchCode(err error) int {
	for _, c := range []struct {
		is   error
		code int
	}{
		{fetch.ErrDenied, errDenied}, {fetch.ErrNotFound, errNotFound}, {fetch.ErrInvalid, errInvalid}, {fetch.ErrTooLarge, errTooLarge},
		{fetch.ErrCancelled, errCancelled},
	} {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	return errUnavailable
}
