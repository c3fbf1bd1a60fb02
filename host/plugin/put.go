package plugin

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/weirgate/weir/host/plugin/shelf"
)

// Check loads a module, or the YAML of a pack, to the side and reports each step; it is never in force (PLG-10). Nobody need trust
// it.
func (r *Runtime) Check(ctx context.Context, module []byte) Report {
	l := r.aside()
	l.trace = newTrace(r.o.Now)
	v, f := l.load(ctx, source{origin: OriginAPI, file: "the module", yaml: isText(module), bytes: module, untrusted: true})
	if f != nil {
		return l.trace.report(nil, f)
	}
	defer v.release()
	s := &slot{origin: OriginAPI, file: v.name}
	r.mu.Lock()
	if had := r.slots[slotKey(OriginAPI, v.name, inForce)]; had != nil {
		s = had
	}
	f = r.conflict(s, v)
	r.mu.Unlock()
	return l.trace.activated(v, f)
}

// activated is the report with the last step.
func (t *trace) activated(v *version, f *Fault) Report {
	if f == nil {
		t.done(StepActivate)
	}
	return t.report(v, f)
}

// isText says whether the bytes are meant as a pack's source: no module begins with readable text.
func isText(b []byte) bool {
	return !bytes.HasPrefix(b, []byte{0}) && !bytes.HasPrefix(b, []byte("#!")) && !slices.Contains(b[:min(len(b), 512)], 0) && len(bytes.TrimSpace(b)) > 0
}

// aside is a loader whose versions share nothing with those in force: counters, kv and quarantines are their own.
func (r *Runtime) aside() *loader {
	l := r.loader()
	l.counters = func(string) *counters { return &counters{} }
	l.space = func(string) *space { return newSpace() }
	l.ward = func(string, string) *ward { w := &ward{}; w.users.Add(1); return w }
	l.observer = nil
	return l
}

// Put adds or replaces a plugin with a module, or the YAML of a pack (PLG-10). When it returns a good report the version is in force
// and kept; the requests that began before finish with the one before (PLG-3). A version that fails a step changes nothing, and
// the report says why.
func (r *Runtime) Put(ctx context.Context, name string, module []byte, o PutOptions) (Report, error) {
	place := inForce
	switch cmp.Or(o.Mode, ModeActive) {
	case ModeActive:
	case ModeShadow:
		place = asCandidate
	default:
		return Report{}, problem(http.StatusBadRequest, CodeBadMode, "a plugin is put as active or shadow, not as %s", o.Mode)
	}
	if !nameShape.MatchString(name) {
		return Report{}, problem(http.StatusBadRequest, CodeBadName, "%q is no name of a plugin; use 2 to 63 small letters, digits and hyphens, as its manifest does", name)
	}
	file, inFolder := r.fileOf(digestOf(module), place)
	if inFolder { // the same bytes lie in the folder: to put them is to accept that file
		return r.accept(ctx, name, file, module, o)
	}
	r.shelving.Lock()
	defer r.shelving.Unlock()
	if r.inFolder(name, place) {
		return Report{}, managedByFile(name, "replaced")
	}
	l := r.loader()
	l.trace = newTrace(r.o.Now)
	v, f := l.load(ctx, source{
		origin: OriginAPI, file: name, name: name, yaml: isText(module), bytes: module, signature: o.Signature, granted: o.Grants,
		candidate: place == asCandidate, put: true,
	})
	if f != nil {
		r.refuse(name, place, f)
		return l.trace.report(nil, f), nil
	}
	if o.Grants != nil {
		if p := tooWide(*o.Grants, v); p != nil {
			v.release()
			return Report{}, p
		}
	}
	rec := shelf.Record{
		Digest: v.digest, Version: v.manifest.Version, YAML: isText(module), Size: len(module), AddedAt: r.o.Now(), Signed: len(o.Signature) > 0,
	}
	f, err := r.bring(v, place, func() error {
		if err := r.shelf.Write(name, rec, module, o.Signature); err != nil {
			return err
		}
		if err := r.lock.Put(lockEntry(v, cmp.Or(o.Source, "api"), o.Grants, r.lock)); err != nil {
			return err
		}
		if err := r.shelf.Change(func(i *shelf.Index) { i.Plugins[name] = withRecord(i.Plugins[name], rec, place) }); err != nil {
			return err
		}
		r.trimLock(name)
		return nil
	})
	if err != nil {
		return Report{}, err
	}
	report := l.trace.activated(v, f)
	if f == nil && place == inForce {
		r.dropSame(name, rec.Digest)
	}
	return report, nil
}

// withRecord is a kept plugin with one version more.
func withRecord(p shelf.Plugin, rec shelf.Record, place int) shelf.Plugin {
	if place == asCandidate {
		p.Candidate = &rec
		return p
	}
	p.Activate(rec)
	if p.Candidate != nil && p.Candidate.Digest == rec.Digest {
		p.Candidate = nil
	}
	return p
}

