package cooldown_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/gatetest"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/sdk/wire"
)

// OTH-5, OTH-7, COOL-18: whatever happens to the accounts behind one address, the failure of one ends no terminal state of another,
// shortens no cooldown, moves no level, and touches neither another address nor another family; and a restore gives the same state.
func TestSiblingsKeepTheirState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		family := &catalog.Provider{ID: "opencode", Category: catalog.APIKey, EgressFamily: "opencode"}
		other := &catalog.Provider{ID: "kilo", Category: catalog.APIKey, EgressFamily: "kilo"}
		var targets []catalog.Target
		for i, p := range []*catalog.Provider{family, family, family, family, other} {
			c := &catalog.Connection{ID: fmt.Sprint("c", i), Active: true, CredentialRevision: 1}
			if i == 3 {
				c.EgressIP = "192.0.2.1"
			}
			p.Connections = append(p.Connections, c)
			targets = append(targets, catalog.Target{Provider: p, Connection: c, Model: "m"})
		}
		book := account.NewBook(nil)
		gates := []resilience.Gate{terminal.New(book), cooldown.New(book)}
		ladder := resilience.NewLadder(gates...)
		at := resilience.Moment{Now: gatetest.Start, Catalog: &catalog.Snapshot{Settings: gatetest.Defaults(), Providers: []*catalog.Provider{other, family}}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at.Now = at.Now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			one := rapid.SampledFrom(targets).Draw(t, "target")
			ticket, refusal := ladder.Admit(at, one)
			if refusal != nil {
				continue
			}
			before := map[string]account.State{}
			for _, x := range targets {
				before[x.Connection.ID], _ = book.State(x.Connection.ID)
			}
			o := outcomeOf(t)
			ladder.Settle(at, ticket, o)
			for _, x := range targets {
				if x.Connection.ID != one.Connection.ID && !o.OK {
					checkSibling(t, at, one, x, before[x.Connection.ID], book)
				}
			}
		}
		checkRestored(t, gates[1], targets, book)
	})
}

func outcomeOf(t *rapid.T) resilience.Outcome {
	o := resilience.Outcome{Cause: resilience.Cause{Status: 429}}
	v := &o.Verdict
	v.Scope, v.Fallback = wire.ScopeConnection, true
	switch rapid.IntRange(0, 4).Draw(t, "outcome") {
	case 0:
		return resilience.Outcome{OK: true}
	case 1:
		v.Reason, v.Terminal = wire.ReasonBanned, true
	case 2:
		v.Reason, o.Cause.Status = wire.ServerError, 500
	case 3:
		v.Reason = wire.RateLimitExceeded
	case 4:
		v.Reason, v.Hinted, v.RetryAfter = wire.QuotaExhausted, true, time.Duration(rapid.IntRange(1, 600).Draw(t, "hint"))*time.Second
	}
	return o
}

func checkSibling(t *rapid.T, at resilience.Moment, one, x catalog.Target, before account.State, book *account.Book) {
	now := at.Now.UnixMilli()
	after, _ := book.State(x.Connection.ID)
	if before.TestStatus.Terminal() && after.Revision != before.Revision {
		t.Fatalf("%s: a terminal state was written over", x.Connection.ID)
	}
	if before.Cooling(now) && after.Until < before.Until {
		t.Fatalf("%s: a cooldown was shortened", x.Connection.ID)
	}
	if after.LevelAt(now) != before.LevelAt(now) {
		t.Fatalf("%s: level %d became %d", x.Connection.ID, before.LevelAt(now), after.LevelAt(now))
	}
	if changed := after.Revision != before.Revision; changed && (one.Egress() != x.Egress() || one.Provider.EgressFamily != x.Provider.EgressFamily) {
		t.Fatalf("%s was touched by %s", x.Connection.ID, one.Connection.ID)
	} else if changed && (after.LastErrorType != account.EgressSibling || after.TestStatus != account.Unavailable || after.Cause == nil || after.Cause.ConnectionID == "") {
		t.Fatalf("%s: %+v", x.Connection.ID, after)
	}
}

func checkRestored(t *rapid.T, gate resilience.Gate, targets []catalog.Target, book *account.Book) {
	b, err := gate.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again := account.NewBook(nil)
	if err := again.Restore(b); err != nil {
		t.Fatal(err)
	}
	for _, x := range targets {
		was, _ := book.State(x.Connection.ID)
		is, _ := again.State(x.Connection.ID)
		want, _ := json.Marshal(was)
		got, _ := json.Marshal(is)
		if string(got) != string(want) || is.Until != was.Until || is.Revision != was.Revision {
			t.Fatalf("restored %s until %d, was %s until %d", got, is.Until, want, was.Until)
		}
	}
}
