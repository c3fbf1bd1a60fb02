package dispatch_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// pair is a provider with two accounts, and a second provider behind it that answers.
func pair(t *testing.T, table string, status int, combo bool) (*bench, *catalog.Route) {
	t.Helper()
	b := newBench(t).rules(table).with("a1", fails(status, `{"error":{"message":"marker"}}`)).with("a2", answers)
	rt := b.direct()
	if !combo {
		return b, rt
	}
	second := *b.prov
	second.ID = "second"
	b.by["s"] = answers
	second.Connections = []*catalog.Connection{{ID: "s", Active: true, Secrets: map[string]catalog.Secret{"api_key": catalog.NewSecret("s")}}}
	rt.Kind, rt.Name = catalog.KindCombo, "best"
	rt.Targets = append(rt.Targets, catalog.RouteTarget{Key: "second/m", Provider: &second, Model: "m"})
	return b, rt
}

// CLS-15, RUL-3: what a verdict does to the connection and to the rest of the request, row by row, through a direct request and
// through a combo. OV-9: the same, but that a combo has a next target.
func TestWhatAVerdictDoes(t *testing.T) {
	rule := func(then string) string {
		return `[{"id":"r","text_contains":["marker"],"then":` + then + `}]`
	}
	for _, row := range []struct {
		name, then    string
		status        int
		direct, combo []string // keys that the upstream saw
		cools         bool
		ends          bool
	}{
		{"request, no fallback", `{"reason":"invalid_request"}`, 400, []string{"a1"}, []string{"a1"}, false, false},
		{"request, fallback", `{"reason":"content_filtered","scope":"request","fallback":true}`, 400, []string{"a1"}, []string{"a1"}, false, false},
		{"request, too dear", `{"reason":"credits_exhausted","scope":"request"}`, 402, []string{"a1", "a2"}, []string{"a1", "a2"}, false, false},
		{"model", `{"reason":"overloaded","scope":"model"}`, 503, []string{"a1", "a2"}, []string{"a1", "a2"}, false, false},
		// COOL-45: a refusal of the request itself: nothing cools, and no other account of this provider is asked.
		{"request, refused for its shape", `{"reason":"request_rejected","scope":"request"}`, 403, []string{"a1"}, []string{"a1", "s"}, false, false},
		{"connection", `{"reason":"quota_exhausted","scope":"connection"}`, 429, []string{"a1", "a2"}, []string{"a1", "a2"}, true, false},
		{"connection, terminal", `{"reason":"banned","scope":"connection","terminal":true}`, 403, []string{"a1", "a2"}, []string{"a1", "a2"}, false, true},
		{"provider, another may fare better", `{"reason":"server_error","scope":"provider"}`, 500, []string{"a1", "a2"}, []string{"a1", "a2"}, true, false},
		{"provider, all would hear the same", `{"reason":"quota_exhausted","scope":"provider"}`, 429, []string{"a1"}, []string{"a1", "s"}, true, false},
	} {
		for _, combo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, combo %v", row.name, combo), func(t *testing.T) {
				b, rt := pair(t, rule(row.then), row.status, combo)
				b.do(rt, false)
				want := row.direct
				if combo {
					want = row.combo
				}
				if got := b.seen(); !slices.Equal(got, want) {
					t.Errorf("the upstream saw %v, want %v", got, want)
				}
				kinds := []string{}
				for _, e := range b.events {
					kinds = append(kinds, e.Kind)
				}
				if slices.Contains(kinds, "connection.cooldown") != row.cools || slices.Contains(kinds, "connection.terminal") != row.ends {
					t.Errorf("events %v", kinds)
				}
			})
		}
	}
}

// RUL-7: a connection whose quota is out is out of the request: later targets that are pinned to it are skipped, and one that is not
// takes another connection.
func TestExhaustedConnectionInLaterTargets(t *testing.T) {
	b, rt := pair(t, `[{"id":"r","text_contains":["marker"],"then":{"reason":"quota_exhausted","scope":"connection"}}]`, 429, true)
	pinned := func(model string) catalog.RouteTarget {
		return catalog.RouteTarget{Key: "p/" + model + "@a1", Provider: b.prov, Model: model, Connection: b.prov.Connections[0]}
	}
	rt.Targets = []catalog.RouteTarget{pinned("m"), pinned("m2"), {Key: "p/m3", Provider: b.prov, Model: "m3"}}
	c, trail := b.do(rt, false)
	if got := b.seen(); c.status != 200 || !slices.Equal(got, []string{"a1", "a2"}) || trail.Serving().Model != "m3" {
		t.Errorf("status %d, the upstream saw %v, served by %s", c.status, got, trail.Serving().Model)
	}
}