// bring puts a loaded version in force, after it was kept: what was acknowledged is there after a crash, and what could not be
// kept is not in force. It takes over the caller's hold of v. The caller holds shelving.
func (r *Runtime) bring(v *version, place int, keep func() error) (*Fault, error) {
	name := v.name
	s := r.slot(OriginAPI, name, place)
	r.mu.Lock()
	s.name = name
	f := r.conflict(s, v)
	if f == nil && s.active != nil && s.active.digest != v.digest && v.quarantined(r.o.Now()) {
		f = fault(StepActivate, CodeQuarantined, "the version %s of %s is in quarantine, and what is active works; lift it with unquarantine while it is active or a candidate, or wait",
			v.manifest.Version, name)
	}
	r.mu.Unlock()
	before := r.shelf.Index().Plugins[name]
	if f == nil {
		if err := keep(); err != nil {
			v.release()
			r.forgetEmpty(s)
			return nil, problem(http.StatusInsufficientStorage, CodeNotKept, "the plugin could not be kept, so nothing was changed: %v; see that the data folder can be written", err)
		}
	}
	if f != nil {
		f.At, f.File = r.o.Now(), name
		v.release()
		r.forgetEmpty(s)
		r.tell(Event{Kind: "plugin.rejected", At: f.At, Name: name, File: name, Origin: OriginAPI, Fault: f})
		return f, nil
	}
	digest := v.digest
	v.hold() // the report still reads it
	defer v.release()
	r.settle(s, digest, v, nil, true)
	r.mu.Lock()
	f = s.fault
	r.mu.Unlock()
	if f == nil {
		return nil, nil
	}
	// A file of the folder took the name or a provider in between.
	err := r.shelf.Change(func(i *shelf.Index) { restore(i, name, before) })
	r.forgetEmpty(s)
	if err != nil {
		return f, problem(http.StatusInsufficientStorage, CodeNotKept, "%v", err)
	}
	return f, nil
}

// restore puts back what was kept of a name.
func restore(i *shelf.Index, name string, p shelf.Plugin) {
	if len(p.Versions) == 0 && p.Candidate == nil {
		delete(i.Plugins, name)
		return
	}
	i.Plugins[name] = p
}

// forgetEmpty removes a slot that never held a version.
func (r *Runtime) forgetEmpty(s *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.active == nil && r.slots[s.key] == s {
		delete(r.slots, s.key)
	}
}

// dropSame gives up a candidate that has just become the active version.
func (r *Runtime) dropSame(name, digest string) {
	r.mu.Lock()
	s := r.slots[slotKey(OriginAPI, name, asCandidate)]
	same := s != nil && s.active != nil && s.active.digest == digest
	r.mu.Unlock()
	if same {
		r.giveUpSlots(func(o *slot) bool { return o == s })
	}
}

// giveUpSlots removes slots, tells of it, and makes the set anew.
func (r *Runtime) giveUpSlots(is func(*slot) bool) {
	var events []Event
	r.mu.Lock()
	for _, s := range r.ordered() {
		if is(s) {
			events = append(events, r.remove(s))
		}
	}
	r.rebuild()
	r.again()
	r.mu.Unlock()
	for _, e := range events {
		r.tell(e)
	}
	r.changed()
}

// refuse notes why what was put is not in force: on the place where it would be, as long as that has a version.
func (r *Runtime) refuse(name string, place int, f *Fault) {
	r.mu.Lock()
	if s := r.slots[slotKey(OriginAPI, name, place)]; s != nil {
		s.fault = f
	}
	r.mu.Unlock()
	r.tell(Event{Kind: "plugin.rejected", At: r.o.Now(), Name: name, File: name, Origin: OriginAPI, Fault: f})
}

// fileOf is the file of the folder whose bytes, as they were tried last, have the digest.
func (r *Runtime) fileOf(digest string, place int) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.slots {
		if s.origin == OriginFolder && s.digest == digest && s.candidate == (place == asCandidate) {
			return s.file, true
		}
	}
	return "", false
}

// accept locks a file of the folder with what is granted to it, and has it loaded: what weir plugin add does with a file that was
// refused because nobody had accepted it (ABI-11). The report is that of the file.
func (r *Runtime) accept(ctx context.Context, name, file string, module []byte, o PutOptions) (Report, error) {
	l := r.loader()
	l.trace = newTrace(r.o.Now)
	v, f := l.load(ctx, source{
		origin: OriginAPI, file: name, name: name, yaml: isText(module), bytes: module, signature: o.Signature, granted: o.Grants, put: true,
		candidate: isCandidate(OriginFolder, file, 0),
	})
	if f != nil {
		return l.trace.report(nil, f), nil
	}
	defer v.release()
	if o.Grants != nil {
		if p := tooWide(*o.Grants, v); p != nil {
			return Report{}, p
		}
	}
	if err := r.lock.Put(lockEntry(v, cmp.Or(o.Source, file), o.Grants, r.lock)); err != nil {
		return Report{}, problem(http.StatusInsufficientStorage, CodeNotKept, "%v", err)
	}
	key := slotKey(OriginFolder, file, 0)
	r.mu.Lock()
	stale := r.stale(func(s *slot) bool { return s.key == key })
	r.mu.Unlock()
	r.reload(ctx, stale)
	r.mu.Lock()
	if s := r.slots[key]; s != nil {
		f = s.fault
	}
	r.mu.Unlock()
	return l.trace.activated(v, f), nil
}

// trimLock forgets digests of a name that are kept nowhere any more, so that the lock does not grow with each put. A lock that cannot
// be written now is trimmed the next time.
func (r *Runtime) trimLock(name string) {
	kept, files := r.shelf.Index().Plugins[name], r.folderDigests(name)
	_ = r.lock.Keep(name, func(digest string) bool {
		_, ok := recordOf(kept, digest)
		return ok || files[digest]
	})
}
