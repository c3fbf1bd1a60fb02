package breaker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/gatetest"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

func clock() time.Time { return gatetest.Start.Add(24 * time.Hour) }

func at(d time.Duration) resilience.Moment {
	return resilience.Moment{Now: gatetest.Start.Add(d), Catalog: &catalog.Snapshot{Settings: gatetest.Defaults()}}
}

func target(provider, connection string) catalog.Target {
	return catalog.Target{
		Provider:   &catalog.Provider{ID: provider, Category: catalog.APIKey},
		Connection: &catalog.Connection{ID: connection, Provider: provider}, Model: "m",
	}
}

func failed() resilience.Outcome {
	return resilience.Outcome{
		Verdict: wire.Verdict{Reason: wire.ServerError, Scope: wire.ScopeProvider, Fallback: true, Plugin: "test", Rule: "r"},
		Cause:   resilience.Cause{Status: 503, RequestID: "req-1"},
	}
}

// fail lets n connections of a provider fail at once.
func fail(g *breaker.Gate, at resilience.Moment, provider string, n int) (out []store.Event) {
	for i := range n {
		tt := target(provider, fmt.Sprint(provider, i))
		p, _ := g.Admit(at, tt)
		out = append(out, g.Settle(at, tt, p, failed())...)
	}
	return out
}

// BRK-1: an alias and the id are one breaker.
func TestAlias(t *testing.T) {
	s, faults := catalog.Build(catalog.Sources{Described: []catalog.Described{{
		Plugin: "p", Builtin: true, Providers: []wire.Provider{{ID: "glm", Name: "GLM", Aliases: []string{"zhipu"}, Auth: wire.AuthAPIKey, BaseURL: "https://glm.example/v1"}},
	}}})
	if len(faults) > 0 || s.Provider("zhipu") == nil {
		t.Fatalf("faults %v, alias %v", faults, s.Provider("zhipu"))
	}
	at := resilience.Moment{Now: gatetest.Start, Catalog: s}
	g := breaker.New(clock)
	for i := range 12 {
		tt := target("glm", fmt.Sprint(i))
		tt.Provider = s.Provider([]string{"glm", "zhipu"}[i%2])
		g.Settle(at, tt, resilience.Permit{}, failed())
	}
	byID, byAlias := g.Status(at, "glm"), g.Status(at, "zhipu")
	if diff := cmp.Diff(byID, byAlias); diff != "" || byID.State != breaker.Open || len(g.All(at)) != 1 {
		t.Errorf("id and alias differ: %s; %s, %d breakers", diff, byID.State, len(g.All(at)))
	}
	if n, _ := g.Reset(at, "zhipu"); n != 1 || g.Status(at, "glm").State != breaker.Closed {
		t.Errorf("%d reset by the alias", n)
	}
}

// BRK-34, BRK-13: whatever fails at once opens the breaker once, and one connection counts once.
func TestFailuresAtOnce(t *testing.T) {
	for _, connections := range []int{1, 64} {
		g := breaker.New(clock)
		var changed atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				tt := target("p", fmt.Sprint(i%connections))
				for _, e := range g.Settle(at(0), tt, resilience.Permit{}, failed()) {
					if e.Kind == breaker.KindChanged {
						changed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		s := g.Status(at(0), "p")
		if connections == 1 && (s.FailureCount != 1 || s.State != breaker.Closed) {
			t.Errorf("64 failures of one connection: %+v", s)
		}
		if connections == 64 && (s.FailureCount != 12 || s.State != breaker.Open || changed.Load() != 2 || len(s.TransitionHistory) != 2) {
			t.Errorf("64 connections: %d transitions, %+v", changed.Load(), s)
		}
	}
}

// BRK-27: of many that ask at once one is the probe.
func TestOneProbe(t *testing.T) {
	g := breaker.New(clock)
	fail(g, at(0), "p", 12)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			p, refusal := g.Admit(at(time.Minute), target("p", "x"))
			if refusal == nil && p.Probe {
				admitted.Add(1)
			}
			if refusal != nil && (refusal.Gate != breaker.Name || refusal.Wait != resilience.WaitTransient || refusal.RetryAt.IsZero() || refusal.Cause.RequestID != "req-1") {
				t.Errorf("refusal %+v", refusal)
			}
		})
	}
	wg.Wait()
	if n := admitted.Load(); n != 1 {
		t.Errorf("%d probes", n)
	}
}

