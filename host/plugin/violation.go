package plugin

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// Violations, as counters, metrics and logs name them (ABI-8).
const (
	violationFuel     = "fuel"
	violationTrap     = "trap"
	violationMemory   = "out_of_memory"
	violationDeadline = "deadline"
	violationGarbage  = "garbage"
	violationOutput   = "output_too_large"
	violationExit     = "exit"
)

// Faults of a call that are no violation of the guest.
var (
	errBusy        = errors.New("all instances are busy")
	errQuarantined = errors.New("the plugin is quarantined")
	errGone        = errors.New("the instance is gone")
	errDrained     = errors.New("the version was replaced and its time to finish is over")
	errNoCode      = errors.New("it has no code")
	errOversize    = fmt.Errorf("the input is larger than the %d bytes that a guest is given", maxInput)
)

// opName is the name of an operation, also of the one that has no number.
func opName(op wire.Op) string {
	if op == opInitialize {
		return "_initialize"
	}
	return op.String()
}

// violation is a guest that broke the rules in one call.
type violation struct {
	op     wire.Op
	kind   string
	cause  string // of a trap the kind of trap
	stderr string // what the guest wrote in this call, its end
	kept   bool   // the instance is whole: the guest came back by itself
}

func (v *violation) Error() string {
	s := v.kind + ": " + v.cause
	if v.stderr != "" {
		s += "; the guest wrote: " + v.stderr
	}
	return s
}

func garbage(format string, args ...any) *violation {
	return &violation{kind: violationGarbage, cause: fmt.Sprintf(format, args...)}
}

// asViolation is what a guest's answer that cannot be used is: garbage, whatever the decoder says.
func asViolation(op wire.Op, err error) *violation {
	v, ok := errors.AsType[*violation](err)
	if !ok {
		v = garbage("%s answered what cannot be used: %v", opName(op), err)
	}
	if v.op == 0 {
		v.op = op
	}
	return v
}

// Violation is the last time that a plugin broke the rules, for people.
type Violation struct {
	Op     string    `json:"op"`
	Kind   string    `json:"kind"`
	Cause  string    `json:"cause"`
	Stderr string    `json:"stderr,omitempty"` // at most 4 KiB
	At     time.Time `json:"at"`
}

// ring keeps the last maxStderr bytes written.
type ring struct{ b []byte }

func (r *ring) reset() { r.b = r.b[:0] }

// Write keeps the end of p.
func (r *ring) Write(p []byte) (int, error) {
	n := len(p)
	if n >= maxStderr {
		r.b, p = r.b[:0], p[n-maxStderr:]
	}
	if over := len(r.b) + len(p) - maxStderr; over > 0 {
		r.b = append(r.b[:0], r.b[over:]...)
	}
	r.b = append(r.b, p...)
	return n, nil
}

func (r *ring) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(r.b)), "?") }

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
