// Package quarantine decides when a plugin that breaks the rules is left alone for a while (ABI-8). It owns that one decision
// and knows no clock, no plugin and no lock: what happened goes in, whether to call comes out, so a history can be replayed.
//
//	active ──weight 5 in 60 s, or above 20 % of at least 20 calls──► off ──60 s, doubling to 30 min──► trial
//	   ▲                                                              ▲                                │  │
//	   │                                                              └──────────a violation───────────┘  │
//	   └───────────────────────────────────────three clean trials, one at a time──────────────────────────┘
package quarantine

import (
	"slices"
	"time"
)

// Weight is how much a violation counts, in tenths: 10 is the weight 1 of ABI-8.
type Weight int

// The numbers of ABI-8.
const (
	Limit      Weight = 50               // of all violations in a Window
	Window            = 60 * time.Second // how long a violation and a call count
	MinCalls          = 20               // below these the share says nothing
	Share             = 5                // more than one call in so many
	FirstOff          = 60 * time.Second
	LongestOff        = 30 * time.Minute
	Trials            = 3 // clean ones in a row
)

// State says whether the plugin is called.
type State string

// The states.
const (
	Active State = "active"
	Off    State = "off"
	Trial  State = "trial" // one call at a time
)

// Change is what the end of a call did to the state.
type Change int

// The changes.
const (
	Same Change = iota
	Quarantined
	Again // quarantined for longer: a trial failed
	Restored
)

// Pass is the permission for one call. It ends in Done or Cancel, once.
type Pass struct {
	generation uint64
	trial      bool
}

// Machine is the record of one version of one plugin. The zero value is clean. It is not safe for concurrent use.
type Machine struct {
	generation uint64 // of the state: what began in an earlier one changes nothing
	until      time.Time
	off        time.Duration // the length of this quarantine; 0: active
	trying     bool
	clean      int
	calls      window
	bad        []violation // in the window; never many, or the machine is off
}

type violation struct {
	at     time.Time
	weight Weight
}

// Admit asks for a call. False: the plugin is quarantined, and its trial, if one is due, is under way.
func (m *Machine) Admit(now time.Time) (Pass, bool) {
	switch {
	case m.off == 0:
		return Pass{generation: m.generation}, true
	case now.Before(m.until) || m.trying:
		return Pass{}, false
	}
	m.trying = true
	return Pass{generation: m.generation, trial: true}, true
}

// Cancel gives back a pass whose call was not made.
func (m *Machine) Cancel(p Pass) {
	if p.trial && p.generation == m.generation {
		m.trying = false
	}
}

// Done ends a call with the weight of its violation, 0 for none. A call that began before the last change of state counts
// for nothing.
func (m *Machine) Done(now time.Time, p Pass, w Weight) Change {
	switch {
	case p.generation != m.generation:
		return Same
	case p.trial:
		return m.tried(now, w)
	}
	m.calls.add(now)
	if w <= 0 {
		return Same
	}
	m.bad = slices.DeleteFunc(m.bad, func(v violation) bool { return now.Sub(v.at) >= Window })
	m.bad = append(m.bad, violation{now, w})
	sum := Weight(0)
	for _, v := range m.bad {
		sum += v.weight
	}
	if calls := m.calls.sum(now); sum < Limit && (calls < MinCalls || len(m.bad)*Share <= calls) {
		return Same
	}
	m.close(now, FirstOff)
	return Quarantined
}

func (m *Machine) tried(now time.Time, w Weight) Change {
	if m.trying = false; w > 0 {
		m.close(now, min(2*m.off, LongestOff))
		return Again
	}
	if m.clean++; m.clean < Trials {
		return Same
	}
	m.Lift()
	return Restored
}

func (m *Machine) close(now time.Time, off time.Duration) {
	*m = Machine{generation: m.generation + 1, off: off, until: now.Add(off)}
}

// Lift ends a quarantine and forgets what led to it (PLG-5).
func (m *Machine) Lift() { *m = Machine{generation: m.generation + 1} }

// State returns the state and, unless it is Active, the time at which trials begin or began.
func (m *Machine) State(now time.Time) (State, time.Time) {
	switch {
	case m.off == 0:
		return Active, time.Time{}
	case now.Before(m.until):
		return Off, m.until
	}
	return Trial, m.until
}

// Clean says whether there is nothing to remember.
func (m *Machine) Clean(now time.Time) bool {
	return m.off == 0 && !slices.ContainsFunc(m.bad, func(v violation) bool { return now.Sub(v.at) < Window })
}

// window counts the calls of the last minute by seconds.
type window struct {
	second [60]int64
	n      [60]int
}

func (w *window) add(now time.Time) {
	s := now.Unix()
	i := (s%60 + 60) % 60
	if w.second[i] != s {
		w.second[i], w.n[i] = s, 0
	}
	w.n[i]++
}

func (w *window) sum(now time.Time) int {
	s, n := now.Unix(), 0
	for i, at := range w.second {
		if s-at < 60 && s >= at {
			n += w.n[i]
		}
	}
	return n
}
