package plugin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
)

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// settle takes the result of a load into its slot. A version that may not have its name or providers is refused here, and
// then the one before stays, as with every fault (PLG-2). It reports whether versions changed: without rebuild the caller makes
// the set anew and tells that it changed.
func (r *Runtime) settle(s *slot, digest string, v *version, f *Fault, rebuild bool) (moved bool) {
	r.mu.Lock()
	s.forgetPending()
	var traded []Event
	if f == nil {
		if f = r.conflict(s, v); f != nil && f.Code == CodeNameTaken {
			f, traded = r.trade(s, v, f)
		}
		if f != nil {
			f.At, f.File = r.o.Now(), s.file
		}
	}
	s.loading, s.digest, s.fault = false, digest, f
	s.retry = f != nil && (f.Code == CodeNameTaken || f.Code == CodeProviderTaken)
	gone := r.closed || r.slots[s.key] != s
	e := Event{Kind: "plugin.loaded", At: r.o.Now(), File: s.file, Origin: s.origin, Fault: f}
	if v != nil {
		s.name = v.name
		e.Name, e.Version, e.Digest = v.name, v.manifest.Version, v.digest
	}
	refused := f != nil || gone
	// The operator's word counts at once: for the same bytes when they lost a grant, and for what is active when it lost its trust, whatever
	// lies in its file by now. A signature that changed is no such word: that of the next version may come before its bytes.
	revoked := refused && s.active != nil && (s.active.digest == digest && v != nil || !r.keeps(s.active))
	if refused {
		e.Kind = "plugin.rejected"
		if v != nil {
			v.release()
			v = nil
		}
	}
	if !refused || revoked {
		old := s.active
		s.active = v
		if old != nil && v != nil && v.guest != nil {
			v.guest.refill() // the first request shall not wait longer than it did before
		}
		if old != nil && (v == nil || old.name != v.name || len(old.manifest.Providers) > 0) {
			r.again()
		}
		if rebuild {
			r.rebuild()
		}
		if old != nil {
			r.retire(old)
		}
	}
	r.mu.Unlock()
	if gone {
		return false
	}
	r.tell(e)
	for _, e := range traded {
		r.tell(e)
	}
	moved = !refused || revoked
	if moved && rebuild {
		r.changed()
	}
	return moved
}

// keeps says whether the operator still trusts a version. It needs mu held.
func (r *Runtime) keeps(v *version) bool {
	return v.origin == OriginBuiltin || r.policy.Keeps(r.lock, v.name, v.digest, v.signedBy)
}

// again has those files tried once more whose name or provider another plugin had, since one may be free now. It needs mu
// held.
func (r *Runtime) again() {
	for _, s := range r.slots {
		if s.retry && s.origin == OriginFolder {
			s.digest, s.again = "", true
		}
	}
	r.watch.wake()
}

// remove gives up the plugin of a file that is gone. It needs mu held and returns what to tell.
func (r *Runtime) remove(s *slot) Event {
	delete(r.slots, s.key)
	s.forgetPending()
	e := Event{Kind: "plugin.removed", At: r.o.Now(), File: s.file, Origin: s.origin, Name: s.name}
	if s.active != nil {
		e.Name, e.Version, e.Digest = s.active.name, s.active.manifest.Version, s.active.digest
		r.retire(s.active)
		s.active = nil
	}
	return e
}

// retire gives up a version that was in force. It needs mu held.
func (r *Runtime) retire(v *version) {
	r.drained = append(slices.DeleteFunc(r.drained, (*version).isClosed), v)
	v.retire()
}

// conflict refuses a name or provider that belongs to another plugin. It needs mu held.
func (r *Runtime) conflict(s *slot, v *version) *Fault {
	for _, other := range r.ordered() {
		w := other.active
		if other == s || w == nil || w.name != v.name {
			continue
		}
		if other.candidate == s.candidate && (other.origin == s.origin || s.candidate) {
			return fault(StepActivate, CodeNameTaken, "the name %s is taken by %s; give one of them another name", v.name, other.place())
		}
		if len(v.manifest.Kinds) > 0 && len(w.manifest.Kinds) > 0 && !slices.ContainsFunc(v.manifest.Kinds, w.manifest.Is) {
			return fault(StepActivate, CodeNameTaken, "the name %s is taken by a plugin of another kind (%s, from %s); give it another name",
				v.name, w.manifest.Kinds[0], other.origin)
		}
	}
	return r.owning(func(other *slot) bool {
		return other != s && (other.origin == OriginBuiltin || other.active.name != v.name)
	}).check(v)
}

