package ledger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/ledger"
	"github.com/weirgate/weir/host/pricing"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a ledger on a store in memory.
type bench struct {
	*ledger.Log
	t     testing.TB
	rows  store.Rows
	set   settings.RequestLog
	mu    sync.Mutex
	clock time.Time // guarded by mu
	table *pricing.Table
}

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func usd(v float64) *float64 { return &v }

func newBench(t testing.TB, rows store.Rows) *bench {
	b := &bench{t: t, rows: rows, clock: start, set: settings.RequestLog{Enabled: true, RetentionDays: 7, MaxRows: 100_000}}
	b.table = pricing.New(pricing.Source{Plugin: "pricing", Version: "1.0.0", Prices: []wire.Price{
		{Provider: "acme", Model: "m*", Input: usd(1), Output: usd(10), CachedRead: usd(0.1)},
	}})
	if rows == nil {
		b.rows = memory.New(memory.Options{Now: b.now})
	}
	b.Log = ledger.New(ledger.Options{
		Rows: b.rows, Now: b.now, Prices: func() *pricing.Table { return b.table },
		Settings: func() settings.RequestLog { b.mu.Lock(); defer b.mu.Unlock(); return b.set },
		Redact:   func(s string) string { return strings.ReplaceAll(s, "sk-secret", "[redacted]") },
	})
	return b
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock
}

func (b *bench) started() *bench {
	b.Start()
	b.t.Cleanup(func() {
		if err := b.Stop(context.Background()); err != nil {
			b.t.Error(err)
		}
	})
	return b
}

// call is a request of a client for a combo of one target.
func (b *bench) call(id string) *dispatch.Call {
	p := &catalog.Provider{ID: "acme"}
	return &dispatch.Call{
		RequestID: id, Endpoint: "/v1/chat/completions", Dialect: wire.OpenAIChat, Model: "best", Stream: true, Key: &catalog.Key{ID: "laptop"},
		Catalog: &catalog.Snapshot{Settings: &settings.Values{RequestLog: b.set}},
		Route:   &catalog.Route{Kind: catalog.KindCombo, Name: "best", Targets: []catalog.RouteTarget{{Provider: p, Model: "m1"}}},
		Header:  http.Header{"User-Agent": {"claude-cli/2.1.332 (external, cli)"}, "X-Stainless-Retry-Count": {"2"}},
	}
}

// trail is a fallback: a restated failure on one connection, and the answer of another one.
func trail() *dispatch.Trail {
	return &dispatch.Trail{
		Began: start, Took: 812 * time.Millisecond, FirstByte: 410 * time.Millisecond, Waited: 50 * time.Millisecond, Committed: true, Status: 200,
		Usage: neutral.Usage{Input: 1000, CachedRead: 400, CacheWrite: -1, Output: 40, Reasoning: -1},
		Notes: []string{"translation: seed dropped"},
		Attempts: []dispatch.Attempt{
			{
				Provider: "acme", Connection: "c-1", Model: "m1", At: start, FirstByte: 90 * time.Millisecond, Took: 120 * time.Millisecond,
				Status: 429, Original: 403, RestatedBy: "acme/quota",
				Verdict: wire.Verdict{Reason: wire.QuotaExhausted, Scope: wire.ScopeConnection, Plugin: "acme", Rule: "empty"},
			},
			{
				Provider: "acme", Connection: "c-2", Model: "m1", At: start.Add(200 * time.Millisecond), FirstByte: 210 * time.Millisecond,
				Took: 600 * time.Millisecond, Status: 200, Original: 200, OK: true,
			},
		},
	}
}

func (b *bench) get(id string) ledger.Row {
	b.t.Helper()
	r, found, err := b.Get(b.t.Context(), id)
	if err != nil || !found {
		b.t.Fatalf("%s: %v, %v", id, found, err)
	}
	return r
}

