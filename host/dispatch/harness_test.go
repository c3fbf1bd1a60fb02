package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// bench is a dispatcher over a real HTTP upstream whose behaviour hangs on the key that it is sent.
type bench struct {
	t        *testing.T
	d        *dispatch.Dispatcher
	srv      *httptest.Server
	prov     *catalog.Provider
	snap     *catalog.Snapshot
	judge    *judge
	clock    time.Time
	mu       sync.Mutex
	hits     []string // keys, in order; guarded by mu
	bodies   []string // guarded by mu
	by       map[string]http.HandlerFunc
	events   []store.Event
	meter    meter
	plan     wire.Plan
	guest    guest
	book     *account.Book
	breakers *breaker.Gate
	key      *catalog.Key // of the client
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, by: map[string]http.HandlerFunc{}, clock: time.Now()}
	b.srv = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.srv.Close)
	b.setUp(b.srv.URL)
	return b
}

// setUp makes everything but the upstream. Without a clock of its own the bench lives in the time of its goroutine.
func (b *bench) setUp(url string) {
	t := b.t
	b.prov = &catalog.Provider{ID: "acme", BaseURL: url + "/v1", Category: catalog.Local, Auth: wire.AuthAPIKey, Passthrough: true}
	profile := settings.CooldownProfile{Base: 2 * time.Second, MaxSteps: 3, UseHints: true}
	b.snap = &catalog.Snapshot{Settings: &settings.Values{
		ConnectionCooldown: settings.Cooldown{OAuth: profile, APIKey: profile, Local: profile}, MaxCooldown: 30 * time.Minute,
		FetchTimeout: 10 * time.Second, BodyTimeout: 10 * time.Second, ReadinessTimeout: 10 * time.Second, StreamIdleTimeout: 10 * time.Second,
		RouteDefaults: settings.RouteDefaults{FallbackOnOverflow: true}, ContentStall: -1,
		Streams: settings.Streams{MaxEventBytes: 16 << 20, HoldMaxBytes: 4 << 20},
		ModelLockout: settings.ModelLockout{Enabled: true, ErrorCodes: []int{429}, Base: 2 * time.Second, Max: 30 * time.Minute, MaxSteps: 5,
			Exponential: true, Zone: time.UTC},
		ProviderBreaker: settings.ProviderBreaker{Local: settings.BreakerProfile{FailureThreshold: 1000, DegradationThreshold: 999,
			ResetTimeout: 15 * time.Second}},
	}}
	b.judge = &judge{}
	b.plan = wire.Plan{URL: "{{connection.base_url}}/chat/completions", Dialect: wire.OpenAIChat,
		Headers: map[string]string{"authorization": "Bearer {{secret.api_key}}"},
		Usage:   &wire.PlanUsage{InputTokens: "usage.prompt_tokens", OutputTokens: "usage.completion_tokens"}}
	now := func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.clock.IsZero() {
			return time.Now()
		}
		return b.clock
	}
	b.book, b.breakers = account.NewBook(nil), breaker.New(now)
	client := upstream.NewClient(upstream.Options{})
	t.Cleanup(client.Close)
	b.d = dispatch.New(dispatch.Options{
		Plugins: b, Client: client, Ladder: resilience.NewLadder(b.breakers, window.New(b.breakers.IsOpen), terminal.New(b.book), cooldown.New(b.book), lockout.New(b.book, b.breakers.IsOpen)),
		Journal: func(es ...store.Event) { b.mu.Lock(); b.events = append(b.events, es...); b.mu.Unlock() },
		Meter:   &b.meter, Redact: func(s string) string { return strings.ReplaceAll(s, "sk-leak", "[redacted]") },
		Now: now,
	})
}

func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	buf := new(strings.Builder)
	_, _ = fmt.Fprint(buf, readAll(r))
	b.mu.Lock()
	b.hits = append(b.hits, key)
	b.bodies = append(b.bodies, buf.String())
	h := b.by[key]
	b.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(buf.String()))
	h(w, r)
}

func readAll(r *http.Request) string {
	var sb strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buf)
		sb.Write(buf[:n])
		if err != nil {
			return sb.String()
		}
	}
}