// place names the slot to a person.
func (s *slot) place() string {
	if s.origin == OriginAPI {
		return "the plugin " + s.file + " that was put through the API"
	}
	return s.file
}

// owning are the owners of providers among the slots that count. Candidates own nothing. It needs mu held.
func (r *Runtime) owning(counts func(*slot) bool) owners {
	own := owners{}
	for _, s := range r.ordered() {
		if s.active != nil && !s.candidate && counts(s) {
			own.claim(s.active)
		}
	}
	return own
}

// ordered are the slots in the order in which they own providers: built-in first, then as they came. It needs mu held.
func (r *Runtime) ordered() []*slot {
	third := func(s *slot) int {
		if s.origin == OriginBuiltin {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Values(r.slots), func(a, b *slot) int {
		return cmp.Or(cmp.Compare(third(a), third(b)), cmp.Compare(a.sequence, b.sequence))
	})
}

// winners are the slots that count, by plugin name: the folder's before the API's, and that before the built-in one (PLG-16). It
// needs mu held.
func (r *Runtime) winners() map[string]*slot {
	winner := map[string]*slot{}
	for _, s := range r.ordered() {
		if s.active == nil || s.candidate {
			continue
		}
		if w := winner[s.active.name]; w == nil || w.origin.rank() <= s.origin.rank() {
			winner[s.active.name] = s
		}
	}
	return winner
}

// enabled are the versions that count and those that run in shadow, in the order of ownership. It needs mu held.
func (r *Runtime) enabled() (on members) {
	winner := r.winners()
	for _, s := range r.ordered() {
		if s.active == nil {
			continue
		}
		switch mode := r.mode(s.active.name); {
		case mode == ModeOff:
		case s.candidate:
			on.shadows = append(on.shadows, s.active)
		case winner[s.active.name] != s:
		case mode == ModeShadow:
			on.shadows = append(on.shadows, s.active)
		default:
			on.active = append(on.active, s.active)
		}
	}
	return on
}

// mode is the mode of the plugin: the configuration file's word before the API's. It needs mu held.
func (r *Runtime) mode(name string) string { return cmp.Or(r.modes[name], r.stored[name], ModeActive) }

// rebuild makes the set anew and moves the pointer. It needs mu held.
func (r *Runtime) rebuild() {
	winner := r.winners()
	own := r.owning(func(s *slot) bool { return s.origin == OriginBuiltin || winner[s.active.name] == s })
	r.set.Swap(newSet(r.enabled(), own, r.o.Now)).Release()
}

func (r *Runtime) changed() {
	if r.o.OnChange != nil {
		r.o.OnChange()
	}
}

func (r *Runtime) tell(e Event) {
	switch e.Kind {
	case "plugin.rejected":
		r.o.Log.Warn("plugin refused; what was active stays", "file", e.File, "plugin", e.Name, "step", e.Fault.Step,
			"code", e.Fault.Code, "fault", e.Fault.Error())
	case "plugin.quarantined":
		r.o.Log.Warn("plugin quarantined; generic behaviour is used until it has proved itself", "plugin", e.Name, "version", e.Version,
			"digest", e.Digest, "until", e.until())
	default:
		level := slog.LevelInfo
		if e.Origin == OriginBuiltin { // a few dozen at each start, and no news
			level = slog.LevelDebug
		}
		r.o.Log.Log(context.Background(), level, e.Kind, "file", e.File, "plugin", e.Name, "version", e.Version, "digest", e.Digest, "origin", string(e.Origin))
	}
	if r.o.OnEvent != nil {
		r.o.OnEvent(e)
	}
}
