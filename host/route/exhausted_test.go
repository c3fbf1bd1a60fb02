package route_test

import (
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/sdk/wire"
)

var (
	openai  = &catalog.Provider{ID: "openai"}
	mistral = &catalog.Provider{ID: "mistral"}
	first   = &catalog.Connection{ID: "openai-1", Provider: "openai", Active: true}
	second  = &catalog.Connection{ID: "openai-2", Provider: "openai", Active: true}
	foreign = &catalog.Connection{ID: "mistral-1", Provider: "mistral", Active: true}
)

// TestExhausted proves the last column of CLS-15, a row of it per case: after a failure of gpt-5 on openai-1, which
// targets are out for the rest of the request?
func TestExhausted(t *testing.T) {
	var (
		failed    = catalog.Target{Provider: openai, Connection: first, Model: "gpt-5"}
		sameOther = catalog.Target{Provider: openai, Connection: first, Model: "gpt-5-mini"}
		sibling   = catalog.Target{Provider: openai, Connection: second, Model: "gpt-5"}
		siblingO  = catalog.Target{Provider: openai, Connection: second, Model: "gpt-5-mini"}
		elsewhere = catalog.Target{Provider: mistral, Connection: foreign, Model: "gpt-5"}
	)
	type out struct{ failed, sameOther, sibling, siblingOther bool }
	cases := []struct {
		name   string
		reason wire.Reason
		scope  wire.Scope
		want   out
	}{
		{"CLS-15 request: context overflow", wire.ContextOverflow, wire.ScopeRequest, out{failed: true, sibling: true}},
		{"CLS-15 request: content filtered", wire.ContentFiltered, wire.ScopeRequest, out{failed: true, sibling: true}},
		{"CLS-15 request: credits", wire.CreditsGone, wire.ScopeRequest, out{failed: true}},
		{"CLS-15 model: access", wire.ModelAccessDenied, wire.ScopeModel, out{failed: true}},
		{"CLS-15 model: overloaded", wire.Overloaded, wire.ScopeModel, out{failed: true}},
		{"CLS-15 connection: rate limit", wire.RateLimitExceeded, wire.ScopeConnection, out{failed: true, sameOther: true}},
		{"CLS-15 CMB-20 connection: auth", wire.AuthError, wire.ScopeConnection, out{failed: true, sameOther: true}},
		{"CMB-21 connection: quota", wire.QuotaExhausted, wire.ScopeConnection, out{failed: true, sameOther: true}},
		{"CLS-15 CMB-22 provider: server error", wire.ServerError, wire.ScopeProvider, out{failed: true, sameOther: true}},
		{"CLS-15 provider: timeout", wire.Timeout, wire.ScopeProvider, out{failed: true, sameOther: true}},
		{"CLS-15 provider: network", wire.NetworkError, wire.ScopeProvider, out{failed: true, sameOther: true}},
		{"CLS-15 provider: overloaded", wire.Overloaded, wire.ScopeProvider, out{failed: true, sameOther: true}},
		{"CMB-21 RUL-8 provider: quota", wire.QuotaExhausted, wire.ScopeProvider, out{true, true, true, true}},
		{"COOL-46 provider: rejected", wire.RequestRejected, wire.ScopeProvider, out{true, true, true, true}},
		{"CLS-15 provider: not running", wire.ServiceNotRunning, wire.ScopeProvider, out{true, true, true, true}},
		{"no failure", wire.NoReason, wire.ScopeNone, out{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var e route.Exhausted
			if e.Target(failed) {
				t.Fatal("something is out before anything failed")
			}
			for range 2 { // twice is as once
				e.Note(failed, wire.Verdict{Reason: c.reason, Scope: c.scope})
			}
			got := out{e.Target(failed), e.Target(sameOther), e.Target(sibling), e.Target(siblingO)}
			if got != c.want {
				t.Errorf("out = %+v, want %+v", got, c.want)
			}
			if e.Target(elsewhere) {
				t.Error("another provider is out")
			}
			if e.Provider("openai") != c.want.siblingOther {
				t.Errorf("Provider = %v", e.Provider("openai"))
			}
		})
	}
}

// TestExhaustedUnknownConnection: without a connection the provider is out in its place (CMB-20).
func TestExhaustedUnknownConnection(t *testing.T) {
	var e route.Exhausted
	e.Note(catalog.Target{Provider: openai, Model: "gpt-5"}, wire.Verdict{Reason: wire.AuthError, Scope: wire.ScopeConnection})
	if !e.Provider("openai") || !e.Target(catalog.Target{Provider: openai, Connection: second, Model: "other"}) {
		t.Error("the provider is not out")
	}
	e = route.Exhausted{}
	e.Note(catalog.Target{Provider: openai, Model: "gpt-5"}, wire.Verdict{Reason: wire.ModelNotFound, Scope: wire.ScopeModel})
	if e.Provider("openai") || !e.Target(catalog.Target{Provider: openai, Connection: second, Model: "gpt-5"}) ||
		e.Target(catalog.Target{Provider: openai, Connection: second, Model: "gpt-5-mini"}) {
		t.Error("with scope model only the model is out, on all connections")
	}
}

// CMB-16, CMB-25: a wait lets rate limits in again, a further pass over the set also failing servers, and nothing else does.
func TestLasting(t *testing.T) {
	t1 := catalog.Target{Provider: openai, Connection: first, Model: "gpt-5"}
	for reason, want := range map[wire.Reason]route.Lasting{
		wire.RateLimitExceeded: route.UntilWait, wire.ConcurrencyLimited: route.UntilWait,
		wire.ServerError: route.UntilSet, wire.Overloaded: route.UntilSet, wire.Timeout: route.UntilSet, wire.NetworkError: route.UntilSet,
		wire.AuthError: route.ForGood, wire.QuotaExhausted: route.ForGood, wire.CreditsGone: route.ForGood, wire.ReasonBanned: route.ForGood,
	} {
		var e route.Exhausted
		e.Note(t1, wire.Verdict{Reason: reason, Scope: wire.ScopeConnection})
		if why, lasts, out := e.Out(t1); !out || lasts != want || why != reason {
			t.Errorf("%s: %v %v %v", reason, why, lasts, out)
		}
		for _, up := range []route.Lasting{route.UntilWait, route.UntilSet} {
			e.Lift(up)
			if e.Target(t1) != (want > up) {
				t.Errorf("%s after lifting %d", reason, up)
			}
		}
	}
	var e route.Exhausted
	e.Note(t1, wire.Verdict{Reason: wire.ServerError, Scope: wire.ScopeConnection})
	e.Note(t1, wire.Verdict{Reason: wire.QuotaExhausted, Scope: wire.ScopeConnection})
	e.Note(t1, wire.Verdict{Reason: wire.ServerError, Scope: wire.ScopeConnection})
	if why, lasts, _ := e.Out(t1); lasts != route.ForGood || why != wire.QuotaExhausted {
		t.Error("a later, milder failure shortened an exhaustion:", why, lasts)
	}
	e.Pardon(t1)
	if e.Target(t1) {
		t.Error("CMB-19: a pardoned connection is still out")
	}
	e.ExcludeProvider("openai")
	e.Pardon(t1)
	if !e.Target(t1) {
		t.Error("CMB-13: a pardon reached over its provider")
	}
}
