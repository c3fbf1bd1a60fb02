package plugin

import (
	"slices"
	"sync/atomic"
)

// violationKinds are all kinds, in the order of counters.
var violationKinds = [...]string{
	violationFuel, violationTrap, violationMemory, violationDeadline, violationGarbage, violationOutput, violationExit,
}

// counters are kept per plugin name, over its versions. Safe for concurrent use.
type counters struct {
	calls, rules, noOpinion, declined, busy, refused, oversize, denied, dropped atomic.Int64
	violations                                                                  [len(violationKinds)]atomic.Int64
}

func (c *counters) violated(kind string) {
	if i := slices.Index(violationKinds[:], kind); i >= 0 {
		c.violations[i].Add(1)
	}
}

// Counters is what a plugin did since the start (PLG-15).
type Counters struct {
	Calls       int64            `json:"calls"`       // of the guest
	Rules       int64            `json:"rules"`       // decisions by a rule
	NoOpinion   int64            `json:"noOpinion"`   // calls that answered 0
	Declined    int64            `json:"declined"`    // calls that answered an error on purpose
	Busy        int64            `json:"busy"`        // calls that got no instance in time
	Quarantined int64            `json:"quarantined"` // calls that a quarantine prevented
	Oversize    int64            `json:"oversize"`    // calls that were not made since their input was too large
	Denied      int64            `json:"denied"`      // host functions that were not granted
	Dropped     int64            `json:"dropped"`     // log lines over the limit
	Violations  map[string]int64 `json:"violations"`
}

func (c *counters) read() Counters {
	out := Counters{
		Calls: c.calls.Load(), Rules: c.rules.Load(), NoOpinion: c.noOpinion.Load(), Declined: c.declined.Load(),
		Busy: c.busy.Load(), Quarantined: c.refused.Load(), Oversize: c.oversize.Load(), Denied: c.denied.Load(),
		Dropped: c.dropped.Load(), Violations: map[string]int64{},
	}
	for i, kind := range violationKinds {
		if n := c.violations[i].Load(); n > 0 {
			out.Violations[kind] = n
		}
	}
	return out
}