// CMB-26: a route may let a filtered request, and one too large for a model, go to other targets.
func TestRouteOptions(t *testing.T) {
	const filtered = `[{"id":"r","text_contains":["marker"],"then":{"reason":"content_filtered"}}]`
	b, rt := pair(t, filtered, 400, true)
	yes := true
	rt.Config.FallbackOnFilter = &yes
	if c, _ := b.do(rt, false); c.status != 200 || !slices.Equal(b.seen(), []string{"a1", "s"}) {
		t.Error("fallbackOnContentFilter: the next target is tried, the other account is not")
	}
	const overflow = `[{"id":"r","text_contains":["marker"],"then":{"reason":"context_overflow"}}]`
	for window, want := range map[int][]string{0: {"a1"}, 50: {"a1"}, 200: {"a1", "s"}} {
		b, rt := pair(t, overflow, 400, true)
		b.prov.Models = []wire.Model{{ID: "m", ContextWindow: 100}}
		rt.Targets[1].Provider.Models = []wire.Model{{ID: "m", ContextWindow: window}}
		b.do(rt, false)
		if got := b.seen(); !slices.Equal(got, want) {
			t.Errorf("window %d: %v", window, got)
		}
	}
}

// RST-11, INF-40: only 429 and 503 carry a retry window to the client.
func TestWhoGetsARetryWindow(t *testing.T) {
	for status, carried := range map[int]bool{429: true, 503: true, 500: false, 404: false, 402: false} {
		b := newBench(t).with("a", fails(status, `{"error":{"message":"x"}}`, "Retry-After", "30"))
		_, trail := b.do(b.direct(), false)
		if got := trail.Failure.RetryAfter == 30*time.Second; got != carried {
			t.Errorf("%d: %s", status, trail.Failure.RetryAfter)
		}
	}
}

// INF-40: a 429 always states a time; without the upstream's it is that of the connection.
func TestLimitWithoutATime(t *testing.T) {
	b := newBench(t).with("a", fails(429, `{"error":{"message":"x"}}`))
	_, trail := b.do(b.direct(), false)
	_, next := b.do(b.direct(), false)
	if got := trail.Failure.RetryAfter; got < time.Second || got != next.Failure.RetryAfter {
		t.Errorf("%s, then %s", got, next.Failure.RetryAfter)
	}
}

// RST-10: an answer without a body is never restated, but statuses that clients do not know are read by the host.
func TestHostReading(t *testing.T) {
	b := newBench(t).rules(`[{"id":"r","status":[403],"then":{"restate_status":429}}]`).with("a", fails(403, ""))
	if _, trail := b.do(b.direct(), false); trail.Attempts[0].Status != 403 || trail.Restated != "" {
		t.Errorf("%+v", trail.Attempts[0])
	}
	for status, want := range map[int]int{520: 502, 524: 504} {
		b := newBench(t).with("a", fails(status, "x"))
		if _, trail := b.do(b.direct(), false); trail.Attempts[0].Status != want || trail.Attempts[0].Original != status {
			t.Errorf("%d: %+v", status, trail.Attempts[0])
		}
	}
}

// COOL-60, COOL-62: the operator's own ban signals are read beside the built-in ones, in error bodies only (COOL-66).
func TestCustomBanSignals(t *testing.T) {
	b := newBench(t).with("a", fails(418, `{"error":{"message":"Your Tea Privileges Are Revoked"}}`)).with("b", answers)
	b.snap.Settings.CustomBannedSignals = []string{"tea privileges are revoked"}
	_, trail := b.do(b.direct(), false)
	v := trail.Attempts[0].Verdict
	if v.Reason != wire.ReasonBanned || !v.Terminal || v.Evidence() != "settings/customBannedSignals" {
		t.Errorf("%+v", v)
	}
	talk := newBench(t).with("a", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices":[{"message":{"content":"tea privileges are revoked"}}]}`)
	})
	talk.snap.Settings.CustomBannedSignals = b.snap.Settings.CustomBannedSignals
	if c, _ := talk.do(talk.direct(), false); c.status != 200 || len(talk.events) != 0 {
		t.Error("COOL-66: the words of an answer banned an account")
	}
}

// OBJ-11, API-73: a test asks for the model list, counts for nothing, and shows a failure as its verdict.
func TestConnectionTest(t *testing.T) {
	b := newBench(t).with("good", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/models") {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		fmt.Fprint(w, `{"data":[{"id":"m1"},{"id":"m2"}]}`)
	}).with("bad", fails(401, `{"error":{"message":"no such key sk-leak"}}`))
	b.prov.Dialects = map[string]wire.Dialect{"/v1/models": wire.RawDialect}
	b.plan = wire.Plan{Method: http.MethodGet, URL: "{{connection.base_url}}/models", Dialect: wire.RawDialect,
		Headers: map[string]string{"authorization": "Bearer {{secret.api_key}}"}}
	s := b.withCatalog()
	good := b.d.Check(t.Context(), s, b.prov.Connections[0])
	if !good.OK || good.Status != 200 || !slices.Equal(good.Models, []string{"m1", "m2"}) {
		t.Errorf("%+v", good)
	}
	bad := b.d.Check(t.Context(), s, b.prov.Connections[1])
	if bad.OK || bad.Status != 401 || bad.Verdict.Reason != wire.AuthError || strings.Contains(bad.Message, "sk-leak") {
		t.Errorf("%+v", bad)
	}
	if len(b.events) != 0 || len(b.meter.attempts) != 0 {
		t.Error("a test counted:", b.events, b.meter.attempts)
	}
}
