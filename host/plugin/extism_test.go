package plugin

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// badExtism is the guest of testdata/extism/bad.c, which does what the first letter of an error's text says.
func badExtism(t testing.TB) source {
	t.Helper()
	b, err := os.ReadFile("testdata/extism/bad.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return source{origin: OriginFolder, file: "bad.wasm", bytes: b}
}

const extismName = "bad-extism"

func extismOptions(log io.Writer) Options {
	return Options{
		Log:      slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Settings: map[string]Settings{extismName: {Limits: Limits{MemoryMiB: 2, WallMS: map[string]int64{"classify": 1000}}, Grants: Grants{KVBytes: 1000, Secrets: Secrets{"token": catalog.NewSecret("s3cret-value")}}}},
	}
}

// ABI-10, ABI-8: what a guest of Extism does wrong costs this call its opinion and the instance, under the same names as for any other
// guest; the next call gets a fresh instance, and no instance is left in a state that hangs the host.
func TestExtismViolations(t *testing.T) {
	o := extismOptions(io.Discard)
	o.CacheDir = t.TempDir() // compiled once
	for _, c := range []struct{ name, text, kind, cause string }{
		{"a loop without end", "s", violationFuel, "classify used up its fuel of 2000000"},
		{"a trap", "t", violationTrap, "unreachable"},
		{"not JSON", "g", violationGarbage, ""},
		{"an unknown word", "z", violationGarbage, ""},
		{"an output of 70000 bytes", "o", violationOutput, "70000 bytes, at most 65536"},
		{"an output outside of its blocks", "p", violationTrap, "not the guest's"},
		{"out of memory", "m", violationMemory, ""},
		{"a kernel that is full", "M", violationMemory, ""},
		{"a block of 2^48 bytes", "a", violationMemory, ""},
		{"proc_exit", "x", violationExit, "code 3"},
		{"proc_exit with 0", "y", violationExit, "code 0"},
		{"Extism's HTTP", "h", violationTrap, "use http_fetch"},
		{"Extism's variables, set", "v", violationTrap, "use kv_set"},
		{"Extism's variables, get", "V", violationTrap, "use kv_get"},
		{"writing over the kernel's list", "c", violationTrap, "not the guest's"},
		{"writing over the end of a block", "C", violationTrap, "not the guest's"},
		{"writing into a block that the log freed", "F", violationTrap, "not the guest's"},
		{"more blocks than anybody needs", "b", violationTrap, "more than 1024 blocks"},
		{"its own error", "e", violationTrap, "my own words"},
		{"a log line that is no block", "L", violationTrap, "not the guest's"},
		{"words on stderr", "w", violationTrap, "unreachable"},
		{"a write without end", "W", violationTrap, "fd_write"},
	} {
		t.Run("ABI-10 "+c.name, func(t *testing.T) {
			r, s := setOf(t, o, badExtism(t))
			for range 2 {
				if v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 503, c.text)); ok {
					t.Fatalf("it decided %+v", v)
				}
			}
			if got := r.counts[extismName].read(); got.Violations[c.kind] != 2 || len(got.Violations) != 1 {
				t.Errorf("violations %v, want 2 of %s", got.Violations, c.kind)
			}
			last := firstOf(r).Violation
			if last == nil || last.Op != "classify" || !strings.Contains(last.Cause, c.cause) || c.text == "w" && last.Stderr != "said on stderr" {
				t.Errorf("the last violation is %+v", last)
			}
			if v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 503, "?")); !ok || v.Message != "7" {
				t.Errorf("afterwards it says %+v", v)
			}
		})
	}
	t.Run("ABI-8 calls of the host that never end", func(t *testing.T) {
		r, s := setOf(t, o, badExtism(t))
		began := time.Now()
		if v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 503, "k")); ok {
			t.Errorf("it decided %+v", v)
		}
		got := r.counts[extismName].read().Violations
		if took := time.Since(began); got[violationDeadline]+got[violationFuel] != 1 || took > 10*time.Second {
			t.Errorf("%v after %s", got, took)
		}
	})
}

// ABI-8: five violations within a minute put it into quarantine.
func TestExtismQuarantine(t *testing.T) { // ABI-10, PLG-5
	r, s := setOf(t, extismOptions(io.Discard), badExtism(t))
	for range 5 {
		judge(s, "acme").Classify(t.Context(), failed("acme", "m", 503, "t"))
	}
	if st := firstOf(r); st.State != StateQuarantined || st.Loader != "extism" {
		t.Errorf("%s by the loader %s", st.State, st.Loader)
	}
}

