package terminal_test

import (
	"testing"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/gatetest"
	"github.com/weirgate/weir/host/resilience/terminal"
)

func gates(b *account.Book) []resilience.Gate {
	return []resilience.Gate{terminal.New(b), cooldown.New(b)}
}

// TestScripts plays testdata: each file is a piece of the specification as a history. What the files assert:
//
//   - lifted.txt, restart.txt, states.txt: COOL-50, COOL-52
//   - not-terminal.txt: COOL-19, COOL-56, COOL-57, COOL-58, RST-9
//   - recheck.txt: COOL-50, COOL-52, COOL-59
//   - order.txt: COOL-4 (a success clears no terminal state), COOL-18 and RUL-9 (no rule writes a cooldown over a terminal state), COOL-51, COOL-64 (a ban says more than missing credits)
func TestScripts(t *testing.T) { gatetest.Run(t, gates) }
