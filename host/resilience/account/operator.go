package account

import (
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/store"
)

// Cleared says what Clear found.
type Cleared uint8

// What Clear found (API-43).
const (
	Unchanged       Cleared = iota // nothing was set
	Done                           // something was cleared
	SkippedTerminal                // a terminal state: only Reset ends it (API-44)
)

// Reset is the operator's reset (COOL-50, OBJ-10): status, cooldown, level, error fields and counts of refusals go. Was
// is the status before. A connection without a record stays without one.
func (b *Book) Reset(at resilience.Moment, connection string) (was Status, changed []store.Event) {
	changed = b.amend(at, connection, func(s State) State {
		was = s.TestStatus
		return State{}
	})
	return was, changed
}

// Clear ends what is transient, counts of refusals included (API-42, API-43, COOL-43); a terminal state stays untouched.
func (b *Book) Clear(at resilience.Moment, connection string) (Cleared, []store.Event) {
	found := Unchanged
	changed := b.amend(at, connection, func(s State) State {
		switch {
		case s.TestStatus.Terminal():
			found = SkippedTerminal
			return s
		case !s.Resting():
			found = Done
		}
		return State{}
	})
	return found, changed
}

// Passed records that the connection's own test succeeded: it is active again and without error fields (COOL-52). Counts
// of refusals stay, since the test spoke for no model (COOL-43).
func (b *Book) Passed(at resilience.Moment, connection string) []store.Event {
	return b.amend(at, connection, State.Rest)
}

// amend changes an existing record at a person's word. A next that leaves everything as it was writes nothing.
func (b *Book) amend(at resilience.Moment, connection string, next func(State) State) []store.Event {
	if s := b.Peek(connection); s == nil || s.Resting() {
		return nil
	}
	return b.Change(at, About{Connection: connection}, func(s State) (State, string) {
		after := next(s)
		after.Credentials, after.Mark = s.Credentials, s.Mark
		if after.same(s) {
			return s, ""
		}
		return after, KindCleared
	})
}

// Forget drops the record of a deleted connection (OBJ-7). Its revision is kept, so that neither an older event nor an
// attempt that is still under way brings the record back.
func (b *Book) Forget(at resilience.Moment, connection string) []store.Event {
	if s := b.Peek(connection); s != nil && s.Forgotten {
		return nil
	}
	return b.Change(at, About{Connection: connection}, func(State) (State, string) {
		return State{Forgotten: true}, KindCleared
	})
}
