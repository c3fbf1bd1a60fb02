package egress

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func target(p *catalog.Provider, id, ip string) catalog.Target {
	c := &catalog.Connection{ID: id, Provider: p.ID, Active: true, EgressIP: ip}
	p.Connections = append(p.Connections, c)
	return catalog.Target{Provider: p, Connection: c, Model: "m"}
}

// OTH-2, OTH-5, OTH-6: which verdicts are about the address, and what scope they get.
func TestVerdict(t *testing.T) {
	family, other := &catalog.Provider{ID: "opencode", EgressFamily: "opencode"}, &catalog.Provider{ID: "opencode-zen"}
	never := catalog.Target{Provider: family, Connection: &catalog.Connection{ID: "n", DisableCooling: true}}
	quota := wire.Verdict{Reason: wire.QuotaExhausted, Scope: wire.ScopeModel, Terminal: true, SetStatus: wire.CreditsExhausted}
	for _, c := range []struct {
		name   string
		t      catalog.Target
		v      wire.Verdict
		status int
		scope  wire.Scope
	}{
		{"OTH-6 a model's quota is the connection's", target(family, "a", ""), quota, 429, wire.ScopeConnection},
		{"OTH-6 a provider's rate limit too", target(family, "a", ""), wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeProvider}, 429, wire.ScopeConnection},
		{"OTH-2 other status", target(family, "a", ""), quota, 403, wire.ScopeModel},
		{"OTH-2 other reason", target(family, "a", ""), wire.Verdict{Reason: wire.ConcurrencyLimited, Scope: wire.ScopeModel}, 429, wire.ScopeModel},
		{"OTH-1 not listed", target(other, "a", ""), quota, 429, wire.ScopeModel},
		{"OTH-5 disableCooling", never, quota, 429, wire.ScopeModel},
		{"one request's own", target(family, "a", ""), wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeRequest}, 429, wire.ScopeRequest},
		{"COOL-45 request-scoped", target(family, "a", ""), wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeModel, RequestScoped: true}, 429, wire.ScopeModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Verdict(c.t, c.v, c.status)
			if v.Scope != c.scope {
				t.Errorf("scope %s, want %s", v.Scope, c.scope)
			}
			if counts := c.scope == wire.ScopeConnection; counts && (v.Terminal || v.SetStatus != "") || !counts && v.Terminal != c.v.Terminal {
				t.Errorf("OTH-5: %+v", v)
			}
		})
	}
}

// OTH-3: one refusal looks at a bounded number of connections, and the memory is bounded too; the newest entries are kept.
func TestBounds(t *testing.T) {
	p := &catalog.Provider{ID: "opencode", EgressFamily: "opencode"}
	var l Log
	first := target(p, "c0", "192.0.2.1")
	l.Note(first, start)
	for i := 1; i <= maxEntries; i++ {
		l.Note(catalog.Target{Provider: p, Connection: &catalog.Connection{ID: fmt.Sprint("c", i), EgressIP: "192.0.2.1"}}, start.Add(time.Duration(i)))
	}
	if len(l.last) != maxEntries {
		t.Errorf("%d entries", len(l.last))
	}
	if a, _ := l.known(first, start); a != "" {
		t.Error("the oldest entry is still there")
	}
	for i := range 2 * maxSiblings {
		target(p, fmt.Sprint("d", i), "")
	}
	at := resilience.Moment{Now: start, Catalog: &catalog.Snapshot{Providers: []*catalog.Provider{p}}}
	if _, all := l.Siblings(at, target(p, "x", "")); len(all) == 0 || len(all) > maxSiblings {
		t.Errorf("%d siblings", len(all))
	}
	if a, all := l.Siblings(at, first); a != "" || all != nil { // OTH-4
		t.Errorf("address %q with %d siblings of one that never left", a, len(all))
	}
}

// A provider that does not count by address costs nothing.
func TestOthersCostNothing(t *testing.T) {
	var l Log
	x := target(&catalog.Provider{ID: "openai"}, "a", "")
	if n := testing.AllocsPerRun(10, func() { l.Note(x, start) }); n != 0 || l.last != nil {
		t.Errorf("%v allocations, %d entries", n, len(l.last))
	}
}
