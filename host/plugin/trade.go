package plugin

// maxPending is how many versions that wait for a name are kept loaded; others are loaded again when it is free.
const maxPending = 8

// move is a version on its way into a slot.
type move struct {
	slot *slot
	v    *version
}

// trade lets files that exchange their names do so: each new version alone is refused, since the other file still has its name
// (PLG-1). When v closes such a ring all of them go in force at once; the fault is then nil, and the events tell of the others. Else v is
// kept for when the ring closes, and the fault stays. It needs mu held.
func (r *Runtime) trade(s *slot, v *version, f *Fault) (*Fault, []Event) {
	if s.origin != OriginFolder {
		return f, nil
	}
	moves := []move{{s, v}}
	for name := v.name; ; {
		o := r.holder(name, s.candidate, moves)
		if o == nil {
			break
		}
		if o.pending == nil || o.pending.name == name {
			r.keepPending(s, v)
			return f, nil
		}
		moves = append(moves, move{o, o.pending})
		name = o.pending.name
	}
	before := make([]*version, len(moves))
	for i, m := range moves {
		before[i], m.slot.active = m.slot.active, m.v
	}
	for _, m := range moves {
		if fault := r.conflict(m.slot, m.v); fault != nil {
			f = fault
			for i, m := range moves {
				m.slot.active = before[i]
			}
			return f, nil
		}
	}
	s.active = before[0] // settle puts v in its place
	var events []Event
	for i, m := range moves[1:] {
		o := m.slot
		o.pending, o.fault, o.retry, o.name = nil, nil, false, m.v.name // its hold is the slot's now
		r.retire(before[i+1])
		events = append(events, Event{
			Kind: "plugin.loaded", At: r.o.Now(), File: o.file, Origin: o.origin, Name: m.v.name, Version: m.v.manifest.Version, Digest: m.v.digest,
		})
	}
	return nil, events
}

// holder is the file that has the name now and is not about to give it up. It needs mu held.
func (r *Runtime) holder(name string, candidate bool, moves []move) *slot {
next:
	for _, o := range r.slots {
		if o.origin != OriginFolder || o.candidate != candidate || o.active == nil || o.active.name != name {
			continue
		}
		for _, m := range moves {
			if m.slot == o {
				continue next
			}
		}
		return o
	}
	return nil
}

// keepPending needs mu held.
func (r *Runtime) keepPending(s *slot, v *version) {
	n := 0
	for _, o := range r.slots {
		if o.pending != nil {
			n++
		}
	}
	if n < maxPending {
		v.hold()
		s.pending = v
	}
}

// forgetPending gives up what waits for a name. It needs mu held.
func (s *slot) forgetPending() {
	if s.pending != nil {
		s.pending.release()
		s.pending = nil
	}
}
