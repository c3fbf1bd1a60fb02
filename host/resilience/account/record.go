// Package account owns the health record of a connection (COOL-1, COOL-6): test status, cooldown, backoff level, last
// error and their cause. Two gates share it, cooldown and terminal, because the record changes in one write and a
// transient state may never overwrite a terminal one (COOL-18, COOL-51). It decides nothing about lengths or verdicts.
package account

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

// Status is the testStatus of a connection (COOL-1).
type Status uint8

// The statuses. Those from Banned on are terminal: time does not heal them (COOL-50).
const (
	Active Status = iota
	Unavailable
	Banned
	Expired
	CreditsExhausted
)

var words = [...]string{"active", "unavailable", "banned", "expired", "credits_exhausted"}

// String is the word that is stored and shown.
func (s Status) String() string {
	if int(s) < len(words) {
		return words[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Terminal says whether only new credentials, a reset or a passed test end the status (COOL-50).
func (s Status) Terminal() bool { return s >= Banned }

// State is the terminal status in the words of a verdict; empty when it is not terminal.
func (s Status) State() wire.TerminalState {
	if !s.Terminal() {
		return ""
	}
	return wire.TerminalState(s.String())
}

// Of is the status of a terminal state. Anything else is Active.
func Of(t wire.TerminalState) Status {
	switch t {
	case wire.Banned:
		return Banned
	case wire.Expired:
		return Expired
	case wire.CreditsExhausted:
		return CreditsExhausted
	}
	return Active
}

// MarshalText writes the word.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word. Deactivated, which other implementations wrote for a ban, is banned (COOL-64).
func (s *Status) UnmarshalText(b []byte) error {
	if string(b) == "deactivated" {
		*s = Banned
		return nil
	}
	for i, w := range words {
		if w == string(b) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("testStatus %q is not one of active, unavailable, banned, expired, credits_exhausted", b)
}

// State is the record of one connection at one revision. It is a value: whoever changes it changes a copy, and the
// Rejected of a copy is replaced, never written into. All times are Unix milliseconds in UTC.
type State struct {
	Revision    uint64 `json:"-"`                  // rises with each change, never goes back; Change counts it
	Provider    string `json:"provider,omitempty"` // Change keeps it
	TestStatus  Status `json:"testStatus"`
	Until       int64  `json:"-"`                       // rateLimitedUntil; 0: none. Read tolerantly, see decode
	Explicit    bool   `json:"explicitReset,omitempty"` // Until is the upstream's own word (COOL-5, COOL-17)
	Level       int    `json:"backoffLevel"`
	Since       int64  `json:"since,omitempty"`              // when TestStatus began
	Fence       uint64 `json:"fence,omitempty"`              // the revision that wrote the present cooldown or terminal state
	Credentials uint64 `json:"credentialRevision,omitempty"` // of the connection, when the state was earned
	Mark        uint16 `json:"credentialMark,omitempty"`     // of its secrets, see credentials.go

	ProbeAt int64 `json:"nextProbeAt,omitempty"` // when the cooldown may be tested before its end (COOL-24); 0: not at all
	Probes  int   `json:"probes,omitempty"`      // that failed in this cooldown

	RecheckAt         int64 `json:"recheckAt,omitempty"` // when a terminal state is to be tested (COOL-59); 0: not at all
	Rechecks          int   `json:"rechecks,omitempty"`  // that failed in this state
	ExpiredRetryCount int   `json:"expiredRetryCount,omitempty"`
	ExpiredRetryAt    int64 `json:"expiredRetryAt,omitempty"` // of the latest one (COOL-53)

	LastError     string            `json:"lastError,omitempty"`
	LastErrorType wire.Reason       `json:"lastErrorType,omitempty"`
	LastErrorAt   int64             `json:"lastErrorAt,omitempty"`
	ErrorCode     string            `json:"errorCode,omitempty"`
	Cause         *resilience.Cause `json:"cause,omitempty"`

	Sibling *Sibling `json:"egressSibling,omitempty"` // of a cooldown that another connection's answer wrote

	Rejected  []Rejection `json:"rejected,omitempty"`
	Forgotten bool        `json:"forgotten,omitempty"` // the connection was deleted; only the revision is kept
}

// Rejection counts the refusals of one model on a connection (COOL-41).
type Rejection struct {
	Model string `json:"model"` // empty: not known
	Count int    `json:"count"`
	At    int64  `json:"at"`    // of the last counted refusal
	Until int64  `json:"until"` // end of the lock that it gave
}

// farthest is beyond every end that may be written: the limit of 30 days (COOL-12) and a day of grace. An end further
// away was written under a clock that was wrong and counts as none, so that it cannot hold a connection for years.
const farthest = 31 * 24 * time.Hour

// Ahead says whether end is still to come at now.
func Ahead(end, now int64) bool { return end > now && end-now <= farthest.Milliseconds() }

// Time is the stored time ms; the zero time when it is 0, which means not known or none.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Cooling says whether the cooldown runs at now. When it has passed, the connection is eligible without any write
// (COOL-2).
func (s State) Cooling(now int64) bool { return Ahead(s.Until, now) }

// Resting says whether there is nothing that a success could clear.
func (s *State) Resting() bool {
	return s.TestStatus == Active && s.Until == 0 && s.Level == 0 && s.LastErrorAt == 0 && len(s.Rejected) == 0
}

// quiet is how long a connection must be without failure for its level to fall back (COOL-15).
const quiet = 30 * time.Minute

// LevelAt is the backoff level in force at now: it falls to 0 after 30 minutes without any failure, counted from the end
// of the cooldown (COOL-15).
func (s State) LevelAt(now int64) int {
	if since := max(s.Until, s.LastErrorAt); since > 0 && now-since >= quiet.Milliseconds() {
		return 0
	}
	return s.Level
}

// Rest clears status, cooldown, level and error fields. Counts of refusals stay, revision and credentials too.
func (s State) Rest() State {
	return State{Revision: s.Revision, Credentials: s.Credentials, Mark: s.Mark, Rejected: s.Rejected}
}

// same says whether s and t differ in nothing that Rest or a reset could change.
func (s State) same(t State) bool {
	return s.TestStatus == t.TestStatus && s.Until == t.Until && s.Level == t.Level && s.LastErrorAt == t.LastErrorAt &&
		len(s.Rejected) == len(t.Rejected)
}

// maxError is the length of lastError in characters (COOL-1).
const maxError = 100

// Failed writes the error fields and the cause from o. It touches neither status nor cooldown.
func (s State) Failed(now int64, o resilience.Outcome) State {
	cause := o.Cause
	if cause.At == 0 {
		cause.At = now
	}
	if cause.Plugin == "" && cause.Rule == "" {
		cause.Plugin, cause.Rule = o.Verdict.Plugin, o.Verdict.Rule
	}
	if cause.Source == "" {
		cause.Source = o.Verdict.HintSource
	}
	if cause.Message == "" {
		cause.Message = o.Verdict.Message
	}
	cause.Message = cut(cause.Message, maxError)
	s.Cause = &cause
	s.LastError = cause.Message
	if s.LastError == "" {
		s.LastError = string(o.Verdict.Reason)
	}
	s.LastErrorType = o.Verdict.Reason
	s.LastErrorAt = now
	s.ErrorCode = o.ErrorCode
	if s.ErrorCode == "" && cause.Status != 0 {
		s.ErrorCode = fmt.Sprint(cause.Status)
	}
	return s
}

// cut is the first n characters of text.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n])
}
