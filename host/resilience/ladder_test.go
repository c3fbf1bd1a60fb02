package resilience_test

import (
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

var world = &catalog.Snapshot{Settings: &settings.Values{
	ConnectionCooldown: settings.Cooldown{APIKey: settings.CooldownProfile{Base: 3 * time.Second, MaxSteps: 5, UseHints: true}},
	MaxCooldown:        30 * time.Minute,
}}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func target(id string) catalog.Target {
	return catalog.Target{
		Provider: &catalog.Provider{ID: "openai", Category: catalog.APIKey}, Connection: &catalog.Connection{ID: id, Provider: "openai", Active: true},
		Model: "gpt-5",
	}
}

func at(d time.Duration) resilience.Moment {
	return resilience.Moment{Now: start.Add(d), Catalog: world}
}

// BenchmarkLadderPass is an attempt that succeeds while nothing is wrong: admitted and settled by both gates.
func BenchmarkLadderPass(b *testing.B) {
	book := account.NewBook(nil)
	l := resilience.NewLadder(terminal.New(book), cooldown.New(book))
	// A hundred other connections have a record, and this one had a failure that a success cleared.
	for i := range 100 {
		t := target(string(rune('a'+i%26)) + string(rune('a'+i/26)))
		tk, _ := l.Admit(at(0), t)
		l.Settle(at(0), tk, resilience.Outcome{Verdict: wire.Verdict{Reason: wire.ServerError, Scope: wire.ScopeProvider}})
	}
	t := target("aa")
	moment := at(time.Minute)
	b.Run("settled", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tk, refusal := l.Admit(moment, t)
			if refusal != nil {
				b.Fatal(refusal)
			}
			l.Settle(moment, tk, resilience.Outcome{OK: true})
		}
	})
	b.Run("admit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tk, refusal := l.Admit(moment, t)
			if refusal != nil {
				b.Fatal(refusal)
			}
			l.Cancel(moment, tk)
		}
	})
}