// ABI-10, ABI-6: the host functions with handles of blocks in place of pointers.
func TestExtismHostFunctions(t *testing.T) {
	counted := map[string]float64{}
	var log bytes.Buffer
	o := extismOptions(&log)
	o.Ports.Count = func(plugin, name string, n float64) { counted[plugin+"."+name] += n }
	r, s := setOf(t, o, badExtism(t))
	for _, c := range []struct{ name, text, message string }{
		{"random of 16", "r", "16"},
		{"random of too many", "R", "-3"},
		{"kv_get of nothing, kv_set, kv_get", "K", "0value"},
		{"kv_set of an empty value", "E", ""},
		{"kv_add", "+", "5"},
		{"kv_add again, by any instance", "+", "10"},
		{"secret_ready of its own and of another", "S", "8"}, // 1 and -2
		{"metric, and one with a bad name", "#", "-4"},       // 0 and -4
		{"cancelled", "q", "0"},
		{"http_fetch in an operation that may not wait", "f", "-2"},
		{"Extism's own configuration is empty", "G", "0"},
		{"reset of the kernel", "d", "1"},
	} {
		t.Run("ABI-6 "+c.name, func(t *testing.T) {
			v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 503, c.text))
			if c.message != "" && (!ok || v.Message != c.message) {
				t.Errorf("%v %q, want %q; last violation %+v", ok, v.Message, c.message, firstOf(r).Violation)
			}
		})
	}
	t.Run("ABI-1 no opinion", func(t *testing.T) {
		if v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 503, "0")); ok {
			t.Errorf("%+v", v)
		}
	})
	t.Run("ABI-6 log, its own and the PDK's", func(t *testing.T) {
		judge(s, "acme").Classify(t.Context(), failed("acme", "m", 503, "l"))
		for _, want := range []string{`level=INFO msg="by the PDK"`, "level=ERROR msg=badly", `level=WARN msg="by the host"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %s in %s", want, &log)
			}
		}
	})
	if counted[extismName+".seen"] != 2 || len(counted) != 1 {
		t.Errorf("metrics %v", counted)
	}
	if n := r.counts[extismName].read().Denied; n != 2 {
		t.Errorf("%d times denied, want 2", n)
	}
}

// ABI-10, ABI-13, PLG-12: http_fetch goes through the host's own client: the granted host is reached, another is denied, and
// so is a redirect to a private address.
func TestExtismFetch(t *testing.T) {
	var redirect atomic.Bool
	p, _, _, url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if redirect.Load() {
			http.Redirect(w, r, "https://127.0.0.1:1/private", http.StatusFound)
			return
		}
		fmt.Fprint(w, "hello")
	})
	place := strings.TrimPrefix(url, "https://")
	src := badExtism(t)
	src.bytes = naming(t, src.bytes, place)
	ask := func(g Grants) string {
		_, s := setOf(t, Options{Ports: p, Settings: map[string]Settings{extismName: {Grants: g}}}, src)
		said := ""
		err := s.byName[extismName].v.guest.call(t.Context(), wire.OpPlan, []byte("{}"), func(out []byte) error {
			said = string(out)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return said
	}
	granted := Grants{HTTPHosts: []string{place}, HTTPPrivate: []string{place}}
	if said := ask(granted); !regexp.MustCompile(`"got [1-9][0-9]+ and -2"`).MatchString(said) {
		t.Errorf("with the grant: %s", said)
	}
	if said := ask(Grants{HTTPHosts: []string{place}}); !strings.Contains(said, `"got -2 and -2"`) {
		t.Errorf("a private address that was not granted: %s", said)
	}
	if said := ask(Grants{}); !strings.Contains(said, `"got -2 and -2"`) {
		t.Errorf("without a grant: %s", said)
	}
	redirect.Store(true)
	if said := ask(granted); !strings.Contains(said, `"got -2 and -2"`) {
		t.Errorf("a redirect to a private address: %s", said)
	}
}

// naming is the guest with another host in place of api.acme.example, wherever that stands.
func naming(t *testing.T, wasm []byte, host string) []byte {
	t.Helper()
	const old = "api.acme.example"
	if len(host) > len(old) {
		t.Fatalf("%s is longer than %s", host, old)
	}
	// The manifest and the requests are C strings of fixed lengths: blanks after a name do not change JSON outside of strings,
	// so each is cut where its string ends.
	for _, after := range []string{`"]`, `/quota"}`, `/"}`} {
		wasm = bytes.ReplaceAll(wasm, []byte(old+after), []byte(host+after+strings.Repeat(" ", len(old)-len(host))))
	}
	return wasm
}

