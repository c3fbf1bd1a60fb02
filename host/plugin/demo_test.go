package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/plugins"
	"github.com/weirgate/weir/sdk/wire"
)

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

// demo is the demo provider as a client of its executor sees it, with a clock.
type demo struct {
	*testing.T
	now atomic.Int64
	s   *Set
	e   *Executor
}

func newDemo(t *testing.T) (*demo, *Runtime) {
	d := &demo{T: t}
	d.now.Store(1_790_000_000_500)
	r := started(t, Options{
		Builtins: []Builtin{{Name: "demo", Wasm: plugins.Demo, DemoOnly: true}}, Demo: true, Interpret: true,
		Now: func() time.Time { return time.UnixMilli(d.now.Load()) },
	})
	if st := r.List()[0]; st.Fault != nil || st.State != StateActive || st.Loader != loaderRaw {
		t.Fatalf("%+v", st)
	}
	d.s = r.Acquire()
	t.Cleanup(d.s.Release)
	var err error
	if d.e, err = d.s.Executor(&catalog.Provider{ID: "demo", Plugin: "demo", Executor: "demo"}); err != nil {
		t.Fatal(err)
	}
	return d, r
}

func (d *demo) ask(model, connection string, change ...func(*wire.RequestFacts)) *wire.Answer {
	d.Helper()
	f := wire.RequestFacts{Provider: "demo", Model: "demo/" + model, UpstreamModel: model, Endpoint: "/v1/chat/completions",
		Connection: wire.PlanConnection{ID: connection}, NowMS: d.now.Load(),
		Fields: map[string]wire.Raw{"messages.-1.role": wire.Raw(`"user"`), "messages.-1.content": wire.Raw(`"hello my \"wörld\""`)}}
	for _, c := range change {
		c(&f)
	}
	a, err := d.e.Respond(d.Context(), f)
	if err != nil {
		d.Fatal(err)
	}
	return a
}

type chat struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Message, Delta struct{ Role, Content string }
		FinishReason   *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	Error struct{ Message, Type, Code string }
}

func (d *demo) read(b []byte) (c chat) {
	d.Helper()
	if err := json.Unmarshal(b, &c); err != nil {
		d.Fatalf("%v in %s", err, b)
	}
	return c
}

func stream(f *wire.RequestFacts) { f.Stream = true }

