package plugin

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/plugin/fetch"
	"github.com/weirgate/weir/sdk/wire"
)

func TestHostKV(t *testing.T) { // ABI-6
	get := newWorld(t, Ports{}, grantAll(), forwarder{function: "kv_get"})
	kv := get.v.guest.kv
	kv.set("k", []byte("value"), 0, 1000, get.time())
	kv.set(strings.Repeat("k", 256), nil, 0, 1000, get.time())
	for _, c := range []struct {
		name  string
		args  []any
		want  int
		wrote string
	}{
		{"found", append([]any{"k"}, dst(5)...), 5, "value"},
		{"not found", append([]any{"x"}, dst(5)...), -1, "\x00\x00\x00\x00\x00"},
		{"a buffer that is too small learns the length", append([]any{"k"}, dst(4)...), -3, "\x05\x00\x00\x00\x00"},
		{"a buffer below four bytes is not written", append([]any{"k"}, dst(3)...), -3, "\x00\x00\x00\x00\x00"},
		{"a key of 256 bytes", append([]any{strings.Repeat("k", 256)}, dst(0)...), 0, "\x00\x00\x00\x00\x00"},
		{"a key of 257 bytes", append([]any{strings.Repeat("k", 257)}, dst(5)...), -3, "\x00\x00\x00\x00\x00"},
		{"no key", append([]any{""}, dst(5)...), -4, "\x00\x00\x00\x00\x00"},
	} {
		t.Run("kv_get "+c.name, func(t *testing.T) {
			in := get.fresh(get.v)
			if n, wrote := askInstance(t.Context(), get, in, wire.OpClassify, 5, c.args...); code(n) != c.want || string(wrote) != c.wrote {
				t.Errorf("%d and %q, want %d and %q", code(n), wrote, c.want, c.wrote)
			}
		})
	}
	set := newWorld(t, Ports{}, grantAll(), forwarder{function: "kv_set"})
	for _, c := range []struct {
		name string
		args []any
		want int
	}{
		{"a value", []any{"k", "v", 0}, 0},
		{"64 KiB", []any{"k", strings.Repeat("v", 65536), 0}, 0},
		{"more", []any{"k", strings.Repeat("v", 65537), 0}, -3},
		{"a time below 0", []any{"k", "v", -1}, -4},
		{"a key of 257 bytes", []any{strings.Repeat("k", 257), "v", 0}, -3},
		{"no key", []any{"", "v", 0}, -4},
		{"the second 64 KiB", []any{"l", strings.Repeat("v", 65536), 0}, 0},
		{"the third", []any{"m", strings.Repeat("v", 65536), 0}, 0},
		{"the fourth is above the grant", []any{"n", strings.Repeat("v", 65536), 0}, -3},
	} {
		if n, _ := set.ask(wire.OpClassify, 0, c.args...); code(n) != c.want {
			t.Errorf("kv_set %s: %d, want %d", c.name, code(n), c.want)
		}
	}
	add := newWorld(t, Ports{}, grantAll(), forwarder{function: "kv_add"})
	add.v.guest.kv.set("text", []byte("hello"), 0, 1000, add.time())
	add.v.guest.kv.set("high", binary.LittleEndian.AppendUint64(nil, math.MaxInt64), 0, 1000, add.time())
	for _, c := range []struct {
		name string
		args []any
		want int64
	}{
		{"first", []any{"n", 5, 0}, 5}, {"next", []any{"n", -7, 0}, -2},
		{"not a counter", []any{"text", 1, 0}, math.MinInt64}, {"above 64 bits", []any{"high", 1, 0}, math.MinInt64},
		{"the smallest number", []any{"low", uint64(1 << 63), 0}, math.MinInt64}, {"after it", []any{"low", 1, 0}, 1},
		{"a time below 0", []any{"n", 1, -1}, math.MinInt64}, {"no key", []any{"", 1, 0}, math.MinInt64},
		{"a long key", []any{strings.Repeat("k", 257), 1, 0}, math.MinInt64},
	} {
		if n, _ := add.ask(wire.OpClassify, 0, c.args...); n != c.want {
			t.Errorf("kv_add %s: %d, want %d", c.name, n, c.want)
		}
	}
}

