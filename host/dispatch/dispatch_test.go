package dispatch_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http/httptest.(*Server).goServe.func1"))
}

// CMB-19, OV-9: a direct request tries every connection once, at once, and leaves the bad ones out afterwards.
func TestBadConnectionsAreLeftOut(t *testing.T) {
	b := newBench(t).with("limited", fails(429, `{"error":{"message":"slow down"}}`, "Retry-After", "30")).
		with("broken", fails(500, `{"error":{"message":"oops"}}`)).with("resets", resets).with("good", answers)
	c, trail := b.do(b.direct(), false)
	if c.status != 200 || !strings.Contains(c.body.String(), "hello") {
		t.Fatalf("%d %s %+v", c.status, c.body.String(), trail.Failure)
	}
	if got := b.seen(); !slices.Equal(got, []string{"limited", "broken", "resets", "good"}) {
		t.Fatal(got)
	}
	if trail.Usage.Input != 3 || trail.Usage.Output != 4 {
		t.Error(trail.Usage)
	}
	for range 5 {
		if c, _ := b.do(b.direct(), false); c.status != 200 {
			t.Fatal(c.status)
		}
	}
	if got := b.seen(); !slices.Equal(got, []string{"good", "good", "good", "good", "good"}) {
		t.Error("bad connections are still asked:", got)
	}
}

// INF-16: the body goes upstream byte for byte, but for the model's name; a failover replays it from the same bytes.
func TestBodyUpstream(t *testing.T) {
	b := newBench(t).with("a", fails(500, "{}")).with("b", answers)
	b.do(b.direct(), false)
	want := `{"model":"m","stream":false,"messages":[{"role":"user","content":"hi"}],"odd":[1, 2]}`
	if !slices.Equal(b.bodies, []string{want, want}) {
		t.Error(b.bodies)
	}
}

// A connection that hangs ends at the start timeout and cools nothing (COOL-33); others are preferred to it from then on.
func TestHangingConnectionIsTriedLast(t *testing.T) {
	b := newBench(t).with("hangs", hangs).with("good", answers)
	rt := b.direct()
	limit := 50 * time.Millisecond
	rt.Config.TargetTimeout = &limit
	if c, _ := b.do(rt, false); c.status != 200 {
		t.Fatal(c.status)
	}
	b.do(rt, false)
	if got := b.seen(); !slices.Equal(got, []string{"hangs", "good", "good"}) {
		t.Error(got)
	}
	for _, e := range b.events {
		if e.Kind == "connection.cooldown" && e.ConnectionID == "hangs" {
			t.Error("COOL-33: our own deadline cooled a connection:", string(e.Data))
		}
	}
	b.later(31 * time.Second)
	b.do(rt, false)
	b.do(rt, false)
	if got := b.seen(); !slices.Equal(got, []string{"hangs", "good", "good"}) {
		t.Error("one request finds out whether it answers again:", got)
	}
}

// COOL-72: while all candidates cool, 429 model_cooldown at once, with the earliest end.
func TestAllCooling(t *testing.T) {
	b := newBench(t).with("a", fails(429, `{"error":{"message":"limit"}}`, "Retry-After", "40")).
		with("b", fails(429, `{"error":{"message":"limit"}}`, "Retry-After", "20"))
	_, first := b.do(b.direct(), false)
	if first.Failure == nil || first.Failure.Status != 429 || first.Failure.RetryAfter == 0 || !strings.HasPrefix(first.Failure.Message, "limit") {
		t.Fatalf("INF-32: the upstream's own words come first: %+v", first.Failure)
	}
	b.seen()
	_, trail := b.do(b.direct(), false)
	f := trail.Failure
	if f == nil || f.Status != 429 || f.Code != "model_cooldown" || f.Type != "rate_limit_error" {
		t.Fatalf("%+v", f)
	}
	if f.RetryAfter < 19*time.Second || f.RetryAfter > 20*time.Second {
		t.Error(f.RetryAfter)
	}
	facts := map[string]any{}
	for _, x := range f.Facts {
		facts[x.Name] = x.Value
	}
	if facts["credentials_cooling"] != 2 || facts["model"] != "acme/m" || facts["reset_seconds"].(int64) < 19 {
		t.Error(facts)
	}
	if at, err := time.Parse(time.RFC3339, facts["retry_after"].(string)); err != nil || at.Before(b.clock) {
		t.Error(facts["retry_after"], err)
	}
	if got := b.seen(); len(got) != 0 {
		t.Error("the upstream was asked:", got)
	}
	b.later(21 * time.Second)
	b.by["b"] = answers
	if c, _ := b.do(b.direct(), false); c.status != 200 {
		t.Error("an expired cooldown still blocks")
	}
}