// ABI-10, ABI-7, ABI-13: generations that replace each other under load fail no call, and leave neither goroutines nor compiled
// code nor memory. Without the race detector they are compiled, and there are more.
func TestReloadExtism(t *testing.T) {
	o, reloads := extismOptions(io.Discard), 60
	if slowCompiler {
		o.Interpret, reloads = true, 9
	}
	r := loaded(t, o, badExtism(t))
	before := measure(t)
	var stop, failures = make(chan struct{}), make(chan string, 1)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := r.Acquire()
				if v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 503, "?")); !ok || v.Message != "7" {
					select {
					case failures <- fmt.Sprintf("%+v", v):
					default:
					}
				}
				s.Release()
			}
		})
	}
	var third load
	src := badExtism(t)
	for i := range reloads {
		v, f := r.loader().load(t.Context(), source{origin: OriginFolder, file: src.file, bytes: padded(src.bytes, i)})
		if f != nil {
			t.Fatal(f)
		}
		r.settle(r.slot(src.origin, src.file, 0), v.digest, v, nil, true)
		if i == reloads/3 {
			third = measure(t)
		}
	}
	close(stop)
	wg.Wait()
	select {
	case f := <-failures:
		t.Errorf("a call failed: %s", f)
	default:
	}
	end := measure(t)
	for range 100 { // versions close when their last call is done
		if end.goroutines <= before.goroutines {
			break
		}
		time.Sleep(10 * time.Millisecond)
		end = measure(t)
	}
	if end.goroutines > before.goroutines || end.descriptors > before.descriptors+2 || end.memory > third.memory+16<<20 {
		t.Errorf("%+v before, %+v after a third of %d reloads, %+v after all", before, third, reloads, end)
	}
}

// padded is the module with another digest.
func padded(wasm []byte, n int) []byte {
	name := fmt.Sprint("pad", n)
	return part(slices.Clone(wasm), 0, append(text(name), byte(n)))
}

