package manage_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/errorlog"
	"github.com/weirgate/weir/host/manage"
	"github.com/weirgate/weir/host/observe"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/host/pricing"
	"github.com/weirgate/weir/host/quota"
	"github.com/weirgate/weir/host/record"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
)

const adminKey = "admin-0123456789abcdef"

// rig is a management server over a small world: real catalogue, store and health records, no plugins and no network.
type rig struct {
	t        *testing.T
	server   *manage.Server
	ports    manage.Ports
	store    *memory.Store
	registry *catalog.Registry
	recorder *record.Recorder
	book     *account.Book
	breakers *breaker.Gate
	windows  *window.Gate
	lockouts *lockout.Gate
	quota    quota.Book
	ladder   *resilience.Ladder
	file     *catalog.Input
	env      map[string]string
	degraded bool
	log      bytes.Buffer

	mu  sync.Mutex
	now time.Time
}

type option func(*rig)

func newRig(t *testing.T, options ...option) *rig {
	r := &rig{t: t, registry: &catalog.Registry{}, book: account.NewBook(nil), now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), env: map[string]string{}}
	r.breakers = breaker.New(r.clock)
	r.windows, r.lockouts = window.New(r.breakers.IsOpen), lockout.New(r.book, r.breakers.IsOpen)
	r.ladder = resilience.NewLadder(r.breakers, r.windows, terminal.New(r.book), cooldown.New(r.book), r.lockouts)
	r.store = memory.New(memory.Options{Now: r.clock})
	r.recorder = record.New(record.Options{Store: r.store, Now: r.clock, Delay: time.Millisecond})
	r.recorder.Start()
	t.Cleanup(func() { _ = r.recorder.Stop(context.Background()) })
	ids, err := observe.NewRequestIDs(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	metrics := observe.New(observe.Options{})
	r.ports = manage.Ports{
		AdminKey: adminKey, Listener: manage.Listener{Host: "127.0.0.1"}, Now: r.clock, RequestID: ids.Next, Random: rand.Reader,
		Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Facts: func() manage.Facts {
			return manage.Facts{Version: "v1", Started: r.clock().Add(-time.Minute), Address: "http://127.0.0.1:8787", PluginsLoaded: true}
		},
		Catalog: r.registry.Current, Check: r.check, Change: r.change, Documents: r.store, Sealer: sealer{},
		StoreHealth: r.health, States: states{r}, Events: r.recorder, Order: order, Test: r.testConnection,
		Unquarantine: func(string) bool { return false }, Shelf: &shelf{}, Errors: &errorRecord{},
		Requests: &requestRecord{}, Prices: func() *pricing.Table { return pricing.New() }, Quota: r.quota.Snapshot,
		Replay: func(context.Context, []byte, int, string) (errorlog.Replay, error) { return errorlog.Replay{}, nil },
		Plugins: func() []plugin.Status {
			return []plugin.Status{{Name: "openai", State: plugin.StateActive, Mode: "active", Version: "1.0.0", LoadedAt: r.clock(), Manifest: []byte(`{"name":"openai"}`)}}
		},
		Metrics: metrics.Handler(), Profiles: observe.Profiles(), Recent: metrics.Recent,
		Inference: []manage.Route{{Method: "POST", Path: "/v1/chat/completions", Summary: "Chat"}},
	}
	for _, o := range options {
		o(r)
	}
	r.rebuild()
	if r.server, err = manage.New(r.ports); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) sources(stored *catalog.Input) catalog.Sources {
	return catalog.Sources{
		File: r.file, Stored: stored, Previous: r.registry.Current(),
		Env: func(name string) (string, bool) { v, ok := r.env[name]; return v, ok },
		Described: []catalog.Described{{Plugin: "openai", Builtin: true, Providers: []wire.Provider{
			{ID: "openai", Name: "OpenAI", BaseURL: "https://api.openai.com/v1", KeyEnv: []string{"OPENAI_API_KEY"}, Aliases: []string{"oai"},
				Models: []wire.Model{{ID: "gpt-5"}, {ID: "gpt-5-mini"}}},
			{ID: "local", Auth: wire.AuthLocal, BaseURL: "http://127.0.0.1:11434/v1"},
		}, PlanDialects: map[string]wire.Dialect{"/v1/chat/completions": wire.OpenAIChat}}},
	}
}