func TestNotGranted(t *testing.T) { // PLG-12, ABI-8: denied, counted, and the guest goes on
	for function, args := range map[string][]any{
		"kv_get": append([]any{"k"}, dst(5)...), "kv_set": {"k", "v", 0}, "kv_add": {"k", 1, 0}, "secret_ready": {"key"},
		"http_fetch": append([]any{`{"url":"https://other.test/"}`}, dst(5)...),
	} {
		t.Run(function, func(t *testing.T) {
			w := newWorld(t, Ports{Fetch: fetch.NewClient(fetch.Options{})}, Grants{}, forwarder{function: function})
			n, _ := w.ask(wire.OpPlan, 5, args...)
			if want := int64(-2); function == "kv_add" && n != math.MinInt64 || function != "kv_add" && code(n) != int(want) {
				t.Errorf("%d", n)
			}
			if c := w.v.counters.read(); c.Denied != 1 || len(c.Violations) != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

func TestBadPointersTrap(t *testing.T) { // ABI-6
	for function, args := range map[string][]any{
		"kv_get": {"k", 1 << 30, 5}, "kv_set": {inputAt, 1 << 8, 0xffffffff, 2, 0}, "kv_add": {1 << 30, 4, 1, 0}, "random": {1 << 30, 16},
		"secret_ready": {0xfffffff0, 32}, "metric": {1 << 30, 4, 1.0}, "log": {1, 1 << 30, 4}, "http_fetch": {1 << 30, 4, outputAt, 4},
	} {
		t.Run(function, func(t *testing.T) {
			w := newWorld(t, Ports{}, grantAll(), forwarder{function: function})
			w.v.guest.kv.set("k", nil, 0, 1000, w.time())
			_, err := w.call(t.Context(), w.in, wire.OpClassify, input(8, args), longCall)
			if v, ok := errors.AsType[*violation](err); !ok || v.kind != violationTrap || !strings.Contains(v.cause, "outside of the memory") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestHostRandom(t *testing.T) { // ABI-6
	w := newWorld(t, Ports{}, Grants{}, forwarder{function: "random"})
	n, a := w.ask(wire.OpClassify, 256, outputAt+8, 256)
	_, b := w.ask(wire.OpClassify, 256, outputAt+8, 256)
	if code(n) != 256 || bytes.Equal(a, b) || bytes.Equal(a[128:], make([]byte, 128)) {
		t.Errorf("%d, %x, %x", code(n), a, b)
	}
	if n, _ := w.ask(wire.OpClassify, 0, outputAt+8, 257); code(n) != -3 {
		t.Errorf("257 bytes: %d", code(n))
	}
}

func TestHostClock(t *testing.T) { // ABI-6: frozen within one call
	w := newWorld(t, Ports{}, Grants{}, forwarder{function: "now_ms", calls: 2})
	out, err := w.call(t.Context(), w.in, wire.OpClassify, input(16), longCall)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if n := int64(binary.LittleEndian.Uint64(out[8*i:])); n != 1_790_000_000_000 {
			t.Errorf("the clock says %d", n)
		}
	}
	if n, _ := w.ask(wire.OpClassify, 0); n != 1_790_000_000_000 {
		t.Errorf("%d", n)
	}
	w.now.Add(5)
	if n, _ := w.ask(wire.OpClassify, 0); n != 1_790_000_000_005 {
		t.Errorf("%d in the next call", n)
	}
}

func TestHostCancelled(t *testing.T) { // ABI-6
	w := newWorld(t, Ports{}, Grants{}, forwarder{function: "cancelled"})
	ctx, stop := context.WithCancel(t.Context())
	if n, _ := askInstance(ctx, w, w.in, wire.OpClassify, 0); code(n) != 0 {
		t.Errorf("%d before", code(n))
	}
	stop()
	if n, _ := askInstance(ctx, w, w.in, wire.OpClassify, 0); code(n) != 1 {
		t.Errorf("%d after", code(n))
	}
}

func TestHostSecretReady(t *testing.T) { // ABI-6, PLG-12
	g := Grants{Secrets: Secrets{"key": catalog.NewSecret("s3cret"), "empty": {}, "unasked": catalog.NewSecret("x")}}
	w := newWorld(t, Ports{}, g, forwarder{function: "secret_ready"})
	for name, want := range map[string]int{"key": 1, "empty": 0, "unasked": -2, "none": -2, "": -4, strings.Repeat("k", 65): -4} {
		if n, _ := w.ask(wire.OpClassify, 0, name); code(n) != want {
			t.Errorf("%q: %d, want %d", name, code(n), want)
		}
	}
	w.r.Configure(t.Context(), nil, nil) // the operator takes it back while the version still runs
	if n, _ := w.ask(wire.OpClassify, 0, "key"); code(n) != 0 {
		t.Errorf("taken back: %d", code(n))
	}
}

func TestHostMetric(t *testing.T) { // ABI-6: 32 names
	got := map[string]float64{}
	p := Ports{Count: func(plugin, name string, n float64) { got[plugin+"/"+name] += n }}
	w := newWorld(t, p, Grants{}, forwarder{function: "metric"})
	for i := range 40 {
		want := 0
		if i >= 32 {
			want = -3
		}
		if n, _ := w.ask(wire.OpClassify, 0, fmt.Sprintf("name.%d", i), 1.5); code(n) != want {
			t.Errorf("name %d: %d, want %d", i, code(n), want)
		}
	}
	in := w.fresh(w.load(forwarder{function: "metric"})) // the names are the plugin's, over reloads
	if n, _ := askInstance(t.Context(), w, in, wire.OpClassify, 0, "new", 1.0); code(n) != -3 {
		t.Errorf("a 33rd name after a reload: %d", code(n))
	}
	if n, _ := askInstance(t.Context(), w, in, wire.OpClassify, 0, "name.3", 2.0); code(n) != 0 || got["acme/name.3"] != 3.5 || len(got) != 32 {
		t.Errorf("%d, %v", code(n), got)
	}
	for name, args := range map[string][]any{
		"below 0": {"name.1", -1.0}, "not a number": {"name.1", math.NaN()}, "endless": {"name.1", math.Inf(1)}, "no name": {"", 1.0}, "a bad name": {"a b", 1.0},
	} {
		if n, _ := w.ask(wire.OpClassify, 0, args...); code(n) != -4 {
			t.Errorf("%s: %d", name, code(n))
		}
	}
	if n, _ := w.ask(wire.OpClassify, 0, strings.Repeat("n", 65), 1.0); code(n) != -3 {
		t.Errorf("a long name: %d", code(n))
	}
	if got["acme/name.1"] != 1.5 {
		t.Errorf("what was refused is counted: %v", got["acme/name.1"])
	}
}

func TestHostLog(t *testing.T) { // ABI-6, DATA-1
	var out bytes.Buffer
	p := Ports{Redact: func(s string) string { return strings.ReplaceAll(s, "s3cret-value", "[redacted]") }}
	w := newWorld(t, p, Grants{}, forwarder{function: "log", calls: 25})
	w.v.guest.log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	say := func(level int, text string) string {
		out.Reset()
		w.in.owner.counters.dropped.Store(0)
		var calls [][]any
		for range 25 {
			calls = append(calls, []any{level, text})
		}
		if _, err := w.call(t.Context(), w.in, wire.OpClassify, input(8, calls...), longCall); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	said := say(2, "my key is s3cret-value")
	if strings.Contains(said, "s3cret") || strings.Count(said, "my key is [redacted]") != 20 || strings.Count(said, "level=WARN") != 20 {
		t.Errorf("%s", said)
	}
	if n := w.in.owner.counters.dropped.Load(); n != 5 {
		t.Errorf("%d lines were dropped, want 5", n)
	}
	if said := say(0, strings.Repeat("x", 1020)+"s3cret-value"); strings.Contains(said, "s3") || !strings.Contains(said, strings.Repeat("x", 1020)+"[red\"") &&
		!strings.Contains(said, strings.Repeat("x", 1020)+"[red\n") {
		t.Errorf("a secret is cut in two: %.1100s", said)
	}
	if said := say(3, strings.Repeat("y", 3000)); strings.Contains(said, strings.Repeat("y", 1025)) || !strings.Contains(said, strings.Repeat("y", 1024)) {
		t.Error("a line is not cut at 1 KiB")
	}
}

// upstream is a server on this machine, which the guest may reach.
func upstream(t *testing.T, h http.HandlerFunc) (p Ports, g Grants, manifest, url string) {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	place := srv.Listener.Addr().String()
	g = Grants{HTTPHosts: []string{place}, HTTPPrivate: []string{place}, Secrets: Secrets{"key": catalog.NewSecret("s3cret-value")}}
	return Ports{Fetch: fetch.NewClient(fetch.Options{RootCAs: pool})}, g, strings.Replace(askAll, "127.0.0.1:PORT", place, 1), srv.URL
}

func TestHostFetch(t *testing.T) { // ABI-6, PLG-12
	var hits atomic.Int64
	p, g, manifest, url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if r.URL.Path == "/large" {
			io.WriteString(w, strings.Repeat("x", fetch.MaxAnswer+1))
			return
		}
		if r.Header.Get("Authorization") == "Bearer s3cret-value" {
			w.Header().Set("X-Known", "yes")
		}
		fmt.Fprintf(w, "hello %s", r.Header.Get("Authorization"))
	})
	ask := `{"method":"POST","url":"` + url + `/","headers":{"authorization":"Bearer {{secret.key}}"},"body":"x"}`
	w := newWorld(t, p, g, forwarder{function: "http_fetch", manifest: manifest})
	t.Run("in plan", func(t *testing.T) {
		n, wrote := w.ask(wire.OpPlan, 500, append([]any{ask}, dst(500)...)...)
		var a struct {
			Status  int
			Headers map[string]string
			Body    string
		}
		if err := json.Unmarshal(wrote[:max(code(n), 0)], &a); err != nil || a.Status != 200 || a.Body != "hello Bearer [redacted]" || a.Headers["x-known"] != "yes" {
			t.Errorf("%d, %+v, %v", code(n), a, err)
		}
	})
	t.Run("in other ops", func(t *testing.T) {
		before := hits.Load()
		for _, op := range []wire.Op{wire.OpRespond, wire.OpRestate, wire.OpClassify} {
			if n, _ := w.ask(op, 0, append([]any{ask}, dst(500)...)...); code(n) != -2 {
				t.Errorf("%s: %d", op, code(n))
			}
		}
		if hits.Load() != before {
			t.Error("a request was sent")
		}
	})
	t.Run("errors", func(t *testing.T) {
		for in, want := range map[string]int{
			`{"url":"https://other.test/"}`: -2, `{"url":"` + strings.Replace(url, "https", "http", 1) + `"}`: -2, `{`: -4,
			`{"url":"` + url + `/?{{secret.key}}"}`: -4, `{"url":"` + url + `","headers":{"a":"{{secret.other}}"}}`: -2, `{"url":"` + url + `/large"}`: -3,
		} {
			n, wrote := askInstance(t.Context(), w, w.fresh(w.v), wire.OpPlan, 8, append([]any{in}, dst(8)...)...)
			if code(n) != want || !bytes.Equal(wrote, make([]byte, 8)) {
				t.Errorf("%s: %d, %x; want %d", in, code(n), wrote, want)
			}
		}
	})
	t.Run("a secret that the operator granted and gave no value", func(t *testing.T) {
		g := g
		g.Secrets = Secrets{"key": {}}
		w := newWorld(t, p, g, forwarder{function: "http_fetch", manifest: manifest})
		if n, _ := w.ask(wire.OpPlan, 0, append([]any{ask}, dst(500)...)...); code(n) != -1 {
			t.Errorf("%d", code(n))
		}
	})
}

func TestHostFetchInConfigure(t *testing.T) { // ABI-6, ABI-2.4
	var hits atomic.Int64
	p, g, manifest, url := upstream(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	ask := `{"url":"` + url + `"}`
	w := newWorld(t, p, g, forwarder{function: "http_fetch", manifest: manifest, configure: true})
	head := input(8, append([]any{ask}, dst(500)...))
	if _, err := w.call(t.Context(), w.in, wire.OpConfigure, head, longCall); err != nil || hits.Load() != 1 {
		t.Errorf("in configure: %d requests, %v", hits.Load(), err)
	}
	example, err := w.v.guest.instantiate(t.Context(), newSpace(), zeros{}, w.time())
	if err != nil {
		t.Fatal(err)
	}
	defer example.close()
	for _, op := range []wire.Op{wire.OpConfigure, wire.OpPlan} {
		if _, err := w.call(t.Context(), example, op, head, longCall); err != nil || hits.Load() != 1 {
			t.Errorf("%s of an example: %d requests, %v", op, hits.Load(), err)
		}
	}
}

// A hook whose input is as long as the number of plan or configure is none of them.
func TestHostFetchInAlloc(t *testing.T) { // ABI-6
	var hits atomic.Int64
	p, g, manifest, url := upstream(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	w := newWorld(t, p, g, forwarder{function: "http_fetch", manifest: manifest, inAlloc: true})
	head := input(8, append([]any{`{"url":"` + url + `"}`}, dst(500)...))
	for _, op := range []wire.Op{wire.OpPlan, wire.OpConfigure} {
		in := w.fresh(w.v)
		in.size = 0
		if !in.memory.Write(inputAt, head) {
			t.Fatal("no room")
		}
		denied := w.v.counters.read().Denied
		if _, err := w.call(t.Context(), in, wire.OpClassify, make([]byte, op), longCall); err != nil {
			t.Fatal(err)
		}
		if hits.Load() != 0 || w.v.counters.read().Denied != denied+1 {
			t.Errorf("%d bytes: %d requests, %d denied", op, hits.Load(), w.v.counters.read().Denied-denied)
		}
	}
}

func TestHostFetchIsSentOnce(t *testing.T) { // ABI-6: a buffer that is too small
	var hits atomic.Int64
	p, g, manifest, url := upstream(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "answer %d", hits.Add(1)) })
	ask := `{"method":"POST","url":"` + url + `"}`
	w := newWorld(t, p, g, forwarder{function: "http_fetch", manifest: manifest, calls: 2})
	pair := func(second string) []byte {
		out, err := w.call(t.Context(), w.in, wire.OpPlan, input(16+500, []any{ask, outputAt + 16, 4}, []any{second, outputAt + 16, 500}), longCall)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := pair(ask)
	first, second := code(int64(binary.LittleEndian.Uint64(out))), code(int64(binary.LittleEndian.Uint64(out[8:])))
	if first != -3 || second < 0 || !strings.Contains(string(out[16:16+max(second, 0)]), "answer 1") || hits.Load() != 1 {
		t.Errorf("%d, %d, %q; %d requests", first, second, out[16:], hits.Load())
	}
	if pair(`{"url":"` + url + `/2"}`); hits.Load() != 3 {
		t.Errorf("another request got the answer of the one before: %d requests", hits.Load())
	}
	if pair(ask); hits.Load() != 4 {
		t.Errorf("another call got an answer of the one before: %d requests", hits.Load())
	}
}

func TestHostFetchEndsWithTheCall(t *testing.T) { // ABI-6, ABI-8
	began := make(chan struct{}, 2)
	p, g, manifest, url := upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	})
	w := newWorld(t, p, g, forwarder{function: "http_fetch", manifest: manifest})
	args := append([]any{`{"url":"` + url + `"}`}, dst(100)...)
	t.Run("when the client goes away", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		go func() { <-began; stop() }()
		if n, _ := askInstance(ctx, w, w.in, wire.OpPlan, 0, args...); code(n) != -6 {
			t.Errorf("%d", code(n))
		}
	})
	t.Run("before the call's own end", func(t *testing.T) {
		out, err := w.call(t.Context(), w.in, wire.OpPlan, input(8, args), time.Second)
		if err != nil || code(int64(binary.LittleEndian.Uint64(out))) != -5 {
			t.Errorf("%x, %v", out, err)
		}
	})
}

// many is how often one op of the benchmark calls the function.
const many = 200

func manyCalls(t testing.TB, function string) (run func(), in *instance) {
	t.Helper()
	args := map[string][]any{"kv_get": append([]any{strings.Repeat("k", 100)}, dst(100)...), "now_ms": {}}[function]
	w := newWorld(t, Ports{}, grantAll(), forwarder{function: function, calls: many})
	w.v.guest.kv.set(strings.Repeat("k", 100), make([]byte, 100), 0, 1000, w.time())
	calls := make([][]any, many)
	for i := range calls {
		calls[i] = args
	}
	head := input(8*many, calls...)
	if out, err := w.call(t.Context(), w.in, wire.OpClassify, head, longCall); err != nil || binary.LittleEndian.Uint64(out) == 0 {
		t.Fatalf("%x, %v", out, err)
	}
	ctx := context.WithValue(context.Background(), guestKey{}, w.in)
	return func() {
		w.in.fuel.Set(longFuel) // each call of the host costs some
		w.in.stack[0], w.in.stack[1] = uint64(wire.OpClassify), uint64(len(head))
		if err := w.in.run.CallWithStack(ctx, w.in.stack[:]); err != nil {
			t.Fatal(err)
		}
	}, w.in
}

func TestHostFunctionsLeaveNoGarbage(t *testing.T) { // ABI-6
	if slowCompiler {
		t.Skip("the race detector allocates")
	}
	for _, function := range []string{"kv_get", "now_ms"} {
		run, _ := manyCalls(t, function)
		if n := testing.AllocsPerRun(50, run); n > 0 {
			t.Errorf("%d calls of %s allocate %v times", many, function, n)
		}
	}
}

// BenchmarkHostFunctions is what one call of a host function costs a guest, there and back.
func BenchmarkHostFunctions(b *testing.B) {
	for _, function := range []string{"kv_get", "now_ms"} {
		b.Run(function, func(b *testing.B) {
			run, _ := manyCalls(b, function)
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/call")
		})
	}
}
