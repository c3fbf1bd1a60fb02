package host

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
)

// patients are a rechecker with connections whose tests fail until they are healed.
type patients struct {
	rechecker
	start   time.Time
	values  *settings.Values
	known   []*catalog.Connection
	tests   map[string][]time.Duration // since the start, rounded to the tick
	healed  map[string]bool
	running int
	most    int
	events  []store.Event
}

// world makes a catalogue of the known connections, as the host would.
func (p *patients) world(t *testing.T) *catalog.Snapshot {
	t.Helper()
	in := &catalog.Input{Name: "test"}
	for _, c := range p.known {
		e := catalog.Entry[catalog.ConnectionInput]{Object: catalog.ConnectionInput{ID: c.ID, Provider: "acme", Secrets: map[string]string{}}}
		for name, s := range c.Secrets {
			e.Object.Secrets[name] = s.Reveal()
		}
		in.Connections = append(in.Connections, e)
	}
	s, faults := catalog.Build(catalog.Sources{
		File: in, Env: func(string) (string, bool) { return "", false },
		Described: []catalog.Described{{Plugin: "acme", Builtin: true, Providers: []wire.Provider{{ID: "acme", BaseURL: "https://acme.test"}}}},
	})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	s.Settings = p.values
	return s
}

func newPatients(t *testing.T, interval time.Duration) *patients {
	p := &patients{start: time.Now(), tests: map[string][]time.Duration{}, healed: map[string]bool{}}
	values, _, _ := settings.Resolve(func(string) (string, bool) { return "", false }, nil, nil)
	values.CredentialCheckInterval = interval
	p.values = values
	for _, id := range []string{"empty", "expired", "oauth", "banned", "healthy"} {
		c := &catalog.Connection{ID: id, Provider: "acme", Active: true, CredentialRevision: 1,
			Secrets: map[string]catalog.Secret{"api_key": catalog.NewSecret("k")}}
		if id == "oauth" {
			c.Secrets[catalog.SecretRefreshToken] = catalog.NewSecret("r")
		}
		p.known = append(p.known, c)
	}
	s := p.world(t)
	book := account.NewBook(nil)
	ladder := resilience.NewLadder(terminal.New(book), cooldown.New(book))
	for id, state := range map[string]wire.TerminalState{"empty": wire.CreditsExhausted, "expired": wire.Expired, "oauth": wire.Expired, "banned": wire.Banned} {
		at := resilience.Moment{Now: time.Now(), Catalog: s}
		target := catalog.Target{Provider: s.Provider("acme"), Connection: s.Connection(id), Model: "m"}
		tk, _ := ladder.Admit(at, target)
		v := wire.Verdict{Reason: wire.AuthError, Scope: wire.ScopeConnection, Terminal: true, SetStatus: state}
		p.events = append(p.events, ladder.Settle(at, tk, resilience.Outcome{Verdict: v})...)
	}
	p.rechecker = rechecker{
		book: book, catalog: func() *catalog.Snapshot { return s }, now: time.Now, log: slog.New(slog.DiscardHandler),
		journal: func(es ...store.Event) { p.events = append(p.events, es...) }, sweep: func(time.Time) {},
		test: func(_ context.Context, id string) (bool, error) {
			p.running++
			p.most = max(p.most, p.running)
			p.tests[id] = append(p.tests[id], (time.Since(p.start) - spread(id)).Round(time.Minute))
			time.Sleep(time.Second)
			p.running--
			if p.healed[id] {
				p.events = append(p.events, book.Passed(resilience.Moment{Now: time.Now(), Catalog: s}, id)...)
			}
			return p.healed[id], nil
		},
	}
	return p
}

func (p *patients) pass(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	p.run(ctx)
}

