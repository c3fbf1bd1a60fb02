package resilience_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/gatetest"
	"github.com/weirgate/weir/sdk/wire"
)

// OTH-52: every state that heals by itself names a time to come, and just past it the target may be asked, though nothing was written
// in between.
func TestSelfHealingStates(t *testing.T) {
	down := resilience.Outcome{
		Fault: resilience.FaultOwnDeadline, OwnDeadline: true, Cause: resilience.Cause{Status: 504},
		Verdict: wire.Verdict{Reason: wire.Timeout, Scope: wire.ScopeProvider, Fallback: true},
	}
	failed := func(status int, reason wire.Reason, scope wire.Scope, wait time.Duration) resilience.Outcome {
		return resilience.Outcome{Fault: resilience.FaultAnswer, Cause: resilience.Cause{Status: status},
			Verdict: wire.Verdict{Reason: reason, Scope: scope, Fallback: true, Hinted: wait > 0, RetryAfter: wait}}
	}
	quiet := *busy.Settings // without the window
	quiet.ProviderCooldown.Enabled = false
	alone := &catalog.Snapshot{Settings: &quiet}
	windows := *busy.Settings // without the breaker
	windows.ProviderBreaker.APIKey.FailureThreshold, windows.ProviderBreaker.APIKey.DegradationThreshold = 100, 99
	for name, c := range map[string]struct {
		under    *catalog.Snapshot
		outcome  resilience.Outcome
		times    int
		gate     string
		combined bool // in a combo
	}{
		"an open breaker":                {alone, down, 3, "circuit_open", false},
		"a provider's window":            {&catalog.Snapshot{Settings: &windows}, failed(503, wire.ServerError, wire.ScopeProvider, 0), 2, "provider_cooldown", true},
		"a cooldown":                     {alone, failed(429, wire.RateLimitExceeded, wire.ScopeConnection, 0), 1, "connection_cooldown", false},
		"a cooldown that was named":      {alone, failed(429, wire.RateLimitExceeded, wire.ScopeConnection, 20*time.Second), 1, "connection_cooldown", false},
		"a quota":                        {alone, failed(429, wire.QuotaExhausted, wire.ScopeConnection, 5*time.Hour), 1, "connection_cooldown", false},
		"a model's lockout":              {alone, failed(429, wire.RateLimitExceeded, wire.ScopeModel, 0), 1, "model_lockout", false},
		"a model that is not found":      {alone, failed(404, wire.ModelNotFound, wire.ScopeModel, 0), 1, "model_lockout", false},
		"credits, which may come back":   {alone, failed(402, wire.CreditsGone, wire.ScopeConnection, 0), 1, "connection_cooldown", false},
		"a cooldown after many failures": {alone, failed(429, wire.RateLimitExceeded, wire.ScopeConnection, 0), 12, "connection_cooldown", false},
	} {
		t.Run(name, func(t *testing.T) {
			var clock time.Duration
			n := newNode(t, &clock)
			tt := target("c0")
			tt.Model = "m1"
			tt.Provider = &catalog.Provider{ID: "p0", Category: catalog.APIKey, Connections: []*catalog.Connection{tt.Connection}}
			tt.Connection.Provider = "p0"
			at := func() resilience.Moment {
				return resilience.Moment{Now: gatetest.Start.Add(clock), Catalog: c.under, Combo: c.combined}
			}
			for range c.times {
				ticket, refusal := n.ladder.Admit(at(), tt)
				if refusal != nil {
					clock += refusal.RetryAt.Sub(at().Now) + time.Second
					if ticket, refusal = n.ladder.Admit(at(), tt); refusal != nil {
						t.Fatalf("past its end: %+v", refusal)
					}
				}
				n.ladder.Settle(at(), ticket, c.outcome)
				if c.gate == "circuit_open" || c.gate == "provider_cooldown" {
					clock += 5 * time.Second
				}
			}
			refusal := n.ladder.Peek(at(), tt)
			if refusal == nil || refusal.Gate != c.gate {
				t.Fatalf("%+v", refusal)
			}
			end := refusal.RetryAt
			if !refusal.NextProbeAt.IsZero() && refusal.NextProbeAt.Before(end) {
				end = refusal.NextProbeAt
			}
			if !end.After(at().Now) {
				t.Fatalf("no time to come: %+v", refusal)
			}
			before := n.snapshot()
			clock += end.Sub(at().Now) + time.Millisecond
			if refusal := n.ladder.Peek(at(), tt); refusal != nil {
				t.Errorf("past its end: %+v", refusal)
			}
			if diff := cmp.Diff(before, n.snapshot()); diff != "" {
				t.Errorf("written meanwhile: %s", diff)
			}
			if _, refusal := n.ladder.Admit(at(), tt); refusal != nil {
				t.Errorf("not admitted: %+v", refusal)
			}
		})
	}
}