// COOL-73, INF-38: terminal connections give 503 that names states and counts, never accounts; a refused credential is 502,
// never the client's 401; 402 when all of them ran out of credits.
func TestNoUsableConnection(t *testing.T) {
	table := `[{"id":"ban","status":[403],"text_contains":["deactivated"],"then":{"reason":"banned","scope":"connection","terminal":true}},
		{"id":"credits","status":[402],"then":{"reason":"credits_exhausted","scope":"connection","terminal":true}}]`
	b := newBench(t).rules(table).with("one", fails(403, `{"error":{"message":"account deactivated"}}`))
	_, first := b.do(b.direct(), false)
	if first.Failure.Status != 502 || first.Failure.Code != "upstream_auth" || !strings.Contains(first.Failure.Message, "acme") {
		t.Errorf("INF-38: %+v", first.Failure)
	}
	_, trail := b.do(b.direct(), false)
	f := trail.Failure
	if f.Status != 503 || f.Code != "no_usable_connection" || f.Type != "server_error" || !strings.Contains(f.Message, "1 banned") {
		t.Errorf("COOL-73: %+v", f)
	}
	if strings.Contains(f.Message, "one ") {
		t.Error("the answer names an account:", f.Message)
	}
	broke := newBench(t).rules(table).with("broke", fails(402, `{"error":{"message":"top up"}}`))
	broke.do(broke.direct(), false)
	if _, trail := broke.do(broke.direct(), false); trail.Failure.Status != 402 {
		t.Errorf("COOL-73: %+v", trail.Failure)
	}
	none := newBench(t)
	if _, trail := none.do(none.direct(), false); trail.Failure.Status != 503 || trail.Failure.Code != "no_usable_connection" {
		t.Errorf("%+v", trail.Failure)
	}
	rt := none.direct()
	rt.Kind, rt.Name = catalog.KindCombo, "best"
	if _, trail := none.do(rt, false); trail.Failure.Status != 404 || trail.Failure.Code != "no_executable_targets" {
		t.Errorf("CMB-50, OTH-51: %+v", trail.Failure)
	}
}

// RST-1 to RST-7, OV-2: the corrected status is what classifier, client and record see.
func TestRestatedQuota(t *testing.T) {
	b := newBench(t).rules(`[
		{"id":"misstated","status":[403],"text_contains":["额度不足"],"then":{"restate_status":429,"restate_code":"rate_limit_exceeded","retry_after":"60s"}},
		{"id":"quota","status":[429],"text_contains":["额度不足"],"then":{"reason":"quota_exhausted","scope":"connection"}}]`).
		with("lies", fails(403, `{"error":{"message":"用户额度不足"}}`))
	_, trail := b.do(b.direct(), false)
	a := trail.Attempts[0]
	if a.Status != 429 || a.Original != 403 || a.RestatedBy != "test/misstated" || a.Verdict.Reason != wire.QuotaExhausted {
		t.Errorf("%+v", a)
	}
	f := trail.Failure
	if f.Status != 429 || f.Code != "rate_limit_exceeded" || f.RetryAfter != time.Minute || !strings.HasPrefix(f.Message, "用户额度不足") {
		t.Errorf("RST-6: %+v", f)
	}
	if trail.Restated != "misstated;from=403" {
		t.Error("RST-7:", trail.Restated)
	}
	if _, again := b.do(b.direct(), false); again.Failure.Code != "model_cooldown" || again.Failure.RetryAfter > 2*time.Second {
		t.Errorf("RST-6: the window for the client became a cooldown: %+v", again.Failure)
	}
}

