package cooldown_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/gatetest"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

func gates(b *account.Book) []resilience.Gate {
	return []resilience.Gate{terminal.New(b), cooldown.New(b)}
}

// TestScripts plays testdata: each file is a piece of the specification as a history, and fails when an event, a length, a
// status or a refusal is another. What the files assert:
//
//   - cap.txt: COOL-12; categories.txt and length.txt: COOL-2, COOL-10, COOL-11
//   - delay.txt: COOL-20, COOL-21, COOL-23; probe.txt, probe-off.txt and scn-1.txt: COOL-24, SCN-1; stall.txt: COOL-32, COOL-33
//   - egress.txt: OTH-1, OTH-2, OTH-5, OTH-6, OTH-7, OTH-9; egress-address.txt: OTH-3, OTH-4, OTH-8
//   - hints.txt: COOL-13, COOL-14, CLS-10 (a usable hint, else the scaled backoff)
//   - rejected.txt: COOL-41, COOL-42, COOL-43, COOL-46; scopes.txt: CLS-1 and CLS-15 (what the host derives from a verdict),
//     COOL-45 (request-scoped: nothing changes), RUL-3, RUL-8
//   - rules.txt: RUL-6 (quota without an end of its own: the rule's length, else the scaled backoff)
//   - stored-times.txt: COOL-3, COOL-64 (deactivated is read as banned)
//   - success.txt: COOL-4, COOL-5, COOL-34
func TestScripts(t *testing.T) { gatetest.Run(t, gates) }

// COOL-13: the cause names the place of a time only when that time was used.
func TestSourceOfTheTime(t *testing.T) {
	values, _, _ := settings.Resolve(func(string) (string, bool) { return "", false }, nil, nil)
	for _, category := range []catalog.Category{catalog.APIKey, catalog.Local} { // hints are used, and are not
		book := account.NewBook(nil)
		now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
		c := &catalog.Connection{ID: "c", Active: true}
		at := resilience.Moment{Now: now, Catalog: &catalog.Snapshot{Settings: values}}
		target := catalog.Target{Provider: &catalog.Provider{ID: "p", Category: category}, Connection: c, Model: "m"}
		v := wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeConnection, RetryAfter: time.Minute, Hinted: true, HintSource: "header:retry-after"}
		cooldown.New(book).Settle(at, target, resilience.Permit{}, resilience.Outcome{Verdict: v})
		cause := book.Health("c", now).Cause
		if cause == nil || (cause.Source != "") != (category == catalog.APIKey) {
			t.Errorf("%s: cause %+v", category, cause)
		}
	}
}

// COOL-24: of many requests that come when a probe is due, one tests the connection, and the next may when that one was
// given back.
func TestOneProbe(t *testing.T) {
	book := account.NewBook(nil)
	gate := cooldown.New(book)
	at := resilience.Moment{Now: gatetest.Start, Catalog: &catalog.Snapshot{Settings: gatetest.Defaults()}}
	target := catalog.Target{Provider: &catalog.Provider{ID: "p", Category: catalog.APIKey}, Connection: &catalog.Connection{ID: "c", Active: true}, Model: "m"}
	v := wire.Verdict{Reason: wire.QuotaExhausted, Scope: wire.ScopeConnection, RetryAfter: 100 * time.Hour, Hinted: true}
	gate.Settle(at, target, resilience.Permit{}, resilience.Outcome{Verdict: v})
	if _, refusal := gate.Admit(at, target); refusal == nil || !refusal.NextProbeAt.Equal(gatetest.Start.Add(time.Minute)) {
		t.Fatalf("refusal %+v", refusal)
	}
	if h := book.Health("c", at.Now); h.NextProbeAt == nil || *h.NextProbeAt != "2026-03-01T12:01:00.000Z" {
		t.Errorf("nextProbeAt %v", h.NextProbeAt)
	}
	at.Now = at.Now.Add(time.Minute)
	for range 3 {
		var out atomic.Int32
		var probe atomic.Pointer[resilience.Permit]
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if p, refusal := gate.Admit(at, target); refusal == nil {
					out.Add(1)
					probe.Store(&p)
				}
			})
		}
		wg.Wait()
		if out.Load() != 1 || !probe.Load().Probe {
			t.Fatalf("%d requests were let through", out.Load())
		}
		gate.Cancel(at, target, *probe.Load())
	}
}

// COOL-11, COOL-12, SCN-3: the ladder of failures that are laid on the whole provider ends at half of the breaker's reset, that of an
// account's own failures where the settings say.
func TestProviderFailuresAreAskedAgainSoon(t *testing.T) {
	for _, c := range []struct {
		scope wire.Scope
		want  time.Duration
	}{{wire.ScopeProvider, 15 * time.Second}, {wire.ScopeConnection, 96 * time.Second}} {
		book := account.NewBook(nil)
		g := cooldown.New(book)
		now := gatetest.Start
		target := catalog.Target{Provider: &catalog.Provider{ID: "p", Category: catalog.APIKey}, Connection: &catalog.Connection{ID: "c", Active: true}, Model: "m"}
		values := *gatetest.Defaults()
		values.ProviderBreaker.APIKey.ResetTimeout = 30 * time.Second
		at := func() resilience.Moment {
			return resilience.Moment{Now: now, Catalog: &catalog.Snapshot{Settings: &values}}
		}
		var last time.Duration
		for range 8 {
			p, refusal := g.Admit(at(), target)
			if refusal != nil {
				t.Fatal(refusal)
			}
			g.Settle(at(), target, p, resilience.Outcome{Verdict: wire.Verdict{Reason: wire.ServerError, Scope: c.scope, Fallback: true}, Cause: resilience.Cause{Status: 503}})
			last = time.UnixMilli(book.Peek("c").Until).Sub(now)
			now = now.Add(last)
		}
		if last != c.want {
			t.Errorf("%s: %s, want %s", c.scope, last, c.want)
		}
	}
}
