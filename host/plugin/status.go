package plugin

import (
	"bytes"
	"slices"
	"time"

	"github.com/weirgate/weir/host/plugin/manifest"
	"github.com/weirgate/weir/sdk/wire"
)

// States of a plugin (ABI-7).
const (
	StateLoading     = "loading"
	StateActive      = "active"
	StateDegraded    = "degraded" // active, and instances were lost to violations in the last minute
	StateQuarantined = "quarantined"
	StateRejected    = "rejected"
	StateDraining    = "draining" // removed, while requests that began with it still run
	StateDisabled    = "disabled"
)

// Status is what the management API shows of one plugin: P of PLG-15.
type Status struct {
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Summary     string             `json:"summary,omitempty"`
	Kinds       []string           `json:"kinds"`
	Origin      Origin             `json:"origin"`
	File        string             `json:"file,omitempty"`
	Mode        string             `json:"mode"`
	State       string             `json:"state"` // of the version in force; rejected: there is none
	Digest      string             `json:"digest"`
	Size        int                `json:"size"`
	Loader      string             `json:"loader"`
	Permissions wire.Permissions   `json:"permissions"`
	Granted     Grants             `json:"granted"`
	SignedBy    *string            `json:"signedBy"` // id of the trusted key, null: signed by nobody that is trusted
	LoadedAt    time.Time          `json:"loadedAt,omitzero"`
	Providers   []string           `json:"providers"`
	Rules       int                `json:"rules"`
	Fault       *Fault             `json:"fault"` // of the last bytes that were tried, also while an older version is active
	Warnings    []manifest.Problem `json:"warnings,omitempty"`
	Counters    Counters           `json:"counters"`
	Quarantine  *Quarantine        `json:"quarantine"`          // null: there is none
	Violation   *Violation         `json:"violation"`           // the last one of this digest
	Instances   int                `json:"instances"`           // of the version in force
	MemoryBytes int64              `json:"memoryBytes"`         // their linear memory
	Draining    int                `json:"draining,omitempty"`  // replaced versions that requests still hold
	Shadow      *Tally             `json:"shadow"`              // null: it does not run in shadow
	Candidate   bool               `json:"candidate,omitempty"` // it runs in shadow beside the active version of its name
	Manifest    wire.Raw           `json:"-"`                   // as the plugin described itself
}

// List shows every plugin, also the hidden, switched off and refused ones: built-in ones first, then the folder's in the
// order in which they came, then the removed ones that requests still hold.
func (r *Runtime) List() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	on := r.running()
	list := []Status{}
	for _, s := range r.ordered() {
		list = append(list, r.status(s, on))
	}
	r.drained = slices.DeleteFunc(r.drained, (*version).isClosed)
	for _, v := range r.drained {
		if i := slices.IndexFunc(list, func(s Status) bool { return s.Name == v.name }); i >= 0 {
			list[i].Draining++
			continue
		}
		st := Status{Origin: v.origin, State: StateDraining, Kinds: []string{}, Providers: []string{}, Draining: 1}
		st.describe(v, r.mode(v.name), r.o.Now())
		list = append(list, st)
	}
	return list
}

// running are the versions that are asked, also those in shadow. It needs mu held.
func (r *Runtime) running() map[*version]bool {
	on := map[*version]bool{}
	m := r.enabled()
	for _, v := range append(m.active, m.shadows...) {
		on[v] = true
	}
	return on
}

// status needs mu held.
func (r *Runtime) status(s *slot, on map[*version]bool) Status {
	st := Status{
		Name: s.name, Origin: s.origin, File: s.file, State: StateRejected, Fault: s.fault,
		Kinds: []string{}, Providers: []string{}, Counters: (&counters{}).read(),
	}
	if s.origin != OriginFolder {
		st.File = ""
	}
	if st.Name == "" { // its manifest was never read: the file names it
		st.Name = s.file
	}
	st.Mode, st.Candidate = r.mode(st.Name), s.candidate
	if s.candidate && st.Mode != ModeOff {
		st.Mode = ModeShadow
	}
	v := s.active
	if v == nil {
		if s.fault == nil {
			st.State = StateLoading
		}
		return st
	}
	st.State = StateDisabled
	if on[v] {
		st.State = StateActive
	}
	st.describe(v, st.Mode, r.o.Now())
	if on[v] && st.Mode == ModeShadow {
		st.Shadow = v.tally.read()
	}
	switch {
	case st.State != StateActive || v.ward == nil:
	case st.Quarantine != nil:
		st.State = StateQuarantined
	default:
		if _, degraded, _ := v.ward.see(r.o.Now()); degraded {
			st.State = StateDegraded
		}
	}
	return st
}

// describe fills in what the version itself says.
func (st *Status) describe(v *version, mode string, now time.Time) {
	m := v.manifest
	st.Name, st.Mode, st.Version, st.Summary, st.Kinds = v.name, mode, m.Version, m.Summary, append(st.Kinds, m.Kinds...)
	st.Digest, st.Size, st.Loader, st.LoadedAt = v.digest, v.size, v.loader, v.loadedAt
	st.Permissions, st.Granted, st.Rules, st.Warnings = m.Permissions, v.granted, v.table.Len(), v.warnings
	if v.signedBy != "" {
		st.SignedBy = &v.signedBy
	}
	st.Counters, st.Manifest = v.counters.read(), bytes.Clone(v.raw)
	for i := range m.Providers {
		st.Providers = append(st.Providers, m.Providers[i].ID)
	}
	if v.guest != nil {
		st.Quarantine, _, st.Violation = v.ward.see(now)
		st.Instances, st.MemoryBytes = v.guest.pool.count(), v.guest.bytes.Load()
	}
}
