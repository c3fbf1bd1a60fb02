package manage_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/ledger"
	"github.com/weirgate/weir/host/pricing"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// requestRecord plays the ledger.
type requestRecord struct {
	filter        ledger.Filter
	limit, offset int
	rows          []ledger.Row
	fail          error
}

func (l *requestRecord) List(_ context.Context, f ledger.Filter, limit, offset int) ([]ledger.Row, int, error) {
	l.filter, l.limit, l.offset = f, limit, offset
	return l.rows, len(l.rows), l.fail
}

func (l *requestRecord) Get(_ context.Context, id string) (ledger.Row, bool, error) {
	for _, r := range l.rows {
		if r.RequestID == id {
			return r, true, l.fail
		}
	}
	return ledger.Row{}, false, l.fail
}

func (l *requestRecord) Dropped() int64 { return 3 }

func TestRequests(t *testing.T) {
	gates := []dispatch.Gate{{N: 5, Name: "resolve", Result: "direct acme/m", Detail: "m", AtMS: 1}}
	rec := &requestRecord{rows: []ledger.Row{
		{RequestID: "r/2", Outcome: "ok", Gates: gates, Attempts: []ledger.Attempt{}, Notes: []string{}}, {RequestID: "r-1", Outcome: "failed"},
	}}
	r := newRig(t, func(r *rig) { r.ports.Requests = rec })
	t.Run("OBJ-17 OBJ-3 a list with filters", func(t *testing.T) {
		r.call("GET", "/api/requests?provider=acme&connectionId=c&model=m&apiKeyId=k&outcome=failed&reason=model_capacity&since=1h&until=2026-07-01T11:30:00Z&limit=5&offset=2", "").is(200).
			has("total", 2, "dropped", 3, "requests.0.requestId", "r/2", "requests.1.outcome", "failed")
		want := ledger.Filter{
			Provider: "acme", ConnectionID: "c", Model: "m", APIKeyID: "k", Outcome: "failed", Reason: string(wire.Overloaded),
			Since: r.clock().Add(-time.Hour), Until: time.Date(2026, 7, 1, 11, 30, 0, 0, time.UTC),
		}
		if d := cmp.Diff(want, rec.filter); d != "" || rec.limit != 5 || rec.offset != 2 {
			t.Errorf("asked for %d from %d: %s", rec.limit, rec.offset, d)
		}
		r.call("GET", "/api/requests", "").is(200)
		if rec.filter != (ledger.Filter{}) || rec.limit != 200 {
			t.Errorf("%+v, %d", rec.filter, rec.limit)
		}
		for _, q := range []string{"outcome=great", "since=yesterday", "until=-1h", "limit=0", "limit=1001", "offset=-1"} {
			r.call("GET", "/api/requests?"+q, "").refused(400, "bad_request")
		}
	})
	t.Run("OBJ-17 OBJ-18 one request", func(t *testing.T) {
		r.call("GET", "/api/requests/r%2F2", "").is(200).has("requestId", "r/2", "gates.0.name", "resolve", "gates.0.n", 5, "costUsd", nil)
		r.call("GET", "/api/requests/nobody", "").refused(404, "not_found").has("error.message",
			"There is no request nobody in the ledger; it is too old, or was made before the log was switched on.")
	})
	t.Run("DATA-5 while the store is degraded", func(t *testing.T) {
		rec.fail = store.ErrDegraded
		r.call("GET", "/api/requests", "").refused(507, "store_degraded")
		r.call("GET", "/api/requests/r-1", "").refused(507, "store_degraded")
	})
}

func TestPricing(t *testing.T) {
	n := func(v float64) *float64 { return &v }
	r := newRig(t, func(r *rig) {
		r.ports.Prices = func() *pricing.Table {
			return pricing.New(pricing.Source{Plugin: "pricing", Version: "1.2.0", Prices: []wire.Price{
				{Provider: "openai", Model: "gpt-5*", Input: n(1.25), Output: n(10), CachedRead: n(0.125), Since: "2026-07-01"},
				{Provider: "gemini", Model: "*", Input: n(0), Output: n(0), Tiers: []wire.Tier{{Above: 200_000, Input: n(2), Output: n(3)}}},
			}})
		}
	})
	t.Run("OBJ-21 the table in force", func(t *testing.T) {
		r.call("GET", "/api/pricing", "").is(200).has("total", 2, "prices.0.model", "gpt-5*", "prices.0.input", 1.25, "prices.0.cachedRead", 0.125,
			"prices.0.cacheWrite", nil, "prices.0.since", "2026-07-01", "prices.0.source", "pricing@1.2.0", "prices.1.input", 0,
			"prices.1.tiers.0.above", 200_000, "prices.1.since", nil)
		r.call("GET", "/api/pricing?offset=1&limit=1", "").is(200).has("total", 2, "prices.0.provider", "gemini")
	})
}

func TestQuota(t *testing.T) {
	r := newRig(t)
	r.call("POST", "/api/providers", `{"id":"c-1","provider":"openai","apiKey":"sk-0123456789abcdefghij"}`).is(201).has("connection.quota", nil)
	t.Run("OBJ-20 before anything was learned", func(t *testing.T) {
		r.call("GET", "/api/providers/c-1/quota", "").is(200).has("connectionId", "c-1", "at", nil, "source", nil, "windows", []any{})
	})
	r.quota.Learn("c-1", http.Header{"X-Ratelimit-Limit-Requests": {"500"}, "X-Ratelimit-Remaining-Requests": {"50"}}, r.clock())
	t.Run("OBJ-20 OBJ-8 what was learned", func(t *testing.T) {
		r.call("GET", "/api/providers/c-1/quota", "").is(200).has("source", "headers", "windows.0.name", "requests", "windows.0.usedPercent", 90,
			"windows.0.remaining", 50, "windows.0.limit", 500, "windows.0.resetsAt", nil)
		r.call("GET", "/api/providers/c-1", "").is(200).has("connection.quota.connectionId", "c-1", "connection.quota.windows.0.usedPercent", 90)
	})
	t.Run("OBJ-20 OBJ-3 no such connection", func(t *testing.T) {
		r.call("GET", "/api/providers/nobody/quota", "").refused(404, "not_found")
	})
}
