package observe_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host/observe"
	"github.com/weirgate/weir/sdk/wire"
)

func scrape(t *testing.T, m *observe.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("scrape: %d %v", w.Code, err)
	}
	return string(body)
}

func want(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(text, l+"\n") {
			t.Errorf("the scrape has no line %q", l)
		}
	}
}

// OBS-6: every name that exists by now, with its labels.
func TestNames(t *testing.T) {
	m := observe.New(observe.Options{
		Connections: func(yield func(string, string, int)) { yield("openai", "healthy", 2) },
		Breakers:    func(yield func(string, int)) { yield("openai", 3) },
		Lockouts: func(yield func(string, int)) {
			yield("openai", 1)
			yield("openai", 1)
		},
		Plugins: func(yield func(observe.PluginGauge)) {
			yield(observe.PluginGauge{Name: "demo", State: "active", MemoryBytes: 65536})
		},
		Store: func() (bool, int64) { return true, 4096 },
	})
	h := m.Model("openai", "gpt-5")
	h.Done(time.Unix(1000, 0), observe.OK, 300*time.Millisecond, 90*time.Millisecond)
	h.Tokens(observe.Tokens{Input: 12, Output: 40})
	m.Attempt("openai", wire.QuotaExhausted)
	m.Attempt("openai", "")
	m.Fallback(wire.QuotaExhausted)
	m.Refused("connection_cooldown")
	m.Restated("agentrouter/agentrouter-quota-misstatus")
	m.PluginCall("demo", "respond", "ok", time.Millisecond)
	m.PluginBusy("demo")
	m.PluginCustom("demo", "resets", 1.5)
	m.PluginCustom("demo", "resets", 1)
	want(t, scrape(t, m),
		`weir_requests_total{model="gpt-5",outcome="ok",provider="openai"} 1`,
		`weir_request_seconds_count 1`, `weir_ttft_seconds_count 1`,
		`weir_tokens_total{kind="input",model="gpt-5",provider="openai"} 12`,
		`weir_tokens_total{kind="output",model="gpt-5",provider="openai"} 40`,
		`weir_attempts_total{provider="openai",reason="quota_exhausted"} 1`,
		`weir_attempts_total{provider="openai",reason="none"} 1`,
		`weir_fallbacks_total{reason="quota_exhausted"} 1`,
		`weir_gate_refusals_total{gate="connection_cooldown"} 1`,
		`weir_restated_total{rule="agentrouter/agentrouter-quota-misstatus"} 1`,
		`weir_plugin_calls_total{op="respond",plugin="demo",result="ok"} 1`,
		`weir_plugin_call_seconds_count{op="respond",plugin="demo"} 1`,
		`weir_plugin_busy_total{plugin="demo"} 1`,
		`weir_plugin_custom_total{name="resets",plugin="demo"} 2.5`,
		`weir_connections{provider="openai",status="healthy"} 2`,
		`weir_breaker_state{provider="openai"} 3`, `weir_lockouts{provider="openai"} 2`,
		`weir_plugin_memory_bytes{plugin="demo"} 65536`, `weir_plugin_state{plugin="demo"} 2`,
		`weir_store_degraded 1`, `weir_store_bytes 4096`)
}

// OBS-6: a label outside the catalogue is other, and a provider has at most 200 models.
func TestLabelsAreBounded(t *testing.T) {
	m := observe.New(observe.Options{Known: func(p, model string) bool { return p == "vllm" && model != "nonsense" }})
	done := func(p, model string) { m.Model(p, model).Done(time.Unix(1, 0), observe.OK, time.Second, 0) }
	done("vllm", "nonsense")
	done("nobody", "gpt-5")
	for i := range 1000 {
		done("vllm", fmt.Sprint("m", i))
	}
	text := scrape(t, m)
	want(t, text, `weir_requests_total{model="other",outcome="ok",provider="other"} 1`)
	models := strings.Count(text, `outcome="ok",provider="vllm"`)
	if models > 201 {
		t.Errorf("%d models of one provider, want at most 200 and other", models)
	}
	if strings.Contains(text, "nonsense") || strings.Contains(text, "nobody") {
		t.Error("a name from outside the catalogue became a label")
	}
	if !strings.Contains(text, `weir_requests_total{model="m0",outcome="ok",provider="vllm"} 1`) {
		t.Error("a known model has no counter of its own")
	}
}