func TestDemo(t *testing.T) { // OBJ-26
	t.Parallel()
	d, r := newDemo(t)
	const said = `hello my "wörld"` // 17 bytes
	t.Run("OBJ-26 the plan", func(t *testing.T) {
		p, err := d.e.Plan(t.Context(), wire.PlanQuery{Provider: "demo", UpstreamModel: "echo", Endpoint: "/v1/chat/completions"}, wire.AuthLocal)
		if err != nil || p.Upstream != "none" || p.Dialect != wire.OpenAIChat {
			t.Fatalf("%+v, %v", p, err)
		}
		entry := d.s.Described()[0].Providers[0]
		var models []string
		for _, m := range entry.Models {
			models = append(models, m.ID)
		}
		if entry.Auth != wire.AuthLocal || entry.Category != "apikey" || fmt.Sprint(models) != "[echo slow flaky limited misstating]" {
			t.Errorf("%+v", entry)
		}
	})
	t.Run("OBJ-26 echo", func(t *testing.T) {
		a := d.ask("echo", "demo-a")
		c := d.read(a.Body)
		if a.Status != 200 || c.Object != "chat.completion" || c.Created != 1_790_000_000 || len(c.Choices) != 1 || c.Choices[0].Message.Content != said ||
			c.Choices[0].Message.Role != "assistant" || *c.Choices[0].FinishReason != "stop" || c.Usage.Completion != 5 || c.Usage.Total != c.Usage.Prompt+5 {
			t.Errorf("%s", a.Body)
		}
		parts := func(f *wire.RequestFacts) {
			f.Fields["messages.-1.role"], f.Fields["messages.-1.content"] = wire.Raw(`"tool"`), wire.Raw(`"42"`)
			f.Fields["messages.-2.role"] = wire.Raw(`"user"`)
			f.Fields["messages.-2.content"] = wire.Raw(`[{"type":"text","text":"from "},{"type":"image_url"},{"type":"text","text":"before"}]`)
		}
		if c := d.read(d.ask("echo", "demo-a", parts).Body); c.Choices[0].Message.Content != "from before" {
			t.Errorf("the last text of the user: %+v", c)
		}
	})
	t.Run("INF-21 a stream", func(t *testing.T) {
		usage := func(f *wire.RequestFacts) { f.Fields["stream_options.include_usage"] = wire.Raw("true") }
		a := d.ask("echo", "demo-a", stream, usage)
		text, n := "", len(a.Events)
		if n != 7 || a.Events[n-1].Data != "[DONE]" { // role, three words, finish, usage
			t.Fatalf("%d events: %+v", n, a.Events)
		}
		first := d.read([]byte(a.Events[0].Data))
		for i, e := range a.Events[:n-1] {
			c := d.read([]byte(e.Data))
			if c.ID != first.ID || c.ID == "" || c.Created != first.Created || c.Model != first.Model || c.Object != "chat.completion.chunk" || e.Event != "" || e.DelayMS != 0 {
				t.Errorf("event %d: %s", i, e.Data)
			}
			if i < n-2 {
				text += c.Choices[0].Delta.Content
				if last := i == n-3; last != (c.Choices[0].FinishReason != nil) {
					t.Errorf("event %d: %s", i, e.Data)
				}
			}
		}
		last := d.read([]byte(a.Events[n-2].Data))
		if first.Choices[0].Delta.Role != "assistant" || text != said || len(last.Choices) != 0 || last.Usage == nil || last.Usage.Completion != 5 {
			t.Errorf("text %q, first %+v, last %+v", text, first, last)
		}
		if a := d.ask("echo", "demo-a", stream); len(a.Events) != 6 {
			t.Errorf("usage was not asked for: %d events", len(a.Events))
		}
	})
	t.Run("OBJ-26 slow", func(t *testing.T) {
		a := d.ask("slow", "demo-a", stream)
		var delays []int64
		for _, e := range a.Events {
			delays = append(delays, e.DelayMS)
		}
		if fmt.Sprint(delays) != "[2000 0 200 200 0 0]" {
			t.Errorf("delays %v", delays)
		}
	})
	t.Run("OBJ-26 flaky", func(t *testing.T) {
		for i, want := range []int{503, 200, 503, 200} { // one counter for both connections
			if a := d.ask("flaky", []string{"demo-a", "demo-b", "demo-b", "demo-a"}[i]); a.Status != want {
				t.Errorf("call %d: %d %s", i+1, a.Status, a.Body)
			}
		}
	})
	t.Run("OBJ-26 limited", func(t *testing.T) {
		for i, c := range []struct {
			connection string
			after      int64 // milliseconds
			status     int
			retry      string
		}{
			{"demo-a", 0, 200, ""}, {"demo-a", 4000, 200, ""}, {"demo-a", 0, 429, "6"}, {"demo-b", 0, 200, ""},
			{"demo-a", 5500, 429, "1"}, {"demo-a", 500, 200, ""},
		} {
			d.now.Add(c.after)
			a := d.ask("limited", c.connection)
			if a.Status != c.status || a.Headers["retry-after"] != c.retry {
				t.Errorf("call %d: %d %v %s", i+1, a.Status, a.Headers, a.Body)
			}
		}
	})
	t.Run("OBJ-26 misstating", func(t *testing.T) {
		if a := d.ask("misstating", "demo-b"); a.Status != 200 {
			t.Errorf("demo-b: %d", a.Status)
		}
		a := d.ask("misstating", "demo-a")
		if a.Status != 403 || string(a.Body) != `{"error":{"message":"用户额度不足","type":"new_api_error"}}` {
			t.Errorf("demo-a: %d %s", a.Status, a.Body)
		}
		reply := failed("demo", "misstating", 403, string(a.Body))
		j := judge(d.s, "demo")
		x, ok := j.Restate(t.Context(), reply)
		if !ok || x.Status != 429 || x.Plugin != "demo" {
			t.Fatalf("restated %+v", x)
		}
		reply.Status, reply.Restated = x.Status, x.Rule
		if v, ok := j.Classify(t.Context(), reply); !ok || v.Reason != wire.QuotaExhausted || v.Scope != wire.ScopeConnection || v.Plugin != "demo" {
			t.Errorf("classified %+v", v)
		}
	})
	t.Run("ABI-6 kv is kept over a reload", func(t *testing.T) {
		d.ask("flaky", "demo-a") // the fifth: odd
		r.Configure(t.Context(), nil, map[string]Settings{"demo": {Config: wire.Raw(`{"a":1}`)}})
		s := r.Acquire()
		defer s.Release()
		if s.plugins[0] == d.s.plugins[0] {
			t.Fatal("nothing was loaded again")
		}
		d.e, _ = s.Executor(&catalog.Provider{ID: "demo", Plugin: "demo", Executor: "demo"})
		if a := d.ask("flaky", "demo-a"); a.Status != 200 {
			t.Errorf("the sixth call answers %d", a.Status)
		}
	})
	t.Run("ABI-2.4 its own examples", func(t *testing.T) {
		if f := d.s.plugins[0].examples(t.Context()); f != nil {
			t.Error(f)
		}
	})
}

func TestDemoOnlyOnRequest(t *testing.T) { // OBJ-26
	t.Parallel()
	r := started(t, Options{Builtins: []Builtin{{Name: "demo", Wasm: plugins.Demo, DemoOnly: true}}})
	if n := len(r.List()); n != 0 {
		t.Errorf("%d plugins without --demo", n)
	}
}