// CMB-18: a 400 about the request itself stops the loop, goes to the caller unchanged, and cools nothing.
func TestInvalidRequestStops(t *testing.T) {
	const text = `{"error":{"message":"bad parameter","type":"invalid_request_error","param":"x","code":null}}`
	b := newBench(t).with("a", fails(400, text)).with("b", answers)
	_, trail := b.do(b.direct(), false)
	if trail.Failure.Status != 400 || string(trail.Unchanged) != text || len(b.seen()) != 1 || len(b.events) != 0 {
		t.Errorf("%+v %s %v", trail.Failure, trail.Unchanged, b.events)
	}
}

// CMB-18 with body edits: the 400 may be ours, so the next target of another provider is tried; the first 400 is the answer.
func TestInvalidRequestAfterOurEdits(t *testing.T) {
	b := newBench(t).with("a", fails(400, `{"error":{"message":"first"}}`)).with("a2", answers)
	b.plan.Body = []wire.Edit{{Op: "delete", Path: "odd"}}
	other := *b.prov
	other.ID, other.Connections = "other", nil
	b.by["o"] = fails(400, `{"error":{"message":"second"}}`)
	other.Connections = []*catalog.Connection{{ID: "o", Active: true, Secrets: map[string]catalog.Secret{"api_key": catalog.NewSecret("o")}}}
	rt := b.direct()
	rt.Kind = catalog.KindCombo
	rt.Targets = append(rt.Targets, catalog.RouteTarget{Key: "other/m", Provider: &other, Model: "m"})
	_, trail := b.do(rt, false)
	if got := b.seen(); !slices.Equal(got, []string{"a", "o"}) {
		t.Error(got)
	}
	if trail.Failure.Status != 400 || !strings.HasPrefix(trail.Failure.Message, "first") {
		t.Errorf("%+v", trail.Failure)
	}
}

// CMB-10, CMB-14: targets run in order; never more than thirty dispatches.
func TestCombo(t *testing.T) {
	b := newBench(t).with("a", fails(503, `{"error":{"message":"busy"}}`))
	second := *b.prov
	second.ID, second.Connections = "second", nil
	b.by["s"] = answers
	second.Connections = []*catalog.Connection{{ID: "s", Active: true, Secrets: map[string]catalog.Secret{"api_key": catalog.NewSecret("s")}}}
	rt := b.direct()
	rt.Kind, rt.Name = catalog.KindCombo, "best"
	rt.Targets = append(rt.Targets, catalog.RouteTarget{Key: "second/m", Provider: &second, Model: "m2"})
	if c, trail := b.do(rt, false); c.status != 200 || trail.Serving().Connection.ID != "s" || !slices.Equal(b.seen(), []string{"a", "s"}) {
		t.Error(c.status)
	}
	many := newBench(t)
	for i := range 40 {
		many.with(string(rune('A'+i)), fails(500, "{}"))
	}
	_, trail := many.do(many.direct(), false)
	if n := len(many.seen()); n != 30 || trail.Failure.Status != 503 || trail.Failure.Code != "max_attempts_exceeded" {
		t.Errorf("CMB-14: %d %+v", n, trail.Failure)
	}
}

// OV-4, CMB-17, COOL-34: a client that leaves ends the loop and counts against nobody.
func TestClientLeaves(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.with("a", func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() }).with("b", answers)
	_, trail := b.doCtx(ctx, b.direct(), false)
	if !trail.Cancelled || trail.Failure != nil || len(b.seen()) != 1 || len(b.events) != 0 {
		t.Errorf("%+v %v", trail, b.events)
	}
}

// CMB-16: comboTimeoutMs bounds the whole request.
func TestComboTimeout(t *testing.T) {
	b := newBench(t).with("a", hangs)
	rt := b.direct()
	limit := 30 * time.Millisecond
	rt.Config.ComboTimeout = &limit
	_, trail := b.do(rt, false)
	if trail.Failure == nil || trail.Failure.Status != 504 || trail.Failure.Code != "COMBO_TIMEOUT" || trail.Cancelled {
		t.Errorf("%+v", trail)
	}
}