// OBS-6: breakers and lockouts of more providers than are told apart are put together.
func TestGaugesAreBounded(t *testing.T) {
	each := func(yield func(string, int)) {
		for i := range 502 {
			yield(fmt.Sprint("p", i), 2-i/501)
		}
	}
	text := scrape(t, observe.New(observe.Options{Breakers: each, Lockouts: each}))
	want(t, text, `weir_breaker_state{provider="p499"} 2`, `weir_breaker_state{provider="other"} 2`, `weir_lockouts{provider="other"} 3`)
	if strings.Contains(text, "p500") {
		t.Error("one provider too many is told apart")
	}
}

// OBS-6: two hosts in one process count apart.
func TestTwoHosts(t *testing.T) {
	a, b := observe.New(observe.Options{}), observe.New(observe.Options{})
	a.Refused("terminal")
	want(t, scrape(t, a), `weir_gate_refusals_total{gate="terminal"} 1`)
	if strings.Contains(scrape(t, b), "terminal") {
		t.Error("the second host shows what the first counted")
	}
}

func TestHandlesFromManyGoroutines(t *testing.T) {
	m := observe.New(observe.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				m.Model(fmt.Sprint("p", i%7), fmt.Sprint("m", i%11)).Done(time.Unix(int64(i), 0), observe.OK, time.Second, 0)
			}
		})
	}
	wg.Wait()
	total := 0
	for line := range strings.Lines(scrape(t, m)) {
		var n int
		if strings.HasPrefix(line, "weir_requests_total") {
			fmt.Sscan(line[strings.LastIndex(line, " "):], &n)
		}
		total += n
	}
	if total != 1600 {
		t.Errorf("%d requests counted, want 1600", total)
	}
}

// OBJ-24: requests of the last minute.
func TestRecent(t *testing.T) {
	m := observe.New(observe.Options{})
	h := m.Model("openai", "gpt-5")
	at := time.Unix(10_000, 0)
	h.Done(at.Add(-2*time.Minute), observe.OK, time.Hour, 0)
	for i := range 10 {
		h.Done(at.Add(-time.Duration(i)*time.Second), observe.OK, 100*time.Millisecond, 0)
	}
	h.Done(at, observe.Failed, 10*time.Second, 0)
	h.Done(at, observe.ClientError, time.Millisecond, 0)
	total, failed, p50 := m.Recent(at)
	if total != 12 || failed != 1 {
		t.Errorf("%d requests, %d failed, want 12 and 1", total, failed)
	}
	if p50 < 80*time.Millisecond || p50 > 120*time.Millisecond {
		t.Errorf("median %v, want about 100ms", p50)
	}
	if total, _, _ := m.Recent(at.Add(2 * time.Minute)); total != 0 {
		t.Errorf("%d requests two minutes later, want none", total)
	}
}

// A request's counting allocates nothing (recipe: no lookup by labels on the hot path).
func TestCountingAllocatesNothing(t *testing.T) {
	m := observe.New(observe.Options{})
	now := time.Unix(1000, 0)
	m.Model("openai", "gpt-5").Done(now, observe.OK, time.Second, time.Second)
	m.Attempt("openai", wire.NoReason)
	n := testing.AllocsPerRun(100, func() {
		m.Attempt("openai", wire.NoReason)
		m.Model("openai", "gpt-5").Done(now, observe.OK, time.Second, time.Second)
	})
	if n != 0 {
		t.Errorf("%v allocations per request, want 0", n)
	}
}

func BenchmarkRequest(b *testing.B) {
	m := observe.New(observe.Options{})
	now := time.Unix(1000, 0)
	for b.Loop() {
		m.Attempt("openai", wire.NoReason)
		m.Model("openai", "gpt-5").Done(now, observe.OK, time.Second, time.Second)
	}
}