func TestRow(t *testing.T) {
	b := newBench(t, nil).started()
	b.Add(b.call("r-1"), trail(), "ok")
	t.Run("OBJ-17 INF-48 FLT-16 the document", func(t *testing.T) {
		got, err := json.MarshalIndent(b.get("r-1"), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		const want = `{"requestId": "r-1", "at": "2026-07-01T12:00:00.000Z", "durationMs": 812, "endpoint": "/v1/chat/completions", "clientDialect": "openai_chat",
 "apiKeyId": "laptop", "client": "claude-cli/2.1.332", "route": {"kind": "combo", "name": "best"}, "requestedModel": "best", "provider": "acme",
 "connectionId": "c-2", "model": "m1", "stream": true, "status": 200, "outcome": "ok", "reason": null, "waitedMs": 50, "ttftMs": 410,
 "tokens": {"input": 1000, "cachedRead": 400, "cacheWrite": null, "output": 40, "reasoning": null, "estimated": false}, "costUsd": 0.00104,
 "attempts": [{"provider": "acme", "connectionId": "c-1", "model": "m1", "at": "2026-07-01T12:00:00.000Z", "firstByteMs": 90, "durationMs": 120,
   "status": 429, "originalStatus": 403, "reason": "quota_exhausted", "scope": "connection", "restatedBy": "acme/quota", "decidedBy": "acme/empty", "billed": false},
  {"provider": "acme", "connectionId": "c-2", "model": "m1", "at": "2026-07-01T12:00:00.200Z", "firstByteMs": 210, "durationMs": 600,
   "status": 200, "originalStatus": 200, "reason": null, "scope": null, "restatedBy": null, "decidedBy": null, "billed": true}],
 "notes": ["translation: seed dropped"], "clientRetry": 2, "prices": "pricing@1.0.0"}`
		var x, y any
		if json.Unmarshal([]byte(want), &x) != nil || json.Unmarshal(got, &y) != nil {
			t.Fatal("not JSON")
		}
		if d := cmp.Diff(x, y); d != "" {
			t.Error(d)
		}
	})
}

func TestRowsOfOtherEnds(t *testing.T) {
	none := neutral.NoUsage()
	for _, c := range []struct {
		name, outcome string
		change        func(c *dispatch.Call, t *dispatch.Trail)
		check         func(r ledger.Row) bool
	}{
		{"SCN-17 no usage is absent, not zero", "ok", func(_ *dispatch.Call, t *dispatch.Trail) { t.Usage = none },
			func(r ledger.Row) bool {
				return r.Tokens == ledger.Tokens{} && r.CostUSD == nil && r.Prices == ""
			}},
		{"OBJ-17 INF-22 an estimate stays null and says so", "ok", func(_ *dispatch.Call, t *dispatch.Trail) { t.Usage, t.Estimated = none, true },
			func(r ledger.Row) bool { return r.Tokens == ledger.Tokens{Estimated: true} }},
		{"OBJ-21 no price, no cost", "ok", func(_ *dispatch.Call, t *dispatch.Trail) { t.Attempts[1].Model = "other" },
			func(r ledger.Row) bool { return r.CostUSD == nil && *r.Tokens.Input == 1000 }},
		{"SCN-15 OV-4 a client that left", "cancelled", func(_ *dispatch.Call, t *dispatch.Trail) {
			t.Cancelled, t.Status, t.Usage = true, 499, neutral.Usage{Input: 10, CachedRead: -1, CacheWrite: -1, Output: -1, Reasoning: -1}
			t.Attempts[1].OK, t.Attempts[1].Left, t.Attempts[1].Told = false, true, true
		}, func(r ledger.Row) bool {
			return r.Status == 499 && r.Reason == nil && r.Attempts[1].Billed && r.Attempts[1].Reason == nil && *r.Tokens.Input == 10 && r.Tokens.Output == nil && r.CostUSD == nil
		}},
		{"OBJ-17 a client that left before anything came", "cancelled", func(_ *dispatch.Call, t *dispatch.Trail) {
			t.Cancelled, t.Committed, t.Status, t.FirstByte, t.Usage, t.Attempts = true, false, 499, 0, none, nil
		}, func(r ledger.Row) bool {
			return len(r.Attempts) == 0 && r.TTFTMS == nil && *r.Provider == "acme" && r.ConnectionID == nil && *r.Model == "m1"
		}},
		{"SCN-17 failed attempts are not billed", "failed", func(_ *dispatch.Call, t *dispatch.Trail) {
			t.Committed, t.Status, t.Usage, t.Attempts = false, 429, none, t.Attempts[:1]
		}, func(r ledger.Row) bool {
			return !r.Attempts[0].Billed && *r.Reason == "quota_exhausted" && *r.ConnectionID == "c-1"
		}},
		{"OBJ-17 an attempt without an HTTP answer", "failed", func(_ *dispatch.Call, t *dispatch.Trail) {
			t.Attempts = t.Attempts[:1]
			t.Attempts[0].Status, t.Attempts[0].Original, t.Attempts[0].FirstByte, t.Attempts[0].RestatedBy = 502, 0, 0, ""
		}, func(r ledger.Row) bool {
			a := r.Attempts[0]
			return *a.Status == 502 && a.OriginalStatus == nil && a.FirstByteMS == nil && a.RestatedBy == nil
		}},
		{"OBJ-17 left out by a gate", "failed", func(_ *dispatch.Call, t *dispatch.Trail) {
			t.Attempts, t.Usage = nil, none
			t.Excluded = []dispatch.Exclusion{{Refusal: resilience.Refusal{Gate: "connection_cooldown", Reason: wire.RateLimitExceeded}}}
		}, func(r ledger.Row) bool { return *r.Reason == "rate_limit_exceeded" && len(r.Attempts) == 0 }},
		{"OBJ-17 refused before any route", "client_error", func(c *dispatch.Call, t *dispatch.Trail) {
			*t = dispatch.Trail{Began: start, Status: 404, Usage: none, Failure: &dialect.Failure{Status: 404, Code: "model_not_found"}}
			c.Route, c.Key, c.Header = nil, nil, nil
		}, func(r ledger.Row) bool {
			return r.Route == nil && *r.Reason == "model_not_found" && r.APIKeyID == nil && r.Client == nil && r.Provider == nil && r.ClientRetry == nil && len(r.Notes) == 0
		}},
		{"INF-48 a retry number that is none", "ok", func(c *dispatch.Call, _ *dispatch.Trail) {
			c.Header = http.Header{"X-Stainless-Retry-Count": {"many"}, "User-Agent": {strings.Repeat("x", 200) + " y"}}
		}, func(r ledger.Row) bool { return r.ClientRetry == nil && len(*r.Client) == 64 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil).started()
			call, tr := b.call("r"), trail()
			c.change(call, tr)
			b.Add(call, tr, c.outcome)
			r := b.get("r")
			if !c.check(r) || r.Outcome != c.outcome {
				text, _ := json.MarshalIndent(r, "", " ")
				t.Errorf("%s", text)
			}
		})
	}
}

