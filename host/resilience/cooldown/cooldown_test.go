package cooldown_test

import (
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