// BRK-43: the status object, with the refreshing read (API-62 uses it).
func TestStatusObject(t *testing.T) {
	g := breaker.New(clock)
	fail(g, at(0), "p", 12)
	b, err := json.Marshal(g.Status(at(10*time.Second), "p"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"p","state":"OPEN","failureCount":12,"lastFailureTime":"2026-03-01T12:00:00.000Z","retryAfterMs":20000,` +
		`"lastFailureKind":"transient","openCycleCount":0,"kindFailureCounts":{"transient":12},"degradationThreshold":7,"effectiveResetTimeout":30000,` +
		`"transitionHistory":[{"from":"CLOSED","to":"DEGRADED","at":"2026-03-01T12:00:00.000Z","count":7,"reason":"elevated-failures"},` +
		`{"from":"DEGRADED","to":"OPEN","at":"2026-03-01T12:00:00.000Z","count":12,"reason":"elevated-failures"}]}`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
	if s := g.Status(at(31*time.Second), "p"); s.State != breaker.HalfOpen || s.RetryAfterMs != 0 {
		t.Errorf("after the hold: %+v", s)
	}
	b, err = json.Marshal(g.Status(at(0), "never seen"))
	if err != nil || !strings.Contains(string(b), `"state":"CLOSED","failureCount":0,"lastFailureTime":null,"retryAfterMs":0,"lastFailureKind":null`) {
		t.Errorf("%s, %v", b, err)
	}
}

// BRK-33: no more than 20 transitions are kept, the last ones.
func TestHistoryIsBounded(t *testing.T) {
	g := breaker.New(clock)
	fail(g, at(0), "p", 12)
	for i := range 30 {
		now := at(time.Duration(i+1) * time.Hour)
		tt := target("p", "x")
		p, refusal := g.Admit(now, tt)
		if refusal != nil {
			t.Fatal(refusal)
		}
		g.Settle(now, tt, p, failed())
	}
	h := g.Status(at(30*time.Hour), "p").TransitionHistory
	if len(h) != 20 || h[19].Reason != "probe-failed" || h[0].From != breaker.Open {
		t.Errorf("%d transitions: %+v", len(h), h)
	}
}

// BRK-42: at most 500 breakers; one that is closed and counted nothing makes room, the oldest first, and none that is
// open or counts.
func TestRoom(t *testing.T) {
	g := breaker.New(clock)
	for i := range 500 {
		p := fmt.Sprint("p", i)
		now := at(time.Duration(i) * time.Millisecond)
		g.Settle(now, target(p, p), resilience.Permit{}, failed())
	}
	now := at(time.Second)
	g.Settle(now, target("more", "more"), resilience.Permit{}, failed())
	if n := len(g.All(now)); n != 500 || g.Status(now, "more").FailureCount != 0 {
		t.Errorf("%d breakers, the last one counts %d", n, g.Status(now, "more").FailureCount)
	}
	for i, p := range []string{"p7", "p3"} { // p7 rests for longer
		g.Settle(at(time.Duration(i+2)*time.Second), target(p, p), resilience.Permit{}, resilience.Outcome{OK: true})
	}
	now = at(5 * time.Second)
	g.Settle(now, target("more", "more"), resilience.Permit{}, failed())
	known := map[string]int{}
	for _, s := range g.All(now) {
		known[s.Name] = s.FailureCount
	}
	if _, there := known["p7"]; there || known["more"] != 1 || len(known) != 500 {
		t.Errorf("%d breakers; p7 there: %v; more: %d", len(known), there, known["more"])
	}
	if _, there := known["p3"]; !there {
		t.Error("p3 went although p7 rested for longer")
	}
	late := at(31 * time.Minute) // all are idle now
	g.Settle(late, target("fresh", "fresh"), resilience.Permit{}, failed())
	if all := g.All(late); len(all) != 1 || all[0].Name != "fresh" {
		t.Errorf("after half an hour: %d breakers", len(all))
	}
	open := breaker.New(clock)
	for i := range 501 {
		fail(open, at(0), fmt.Sprint("p", i), 12)
	}
	if all := open.All(at(31 * time.Minute)); len(all) != 500 {
		t.Errorf("%d open breakers", len(all))
	}
}

// A breaker that was dropped and made anew goes on with its revisions, so that a replay takes the newer state.
func TestRevisionsSurviveDropping(t *testing.T) {
	g := breaker.New(clock)
	journal := fail(g, at(0), "p", 12)
	g.Reset(at(time.Second), "p")
	g.Pending(at(time.Hour))
	if len(g.All(at(time.Hour))) != 0 {
		t.Fatal("an idle breaker was kept")
	}
	journal = append(journal, fail(g, at(time.Hour), "p", 12)...)
	again := breaker.New(clock)
	for _, e := range journal {
		if err := again.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(g.Status(at(time.Hour), "p"), again.Status(at(time.Hour), "p")); diff != "" {
		t.Error(diff)
	}
}

// BRK-31: an answer from before a breaker opened is late also when that breaker closed, rested and was dropped since.
func TestLateForTheNextBreaker(t *testing.T) {
	g := breaker.New(clock)
	tt := target("p", "slow")
	before, _ := g.Admit(at(0), tt)
	fail(g, at(0), "p", 12)
	g.Reset(at(time.Second), "p")
	g.Pending(at(time.Hour))
	during, _ := g.Admit(at(time.Hour), tt)
	if es := g.Settle(at(time.Hour), tt, before, failed()); es != nil {
		t.Errorf("the late answer counted: %+v", g.Status(at(time.Hour), "p"))
	}
	if es := g.Settle(at(time.Hour), tt, during, failed()); es == nil {
		t.Error("the new one did not count")
	}
}

// BRK-13: the maps of repetitions are bounded and drop the oldest.
func TestRepeatsAreBounded(t *testing.T) {
	var r breaker.Repeats
	for i := range 10_001 {
		if r.Again(int64(i%4), "p", fmt.Sprint("c", i), false) {
			t.Fatal("a new connection was a repetition")
		}
	}
	if n := r.Len(); n != 10_000 {
		t.Errorf("%d connections are remembered", n)
	}
	for i := range 1_001 {
		if r.Again(20_000+int64(i), fmt.Sprint("p", i), fmt.Sprint("x", i), true) {
			t.Fatal("a new provider was a repetition")
		}
	}
	if r.Again(21_001, "p0", "y", true) {
		t.Error("the oldest provider is still remembered")
	}
	if !r.Again(21_001, "p1000", "z", true) {
		t.Error("the newest provider was forgotten")
	}
}

// BRK-5, BRK-7, PCD-10: the breaker's variables move the breaker, and those of the provider cooldown do not.
func TestEnvironment(t *testing.T) {
	open := func(env map[string]string) int {
		v, _, warnings := settings.Resolve(func(name string) (string, bool) { s, ok := env[name]; return s, ok }, nil, nil)
		if len(warnings) > 0 {
			t.Fatal(warnings)
		}
		at := resilience.Moment{Now: gatetest.Start, Catalog: &catalog.Snapshot{Settings: v}}
		g := breaker.New(clock)
		for n := range 20 {
			if g.Status(at, "p").State == breaker.Open {
				return n
			}
			g.Settle(at, target("p", fmt.Sprint(n)), resilience.Permit{}, failed())
		}
		return -1
	}
	for _, c := range []struct {
		name string
		env  map[string]string
		want int
	}{
		{"default", nil, 12},
		{"BRK-7", map[string]string{"OMNIROUTE_CIRCUIT_BREAKER_API_KEY_THRESHOLD": "3"}, 3},
		{"BRK-7 alias", map[string]string{"WEIR_CIRCUIT_BREAKER_API_KEY_THRESHOLD": "4"}, 4},
		{"BRK-7 PCD-10 not the breaker's", map[string]string{"OMNIROUTE_PROVIDER_BREAKER_API_KEY_FAILURE_THRESHOLD": "2"}, 12},
	} {
		if got := open(c.env); got != c.want {
			t.Errorf("%s: opens at %d, want %d", c.name, got, c.want)
		}
	}
}

// BRK-23: what counts as a change of the stored value.
func TestHintsChanged(t *testing.T) {
	yes, no := true, false
	with := func(b *bool) *settings.Values {
		v := *gatetest.Defaults()
		v.ConnectionCooldown.OAuth.Use429BreakerHints = b
		return &v
	}
	for _, c := range []struct {
		before, after *bool
		want          bool
	}{{nil, nil, false}, {nil, &yes, true}, {&yes, &no, true}, {&no, nil, true}, {&yes, &yes, false}} {
		if got := breaker.HintsChanged(with(c.before), with(c.after)); got != c.want {
			t.Errorf("%v to %v: %v", c.before, c.after, got)
		}
	}
}

// A gate at rest costs no allocation, neither without a breaker nor with one that is closed.
func TestRestAllocatesNothing(t *testing.T) {
	g := breaker.New(clock)
	fail(g, at(0), "p", 1)
	g.Settle(at(0), target("p", "x"), resilience.Permit{}, resilience.Outcome{OK: true})
	for _, tt := range []catalog.Target{target("p", "x"), target("unknown", "y")} {
		moment := at(0)
		if n := testing.AllocsPerRun(100, func() {
			p, refusal := g.Admit(moment, tt)
			if refusal != nil || g.Settle(moment, tt, p, resilience.Outcome{OK: true}) != nil {
				t.Fatal("not at rest")
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// FuzzApply: whatever the journal says, nothing panics, and the breaker can always be asked and reset.
func FuzzApply(f *testing.F) {
	g := breaker.New(clock)
	for _, e := range fail(g, at(0), "p", 12) {
		f.Add(e.Data)
	}
	f.Add([]byte(`{"state":"HALF_OPEN","openedAt":-1,"failureCount":9223372036854775807,"openCycleCount":9223372036854775807}`))
	f.Add([]byte(`{"state":"OPEN","openedAt":9223372036854775807,"transitionHistory":[{"at":-9223372036854775808}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g := breaker.New(clock)
		if err := g.Apply(store.Event{Kind: breaker.KindChanged, Key: "p", Revision: 1, Data: data}); err != nil {
			return
		}
		now := at(48 * time.Hour)
		if _, err := json.Marshal(g.Status(now, "p")); err != nil {
			t.Fatal(err)
		}
		snapshot, err := g.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if err := breaker.New(clock).Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		tt := target("p", "x")
		for range 3 {
			if p, refusal := g.Admit(now, tt); refusal == nil {
				g.Settle(now, tt, p, failed())
			} else if refusal.RetryAt.After(now.Now.Add(25 * time.Hour)) {
				t.Fatalf("refused until %v", refusal.RetryAt)
			}
		}
		g.Reset(now)
		if p, refusal := g.Admit(now, tt); refusal != nil || p.Probe {
			t.Fatalf("after a reset: %+v", refusal)
		}
	})
}

// BRK-32, BRK-27: the first useful event of a probe's stream closes the breaker; how the stream ends is then late, and one that is
// no probe says nothing by beginning.
func TestBeginningEndsTheProbe(t *testing.T) {
	g := breaker.New(clock)
	fail(g, at(0), "p", 12)
	tt := target("p", "x")
	probe, refusal := g.Admit(at(time.Minute), tt)
	if refusal != nil || !probe.Probe {
		t.Fatalf("%+v, %+v", probe, refusal)
	}
	es := g.Begun(at(time.Minute), tt, probe)
	if s := g.Status(at(time.Minute), "p"); len(es) != 1 || s.State != breaker.Closed || s.FailureCount != 0 || s.TransitionHistory[3].Reason != "probe-success" {
		t.Fatalf("%d events, %+v", len(es), s)
	}
	next, refusal := g.Admit(at(time.Minute), tt)
	if refusal != nil || next.Probe {
		t.Errorf("another request: %+v, %+v", next, refusal)
	}
	for _, o := range []resilience.Outcome{failed(), {OK: true}, {Ignore: true}} {
		if es := g.Settle(at(2*time.Minute), tt, probe, o); es != nil {
			t.Errorf("the end of the probe's stream moved the breaker: %+v", g.Status(at(2*time.Minute), "p"))
		}
	}
	fail(g, at(3*time.Minute), "p", 1)
	if es := g.Begun(at(3*time.Minute), tt, next); es != nil || g.Status(at(3*time.Minute), "p").FailureCount != 1 {
		t.Error("a stream that is no probe moved the breaker by beginning")
	}
}
