package plugin

import (
	"slices"

	"github.com/weirgate/weir/host/plugin/shelf"
)

// Detail is everything about the plugin that counts under the name, with its candidate and those that it hides (PLG-15, PLG-16).
// False: there is none.
func (r *Runtime) Detail(name string) (Detail, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	on, main, candidate := r.running(), r.winners()[name], (*slot)(nil)
	var same []*slot
	for _, s := range r.ordered() {
		switch {
		case s.name != name && s.file != name:
		case s.candidate:
			candidate = s
		default:
			same = append(same, s)
		}
	}
	if main == nil && len(same) > 0 {
		main = same[len(same)-1]
	}
	if main == nil {
		main, candidate = candidate, nil
	}
	if main == nil {
		return Detail{}, false
	}
	d := Detail{Status: r.status(main, on), Differences: []Difference{}}
	d.Manifest = d.Status.Manifest
	shadow := main
	if candidate != nil {
		st := r.status(candidate, on)
		d.Candidate, d.Shadow, shadow = &st, st.Shadow, candidate
	}
	if d.Shadow != nil && shadow.active != nil {
		d.Differences = shadow.active.tally.differences()
	}
	for _, s := range same {
		if s != main {
			d.Hidden = append(d.Hidden, r.status(s, on))
		}
	}
	return d, true
}

// Versions are the versions of a name that are kept or built in, the newest first (PLG-15). False: there is no plugin of the name.
func (r *Runtime) Versions(name string) ([]VersionInfo, bool) {
	kept := r.shelf.Index().Plugins[name]
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known(name) {
		return nil, false
	}
	on, winner := r.running(), r.winners()[name]
	list := []VersionInfo{}
	shown := map[string]bool{}
	for _, s := range slices.Backward(r.ordered()) {
		if s.name != name || s.active == nil {
			continue
		}
		st := r.status(s, on)
		info := VersionInfo{
			Digest: st.Digest, Version: st.Version, Origin: s.origin, AddedAt: st.LoadedAt, State: st.State, SignedBy: st.SignedBy,
			Active: s == winner && st.Mode == ModeActive, Candidate: s.candidate,
		}
		if rec, ok := recordOf(kept, st.Digest); ok && s.origin == OriginAPI {
			info.AddedAt, shown[st.Digest] = rec.AddedAt, true
		}
		list = append(list, info)
	}
	for _, rec := range slices.Backward(kept.Versions) {
		if !shown[rec.Digest] {
			state := StateDisabled
			if rec.Digest == kept.Active { // it is in its place, and did not load
				state = StateRejected
			}
			e, _ := r.lock.Find(name, rec.Digest)
			list = append(list, VersionInfo{
				Digest: rec.Digest, Version: rec.Version, Origin: OriginAPI, AddedAt: rec.AddedAt, State: state, SignedBy: signedText(e.SignedBy),
			})
		}
	}
	return list, true
}

func recordOf(p shelf.Plugin, digest string) (shelf.Record, bool) {
	if p.Candidate != nil && p.Candidate.Digest == digest {
		return *p.Candidate, true
	}
	return p.Find(digest)
}
