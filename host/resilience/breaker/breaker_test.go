package breaker_test

import (
	"testing"
	"time"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/gatetest"
)

// TestScripts plays testdata: each file is a piece of the specification as a history. What the files assert:
//
//   - defaults.txt: BRK-2, BRK-3, BRK-4, BRK-20, BRK-21, BRK-22 (escalation), BRK-27 per category
//   - counts.txt: BRK-10, BRK-11, BRK-12, BRK-14; repeats.txt: BRK-13, BRK-16
//   - late.txt: BRK-15, BRK-31; probe.txt: BRK-25, BRK-27, BRK-32
//   - recovery.txt: BRK-28, BRK-29, BRK-30
//   - kinds.txt: BRK-21, BRK-22, BRK-23, BRK-24
//   - settings.txt: BRK-5 (the degradation threshold is below the other), BRK-6, BRK-45
//   - history.txt: BRK-33; restart.txt: BRK-26, BRK-40, BRK-41; idle.txt: BRK-42; reset.txt: the operator's reset (API-20)
func TestScripts(t *testing.T) {
	gatetest.RunAt(t, func(_ *account.Book, now func() time.Time) []resilience.Gate {
		return []resilience.Gate{breaker.New(now)}
	})
}
