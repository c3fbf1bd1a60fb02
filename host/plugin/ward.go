package plugin

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/plugin/quarantine"
)

// ward watches over the behaviour of one digest of one plugin name (ABI-8). Versions of that digest share it, so that loading
// the same bytes again lifts no quarantine. Safe for concurrent use.
type ward struct {
	changed func(quarantine.Change) // tells the world; called without the lock

	mu      sync.Mutex
	machine quarantine.Machine // guarded by mu
	last    *Violation         // guarded by mu
	lost    time.Time          // when an instance was lost to a violation, guarded by mu

	users atomic.Int64 // versions
}

// admit asks whether the guest may be called.
func (w *ward) admit(now time.Time) (quarantine.Pass, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.Admit(now)
}

// cancel gives back a pass whose call was not made.
func (w *ward) cancel(p quarantine.Pass) {
	w.mu.Lock()
	w.machine.Cancel(p)
	w.mu.Unlock()
}

// done ends a call; v is nil for a clean one.
func (w *ward) done(now time.Time, p quarantine.Pass, v *violation) {
	weight := quarantine.Weight(0)
	if v != nil {
		weight = weightOf(v.kind)
	}
	w.mu.Lock()
	if v != nil {
		w.last = &Violation{Op: opName(v.op), Kind: v.kind, Cause: v.cause, Stderr: v.stderr, At: now}
		if !v.kept {
			w.lost = now
		}
	}
	change := w.machine.Done(now, p, weight)
	w.mu.Unlock()
	if change != quarantine.Same && w.changed != nil {
		w.changed(change)
	}
}

// lift ends a quarantine by hand. False: there was none.
func (w *ward) lift(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	state, _ := w.machine.State(now)
	if state == quarantine.Active {
		return false
	}
	w.machine.Lift()
	return true
}

// Quarantine is what is to be known about one that is in force.
type Quarantine struct {
	Until time.Time `json:"until"` // then trials begin
	Trial bool      `json:"trial"` // they have begun
}

// see is the state for List: a quarantine, whether instances were lost in the last minute, and the last violation.
func (w *ward) see(now time.Time) (q *Quarantine, degraded bool, last *Violation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state, until := w.machine.State(now); state != quarantine.Active {
		q = &Quarantine{Until: until, Trial: state == quarantine.Trial}
	}
	return q, !w.lost.IsZero() && now.Sub(w.lost) < quarantine.Window, w.last
}

// quarantined says whether the version's digest is in quarantine now.
func (v *version) quarantined(now time.Time) bool {
	if v.ward == nil {
		return false
	}
	q, _, _ := v.ward.see(now)
	return q != nil
}

// idle says whether nothing is to be remembered.
func (w *ward) idle(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.Clean(now)
}

// maxWards is how many digests of one name are remembered beyond those in use.
const maxWards = 10

// ward returns the ward of a digest, made at the first time. Others of the name that nobody uses are forgotten, unless they are
// quarantined and few.
func (r *Runtime) ward(name, digest string) *ward {
	r.mu.Lock()
	defer r.mu.Unlock()
	byDigest := r.wards[name]
	if byDigest == nil {
		byDigest = map[string]*ward{}
		r.wards[name] = byDigest
	}
	w := byDigest[digest]
	if w == nil {
		w = &ward{changed: func(c quarantine.Change) { r.quarantined(name, digest, c) }}
		byDigest[digest] = w
	}
	w.users.Add(1)
	for d, other := range byDigest {
		if other.users.Load() == 0 && (len(byDigest) > maxWards || other.idle(r.o.Now())) {
			delete(byDigest, d)
		}
	}
	return w
}

// quarantined tells of a change that the conduct of a plugin brought.
func (r *Runtime) quarantined(name, digest string, c quarantine.Change) {
	e := Event{Kind: "plugin.quarantined", At: r.o.Now(), Name: name, Digest: digest}
	if c == quarantine.Restored {
		e.Kind = "plugin.restored"
	}
	r.mu.Lock()
	for _, s := range r.slots {
		if v := s.active; v != nil && v.name == name && v.digest == digest {
			e.Version, e.File, e.Origin = v.manifest.Version, s.file, s.origin
			e.Quarantine, _, e.Violation = v.ward.see(e.At)
		}
	}
	r.mu.Unlock()
	r.tell(e)
}

// Unquarantine lifts the quarantine of a plugin by hand (PLG-5). False: no version in force of that name is quarantined.
func (r *Runtime) Unquarantine(name string) bool {
	lifted := r.lift(name)
	for _, digest := range lifted {
		r.quarantined(name, digest, quarantine.Restored)
	}
	return len(lifted) > 0
}

// lift returns the digests whose quarantine it ended. A pack has no ward: it holds no code that could misbehave.
func (r *Runtime) lift(name string) (digests []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.slots {
		if v := s.active; v != nil && v.name == name && v.ward != nil && v.ward.lift(r.o.Now()) {
			digests = append(digests, v.digest)
		}
	}
	return digests
}

func (e *Event) until() time.Time {
	if e.Quarantine == nil {
		return time.Time{}
	}
	return e.Quarantine.Until
}
