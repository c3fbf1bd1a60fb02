package window_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/gatetest"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// TestScripts plays testdata, on the breaker and this gate, as they stand in the ladder. What the files assert:
//
//   - window.txt: PCD-2, PCD-3 for each category; switch.txt: PCD-1, PCD-7 (nothing survives a restart), PCD-12
//   - success.txt: PCD-4; connections.txt: PCD-5, PCD-6, PCD-8
//   - failures.txt: PCD-6; apart.txt: PCD-10; sweep.txt: PCD-7
func TestScripts(t *testing.T) {
	gatetest.RunAt(t, func(_ *account.Book, now func() time.Time) []resilience.Gate {
		b := breaker.New(now)
		return []resilience.Gate{b, window.New(b.IsOpen)}
	})
}

func at(d time.Duration, v *settings.Values) resilience.Moment {
	return resilience.Moment{Now: gatetest.Start.Add(d), Catalog: &catalog.Snapshot{Settings: v}, Combo: true, Pinned: true}
}

func target(provider, connection string) catalog.Target {
	return catalog.Target{
		Provider:   &catalog.Provider{ID: provider, Category: catalog.APIKey},
		Connection: &catalog.Connection{ID: connection, Provider: provider}, Model: "m",
	}
}

func failed() resilience.Outcome {
	return resilience.Outcome{
		Verdict: wire.Verdict{Reason: wire.ServerError, Scope: wire.ScopeProvider, Fallback: true}, Cause: resilience.Cause{Status: 503},
	}
}

func on() *settings.Values {
	v := gatetest.Defaults()
	v.ProviderCooldown.Enabled, v.ProviderCooldown.MinRetry, v.ProviderCooldown.MaxRetry = true, 5*time.Second, 5*time.Minute
	return v
}

// PCD-1, PCD-9: the variables seed the switch and the thresholds; the stored boolean wins (OV-21).
func TestEnvironment(t *testing.T) {
	after := func(env map[string]string, stored settings.Stored) int {
		v, _, warnings := settings.Resolve(func(name string) (string, bool) { s, ok := env[name]; return s, ok }, stored, nil)
		if len(warnings) > 0 {
			t.Fatal(warnings)
		}
		g := window.New(nil)
		for n := range 30 {
			if g.Peek(at(0, v), target("p", "other")) != nil {
				return n
			}
			g.Settle(at(0, v), target("p", fmt.Sprint(n)), resilience.Permit{}, failed())
		}
		return -1
	}
	for _, c := range []struct {
		name string
		env  map[string]string
		want int
	}{
		{"PCD-1 off by default", nil, -1},
		{"PCD-1", map[string]string{"PROVIDER_COOLDOWN_ENABLED": "true"}, 15},
		{"PCD-9", map[string]string{"PROVIDER_COOLDOWN_ENABLED": "true", "OMNIROUTE_PROVIDER_BREAKER_API_KEY_FAILURE_THRESHOLD": "4"}, 4},
		{"PCD-9 alias", map[string]string{"PROVIDER_COOLDOWN_ENABLED": "true", "WEIR_PROVIDER_BREAKER_API_KEY_FAILURE_THRESHOLD": "5"}, 5},
		{"PCD-10 not the window's", map[string]string{"PROVIDER_COOLDOWN_ENABLED": "true", "OMNIROUTE_CIRCUIT_BREAKER_API_KEY_THRESHOLD": "3"}, 15},
	} {
		if got := after(c.env, nil); got != c.want {
			t.Errorf("%s: cools after %d failures, want %d", c.name, got, c.want)
		}
	}
}

// A failure of many at once fills the window by as many, and a success of many clears it once; no race.
func TestAtOnce(t *testing.T) {
	g, v := window.New(nil), on()
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			g.Settle(at(0, v), target("p", fmt.Sprint(i)), resilience.Permit{}, failed())
			g.Peek(at(0, v), target("p", fmt.Sprint(i)))
			g.Entries(at(0, v))
		})
	}
	wg.Wait()
	refusal := g.Peek(at(time.Second, v), target("p", "x"))
	if refusal == nil || refusal.Gate != window.Name || refusal.Wait != resilience.WaitTransient || !refusal.RetryAt.Equal(gatetest.Start.Add(10*time.Minute)) {
		t.Errorf("refusal %+v", refusal)
	}
	for range 8 {
		wg.Go(func() {
			g.Settle(at(time.Second, v), target("p", "1"), resilience.Permit{}, resilience.Outcome{OK: true})
			g.Clear(at(time.Second, v), "q")
		})
	}
	wg.Wait()
	if refusal := g.Peek(at(time.Second, v), target("p", "1")); refusal != nil {
		t.Errorf("after a success: %+v", refusal)
	}
	if b, err := g.Snapshot(); b != nil || err != nil { // PCD-7: memory only
		t.Errorf("snapshot %q, %v", b, err)
	}
}

// Off or at rest, the gate costs no allocation.
func TestRestAllocatesNothing(t *testing.T) {
	g := window.New(nil)
	for _, v := range []*settings.Values{gatetest.Defaults(), on()} {
		moment, tt := at(0, v), target("p", "x")
		g.Settle(moment, tt, resilience.Permit{}, resilience.Outcome{OK: true})
		n := testing.AllocsPerRun(100, func() {
			if p, refusal := g.Admit(moment, tt); refusal != nil || g.Settle(moment, tt, p, resilience.Outcome{OK: true}) != nil {
				t.Fatal("not at rest")
			}
		})
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
