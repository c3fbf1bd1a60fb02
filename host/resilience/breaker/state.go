package breaker

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

// Phase is the state of a breaker (BRK-2).
type Phase uint8

// The phases. HalfOpen is never stored: an Open breaker whose hold has passed is read as HalfOpen (BRK-25).
const (
	Closed Phase = iota
	Degraded
	Open
	HalfOpen
)

var phases = [...]string{"CLOSED", "DEGRADED", "OPEN", "HALF_OPEN"}

// String is the word that is stored and shown.
func (p Phase) String() string {
	if int(p) < len(phases) {
		return phases[p]
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// MarshalText writes the word.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the word; one that is not known is CLOSED (BRK-40).
func (p *Phase) UnmarshalText(b []byte) error {
	*p = Phase(max(slices.Index(phases[:], string(b)), 0))
	return nil
}

// Kind is the kind of a failure (BRK-24).
type Kind uint8

// The kinds. NoKind is that of a breaker that never counted a failure.
const (
	NoKind Kind = iota
	RateLimit
	QuotaExhausted
	Transient
)

var kinds = [...]string{"", "rate_limit", "quota_exhausted", "transient"}

// String is the word that is stored and shown.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText writes the word.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the word; one that is not known is transient.
func (k *Kind) UnmarshalText(b []byte) error {
	if i := slices.Index(kinds[:], string(b)); i >= 0 {
		*k = Kind(i)
	} else {
		*k = Transient
	}
	return nil
}

// Counts are the failures of each kind.
type Counts struct {
	RateLimit      int `json:"rate_limit,omitempty"`
	QuotaExhausted int `json:"quota_exhausted,omitempty"`
	Transient      int `json:"transient,omitempty"`
}

func (c *Counts) of(k Kind) *int {
	switch k {
	case RateLimit:
		return &c.RateLimit
	case QuotaExhausted:
		return &c.QuotaExhausted
	case NoKind, Transient:
	}
	return &c.Transient
}

// less is c with one failure of each kind fewer, none below zero.
func (c Counts) less() Counts {
	return Counts{max(c.RateLimit-1, 0), max(c.QuotaExhausted-1, 0), max(c.Transient-1, 0)}
}

// Transition is one entry of the history (BRK-33).
type Transition struct {
	From   Phase  `json:"from"`
	To     Phase  `json:"to"`
	At     int64  `json:"at"` // Unix milliseconds
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

// The reasons of transitions, beside kind:<kind>.
const (
	byTime     = "timeout-elapsed"
	byProbe    = "probe-success"
	byFailed   = "probe-failed"
	byFailures = "elevated-failures"
	byRecovery = "recovery"
	byQuiet    = "quiet-window"
	byTest     = "connection-test"
	byReset    = "manual-reset"
)

// mostCounted bounds what a stored count may say.
const mostCounted = 1_000_000

// maxHistory is how many transitions are kept (BRK-33).
const maxHistory = 20

// State is one breaker at one revision (BRK-34: a single value, replaced whole). Whoever changes it changes a copy; the
// history of a copy is replaced, never written into. Times are Unix milliseconds in UTC.
type State struct {
	Revision   uint64            `json:"-"` // rises with each change
	Generation uint64            `json:"-"` // of permits that may still change the state; only in this process
	Category   catalog.Category  `json:"category,omitempty"`
	Indirect   bool              `json:"indirect,omitempty"` // the provider does not speak for itself (BRK-23)
	Phase      Phase             `json:"state"`
	Count      int               `json:"failureCount"`
	Kinds      Counts            `json:"kindFailureCounts"`
	Cycles     int               `json:"openCycleCount"`
	FailedAt   int64             `json:"lastFailureTime,omitempty"`
	FailedKind Kind              `json:"lastFailureKind,omitempty"`
	OpenedAt   int64             `json:"openedAt,omitempty"` // only while open
	Until      int64             `json:"until,omitempty"`    // only while open, for people: the end as it was planned then
	Touched    int64             `json:"touched,omitempty"`  // the last change
	Reason     wire.Reason       `json:"reason,omitempty"`   // of the last failure
	Cause      *resilience.Cause `json:"cause,omitempty"`    // of the last failure
	History    []Transition      `json:"transitionHistory,omitempty"`
}

// resting says whether there is nothing that a success could change.
func (s *State) resting() bool { return s.Phase == Closed && s.Count == 0 && s.Kinds == Counts{} }

// to is s in another phase, with its entry in the history.
func (s State) to(p Phase, at int64, reason string) State {
	h := s.History
	if len(h) >= maxHistory {
		h = h[len(h)-maxHistory+1:]
	}
	s.History = append(slices.Clone(h), Transition{From: s.Phase, To: p, At: at, Count: s.Count, Reason: reason})
	s.Phase = p
	return s
}

// empty is s without counts, kinds and cycles.
func (s State) empty() State {
	s.Count, s.Kinds, s.Cycles, s.OpenedAt, s.Until = 0, Counts{}, 0, 0, 0
	return s
}

func encode(s State) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a State has nothing that could not be encoded
	}
	return b
}

// decode reads a stored state at now (BRK-40): times in the future are taken as now, negative counts as zero, and a state
// that another program stored as half-open as open, which reads the same once the hold has passed.
func decode(provider string, data []byte, now int64) (State, error) {
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("breaker of provider %s: %w", provider, err)
	}
	past := func(t int64) int64 { return max(min(t, now), 0) }
	count := func(n int) int { return max(min(n, mostCounted), 0) }
	s.FailedAt, s.Touched = past(s.FailedAt), past(s.Touched)
	s.Count, s.Cycles = count(s.Count), count(s.Cycles)
	s.Kinds = Counts{count(s.Kinds.RateLimit), count(s.Kinds.QuotaExhausted), count(s.Kinds.Transient)}
	switch s.Phase {
	case Open:
		if s.OpenedAt == 0 {
			s.OpenedAt = s.FailedAt
		}
		s.OpenedAt = past(s.OpenedAt)
	case HalfOpen:
		s.Phase, s.OpenedAt, s.Until = Open, 0, 0
	case Closed, Degraded:
		s.OpenedAt, s.Until = 0, 0
	}
	s.History = s.History[max(0, len(s.History)-maxHistory):]
	return s, nil
}