// with adds a connection whose key is its id, and what the upstream does with it.
func (b *bench) with(id string, h http.HandlerFunc) *bench {
	b.by[id] = h
	c := &catalog.Connection{ID: id, Provider: b.prov.ID, AuthType: wire.AuthAPIKey, Active: true, Priority: len(b.prov.Connections) + 1,
		Secrets: map[string]catalog.Secret{"api_key": catalog.NewSecret(id)}}
	b.prov.Connections = append(b.prov.Connections, c)
	return b
}

func (b *bench) direct() *catalog.Route {
	return &catalog.Route{Kind: catalog.KindDirect, Name: "acme/m", Targets: []catalog.RouteTarget{{Key: "acme/m", Provider: b.prov, Model: "m"}}}
}

// do sends one request along rt and returns what the client saw.
func (b *bench) do(rt *catalog.Route, stream bool) (*client, *dispatch.Trail) {
	return b.doCtx(b.t.Context(), rt, stream)
}

func (b *bench) doCtx(ctx context.Context, rt *catalog.Route, stream bool) (*client, *dispatch.Trail) {
	b.t.Helper()
	c := &client{}
	return c, b.send(ctx, rt, stream, c)
}

func (b *bench) doWith(c *client, stream bool) *dispatch.Trail {
	return b.send(b.t.Context(), b.direct(), stream, c)
}

func (b *bench) send(ctx context.Context, rt *catalog.Route, stream bool, c dispatch.Sink) *dispatch.Trail {
	b.t.Helper()
	text := fmt.Sprintf(`{"model":"acme/m","stream":%v,"messages":[{"role":"user","content":"hi"}],"odd":[1, 2]}`, stream)
	buf, err := body.Read(strings.NewReader(text), int64(len(text)), 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		b.t.Fatal(err)
	}
	return b.d.Do(ctx, &dispatch.Call{
		RequestID: "req-1", Endpoint: "/v1/chat/completions", Dialect: wire.OpenAIChat, Catalog: b.snap, Route: rt, Model: "acme/m",
		Stream: stream, Body: buf, Scan: scan, Header: http.Header{},
	}, c)
}

func (b *bench) later(d time.Duration) { b.mu.Lock(); b.clock = b.clock.Add(d); b.mu.Unlock() }

func (b *bench) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := slices.Clone(b.hits)
	b.hits = nil
	return out
}

// cooled is how many events say that a connection cools.
func (b *bench) cooled() (n int) {
	for _, e := range b.events {
		if e.Kind == "connection.cooldown" {
			n++
		}
	}
	return n
}

// client is the far end.
type client struct {
	status int
	header http.Header
	body   strings.Builder
	broken bool
}

func (c *client) Commit(status int, h http.Header, _ *dispatch.Trail) { c.status, c.header = status, h }
func (c *client) Write(p []byte) error {
	if c.broken {
		return fmt.Errorf("gone")
	}
	c.body.Write(p)
	return nil
}
func (c *client) Flush() error { return nil }

type meter struct {
	mu       sync.Mutex
	attempts []string
}

func (m *meter) Attempt(p string, r wire.Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempts = append(m.attempts, p+":"+string(r))
}
func (m *meter) Fallback(wire.Reason) {}
func (m *meter) Refused(string)       {}
func (m *meter) Restated(string)      {}

// The bench is its own plugin set: one plan, and rules that a test may give.
func (b *bench) Acquire() dispatch.PluginSet                           { return b }
func (b *bench) Release()                                              {}
func (b *bench) Executor(*catalog.Provider) (dispatch.Executor, error) { return b, nil }
func (b *bench) Judge(*catalog.Provider) dispatch.Judge                { return b.judge }
func (b *bench) Digest() string                                        { return "d" }
func (b *bench) Name() string                                          { return "bench" }
func (b *bench) Hosts() []string                                       { return nil }
func (b *bench) RequestFields() []string                               { return b.guest.fields }
func (b *bench) Respond(ctx context.Context, f wire.RequestFacts) (*wire.Answer, error) {
	if b.guest.respond != nil {
		return b.guest.respond(ctx, f)
	}
	return nil, b.guest.respondFault
}
func (b *bench) Plan(context.Context, wire.PlanQuery, wire.Auth) (*wire.Plan, error) {
	b.guest.planned++
	return &b.plan, b.guest.planFault
}
func (b *bench) Fallback() dispatch.Executor { return b.guest.fallback }
func (b *bench) Ready() error                { return b.guest.unready }

