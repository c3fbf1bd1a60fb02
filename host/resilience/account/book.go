package account

import (
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/store"
)

// The kinds of events that carry a record (OBJ-22).
const (
	KindCooldown = "connection.cooldown"
	KindError    = "connection.error"
	KindCleared  = "connection.cleared"
	KindTerminal = "connection.terminal"
	KindRejected = "rejected.counted"
	KindProbe    = "connection.probe"
)

// Book keeps the records of all connections, by connection id. Reading one takes no lock; changes of one record are
// serialised (COOL-16). Make it with NewBook and hand the same one to both gates.
type Book struct {
	cells resilience.Cells[cell]
	warn  func(string)
}

// cell is one record. The state behind the pointer is never written into.
type cell struct {
	mu      sync.Mutex // held while the record changes
	state   atomic.Pointer[State]
	probing atomic.Bool // a probe of the connection is under way (COOL-24)
}

// NewBook returns an empty book. Warn hears about stored values that could not be read and were taken as absent
// (COOL-3); nil is fine.
func NewBook(warn func(string)) *Book {
	if warn == nil {
		warn = func(string) {}
	}
	return &Book{warn: warn}
}

// Peek returns the record of a connection for reading only, or nil when nothing was ever written about it. It costs a
// map lookup and an atomic load.
func (b *Book) Peek(connection string) *State {
	c := b.cells.Get(connection)
	if c == nil {
		return nil
	}
	return c.state.Load()
}

// State returns a copy of the record; false when nothing was ever written about the connection, or it was deleted.
func (b *Book) State(connection string) (State, bool) {
	s := b.Peek(connection)
	if s == nil || s.Forgotten {
		return State{}, false
	}
	return *s, true
}

// All yields the records of all connections that have one, in no order.
func (b *Book) All() iter.Seq2[string, State] {
	return func(yield func(string, State) bool) {
		for id, c := range b.cells.All() {
			if s := c.state.Load(); s != nil && !s.Forgotten && !yield(id, *s) {
				return
			}
		}
	}
}

// About names what a change is about, for the event.
type About struct {
	Connection, Provider, Model, RequestID string
}

// Change replaces the record of a connection by what next makes of it and returns the event of the kind that next names;
// nothing when it names none. Next runs under the record's lock: it must be quick, and pure, since in a cluster it may
// run again on another state.
func (b *Book) Change(at resilience.Moment, about About, next func(State) (State, string)) []store.Event {
	c := b.cells.Make(about.Connection)
	c.mu.Lock()
	defer c.mu.Unlock()
	var before State
	if s := c.state.Load(); s != nil {
		before = *s
	}
	if about.Provider == "" {
		about.Provider = before.Provider
	}
	after, kind := next(before)
	if kind == "" {
		return nil
	}
	after.Revision, after.Provider = before.Revision+1, about.Provider
	c.state.Store(&after)
	return []store.Event{{
		At: at.Now.UnixMilli(), Kind: kind, Key: about.Connection, Revision: after.Revision,
		Provider: about.Provider, ConnectionID: about.Connection, Model: about.Model, RequestID: about.RequestID,
		Data: encode(after), Version: 1,
	}}
}

// Learn is Change for the outcome of an attempt at t that was admitted under generation, the revision of the record at
// that time. An attempt that outlived its connection tells nothing about one that was made anew under the same id (OBJ-7).
func (b *Book) Learn(at resilience.Moment, t catalog.Target, generation uint64, o resilience.Outcome, next func(State) (State, string)) []store.Event {
	about := About{Connection: t.Connection.ID, Provider: t.Provider.ID, Model: t.Model, RequestID: o.Cause.RequestID}
	return b.Change(at, about, func(s State) (State, string) {
		if s.Forgotten {
			if generation < s.Revision {
				return s, ""
			}
			s = State{Revision: s.Revision}
		}
		return next(s)
	})
}

// Apply brings the record of e.Key to what e says. An older revision is dropped, an event of another kind ignored; one
// that cannot be read is an error and changes nothing.
func (b *Book) Apply(e store.Event) error {
	switch e.Kind {
	case KindCooldown, KindError, KindCleared, KindTerminal, KindRejected, KindProbe:
	default:
		return nil
	}
	if e.Key == "" {
		return fmt.Errorf("connection event without key")
	}
	s, err := b.decode(e.Key, e.Data)
	if err != nil {
		return err
	}
	s.Revision = e.Revision
	b.put(e.Key, s)
	return nil
}

// put stores s unless a state that is not older is there.
func (b *Book) put(connection string, s State) {
	c := b.cells.Make(connection)
	c.mu.Lock()
	defer c.mu.Unlock()
	if present := c.state.Load(); present == nil || present.Revision < s.Revision {
		c.state.Store(&s)
	}
}
