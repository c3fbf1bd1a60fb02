package cooldown_test

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

// TestScripts plays testdata: each file is a piece of the specification as a history.
func TestScripts(t *testing.T) { gatetest.Run(t, gates) }