// ABI-10: fuel is in the code, so that a limit of the operator's or the plugin's compiles it anew; examples have their own.
func TestExtismBudgets(t *testing.T) {
	o := extismOptions(io.Discard)
	set := o.Settings[extismName]
	set.Limits.Fuel = map[string]int64{"classify": 12_345}
	o.Settings = map[string]Settings{extismName: set, "another": {Limits: Limits{Fuel: map[string]int64{"classify": 3_000_000}}}}
	r, s := setOf(t, o, badExtism(t))
	judge(s, "acme").Classify(t.Context(), failed("acme", "m", 503, "s"))
	if last := firstOf(r).Violation; last == nil || last.Kind != violationFuel || !strings.Contains(last.Cause, "12345") {
		t.Errorf("%+v", last)
	}
	in, err := s.byName[extismName].v.guest.instantiate(t.Context(), newSpace(), zeros{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	_, err = in.within(t.Context(), wire.OpClassify, opExample, []byte(`{"status":503,"text":"s"}`), time.Now(), time.Now().Add(time.Minute))
	if err == nil || !strings.Contains(err.Error(), "fuel of 20000000") {
		t.Errorf("an example ends with %v", err)
	}
}

// ABI-10: on_event is not offered, also to a guest that exports it.
func TestExtismEvents(t *testing.T) {
	_, s := setOf(t, extismOptions(io.Discard), badExtism(t))
	g := s.byName[extismName].v.guest
	if err := g.call(t.Context(), wire.OpEvent, []byte("x"), func(out []byte) error {
		if out != nil {
			return fmt.Errorf("it answered %q", out)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// ABI-10, PLG-14: what the loader refuses, before anything is compiled.
func TestExtismRefused(t *testing.T) {
	good := badExtism(t).bytes
	swap := func(from, to string) []byte {
		b := bytes.Replace(good, []byte(from), []byte(to), 1)
		if bytes.Equal(b, good) || len(b) != len(good) {
			t.Fatalf("no %s in the guest, or %s has another length", from, to)
		}
		return b
	}
	for _, c := range []struct {
		name       string
		bytes      []byte
		step, code string
		says       string
	}{
		{"ABI-10 a function that the kernel has not", swap("input_length", "input_lengtX"), StepPrecheck, CodeUnknownImport, "needs extism:host/env.input_lengtX"},
		{"ABI-10 a host function that there is not", swap("secret_ready", "secret_value"), StepPrecheck, CodeUnknownImport, "needs extism:host/user.secret_value, host has ABI 1.0"},
		{"ABI-10 a host function of another type", swap("cancelled", "now_ms\x00\x00\x00"), StepPrecheck, CodeUnknownImport, "now_ms"},
		{"ABI-10 a function of WASI that there is not", swap("fd_write", "fd_wrote"), StepPrecheck, CodeUnknownImport, "needs wasi_snapshot_preview1.fd_wrote"},
		{"ABI-10 no weir_describe", swap("weir_describe", "weir_describX"), StepPrecheck, CodeMissingExport, "weir_describe"},
		{"ABI-7 its own fuel", swap("weir_on_event", "weir_fuel_set"), "", "", ""}, // no such name is taken
		{"ABI-7 cut off", good[:len(good)/2], StepPrecheck, CodeMalformed, "damaged"},
		{"ABI-1 that does not start as one", swap("_initialize", "_initialisX"), StepDescribe, CodeDescribe, "describe answered nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, f := loadFile(t, Options{}, "a.wasm", c.bytes)
			switch {
			case c.code == "" && f != nil:
				t.Error(f)
			case c.code != "" && (f == nil || f.Step != c.step || f.Code != c.code || !strings.Contains(f.Message, c.says)):
				t.Error(f)
			}
		})
	}
}

// ABI-10, ABI-7 step 4: what a child leaves in the cache is what the gateway then looks for, so that the gateway compiles no guest.
func TestExtismInAChild(t *testing.T) {
	dir, wasm := t.TempDir(), badExtism(t).bytes
	o := Options{Compile: CompileInChild, Child: child(t, ""), CacheDir: dir}
	v, f := loadFile(t, o, "a.wasm", wasm)
	if f != nil {
		t.Fatal(f)
	}
	l := New(o).loader()
	outline, f := precheck(wasm, l.widest)
	if f != nil {
		t.Fatal(f)
	}
	metered, _, f := l.meter(wasm, outline, l.widest)
	if f != nil {
		t.Fatal(f)
	}
	alone := t.TempDir()
	if f := l.compileApart(t.Context(), metered, alone); f != nil {
		t.Fatal(f)
	}
	left, err := filepath.Glob(filepath.Join(alone, "*", "*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("the child left %v, %v", left, err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, v.code, "*", filepath.Base(left[0]))); len(found) != 1 {
		t.Error("the gateway does not use what the child has compiled")
	}
}

// ABI-10: a function above 64 KiB, as interpreters have them, needs the operator's body_kib and a process of its own to compile in.
func TestExtismLargeBody(t *testing.T) {
	body := append(append([]byte{0}, bytes.Repeat([]byte{0x01}, 70<<10)...), 0x41, 0, 0x0b) // nothing, 70,000 times
	wasm := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	wasm = part(wasm, 1, vec([]byte{0x60, 1, 0x7e, 1, 0x7e}, []byte{0x60, 0, 1, 0x7f}))
	wasm = part(wasm, 2, vec(append(append(text("extism:host/env"), text("alloc")...), 0, 0)))
	wasm = part(wasm, 3, []byte{1, 1})
	wasm = part(wasm, 5, []byte{1, 0, 1})
	wasm = part(wasm, 7, vec(append(text("weir_describe"), 0, 1), append(text("memory"), 2, 0)))
	wasm = part(wasm, 10, vec(append(number(uint64(len(body))), body...)))
	raised := map[string]Settings{"interpreter": {Limits: Limits{BodyKiB: 128}}}
	for _, c := range []struct {
		name string
		o    Options
		code string
		says string
	}{
		{"as it is", Options{}, CodeModuleLimit, "at most 65536"},
		{"raised, in this process", Options{Settings: raised}, "body_too_large", "plugins.compile to child"},
		{"raised, in a child", Options{Settings: raised, Compile: CompileInChild, Child: child(t, "")}, CodeDescribe, "answered nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, f := loadFile(t, c.o, "a.wasm", wasm); f == nil || f.Code != c.code || !strings.Contains(f.Message, c.says) {
				t.Error(f)
			}
		})
	}
}