// DATA-1, INF-33: what goes to the client is cleaned of known secrets.
func TestMessagesAreRedacted(t *testing.T) {
	b := newBench(t).with("a", fails(400, `{"error":{"message":"key sk-leak is bad"}}`))
	_, trail := b.do(b.direct(), false)
	if strings.Contains(trail.Failure.Message+string(trail.Unchanged), "sk-leak") {
		t.Errorf("%+v %s", trail.Failure, trail.Unchanged)
	}
}

// DATA-1: a provider may repeat the key that it refuses: as a code, across the place where a stored message ends, or escaped.
// No record has a part of it, and what rules and plugins read is clean already.
func TestRefusedKeyIsNotRecorded(t *testing.T) {
	for _, text := range []string{
		`{"error":{"message":"no","code":"sk-leak"}}`,
		`{"error":{"message":"` + strings.Repeat("x", 96) + `sk-leak"}}`,
		`{"error":{"message":"key \u0073k-leak","code":"\u0073k-leak"}}`,
	} {
		b := newBench(t).with("a", fails(401, text))
		if !strings.Contains(text, `\u`) {
			b.rules(`[{"id":"sees","status":[401],"text_contains":["sk-l"],"then":{"reason":"banned"}}]`)
		}
		b.do(b.direct(), false)
		if len(b.events) != 1 {
			t.Fatal(len(b.events))
		}
		if record := string(b.events[0].Data); strings.Contains(record, "sk-l") || !strings.Contains(record, "auth_error") {
			t.Errorf("%s: %s", text, record)
		}
	}
}

// A plain answer that is an error under 200, or a page, is a failure with the status that it states (SCN-8).
func TestErrorUnderGoodStatus(t *testing.T) {
	for text, want := range map[string]int{
		`{"error":{"message":"x","code":429}}`:                 429,
		`{"error":{"message":"x","type":"overloaded_error"}}`:  529,
		`{"base_resp":{"status_code":1008,"status_msg":"no"}}`: 502,
		`<html>Bad gateway</html>`:                             502,
		``:                                                     502,
	} {
		b := newBench(t).with("a", fails(200, text)).with("b", answers)
		c, trail := b.do(b.direct(), false)
		if c.status != 200 || len(trail.Attempts) != 2 || trail.Attempts[0].Status != want {
			t.Errorf("%q: %d %+v", text, c.status, trail.Attempts)
		}
	}
	fine := newBench(t).with("a", fails(200, `{"choices":[{"message":{"content":"{\"error\":\"in text\"}"}}],"error":null}`))
	if c, _ := fine.do(fine.direct(), false); c.status != 200 {
		t.Error("an answer that only mentions an error was taken for one")
	}
}

// Failures after our own preparation cost no attempt and no state (ABI-3: plan_invalid).
func TestPlanThatDoesNotFit(t *testing.T) {
	b := newBench(t).with("a", answers)
	b.plan.URL = "https://elsewhere.example/x"
	_, trail := b.do(b.direct(), false)
	if trail.Failure.Status != 502 || trail.Failure.Code != "executor_error" || len(b.seen()) != 0 || len(b.events) != 0 {
		t.Errorf("%+v", trail.Failure)
	}
}

// bomb is a client whose connection panics at its first byte.
type bomb struct{ client }

func (*bomb) Commit(int, http.Header, *dispatch.Trail) { panic("boom") }

// OV-3: a panic below costs one request, which is told and recorded; nothing of it stays behind.
func TestPanic(t *testing.T) {
	b := newBench(t).with("a", streams(word, finish, done))
	gate := &countingGate{Gate: terminal.New(account.NewBook(nil))}
	b.d.Ladder = resilience.NewLadder(gate)
	trail := b.send(t.Context(), b.direct(), true, &bomb{})
	if trail.Failure == nil || trail.Failure.Status != 500 || strings.Contains(trail.Failure.Message, "boom") || !trail.Cut {
		t.Errorf("%+v", trail)
	}
	if gate.admitted != 1 || gate.ended != 1 {
		t.Errorf("%+v", gate)
	}
	if c, _ := b.do(b.direct(), true); c.status != 200 || gate.ended != 2 {
		t.Error(c.status, gate)
	}
}

