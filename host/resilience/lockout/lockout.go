// Package lockout owns the model lockout: one model of one connection, or a family of models that share a quota, left alone
// until a time, while the connection serves the others (LOCK-1 to LOCK-33). It decides which failures are a model's own
// (Narrow), how long they take it out, and what a success gives back.
package lockout

import (
	"sync"
	"sync/atomic"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// Name is the gate's name in refusals, snapshots and explanations (CMB-52).
const Name = "model_lockout"

// The kinds of events that carry a lockout (OBJ-22).
const (
	KindSet     = "lockout.set"
	KindDecayed = "lockout.decayed"
	KindCleared = "lockout.cleared"
)

// Gate skips models that are locked on a connection. Safe for concurrent use. Asking it takes no lock.
type Gate struct {
	book *account.Book
	open func(resilience.Moment, *catalog.Provider) bool

	shelves  resilience.Cells[shelf] // by connection
	held     atomic.Int64            // entries on all shelves
	revision atomic.Uint64           // of the latest change; rises only under mu
	swept    atomic.Int64            // when expired entries were last removed, Unix milliseconds
	memory   atomic.Bool             // see KeepInMemory

	mu sync.Mutex // held while any shelf changes
}

var _ resilience.Gate = (*Gate)(nil)

// shelf holds the entries of one connection. A map that was published is never written into, nor are its entries.
type shelf struct{ entries atomic.Pointer[map[id]*entry] }

// entry is one lockout and the count of failures behind it, which outlives the lock for a while (LOCK-21). Times are Unix
// milliseconds.
type entry struct {
	Provider   string            `json:"provider"`
	Connection string            `json:"connectionId"`
	Shape      Shape             `json:"shape"`
	Model      string            `json:"model"` // or the family
	Reason     wire.Reason       `json:"reason,omitempty"`
	Since      int64             `json:"lockedAt,omitempty"`
	Until      int64             `json:"until,omitempty"`
	Explicit   bool              `json:"explicit,omitempty"` // the upstream's or a rule's own end
	Count      int               `json:"failureCount,omitempty"`
	Memory     int64             `json:"countUntil,omitempty"` // the next failure after it counts as the first
	Fence      uint64            `json:"fence,omitempty"`      // the revision that wrote the lock
	Cause      *resilience.Cause `json:"cause,omitempty"`
	Revision   uint64            `json:"revision"`
}

func (e *entry) id() id { return id{e.Shape, e.Model} }

// gone says whether e stands for a lockout that was cleared.
func (e *entry) gone() bool { return e.Count <= 0 && e.Until == 0 }

// locked says whether the lock runs at now.
func (e *entry) locked(now int64) bool { return account.Ahead(e.Until, now) }

// expired says whether neither the lock nor the count means anything any more.
func (e *entry) expired(now int64) bool { return !e.locked(now) && e.Memory <= now }

// New returns the gate. It stands behind the cooldown gate of the same book, which counts refusals of requests (COOL-41).
// Open says whether the breaker of a provider is open: then nothing is locked (LOCK-17); nil: it never is.
func New(book *account.Book, open func(resilience.Moment, *catalog.Provider) bool) *Gate {
	if open == nil {
		open = func(resilience.Moment, *catalog.Provider) bool { return false }
	}
	return &Gate{book: book, open: open}
}

// KeepInMemory makes lockouts end with the process (LOCK-30, WEIR_LOCKOUT_PERSIST=false): nothing is journaled or put into
// snapshots, and what an earlier process wrote is ignored. Call it before anything is restored.
func (g *Gate) KeepInMemory() { g.memory.Store(true) }

// Name returns model_lockout.
func (g *Gate) Name() string { return Name }

// Admit refuses while the model is locked by any of its keys (LOCK-4). The permit remembers the revision, by which a late
// answer is told from a new one.
func (g *Gate) Admit(at resilience.Moment, t catalog.Target) (resilience.Permit, *resilience.Refusal) {
	p := resilience.Permit{Generation: g.revision.Load()}
	if g.held.Load() == 0 {
		return p, nil
	}
	if refusal := g.Peek(at, t); refusal != nil {
		return resilience.Permit{}, refusal
	}
	return p, nil
}

// Peek is the refusal that Admit would give: of the lock that runs longest (LOCK-4).
func (g *Gate) Peek(at resilience.Moment, t catalog.Target) *resilience.Refusal {
	now := at.Now.UnixMilli()
	var longest *entry
	each(g.on(t.Connection.ID), at, t, func(e *entry) {
		if e.locked(now) && (longest == nil || e.Until > longest.Until) {
			longest = e
		}
	})
	if longest == nil {
		return nil
	}
	return &resilience.Refusal{
		Gate: Name, Reason: longest.Reason, Wait: WaitFor(string(longest.Reason)),
		Since: account.Time(longest.Since), RetryAt: account.Time(longest.Until), Cause: longest.Cause,
	}
}

// on returns the entries of a connection, for reading only.
func (g *Gate) on(connection string) map[id]*entry {
	s := g.shelves.Get(connection)
	if s == nil {
		return nil
	}
	return all(s)
}

// WaitFor says whether a request may wait for the end of a lock with this reason, canonical or in an older word (LOCK-32).
func WaitFor(reason string) resilience.Wait {
	switch reason {
	case "rate_limit", "rate_limited", "transient", "model_capacity",
		string(wire.RateLimitExceeded), string(wire.Overloaded), string(wire.ServerError), string(wire.ConcurrencyLimited):
		return resilience.WaitTransient
	}
	return resilience.WaitQuota
}

// Cancel does nothing: a permit of this gate holds nothing.
func (g *Gate) Cancel(resilience.Moment, catalog.Target, resilience.Permit) {}

// Settle locks the model after a failure of its own, and halves its counts after a success.
func (g *Gate) Settle(at resilience.Moment, t catalog.Target, p resilience.Permit, o resilience.Outcome) []store.Event {
	if o.Ignore || !lockable(t.Model) {
		return nil
	}
	if o.OK {
		if g.held.Load() == 0 {
			return nil
		}
		g.sweepAtTimes(at.Now)
		return g.decay(at, t, p.Generation, o)
	}
	return g.fail(at, t, p.Generation, o)
}
