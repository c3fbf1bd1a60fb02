// Package resilience owns the question "may this attempt go there, and what did we learn?": the ladder of gates, asked in
// one order, and the single place where an outcome becomes state (OV-2). Gates are pure machines in folders of their own;
// a new one is a new folder and one line where the ladder is made. Time and settings are arguments; nothing here does I/O.
package resilience

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// Moment is the world at one instant: the clock and the configuration, and what kind of request asks.
type Moment struct {
	Now     time.Time
	Catalog *catalog.Snapshot
	Combo   bool // the request resolves a combo (BRK-14, PCD-8)
	Pinned  bool // the target of the combo names this one connection (PCD-8); only with Combo
	Forced  bool // nothing else is left: a transient cooldown of the connection does not refuse (CMB-23)
}

// Gate is one mechanism. All methods are safe for concurrent use and never block on I/O; Admit of a gate in its resting
// state allocates nothing and takes no lock.
type Gate interface {
	Name() string
	// Admit says whether an attempt may go to t now. A Permit that is not used is given back by Cancel; a used one is
	// settled exactly once.
	Admit(at Moment, t catalog.Target) (Permit, *Refusal)
	// Peek is Admit without any effect, for explain and for choosing among connections (OBJ-25).
	Peek(at Moment, t catalog.Target) *Refusal
	Cancel(at Moment, t catalog.Target, p Permit)
	// Settle learns from an outcome and returns what changed, as proposals for the journal; nothing when nothing changed.
	Settle(at Moment, t catalog.Target, p Permit, o Outcome) []store.Event
	// Apply brings the state of one key to what e says; an older revision is dropped, an unknown kind ignored.
	Apply(e store.Event) error
	// Snapshot returns the state of all keys as JSON; nil when the gate keeps nothing of its own. Restore takes each key
	// over unless a newer revision of it is here already.
	Snapshot() ([]byte, error)
	Restore(b []byte) error
}

// Starter is a gate that can tell from the beginning of a streamed answer what it wanted to know of a probe. Begun is called at
// most once, before the Settle of the same permit, which is then to change nothing.
type Starter interface {
	Begun(at Moment, t catalog.Target, p Permit) []store.Event
}

// Permit is what a gate gave out: Generation fences a late answer, Probe marks the one request that tests a recovery.
type Permit struct {
	Generation uint64
	Probe      bool
}

// Wait says whether waiting for RetryAt helps.
type Wait uint8

// The kinds of waiting.
const (
	WaitNever     Wait = iota // terminal, disabled: only a person helps
	WaitTransient             // heals by itself soon (rate limits, overload, errors)
	WaitQuota                 // heals by itself at a reset; not worth waiting for (CMB-44)
)

// Refusal is why a gate said no.
type Refusal struct {
	Gate        string // connection_cooldown, terminal, ...
	Reason      wire.Reason
	State       wire.TerminalState // terminal gate only
	Wait        Wait
	Since       time.Time // zero: not known
	RetryAt     time.Time // zero: no time heals it
	NextProbeAt time.Time
	Cause       *Cause
}

// Cause is the answer that put a state there (COOL-6).
type Cause struct {
	RequestID      string `json:"requestId,omitempty"`
	ConnectionID   string `json:"connectionId,omitempty"` // whose answer it was, when it was another connection's (OTH-9)
	At             int64  `json:"at,omitempty"`           // Unix milliseconds
	Status         int    `json:"status,omitempty"`
	OriginalStatus int    `json:"originalStatus,omitempty"`
	Plugin         string `json:"plugin,omitempty"`
	Rule           string `json:"rule,omitempty"`
	Source         string `json:"source,omitempty"` // which header, field or text gave the time
	Message        string `json:"message,omitempty"`
}

// Fault says which part of an attempt broke. What an upstream answered is FaultAnswer, the zero value; the others are
// findings of the gateway about an attempt that has no answer of its own, or none that counts as one.
type Fault uint8

// The faults of an attempt.
const (
	FaultAnswer       Fault = iota // the upstream answered, and its answer was judged
	FaultUnreachable               // the network or a proxy kept the attempt from ever reaching the upstream (BRK-13, BRK-14)
	FaultTransport                 // the upstream was reached and the connection broke before an answer
	FaultOwnDeadline               // the attempt deadline passed; counts as any 504 (COOL-33)
	FaultTargetTimer               // the combo's own timer of one target passed (BRK-11)
	FaultReadiness                 // the stream gave nothing useful in time (BRK-11)
	FaultEarlyEOF                  // 200, then the end without one useful event (BRK-12)
	FaultEmptyContent              // a good answer without content, found by our own validation (BRK-11)
	FaultStall                     // a stream fell silent after content (COOL-32)
)

// Outcome is how an attempt ended. OK is set only by a validated 2xx; Ignore by what says nothing about the target (the
// client went away, a local refusal).
type Outcome struct {
	OK          bool
	Ignore      bool
	OwnDeadline bool      // a timeout made by our own deadline (COOL-33)
	Fault       Fault     // what broke, when no answer of the upstream's own did
	SiblingNext bool      // the next target of the combo is on the same provider (BRK-14)
	AccountNext bool      // this request asks another account of the provider next, which will tell (BRK-14)
	Local       bool      // a failure of this machine: a missing binary, a permission, a plugin crash (BRK-11)
	Stays       bool      // the account stays in use: nothing cools and no model is locked (CLS-20)
	Began       time.Time // when the attempt was admitted, for people; gates know a late answer by Permit.Generation
	Verdict     wire.Verdict
	Cause       Cause
	ErrorCode   string // the upstream's own code, for display
	FirstByte   time.Duration
	Took        time.Duration
}