func TestList(t *testing.T) {
	b := newBench(t, nil).started()
	for i := range 10 {
		tr := trail()
		tr.Began = start.Add(time.Duration(i) * time.Minute)
		c, outcome := b.call(fmt.Sprintf("r-%d", i)), "ok"
		if i%2 == 1 {
			outcome, c.Key = "failed", nil
			tr.Attempts = tr.Attempts[:1]
		}
		b.Add(c, tr, outcome)
	}
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }
	for _, c := range []struct {
		name          string
		f             ledger.Filter
		limit, offset int
		want          string
		total         int
	}{
		{"all, newest first", ledger.Filter{}, 3, 0, "r-9 r-8 r-7", 10},
		{"the next page", ledger.Filter{}, 3, 3, "r-6 r-5 r-4", 10},
		{"since and until", ledger.Filter{Since: at(2), Until: at(5)}, 10, 0, "r-4 r-3 r-2", 3},
		{"provider in any case", ledger.Filter{Provider: "ACME", Since: at(9)}, 10, 0, "r-9", 1},
		{"no such provider", ledger.Filter{Provider: "other"}, 10, 0, "", 0},
		{"connection", ledger.Filter{ConnectionID: "c-1"}, 2, 1, "r-7 r-5", 5},
		{"model of the answer", ledger.Filter{Model: "m1"}, 1, 0, "r-9", 10},
		{"model as asked for", ledger.Filter{Model: "best"}, 1, 0, "r-9", 10},
		{"key", ledger.Filter{APIKeyID: "laptop"}, 1, 0, "r-8", 5},
		{"outcome", ledger.Filter{Outcome: "failed"}, 9, 4, "r-1", 5},
		{"reason", ledger.Filter{Reason: "quota_exhausted", Until: at(2)}, 9, 0, "r-1", 1},
	} {
		t.Run("OBJ-17 "+c.name, func(t *testing.T) {
			rows, total, err := b.List(t.Context(), c.f, c.limit, c.offset)
			var ids []string
			for _, r := range rows {
				ids = append(ids, r.RequestID)
			}
			if got := strings.Join(ids, " "); err != nil || got != c.want || total != c.total {
				t.Errorf("%s of %d (%v), want %s of %d", got, total, err, c.want, c.total)
			}
		})
	}
	if _, found, err := b.Get(t.Context(), "r-"); found || err != nil {
		t.Errorf("the beginning of an id is none: %v, %v", found, err)
	}
}

