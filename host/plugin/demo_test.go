package plugin

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/plugins"
	"github.com/weirgate/weir/sdk/wire"
)

func demoBuiltin() Builtin { return Builtin{Name: "demo", Wasm: plugins.Demo, DemoOnly: true} }

// started is a runtime that is closed when the test ends.
func started(t testing.TB, o Options) *Runtime {
	t.Helper()
	r := New(o)
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error("close:", err)
		}
	})
	return r
}

func TestDemo(t *testing.T) { // OBJ-26
	r := started(t, Options{Builtins: []Builtin{demoBuiltin()}, CacheDir: t.TempDir(), Demo: true, Interpret: true})
	for _, s := range r.List() {
		if s.Fault != nil || s.State != StateActive || s.Loader != loaderRaw {
			t.Fatalf("%+v", s)
		}
		b, _ := json.Marshal(s)
		t.Logf("%s", b)
	}
	s := r.Acquire()
	defer s.Release()
	e, err := s.Executor(&catalog.Provider{ID: "demo", Plugin: "demo", Executor: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	a, err := e.Respond(t.Context(), wire.RequestFacts{Provider: "demo", UpstreamModel: "echo", Connection: wire.PlanConnection{ID: "demo-a"},
		Fields: map[string]wire.Raw{"messages.-1.role": wire.Raw(`"user"`), "messages.-1.content": wire.Raw(`"héllo"`)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %v", a.Body, time.Since(begin))
	v := s.plugins[0]
	if f := v.examples(t.Context()); f != nil {
		t.Fatal(f)
	}
}