func (r *rig) stored() *catalog.Input {
	in, err := catalog.LoadStored(context.Background(), r.store, sealer{})
	if err != nil {
		r.t.Fatal(err)
	}
	return in
}

func (r *rig) rebuild() {
	s, faults := catalog.Build(r.sources(r.stored()))
	if len(faults) > 0 {
		r.t.Fatal(faults)
	}
	r.registry.Swap(s)
}

// check builds with the objects that are being saved in place of those in the store.
func (r *rig) check(saving catalog.Input) []document.Fault {
	in := r.stored()
	in.Connections = over(in.Connections, saving.Connections, func(c catalog.ConnectionInput) string { return c.ID })
	in.Combos = over(in.Combos, saving.Combos, func(c catalog.ComboInput) string { return c.Name })
	in.Keys = over(in.Keys, saving.Keys, func(c catalog.KeyInput) string { return c.ID })
	in.Providers = over(in.Providers, saving.Providers, func(c catalog.ProviderInput) string { return c.ID })
	in.Aliases = over(in.Aliases, saving.Aliases, func(c catalog.AliasInput) string { return c.Alias })
	_, faults := catalog.Build(r.sources(in))
	return faults
}

func over[T any](old, saving []catalog.Entry[T], id func(T) string) []catalog.Entry[T] {
	for _, s := range saving {
		old = slices.DeleteFunc(old, func(e catalog.Entry[T]) bool { return id(e.Object) == id(s.Object) })
		old = append(old, s)
	}
	return old
}

func (r *rig) change(ctx context.Context, ws ...store.Write) ([]store.Document, error) {
	if r.degraded {
		return nil, store.ErrDegraded
	}
	docs, err := r.store.Change(ctx, ws...)
	if err == nil {
		r.rebuild()
	}
	return docs, err
}

func (r *rig) health() store.Health {
	h := r.store.Health()
	if r.degraded {
		h.State, h.Fault = "degraded", "no space left"
	}
	return h
}

func (r *rig) testConnection(_ context.Context, id string) (manage.TestResult, error) {
	return manage.TestResult{Status: 401, Reason: "auth_error", Message: "no", Rule: "generic/auth"}, nil
}

// fail puts a connection into the state that an outcome earns.
func (r *rig) fail(id, model string, v wire.Verdict) {
	r.t.Helper()
	r.failWith(id, model, 429, v)
}

func (r *rig) failWith(id, model string, status int, v wire.Verdict) {
	r.t.Helper()
	snap := r.registry.Current()
	c := snap.Connection(id)
	at := resilience.Moment{Now: r.clock(), Catalog: snap}
	target := catalog.Target{Provider: snap.Provider(c.Provider), Connection: c, Model: model}
	ticket, refusal := r.ladder.Admit(at, target)
	if refusal != nil {
		r.t.Fatal(refusal)
	}
	r.recorder.Append(r.ladder.Settle(at, ticket, resilience.Outcome{
		Began: at.Now, Verdict: v, Cause: resilience.Cause{RequestID: "r-1", Status: status, At: at.Now.UnixMilli(), Plugin: v.Plugin, Rule: v.Rule, Message: v.Message},
	})...)
}

type states struct{ r *rig }

func (s states) at() resilience.Moment {
	return resilience.Moment{Now: s.r.clock(), Catalog: s.r.registry.Current()}
}
func (s states) Health(id string, now time.Time) account.Health { return s.r.book.Health(id, now) }
func (s states) Peek(at resilience.Moment, t catalog.Target) *resilience.Refusal {
	return s.r.ladder.Peek(at, t)
}
func (s states) Breakers(now time.Time) []breaker.Status { return s.r.breakers.All(s.at()) }
func (s states) Lockouts(now time.Time) []lockout.Lock   { return s.r.lockouts.List(now) }
func (s states) ResetBreakers(provider string) int {
	var names []string
	if provider != "" {
		names = []string{provider}
	}
	n, _ := s.r.breakers.Reset(s.at(), names...)
	return n
}
func (s states) ClearWindows(string) { s.r.windows.Clear(s.at()) }
func (s states) ClearCooldown(connection string) account.Cleared {
	found, _ := s.r.book.Clear(s.at(), connection)
	return found
}
func (s states) ClearLockouts(provider, connection, model string) int {
	var n int
	switch {
	case model != "":
		n, _ = s.r.lockouts.Clear(s.at(), s.at().Catalog.Provider(provider), connection, model)
	case connection != "":
		n, _ = s.r.lockouts.ClearConnection(s.at(), connection)
	default:
		n, _ = s.r.lockouts.ClearAll(s.at())
	}
	return n
}
func (s states) Reset(id string) string {
	was, events := s.r.book.Reset(s.at(), id)
	s.r.recorder.Append(events...)
	s.ClearLockouts("", id, "")
	return was.String()
}
func (s states) Forget(id string) { s.r.recorder.Append(s.r.book.Forget(s.at(), id)...) }