func TestRecheck(t *testing.T) {
	const hour, minute = time.Hour, time.Minute
	t.Run("COOL-59 an hour after the state began, then doubling to a day; a ban never", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPatients(t, hour)
			if at := p.book.Health("empty", time.Now()).RecheckAt; at == nil || *at != p.start.Add(hour).UTC().Format("2006-01-02T15:04:05.000Z") {
				t.Errorf("recheckAt %v", at)
			}
			p.pass(t, 100*hour)
			want := []time.Duration{1 * hour, 3 * hour, 7 * hour, 15 * hour, 31 * hour, 55 * hour, 79 * hour}
			for _, id := range []string{"empty", "expired"} {
				got := slices.Clone(p.tests[id])
				for i := range got {
					got[i] = got[i].Round(10 * minute) // each round of the ticker and of the test adds a little
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", id, diff)
				}
			}
			if len(p.tests["banned"])+len(p.tests["healthy"]) > 0 || p.most != 1 {
				t.Errorf("tests %v, %d at once", p.tests, p.most)
			}
		})
	})
	t.Run("COOL-53 tokens that can be refreshed: three retries after 5, 10 and 20 minutes, then the re-checks alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPatients(t, hour)
			p.pass(t, 2*hour)
			want := []time.Duration{5 * minute, 15 * minute, 35 * minute, 60 * minute}
			got := slices.Clone(p.tests["oauth"])
			for i := range got {
				got[i] = got[i].Round(5 * minute)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			s, _ := p.book.State("oauth")
			if s.ExpiredRetryCount != account.ExpiredRetryMax || s.ExpiredRetryAt == 0 || s.TestStatus != account.Expired {
				t.Errorf("%+v", s)
			}
			p.healed["oauth"] = true
			p.pass(t, 2*hour)
			if s, _ = p.book.State("oauth"); s.ExpiredRetryCount != 0 || s.ExpiredRetryAt != 0 || s.RecheckAt != 0 {
				t.Errorf("a success left %+v", s)
			}
		})
	})
	t.Run("SCN-5 COOL-52 an account that was charged comes back by its test, not by time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPatients(t, hour)
			p.pass(t, 2*hour)
			if s, _ := p.book.State("empty"); s.TestStatus != account.CreditsExhausted || s.Rechecks != 1 {
				t.Errorf("%+v", s)
			}
			p.healed["empty"] = true
			p.pass(t, 2*hour)
			if s, _ := p.book.State("empty"); s.TestStatus != account.Active || s.LastError != "" {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("COOL-59 OTH-43 an interval of 0 turns it off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPatients(t, 0)
			p.pass(t, 30*hour)
			if len(p.tests) > 0 || p.book.Health("empty", time.Now()).RecheckAt != nil {
				t.Errorf("tests %v", p.tests)
			}
			p.values.CredentialCheckInterval = hour // and on again, for states that are there
			p.pass(t, 2*hour)
			if len(p.tests["empty"]) != 1 || len(p.tests["banned"]) != 0 {
				t.Errorf("tests %v", p.tests)
			}
		})
	})
	t.Run("COOL-59 the time survives a restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPatients(t, hour)
			p.pass(t, 2*hour)
			again := account.NewBook(nil)
			for _, e := range p.events {
				if err := again.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			now := time.Now()
			if diff := cmp.Diff(p.book.Health("empty", now), again.Health("empty", now)); diff != "" {
				t.Error(diff)
			}
			if again.Health("empty", now).RecheckAt == nil {
				t.Error("no time")
			}
		})
	})
}

// COOL-59, COOL-52: over a whole host, an account without credit comes back when its test passes, and no earlier.
func TestRecheckHost(t *testing.T) {
	var charged atomic.Bool
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !charged.Load() {
			w.WriteHeader(http.StatusPaymentRequired)
			w.Write([]byte(`{"error":{"message":"your credit balance is too low"}}`))
			return
		}
		w.Write([]byte(`{"object":"list","data":[{"id":"m"}],"choices":[{"index":0,"message":{"role":"assistant","content":"pong"},"finish_reason":"stop"}]}`))
	}))
	defer upstream.Close()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := "providers:\n  - {id: mock, executor: openai-compatible, category: local, base_url: " + upstream.URL + "/v1, models: [{id: m}]}\n" +
		"connections:\n  - {id: c1, provider: mock, api_key: sk-upstream-0123456789}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	st := memory.New(memory.Options{})
	defer st.Close() //nolint:errcheck // nothing to lose
	var late atomic.Int64
	h, err := New(t.Context(), Options{
		ConfigFile: file, Listen: NoListener, Store: st, Env: func(string) (string, bool) { return "", false },
		Now: func() time.Time { return time.Now().Add(time.Duration(late.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Stop(context.Background()) //nolint:errcheck // closes what the test opened
	snapshot := h.catalog.Current()
	provider := *snapshot.Provider("mock")
	provider.Compatible = false // as one of a plugin: its accounts can end
	target := catalog.Target{Provider: &provider, Connection: snapshot.Connection("c1"), Model: "m"}
	at := states{h}.at()
	tk, refusal := h.ladder.Admit(at, target)
	if refusal != nil {
		t.Fatalf("%+v", refusal)
	}
	v := wire.Verdict{Reason: wire.CreditsGone, Scope: wire.ScopeConnection, Terminal: true, SetStatus: wire.CreditsExhausted}
	if es := h.ladder.Settle(at, tk, resilience.Outcome{Verdict: v, Cause: resilience.Cause{Status: 402}}); len(es) == 0 {
		t.Fatal("nothing happened")
	}
	r := h.rechecker()
	if due := r.due(); len(due) != 0 {
		t.Errorf("due at once: %v", due)
	}
	for _, wait := range []time.Duration{62 * time.Minute, 4 * time.Hour} {
		late.Store(int64(wait))
		charged.Store(wait > 2*time.Hour)
		due := r.due()
		if len(due) != 1 {
			t.Fatalf("%d due after %v", len(due), wait)
		}
		r.check(t.Context(), due[0])
		if s, _ := h.book.State("c1"); (s.TestStatus == account.Active) != charged.Load() {
			t.Errorf("after %v it is %s", wait, s.TestStatus)
		}
	}
}