func (b *bench) Request(_ context.Context, f wire.RequestFacts, check func(*wire.Edits) error) (*wire.Edits, error) {
	return b.guest.edit(b.guest.onRequest(f))(check)
}

func (b *bench) Response(_ context.Context, f wire.ResponseFacts, h http.Header, check func(*wire.Edits) error) (*wire.Edits, error) {
	f.Headers = map[string]string{"x-quota": h.Get("X-Quota")}
	return b.guest.edit(b.guest.onResponse(f))(check)
}

func (b *bench) Events(c upstream.Calls) dispatch.EventHook {
	b.guest.calls = c
	return &b.guest
}

// guest is the code of the bench's plugin.
type guest struct {
	fields       []string
	planned      int
	planFault    error
	respondFault error
	respond      func(context.Context, wire.RequestFacts) (*wire.Answer, error)
	unready      error
	fallback     dispatch.Executor
	onRequest    func(wire.RequestFacts) (*wire.Edits, error)
	onResponse   func(wire.ResponseFacts) (*wire.Edits, error)
	onEvent      func(name, data string) (wire.EventAnswer, error)
	calls        upstream.Calls
	refused      error // by the dispatcher
	events       []string
	ends         []bool
}

func (g *guest) edit(said *wire.Edits, err error) func(func(*wire.Edits) error) (*wire.Edits, error) {
	return func(check func(*wire.Edits) error) (*wire.Edits, error) {
		if err == nil && said != nil {
			err = check(said)
			g.refused = err
		}
		if err != nil {
			return nil, err
		}
		return said, nil
	}
}

// Event is on_event.
func (g *guest) Event(_ context.Context, name, data []byte) (wire.EventAnswer, error) {
	g.events = append(g.events, string(name)+"|"+string(data))
	return g.onEvent(string(name), string(data))
}

// End is on_end.
func (g *guest) End(ctx context.Context, complete bool) {
	if ctx.Err() == nil { // the end of a request must not keep the guest from hearing of it
		g.ends = append(g.ends, complete)
	}
}

// judge runs a rule table as a plugin would.
type judge struct{ set *rules.Set }

func (b *bench) rules(table string) *bench {
	b.t.Helper()
	if !json.Valid([]byte(table)) {
		b.t.Fatal("table is not JSON")
	}
	parsed, problems := rules.Parse([]byte(table), rules.Options{Plugin: "test", Builtin: true, Terminate: true,
		Needs: wire.Needs{ErrorText: "full", Headers: []string{"*"}}, Kinds: []string{wire.KindRestatement, wire.KindClassifier}})
	if len(problems) > 0 {
		b.t.Fatal(problems)
	}
	b.judge.set = rules.Compile(rules.Source{Table: parsed, Plugin: "test"})
	return b
}

func (j *judge) Restate(_ context.Context, r *rules.Reply) (wire.Restatement, bool) {
	if j.set == nil {
		return wire.Restatement{}, false
	}
	re, _, ok := j.set.Match(r).Restate(0, j.set.Len())
	return re, ok
}

func (j *judge) Classify(_ context.Context, r *rules.Reply) (wire.Verdict, bool) {
	if j.set == nil {
		return wire.Verdict{}, false
	}
	v, _, ok := j.set.Match(r).Classify(rules.Normal, 0, j.set.Len())
	return v, ok
}

// What upstreams do.
func answers(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprint(w, `{"id":"x","choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
}

func fails(status int, text string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, text)
	}
}

func resets(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func streams(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = fmt.Fprint(w, e+"\n\n")
			w.(http.Flusher).Flush()
		}
	}
}

// withCatalog is a snapshot that knows the bench's provider by its id.
func (b *bench) withCatalog() *catalog.Snapshot {
	b.t.Helper()
	snap, faults := catalog.Build(catalog.Sources{Described: []catalog.Described{{
		Plugin: "bench", Builtin: true, Providers: []wire.Provider{{ID: b.prov.ID, BaseURL: b.prov.BaseURL, Category: "local",
			Dialects: map[string]wire.Dialect{"/v1/models": wire.RawDialect}}},
	}}})
	if len(faults) > 0 {
		b.t.Fatal(faults)
	}
	return snap
}