func TestBodies(t *testing.T) {
	b := newBench(t, nil).started()
	b.Add(b.call("r-0"), trail(), "ok")
	kept := func(request, answer string) *dispatch.Trail {
		tr := trail()
		tr.Keep([]byte(request), []byte(answer))
		return tr
	}
	b.Add(b.call("r-1"), kept(`{"q":"sk-secret \u00fc"}`, "data: hello\n\n"), "ok")
	b.Add(b.call("r-2"), kept(strings.Repeat("\x01", 60<<10), strings.Repeat("\x02", 60<<10)), "ok")
	t.Run("OBJ-18 OBS-4 no text unless it is asked for", func(t *testing.T) {
		if r := b.get("r-0"); r.Bodies != nil {
			t.Errorf("%+v", r.Bodies)
		}
	})
	t.Run("OBJ-18 texts without secrets", func(t *testing.T) {
		if got := *b.get("r-1").Bodies; got.Request != `{"q":"[redacted] \u00fc"}` || got.Answer != "data: hello\n\n" || got.Cut {
			t.Errorf("%+v", got)
		}
	})
	t.Run("OBJ-18 texts that grow beyond a row are cut", func(t *testing.T) {
		if got := *b.get("r-2").Bodies; !got.Cut || got.Request == "" || got.Answer == "" {
			t.Errorf("%d and %d bytes, %v", len(got.Request), len(got.Answer), got.Cut)
		}
	})
	t.Run("OBJ-18 a list has no texts", func(t *testing.T) {
		rows, _, _ := b.List(t.Context(), ledger.Filter{}, 10, 0)
		for _, r := range rows {
			if r.Bodies != nil {
				t.Errorf("%s has %+v", r.RequestID, r.Bodies)
			}
		}
	})
}

func TestTraces(t *testing.T) {
	b := newBench(t, nil).started()
	for i := range 1001 {
		tr := trail()
		tr.Gates = []dispatch.Gate{{N: 5, Name: "resolve", Result: "combo best", Detail: fmt.Sprint(i), AtMS: 1}}
		b.Add(b.call(fmt.Sprintf("r-%d", i)), tr, "ok")
	}
	t.Run("OBJ-18 OV-1 the last thousand", func(t *testing.T) {
		if g := b.get("r-0").Gates; g != nil {
			t.Errorf("the oldest one is remembered: %v", g)
		}
		for _, id := range []string{"r-1", "r-1000"} {
			if g := b.get(id).Gates; len(g) != 1 || g[0].Detail != id[2:] {
				t.Errorf("%s: %v", id, g)
			}
		}
	})
	for r, err := range b.rows.NewestRows(t.Context(), ledger.Table, 0) {
		if err != nil || strings.Contains(string(r.Data), "gates") {
			t.Fatalf("stored: %s (%v)", r.Data, err)
		}
	}
}

