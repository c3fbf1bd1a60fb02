// Package terminal owns the states that time does not heal: banned, expired, credits exhausted (COOL-50 to COOL-64).
// They end by new credentials, an operator's reset or a passed test. The state is in the record of package account,
// which this gate shares with the cooldown gate.
package terminal

import (
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// Name is the gate's name in refusals and explanations.
const Name = "terminal"

// Gate skips connections in a terminal state. Safe for concurrent use.
type Gate struct{ book *account.Book }

var _ resilience.Gate = (*Gate)(nil)

// New returns the gate over book. It stands before the cooldown gate with the same book, so that an outcome that ends a
// connection is not a cooldown as well (COOL-18).
func New(book *account.Book) *Gate { return &Gate{book} }

// Name returns terminal.
func (g *Gate) Name() string { return Name }

// Admit refuses a connection in a terminal state (COOL-50).
func (g *Gate) Admit(at resilience.Moment, t catalog.Target) (resilience.Permit, *resilience.Refusal) {
	s := g.book.Peek(t.Connection.ID)
	if s == nil {
		return resilience.Permit{}, nil
	}
	if s.TestStatus.Terminal() {
		if refusal := refuse(s, t); refusal != nil {
			return resilience.Permit{}, refusal
		}
	}
	return resilience.Permit{Generation: s.Revision}, nil
}

// Peek is the refusal that Admit would give.
func (g *Gate) Peek(_ resilience.Moment, t catalog.Target) *resilience.Refusal {
	if s := g.book.Peek(t.Connection.ID); s != nil {
		return refuse(s, t)
	}
	return nil
}

func refuse(s *account.State, t catalog.Target) *resilience.Refusal {
	if !s.TestStatus.Terminal() || s.Outdated(t.Connection) {
		return nil
	}
	return &resilience.Refusal{
		Gate: Name, Reason: s.Reason(), State: s.TestStatus.State(), Wait: resilience.WaitNever,
		Since: account.Time(s.Since), Cause: s.Cause,
	}
}

// Cancel does nothing: a permit of this gate holds nothing.
func (g *Gate) Cancel(resilience.Moment, catalog.Target, resilience.Permit) {}

// Settle writes the terminal state that an outcome means, and lifts one after a success of an attempt that began after
// it was written (COOL-4).
func (g *Gate) Settle(at resilience.Moment, t catalog.Target, p resilience.Permit, o resilience.Outcome) []store.Event {
	var next func(account.State) (account.State, string)
	switch state, ended := Means(t, o); {
	case ended:
		next = ends(state, t, o, at)
	case o.OK && !o.Ignore:
		if s := g.book.Peek(t.Connection.ID); s == nil || !s.TestStatus.Terminal() {
			return nil
		}
		next = func(s account.State) (account.State, string) { return lifted(s, t.Connection, p.Generation) }
	default:
		return nil
	}
	return g.book.Learn(at, t, p.Generation, o, next)
}

// ends returns the step that puts the connection of t into a terminal state.
func ends(state wire.TerminalState, t catalog.Target, o resilience.Outcome, at resilience.Moment) func(account.State) (account.State, string) {
	now := at.Now.UnixMilli()
	return func(s account.State) (account.State, string) {
		s = s.For(t.Connection)
		status := account.Of(state)
		// The first word stands; only a ban says more than credits or a token that ran out.
		if s.TestStatus.Terminal() && (s.TestStatus == account.Banned || status != account.Banned) {
			return s, ""
		}
		next := account.State{Revision: s.Revision, Rejected: s.Rejected, TestStatus: status, Since: now, Fence: s.Revision + 1}
		next = next.EarnedBy(t.Connection).Scheduled(t.Connection, now, at.Catalog.Settings.CredentialCheckInterval)
		return next.Failed(now, o), account.KindTerminal
	}
}

// lifted is the record after a success: a terminal state that was written after the attempt began stays (COOL-4).
func lifted(s account.State, c *catalog.Connection, generation uint64) (account.State, string) {
	if !s.TestStatus.Terminal() {
		return s, ""
	}
	if s.Outdated(c) {
		return s.For(c), account.KindCleared
	}
	if s.Fence > generation {
		return s, ""
	}
	return s.Rest(), account.KindCleared
}

// Means says which terminal state an outcome puts its connection in. It takes what the verdict says, except that an error
// restated to a temporary status is never permanent (RST-9), and that exhausted credits end no connection of a generic
// compatible provider and none with a quota per model (COOL-55 to COOL-57). What is refused here is a cooldown.
func Means(t catalog.Target, o resilience.Outcome) (wire.TerminalState, bool) {
	v := o.Verdict
	if o.OK || o.Ignore || !v.Terminal || v.Scope != wire.ScopeConnection || restated(o.Cause) {
		return "", false
	}
	state := v.SetStatus
	if state == "" {
		var ok bool
		if state, ok = v.Reason.DefaultTerminal(); !ok {
			return "", false
		}
	}
	if state == wire.CreditsExhausted && (t.Provider.Compatible || t.PerModelQuota()) {
		return "", false
	}
	return state, true
}

// restated says whether a rule corrected the status to one that is not about the account. Recorded answers are restated to
// 401, 402 and 403 just because the account is at its end. The host's own reading of statuses from 520 on, and of no answer
// at all, is no restatement (RST-10).
func restated(c resilience.Cause) bool {
	switch c.Status {
	case 401, 402, 403:
		return false
	}
	return c.OriginalStatus != 0 && c.OriginalStatus < 520 && c.OriginalStatus != c.Status
}

// Apply ignores every event: the record, terminal or not, is one, and the cooldown gate brings it up to date, keeps it in
// snapshots and takes it from them.
func (g *Gate) Apply(store.Event) error { return nil }

// Snapshot returns nil, see Apply.
func (g *Gate) Snapshot() ([]byte, error) { return nil, nil }

// Restore does nothing, see Apply.
func (g *Gate) Restore([]byte) error { return nil }
