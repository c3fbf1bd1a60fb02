package plugin

import (
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/plugins"
	"github.com/weirgate/weir/sdk/wire"
)

// BenchmarkHotPath is what each request asks of the plugins: the set, its executor, a static plan, the judge. No guest runs
// and nothing is allocated (PLG-13).
func BenchmarkHotPath(b *testing.B) {
	r := started(b, Options{Builtins: shipped(b)})
	p := &catalog.Provider{ID: "groq", Plugin: "openai-compatible", Executor: "openai-compatible"}
	q := wire.PlanQuery{Provider: "groq", UpstreamModel: "m", Endpoint: "/v1/chat/completions"}
	b.ReportAllocs()
	for b.Loop() {
		s := r.Acquire()
		e, err := s.Executor(p)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := e.Plan(b.Context(), q, wire.AuthAPIKey); err != nil {
			b.Fatal(err)
		}
		s.Judge(p)
		s.Release()
	}
}

// BenchmarkStart is the cost of all shipped packs at start.
func BenchmarkStart(b *testing.B) {
	packs := shipped(b)
	for b.Loop() {
		r := New(Options{Builtins: packs})
		if err := r.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := r.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStartDemo is the start of the demo with its compiled code in the cache.
func BenchmarkStartDemo(b *testing.B) {
	o := Options{Builtins: []Builtin{{Name: "demo", Wasm: plugins.Demo}}, Demo: true, CacheDir: b.TempDir()}
	started(b, o) // fills the cache
	for b.Loop() {
		r := New(o)
		if err := r.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := r.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRespond is one answer of the demo's echo, streamed.
func BenchmarkRespond(b *testing.B) {
	r := started(b, Options{Builtins: []Builtin{{Name: "demo", Wasm: plugins.Demo}}, Demo: true})
	s := r.Acquire()
	defer s.Release()
	e, err := s.Executor(&catalog.Provider{ID: "demo", Plugin: "demo", Executor: "demo"})
	if err != nil {
		b.Fatal(err)
	}
	f := wire.RequestFacts{Provider: "demo", UpstreamModel: "echo", Stream: true, Fields: map[string]wire.Raw{
		"messages.-1.role": wire.Raw(`"user"`), "messages.-1.content": wire.Raw(`"hello world"`)}}
	for b.Loop() {
		if _, err := e.Respond(b.Context(), f); err != nil {
			b.Fatal(err)
		}
	}
}
