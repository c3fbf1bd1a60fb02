package plugin

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/plugins"
	"github.com/weirgate/weir/sdk/wire"
)

// soak is how many reloads of a Go guest make soak wants, 0 in the suite: the long forms of the tests below take minutes.
var soak, _ = strconv.Atoi(os.Getenv("WEIR_SOAK"))

// variant is the demo guest with another text in its data, so that it must be compiled anew.
func variant(t testing.TB, i int) []byte {
	t.Helper()
	const text = "answers a used-up quota"
	if !bytes.Contains(plugins.Demo, []byte(text)) {
		t.Fatal("the demo has no such text any more; name another one of its data")
	}
	return bytes.ReplaceAll(plugins.Demo, []byte(text), fmt.Appendf(nil, "answers a %07d quota", i))
}

var demoGrants = map[string]Settings{"demo": {Grants: Grants{KVBytes: 1 << 20}}}

// load is what a process holds.
type load struct {
	goroutines, descriptors int
	memory                  int64 // bytes, with what is mapped for code
}

func measure(t testing.TB) load {
	t.Helper()
	debug.FreeOSMemory() // collects, and gives back what is free: the second time also what finalizers let go
	debug.FreeOSMemory()
	l := load{goroutines: runtime.NumGoroutine()}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return l // no such thing here; the collector's view of memory is not enough to judge by
	}
	l.descriptors = len(fds)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	l.memory = pages * int64(os.Getpagesize())
	return l
}

// Reloads under load fail no call and leave nothing behind (ABI-7, ABI-13, PLG-3). Make soak reloads a Go guest that is another one
// each time; the suite a small one.
func TestReloadsUnderLoad(t *testing.T) {
	reloads, name := 20, "acme"
	guest := func(i int) []byte { return module{manifest: hookManifest, pages: uint64(4 + i%16)}.wasm() }
	call := func(s *Set) error {
		return s.byName["acme"].v.guest.call(t.Context(), wire.OpClassify, []byte("{}"), func([]byte) error { return nil })
	}
	if soak > 0 {
		reloads, name, call = soak, "demo", func(s *Set) error { return respond(t, s) }
		guest = func(i int) []byte { return variant(t, i) }
	}
	patient := Settings{Limits: Limits{WallMS: map[string]int64{"classify": 1000}}} // 16 goroutines and other tests share the machine
	o := Options{CacheDir: t.TempDir(), Settings: map[string]Settings{"demo": demoGrants["demo"], "acme": patient}}
	r := loaded(t, o)
	put := func(i int) {
		src := source{origin: OriginFolder, file: "guest.wasm", bytes: guest(i)}
		v, f := r.loader().load(t.Context(), src)
		if f != nil {
			t.Fatal(f)
		}
		r.settle(r.slot(OriginFolder, src.file, 0), v.digest, v, nil, true)
		r.prune()
	}
	put(0)
	calls, stop := busyWith(t, r, call)
	defer stop()
	var half load
	for i := 1; i <= reloads; i++ {
		put(i)
		if i == reloads/2 {
			half = measure(t)
		}
		if i%10 == 0 {
			t.Logf("%d reloads, %d calls: %+v", i, calls.Load(), measure(t))
		}
	}
	end := measure(t)
	stop()
	if c := r.counts[name].read(); len(c.Violations) != 0 || c.Busy != 0 || calls.Load() < int64(reloads) {
		t.Errorf("%+v", c)
	}
	flat(t, half, end)
	if entries, err := os.ReadDir(o.CacheDir); err != nil || len(entries) != 1 {
		t.Errorf("the cache holds %d modules, one is in force; %v", len(entries), err)
	}
}

func respond(t testing.TB, s *Set) error {
	e, err := s.Executor(&catalog.Provider{ID: "demo", Plugin: "demo", Executor: "demo"})
	if err != nil {
		return err
	}
	a, err := e.Respond(t.Context(), wire.RequestFacts{Provider: "demo", UpstreamModel: "echo", Stream: true, Fields: map[string]wire.Raw{
		"messages.-1.role": wire.Raw(`"user"`), "messages.-1.content": wire.Raw(`"hello world"`)}})
	if err == nil && a.Status != 200 {
		err = fmt.Errorf("status %d", a.Status)
	}
	return err
}

// busyWith has 16 goroutines call without pause, each time on the set in force, until stop.
func busyWith(t testing.TB, r *Runtime, call func(s *Set) error) (calls *atomic.Int64, stop func()) {
	calls = &atomic.Int64{}
	var over atomic.Bool
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for !over.Load() && !t.Failed() {
				s := r.Acquire()
				err := call(s)
				s.Release()
				if err != nil {
					t.Error("a call failed:", err)
				}
				calls.Add(1)
			}
		})
	}
	return calls, func() { over.Store(true); wg.Wait() }
}

// flat compares the second half of a run with the first.
func flat(t testing.TB, half, end load) {
	t.Helper()
	if end.goroutines > half.goroutines+4 || end.descriptors > half.descriptors+4 {
		t.Errorf("goroutines or descriptors grow: %+v at half, %+v at the end", half, end)
	}
	if end.memory > half.memory+half.memory/4+32<<20 {
		t.Errorf("memory grows: %d MiB at half, %d MiB at the end", half.memory>>20, end.memory>>20)
	}
}

// A Go guest that allocates lives in 32 MiB for ever: the sdk lets its collector run (ABI-12, ABI-13). Make soak calls it a million
// times.
func TestAllocatingGuest(t *testing.T) {
	n := 20_000
	switch {
	case soak > 0:
		n = 5_000 * soak
	case slowCompiler:
		n = 40
	}
	r := loaded(t, Options{Settings: demoGrants}, source{origin: OriginFolder, file: "demo.wasm", bytes: plugins.Demo})
	s := r.Acquire()
	defer s.Release()
	most := int64(0)
	for i := range n {
		if err := respond(t, s); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		st := firstOf(r)
		most = max(most, st.MemoryBytes/int64(max(st.Instances, 1)))
	}
	st := firstOf(r)
	t.Logf("%d calls, an instance had at most %d KiB", n, most>>10)
	if most > 32<<20 || most == 0 || len(st.Counters.Violations) != 0 || st.Counters.Calls != int64(n) {
		t.Errorf("%d bytes, %+v", most, st.Counters)
	}
}
