package plugin

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// setOf is a set of the sources, which must load.
func setOf(t testing.TB, o Options, sources ...source) (*Runtime, *Set) {
	t.Helper()
	r := loaded(t, o, sources...)
	s := r.Acquire()
	t.Cleanup(s.Release)
	return r, s
}

// loaded is a runtime with the sources.
func loaded(t testing.TB, o Options, sources ...source) *Runtime {
	t.Helper()
	r := New(o)
	for i, src := range sources {
		v, f := r.loader().load(t.Context(), src)
		if f != nil {
			t.Fatalf("source %d: %v", i, f)
		}
		r.settle(r.slot(src.origin, src.file, i), digestOf(src.bytes), v, nil, true)
		if f := r.slot(src.origin, src.file, i).fault; f != nil {
			t.Fatalf("source %d: %v", i, f)
		}
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func thirdParty(yaml string) source {
	return source{origin: OriginFolder, file: yaml[:min(20, len(yaml))], yaml: true, bytes: []byte(yaml)}
}

func builtin(yaml string) source {
	s := thirdParty(yaml)
	s.origin = OriginBuiltin
	return s
}

func guestFile(m module) source {
	return source{origin: OriginFolder, file: "guest.wasm", bytes: m.wasm()}
}

func failed(provider, model string, status int, body string) *rules.Reply {
	r := &rules.Reply{Provider: provider, Model: model, Endpoint: "/v1/chat/completions", Source: wire.SourceHTTP, Status: status, Original: status,
		Body: []byte(body), Header: http.Header{"Retry-After": {"7"}, "Authorization": {"Bearer x"}, "X-Other": {"y"}}, Now: time.Unix(1790000000, 0)}
	rules.Read(r)
	return r
}

func judge(s *Set, provider string) *Judge { return s.Judge(&catalog.Provider{ID: provider}) }

// A hook that breaks a rule costs this call its opinion and the instance, and nothing else: the next source is asked, the
// next call gets a fresh instance (RUL-13, SCN-19, the rows of ABI-8 that need no metering).
func TestViolations(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		m          module
	}{
		{"ABI-8 a loop without end", violationFuel, module{call: codeSpin}},
		{"ABI-8 a trap", violationTrap, module{call: codeTrap}},
		{"ABI-8 out of memory", violationMemory, module{call: codeGrow}},
		{"ABI-8 a bad pointer", violationGarbage, module{call: place(1<<31, 100)}},
		{"ABI-8 an output of 1 GB", violationOutput, module{call: place(16, 1<<30)}},
		{"ABI-8 an output of 65537 bytes", violationOutput, module{call: place(16, 65537)}},
		{"ABI-8 not JSON", violationGarbage, module{answer: "hello"}},
		{"ABI-8 a wrong type", violationGarbage, module{answer: `{"reason":7}`}},
		{"ABI-8 an unknown word", violationGarbage, module{answer: `{"reason":"bogus"}`}},
		{"ABI-8 proc_exit", violationExit, module{call: codeExit, imports: []string{"!wasi_snapshot_preview1.proc_exit"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.m.manifest = strings.Replace(hookManifest, `"hooks"`, `"limits":{"memory_mib":1},"hooks"`, 1)
			r, s := setOf(t, Options{}, guestFile(c.m),
				builtin("name: last\nversion: 1.0.0\nkinds: [classifier]\nrules:\n- {id: r, status: [403], then: {reason: overloaded}}\n"))
			for range 2 {
				v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 403, `{"error":"no"}`))
				if !ok || v.Plugin != "last" || v.Reason != wire.Overloaded {
					t.Fatalf("verdict %+v, want that of the next source", v)
				}
			}
			got := r.counts["acme"].read()
			if got.Violations[c.kind] != 2 || len(got.Violations) != 1 {
				t.Errorf("violations %v, want 2 of %s", got.Violations, c.kind)
			}
		})
	}
}

