package plugin

import (
	"errors"
	"sync/atomic"
)

// counters are kept per plugin name, over its versions. Safe for concurrent use.
type counters struct {
	calls, rules, noOpinion, declined, busy, denied, dropped atomic.Int64
	trap, memory, deadline, garbage, output, exit, other     atomic.Int64
}

func (c *counters) violated(err error) {
	v, ok := errors.AsType[*violation](err)
	if !ok {
		c.other.Add(1)
		return
	}
	switch v.kind {
	case violationTrap:
		c.trap.Add(1)
	case violationMemory:
		c.memory.Add(1)
	case violationDeadline:
		c.deadline.Add(1)
	case violationGarbage:
		c.garbage.Add(1)
	case violationOutput:
		c.output.Add(1)
	case violationExit:
		c.exit.Add(1)
	}
}

// Counters is what a plugin did since the start (PLG-15).
type Counters struct {
	Calls      int64            `json:"calls"`     // of the guest
	Rules      int64            `json:"rules"`     // decisions by a rule
	NoOpinion  int64            `json:"noOpinion"` // hooks that answered 0
	Declined   int64            `json:"declined"`  // hooks that answered an error on purpose
	Busy       int64            `json:"busy"`
	Denied     int64            `json:"denied"`  // host functions that were not granted
	Dropped    int64            `json:"dropped"` // log lines over the limit
	Violations map[string]int64 `json:"violations"`
}

func (c *counters) read() Counters {
	out := Counters{
		Calls: c.calls.Load(), Rules: c.rules.Load(), NoOpinion: c.noOpinion.Load(), Declined: c.declined.Load(),
		Busy: c.busy.Load(), Denied: c.denied.Load(), Dropped: c.dropped.Load(), Violations: map[string]int64{},
	}
	for kind, n := range map[string]*atomic.Int64{
		violationTrap: &c.trap, violationMemory: &c.memory, violationDeadline: &c.deadline, violationGarbage: &c.garbage,
		violationOutput: &c.output, violationExit: &c.exit, "other": &c.other,
	} {
		if v := n.Load(); v > 0 {
			out.Violations[kind] = v
		}
	}
	return out
}