// countingGate counts permits given out and ended.
type countingGate struct {
	resilience.Gate
	admitted, ended int
}

func (g *countingGate) Admit(at resilience.Moment, t catalog.Target) (resilience.Permit, *resilience.Refusal) {
	g.admitted++
	return g.Gate.Admit(at, t)
}

func (g *countingGate) Cancel(at resilience.Moment, t catalog.Target, p resilience.Permit) {
	g.ended++
	g.Gate.Cancel(at, t, p)
}

func (g *countingGate) Settle(at resilience.Moment, t catalog.Target, p resilience.Permit, o resilience.Outcome) []store.Event {
	g.ended++
	return g.Gate.Settle(at, t, p, o)
}

// The log says what broke a connection, which the client is not told (INF-33).
func TestLogNamesTheFault(t *testing.T) {
	b := newBench(t).with("a", resets)
	var text bytes.Buffer
	b.d.Log = slog.New(slog.NewTextHandler(&text, nil))
	b.srv.Close()
	_, trail := b.do(b.direct(), false)
	if !strings.Contains(text.String(), "connection refused") || strings.Contains(trail.Failure.Message, "127.0.0.1") {
		t.Errorf("%s\n%s", text.String(), trail.Failure.Message)
	}
}

// CLS-15, CMB-10: a limit of one model cools no connection, and yet it is not asked again before the time that it named while
// another connection answers, in a direct request and where a combo pins each of its targets. Other models still go to it.
func TestLimitedModelIsLeftOut(t *testing.T) {
	b := newBench(t).rules(`[{"id":"tpm","status":[429],"then":{"reason":"rate_limit_exceeded","scope":"model"}}]`).
		with("limited", fails(429, `{"error":{"message":"TPM"}}`, "Retry-After", "20")).with("good", answers)
	ways := []struct {
		name string
		rt   *catalog.Route
	}{{"direct", b.direct()}, {"combo of pinned targets", pinned(b.direct())}}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			for i, want := range [][]string{{"limited", "good"}, {"good"}, {"good"}} {
				if c, _ := b.do(way.rt, false); c.status != 200 {
					t.Fatal(c.status)
				}
				if got := b.seen(); !slices.Equal(got, want) {
					t.Errorf("request %d went to %v, want %v", i, got, want)
				}
			}
			other := *way.rt
			other.Targets = slices.Clone(way.rt.Targets)
			for i := range other.Targets {
				other.Targets[i].Model = "other"
			}
			b.by["limited"] = answers
			b.do(&other, false)
			if got := b.seen(); !slices.Equal(got, []string{"limited"}) {
				t.Error("another model of the connection went to", got)
			}
			b.by["limited"] = fails(429, `{"error":{"message":"TPM"}}`, "Retry-After", "20")
			b.later(21 * time.Second)
		})
	}
	if err := b.events; slices.ContainsFunc(err, func(e store.Event) bool { return e.Kind == "connection.cooldown" }) {
		t.Error("a verdict about a model cooled a connection")
	}
}

// COOL-33: a combo that pins its targets does not wait for one that hangs a second time.
func TestHangingTargetIsTriedLast(t *testing.T) {
	b := newBench(t).with("hangs", hangs).with("good", answers)
	rt := pinned(b.direct())
	limit := 50 * time.Millisecond
	rt.Config.TargetTimeout = &limit
	for range 3 {
		b.do(rt, false)
	}
	if got := b.seen(); !slices.Equal(got, []string{"hangs", "good", "good", "good"}) {
		t.Error(got)
	}
	b.by["good"] = fails(500, "{}")
	b.do(rt, false)
	if got := b.seen(); !slices.Equal(got, []string{"good", "hangs"}) {
		t.Error("what is tried last is still tried:", got)
	}
}

// pinned is a combo with a target for each connection of a direct route.
func pinned(direct *catalog.Route) *catalog.Route {
	rt := *direct
	rt.Kind, rt.Targets = "combo", nil
	for _, c := range direct.Targets[0].Provider.Connections {
		target := direct.Targets[0]
		target.Connection = c
		rt.Targets = append(rt.Targets, target)
	}
	return &rt
}