func TestHookAnswers(t *testing.T) { // ABI-1, ABI-4
	t.Run("no opinion", func(t *testing.T) {
		r, s := setOf(t, Options{}, guestFile(module{manifest: hookManifest}))
		if v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 500, "x")); ok {
			t.Errorf("verdict %+v", v)
		}
		if c := r.counts["acme"].read(); c.NoOpinion != 1 || len(c.Violations) != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("declined", func(t *testing.T) {
		r, s := setOf(t, Options{}, guestFile(module{manifest: hookManifest, answer: `{"error":{"code":"unsupported","message":"no"}}`}))
		if v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 500, "x")); ok {
			t.Errorf("verdict %+v", v)
		}
		if c := r.counts["acme"].read(); c.Declined != 1 || len(c.Violations) != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("RUL-14 terminal without the grant", func(t *testing.T) {
		_, s := setOf(t, Options{}, guestFile(module{manifest: hookManifest, answer: `{"reason":"banned","terminal":true}`}))
		v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 403, "x"))
		if !ok || v.Terminal || v.Reason != wire.ReasonBanned || v.Evidence() != "acme/classify" || v.Digest == "" {
			t.Errorf("verdict %+v", v)
		}
	})
	t.Run("RUL-14 terminal with it", func(t *testing.T) {
		asks := strings.Replace(hookManifest, `"hooks"`, `"permissions":{"terminate":{"reason":"r"}},"hooks"`, 1)
		o := Options{Settings: map[string]Settings{"acme": {Grants: Grants{Terminate: true}}}}
		_, s := setOf(t, o, guestFile(module{manifest: asks, answer: `{"reason":"banned","terminal":true}`}))
		if v, _ := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 403, "x")); !v.Terminal || v.SetStatus != wire.Banned {
			t.Errorf("verdict %+v", v)
		}
	})
	t.Run("restate", func(t *testing.T) {
		m := strings.NewReplacer("classifier", "restatement", `"classify"`, `"restate"`).Replace(hookManifest)
		_, s := setOf(t, Options{}, guestFile(module{manifest: m, answer: `{"status":429,"code":"c","retry_after_ms":5}`}))
		j := judge(s, "acme")
		if x, ok := j.Restate(t.Context(), failed("acme", "m", 403, "x")); !ok || x.Status != 429 || x.RetryAfter != 5*time.Millisecond || x.Plugin != "acme" {
			t.Errorf("restatement %+v", x)
		}
		if x, ok := j.Restate(t.Context(), failed("acme", "m", 403, "")); ok {
			t.Errorf("RST-10: an empty body is restated to %+v", x)
		}
	})
}

func TestHookInput(t *testing.T) { // ABI-2, ABI-4
	r := failed("acme", "acme/large", 403, `{"error":{"code":"quota","message":"used up"}}`+strings.Repeat("é", 3000))
	in := string(hookInput(r, wire.Needs{ErrorText: "prefix", Headers: []string{"retry-after", "auth*"}}, wire.Raw(`{"a":1}`), r.Now))
	for _, want := range []string{`"provider":"acme"`, `"retry-after":"7"`, `"text_truncated":true`, `"config":{"a":1}`, `"now_ms":1790000000000`, `"code":"quota"`} {
		if !strings.Contains(in, want) {
			t.Errorf("no %s in %.300s", want, in)
		}
	}
	for _, not := range []string{"Bearer", "x-other"} {
		if strings.Contains(in, not) {
			t.Errorf("%s is passed", not)
		}
	}
	if len(in) > 6000 {
		t.Errorf("%d bytes are passed, though only 4 KiB of text are declared", len(in))
	}
	if none := string(hookInput(r, wire.Needs{ErrorText: "none"}, nil, r.Now)); strings.Contains(none, "éé") {
		t.Error("text is passed that was not declared")
	}
}

func TestPoolUnderLoad(t *testing.T) { // ABI-1, ABI-7
	r, s := setOf(t, Options{}, guestFile(module{manifest: hookManifest, answer: `{"reason":"overloaded"}`}))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				if err := s.byName["acme"].v.guest.call(t.Context(), wire.OpClassify, []byte("{}"), func([]byte) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if p := &s.byName["acme"].v.guest.pool; p.free() > p.size || p.free() == 0 {
		t.Errorf("%d idle instances, at most %d may exist", p.free(), p.size)
	}
	if c := r.counts["acme"].read(); c.Calls != 320 || len(c.Violations) != 0 {
		t.Errorf("%+v", c)
	}
}