// OBJ-17 OV-8: a row is there within a second, and the request does not wait for it.
func TestWrittenBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.Start()
		defer b.Stop(context.Background()) //nolint:errcheck // nothing fails
		b.Add(b.call("r"), trail(), "ok")
		if n, _ := b.rows.CountRows(t.Context(), ledger.Table); n != 0 {
			t.Fatal("the request waited for its row")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n, _ := b.rows.CountRows(t.Context(), ledger.Table); n != 1 {
			t.Fatalf("OBJ-17: %d rows after a second", n)
		}
	})
}

// stuck is a store that answers when it is let, and fails when it is told to.
type stuck struct {
	store.Rows
	gate chan struct{}
	err  error
}

func (s *stuck) AppendRows(ctx context.Context, table string, rows ...store.Row) (store.Seq, error) {
	<-s.gate
	if s.err != nil {
		return 0, s.err
	}
	return s.Rows.AppendRows(ctx, table, rows...)
}

// OV-8: what a store cannot take is dropped and counted, and no request waits.
func TestOverflow(t *testing.T) {
	s := &stuck{Rows: memory.New(memory.Options{Now: time.Now}), gate: make(chan struct{})}
	b := newBench(t, s).started()
	const n = 12_000
	c, tr := b.call("r"), trail()
	for range n {
		b.Add(c, tr, "ok")
	}
	close(s.gate)
	_, total, err := b.List(t.Context(), ledger.Filter{}, 1, 0)
	if err != nil || total == 0 || int64(total)+b.Dropped() != n || b.Dropped() == 0 {
		t.Errorf("%d rows and %d dropped of %d (%v)", total, b.Dropped(), n, err)
	}
}

// DATA-5: while the store is degraded rows are dropped and counted.
func TestDegraded(t *testing.T) {
	s := &stuck{Rows: memory.New(memory.Options{Now: time.Now}), gate: make(chan struct{}), err: store.ErrDegraded}
	close(s.gate)
	b := newBench(t, s).started()
	b.Add(b.call("r"), trail(), "ok")
	if _, total, _ := b.List(t.Context(), ledger.Filter{}, 1, 0); total != 0 || b.Dropped() != 1 {
		t.Errorf("%d rows, %d dropped", total, b.Dropped())
	}
}

// OBJ-18 DATA-4: the older of both limits prunes, at least once a minute.
func TestPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.Start()
		defer b.Stop(context.Background()) //nolint:errcheck // nothing fails
		count := func() int {
			time.Sleep(time.Minute)
			synctest.Wait()
			n, _ := b.rows.CountRows(t.Context(), ledger.Table)
			return n
		}
		for i := range 3000 {
			tr := trail()
			tr.Began = start.Add(time.Duration(i) * time.Second)
			b.Add(b.call(fmt.Sprint(i)), tr, "ok")
		}
		if n := count(); n != 3000 {
			t.Fatalf("%d rows before any limit", n)
		}
		b.mu.Lock()
		b.set.MaxRows = 2500
		b.mu.Unlock()
		if n := count(); n != 2500 {
			t.Errorf("%d rows, maxRows is 2500", n)
		}
		b.mu.Lock()
		b.clock = start.Add(7*24*time.Hour + 2000*time.Second)
		b.mu.Unlock()
		if n := count(); n != 1000 {
			t.Errorf("%d rows, seven days after the 2000th", n)
		}
		b.mu.Lock()
		b.set.MaxRows = 0
		b.mu.Unlock()
		if n := count(); n != 0 {
			t.Errorf("%d rows, maxRows is 0", n)
		}
	})
}

// OBJ-18: enabled off records nothing.
func TestDisabled(t *testing.T) {
	b := newBench(t, nil).started()
	b.set.Enabled = false
	b.Add(b.call("r"), trail(), "ok")
	if _, total, _ := b.List(t.Context(), ledger.Filter{}, 1, 0); total != 0 {
		t.Errorf("%d rows", total)
	}
}

func BenchmarkAdd(b *testing.B) {
	l := newBench(b, nil).started()
	c, tr := l.call("r"), trail()
	b.ReportAllocs()
	for b.Loop() {
		l.Add(c, tr, "ok")
	}
}