func order(rt *catalog.Route, key *catalog.Key, _ time.Time) (out []catalog.Target) {
	for i := range rt.Targets {
		t := &rt.Targets[i]
		for _, c := range t.Provider.Connections {
			if t.Permits(c) && c.Serves(t.Model) && (key == nil || key.AllowsConnection(c.ID)) {
				out = append(out, catalog.Target{Provider: t.Provider, Connection: c, Model: t.Model})
			}
		}
	}
	return out
}

// sealer turns bytes around, and binds them to their place.
type sealer struct{}

func (sealer) Seal(kind, id, field string, plain []byte) ([]byte, error) {
	b := slices.Clone(plain)
	slices.Reverse(b)
	return append([]byte(kind+"/"+id+"/"+field+":"), b...), nil
}

func (sealer) Unseal(kind, id, field string, sealed []byte) ([]byte, error) {
	b, ok := bytes.CutPrefix(sealed, []byte(kind+"/"+id+"/"+field+":"))
	if !ok {
		return nil, errors.New("sealed for another place")
	}
	b = slices.Clone(b)
	slices.Reverse(b)
	return b, nil
}

// answer is what a call got.
type answer struct {
	status int
	header http.Header
	text   string
	t      *testing.T
}

// call sends one request with the admin key; headers are given as name, value.
func (r *rig) call(method, path, body string, headers ...string) answer {
	r.t.Helper()
	req := httptest.NewRequest(method, "http://127.0.0.1:8787"+path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+adminKey)
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			req.Host = headers[i+1]
		case headers[i] == "From":
			req.RemoteAddr = headers[i+1]
		case headers[i+1] == "":
			req.Header.Del(headers[i])
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	r.server.Handler().ServeHTTP(w, req)
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{w.Code, w.Result().Header, string(b), r.t}
}

// is checks the status.
func (a answer) is(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.text)
	}
	return a
}

// at returns a value of the answer by its path, such as error.details.0.field.
func (a answer) at(path string) any {
	a.t.Helper()
	var v any
	if err := json.Unmarshal([]byte(a.text), &v); err != nil {
		a.t.Fatalf("not JSON: %q", a.text)
	}
	for part := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// has checks values by path.
func (a answer) has(pairs ...any) answer {
	a.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		got, want := fmt.Sprint(a.at(pairs[i].(string))), fmt.Sprint(pairs[i+1])
		if got != want {
			a.t.Errorf("%s is %s, want %s in %s", pairs[i], got, want, a.text)
		}
	}
	return a
}

// refused checks an error answer: status, code, the type of its status (OV-7), and its shape (OBJ-3).
func (a answer) refused(status int, code string) answer {
	a.t.Helper()
	kind, ok := map[int]string{401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 503: "server_error", 507: "server_error"}[status]
	if !ok {
		kind = "invalid_request_error"
	}
	a.is(status).has("error.code", code, "error.type", kind)
	if a.at("error.message") == "" {
		a.t.Errorf("an error without a message: %s", a.text)
	}
	return a
}

// file makes a configuration file's objects.
func file(in catalog.Input) option {
	return func(r *rig) {
		in.Name = "weir.yaml"
		for i := range in.Connections {
			in.Connections[i].Meta.ManagedBy = catalog.ByFile
		}
		for i := range in.Combos {
			in.Combos[i].Meta.ManagedBy = catalog.ByFile
		}
		for i := range in.Keys {
			in.Keys[i].Meta.ManagedBy = catalog.ByFile
		}
		for i := range in.Aliases {
			in.Aliases[i].Meta.ManagedBy = catalog.ByFile
		}
		if in.Settings == nil {
			in.Settings = settings.Stored{}
		}
		r.file = &in
	}
}

func entry[T any](o T) []catalog.Entry[T] { return []catalog.Entry[T]{{Object: o}} }
