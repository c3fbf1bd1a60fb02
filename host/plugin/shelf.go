package plugin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/plugin/shelf"
	"github.com/weirgate/weir/host/plugin/trust"
)

// nameShape is that of ABI-2, so that a name is safe as that of a folder.
var nameShape = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,62}$`)

// openShelf reads what earlier runs kept.
func (r *Runtime) openShelf() error {
	if r.o.DataDir == "" {
		return nil
	}
	lock, err := trust.OpenLock(r.o.DataDir)
	if err != nil {
		return err
	}
	kept, err := shelf.Open(filepath.Join(r.o.DataDir, "plugins"))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lock, r.shelf, r.stored = lock, kept, kept.Index().Modes
	return nil
}

// loadShelf loads what was put through the API and is wanted, by key of its slot.
func (r *Runtime) loadShelf(ctx context.Context, wanted func(key string) bool) {
	index := r.shelf.Index()
	moved := false
	for _, name := range slices.Sorted(maps.Keys(index.Plugins)) {
		p := index.Plugins[name]
		if rec, ok := p.Find(p.Active); ok && wanted(slotKey(OriginAPI, name, inForce)) {
			moved = r.loadKept(ctx, name, rec, inForce) || moved
		}
		if p.Candidate != nil && wanted(slotKey(OriginAPI, name, asCandidate)) {
			moved = r.loadKept(ctx, name, *p.Candidate, asCandidate) || moved
		}
	}
	if moved {
		r.mu.Lock()
		r.rebuild()
		r.mu.Unlock()
		r.changed()
	}
}

func (r *Runtime) loadKept(ctx context.Context, name string, rec shelf.Record, place int) (moved bool) {
	s := r.slot(OriginAPI, name, place)
	r.mu.Lock()
	s.name = name
	r.mu.Unlock()
	src, f := r.keptSource(name, rec, place)
	var v *version
	if f == nil {
		v, f = r.loader().load(ctx, src)
	}
	return r.settle(s, rec.Digest, v, f, false)
}

// keptSource reads a version from the shelf.
func (r *Runtime) keptSource(name string, rec shelf.Record, place int) (source, *Fault) {
	module, signature, err := r.shelf.Read(name, rec)
	if err != nil {
		f := fault(StepRead, CodeUnreadable, "cannot be read: %v", err)
		f.At, f.File = r.o.Now(), name
		return source{}, f
	}
	return source{
		origin: OriginAPI, file: name, name: name, yaml: rec.YAML, bytes: module, signature: signature, candidate: place == asCandidate,
	}, nil
}

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
		r.tell(Event{Kind: "plugin.rejected", At: r.o.Now(), Name: name, File: name, Origin: OriginAPI, Fault: f})
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
		return r.shelf.Change(func(i *shelf.Index) { i.Plugins[name] = withRecord(i.Plugins[name], rec, place) })
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

// Remove takes a plugin that was put through the API out, with its versions, grants and candidate; what it hid takes over (PLG-16).
func (r *Runtime) Remove(_ context.Context, name string) error {
	r.shelving.Lock()
	defer r.shelving.Unlock()
	if _, kept := r.shelf.Index().Plugins[name]; !kept {
		return r.notKept(name, "removed")
	}
	keeps := r.folderDigests(name)
	err := r.shelf.Change(func(i *shelf.Index) {
		delete(i.Plugins, name)
		if len(keeps) == 0 && !r.isBuiltin(name) {
			delete(i.Modes, name)
		}
	})
	if err == nil {
		err = r.lock.Keep(name, func(digest string) bool { return keeps[digest] })
	}
	if err != nil {
		return problem(http.StatusInsufficientStorage, CodeNotKept, "%v", err)
	}
	r.mu.Lock()
	r.stored = r.shelf.Index().Modes
	r.mu.Unlock()
	r.giveUpSlots(func(s *slot) bool { return s.origin == OriginAPI && s.file == name })
	return nil
}

// DropCandidate takes out the candidate that runs in shadow beside the active version.
func (r *Runtime) DropCandidate(_ context.Context, name string) error {
	r.shelving.Lock()
	defer r.shelving.Unlock()
	p := r.shelf.Index().Plugins[name]
	if p.Candidate == nil {
		return r.noCandidate(name, "dropped")
	}
	if err := r.shelf.Change(func(i *shelf.Index) {
		p.Candidate = nil
		restore(i, name, p)
	}); err != nil {
		return problem(http.StatusInsufficientStorage, CodeNotKept, "%v", err)
	}
	r.giveUpSlots(func(s *slot) bool { return s.key == slotKey(OriginAPI, name, asCandidate) })
	return nil
}

// Promote makes the candidate the active version (PLG-4). It is loaded once more, so that what it kept as a shadow does not count;
// when that fails nothing is changed.
func (r *Runtime) Promote(ctx context.Context, name string) error {
	r.shelving.Lock()
	defer r.shelving.Unlock()
	p := r.shelf.Index().Plugins[name]
	if p.Candidate == nil {
		return r.noCandidate(name, "promoted")
	}
	if r.inFolder(name, inForce) {
		return managedByFile(name, "replaced")
	}
	rec := *p.Candidate
	if err := r.exchange(ctx, name, rec, func(p shelf.Plugin) shelf.Plugin { return withRecord(p, rec, inForce) }); err != nil {
		return err
	}
	r.dropSame(name, rec.Digest)
	return nil
}

// Rollback puts the version before the active one in force again. It may be repeated, back to the oldest that is kept.
func (r *Runtime) Rollback(ctx context.Context, name string) error {
	r.shelving.Lock()
	defer r.shelving.Unlock()
	p, kept := r.shelf.Index().Plugins[name]
	if r.inFolder(name, inForce) {
		return managedByFile(name, "rolled back")
	}
	if !kept {
		return r.notKept(name, "rolled back")
	}
	rec, ok := p.Before()
	if !ok {
		return problem(http.StatusConflict, CodeNoEarlier, "no version of %s before the active one is kept; put the one that you want", name)
	}
	return r.exchange(ctx, name, rec, func(p shelf.Plugin) shelf.Plugin { p.Active = rec.Digest; return p })
}

// exchange loads a kept version, notes that it is the active one, and puts it in force.
func (r *Runtime) exchange(ctx context.Context, name string, rec shelf.Record, how func(shelf.Plugin) shelf.Plugin) error {
	src, f := r.keptSource(name, rec, inForce)
	var v *version
	if f == nil {
		v, f = r.loader().load(ctx, src)
	}
	if f == nil {
		var err error
		if f, err = r.bring(v, inForce, func() error {
			return r.shelf.Change(func(i *shelf.Index) { i.Plugins[name] = how(i.Plugins[name]) })
		}); err != nil {
			return err
		}
	}
	if f != nil {
		return problem(http.StatusConflict, CodeStale, "the version %s of %s does not pass its checks now (%s: %s); what was active stays", rec.Version, name, f.Step, f.Message)
	}
	return nil
}

// SetMode switches a plugin of any origin: active, shadow or off (PLG-4). A mode that the configuration file sets is not for the
// API to change.
func (r *Runtime) SetMode(_ context.Context, name, mode string) error {
	if mode != ModeActive && mode != ModeShadow && mode != ModeOff {
		return problem(http.StatusBadRequest, CodeBadMode, "the mode %q is unknown; use active, shadow or off", mode)
	}
	r.shelving.Lock()
	defer r.shelving.Unlock()
	r.mu.Lock()
	_, byFile := r.modes[name]
	known := r.known(name)
	r.mu.Unlock()
	switch {
	case !known:
		return notFound(name)
	case byFile:
		return problem(http.StatusConflict, CodeManagedByFile, "the configuration file sets the mode of %s under plugins.modes; change it there, or take it out", name)
	}
	err := r.shelf.Change(func(i *shelf.Index) {
		if mode == ModeActive {
			delete(i.Modes, name)
			return
		}
		i.Modes[name] = mode
	})
	if err != nil {
		return problem(http.StatusInsufficientStorage, CodeNotKept, "%v", err)
	}
	r.mu.Lock()
	r.stored = r.shelf.Index().Modes
	r.rebuild()
	r.mu.Unlock()
	r.changed()
	return nil
}

// Grant sets what the version in force may do, in place of what was granted before; it belongs to the name and the digest, so that
// other bytes of the name have it not (PLG-12, PLG-16). What the configuration file grants stays beside it. The version is loaded
// again with it.
func (r *Runtime) Grant(ctx context.Context, name string, g Grants) error {
	r.shelving.Lock()
	r.mu.Lock()
	s := r.winners()[name]
	if s == nil {
		s = r.slots[slotKey(OriginAPI, name, asCandidate)]
	}
	var v *version
	if s != nil && s.active != nil {
		v = s.active
		v.hold()
	}
	r.mu.Unlock()
	if v == nil {
		r.shelving.Unlock()
		return notFound(name)
	}
	defer v.release()
	err := error(nil)
	switch p := tooWide(g, v); {
	case v.origin == OriginBuiltin:
		err = problem(http.StatusConflict, CodeBuiltin, "%s is built in and has what its manifest asks for; only what other plugins may do is granted", name)
	case p != nil:
		err = p
	default:
		if fail := r.lock.Put(lockEntry(v, string(v.origin), &g, r.lock)); fail != nil {
			err = problem(http.StatusInsufficientStorage, CodeNotKept, "%v", fail)
		}
	}
	if err != nil {
		r.shelving.Unlock()
		return err
	}
	r.mu.Lock()
	stale := r.stale(func(o *slot) bool {
		return o.active != nil && o.active.name == name && o.active.digest == v.digest && o.origin != OriginBuiltin
	})
	r.mu.Unlock()
	r.shelving.Unlock()
	r.reload(ctx, stale)
	return nil
}

// lockEntry is the version's line of the lock file. Without grants it keeps those of its digest.
func lockEntry(v *version, source string, g *Grants, l *trust.Lock) trust.Entry {
	e := trust.Entry{
		Name: v.name, Version: v.manifest.Version, ABI: v.manifest.ABI, SHA256: v.digest, Size: v.size, Source: source, SignedBy: v.signedBy,
		Granted: json.RawMessage("{}"),
	}
	if before, ok := l.Find(v.name, v.digest); ok {
		e.Granted, e.Source = before.Granted, cmp.Or(before.Source, source)
	}
	if g != nil {
		e.Granted, _ = json.Marshal(g) // texts and numbers always encode
	}
	return e
}

// tooWide refuses grants that the manifest does not ask for.
func tooWide(g Grants, v *version) *Problem {
	if more := g.beyond(v.manifest.Permissions); len(more) > 0 {
		return problem(http.StatusBadRequest, CodeGrantTooWide, "the manifest of %s does not ask for %s; grant what it asks for at most", v.name, strings.Join(more, ", "))
	}
	return nil
}

// inFolder says whether a file of the folder holds that place of the name.
func (r *Runtime) inFolder(name string, place int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.slots {
		if s.origin == OriginFolder && s.name == name && s.candidate == (place == asCandidate) {
			return true
		}
	}
	return false
}

// folderDigests are those of the files of the folder that have the name.
func (r *Runtime) folderDigests(name string) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := map[string]bool{}
	for _, s := range r.slots {
		if s.origin == OriginFolder && s.active != nil && s.name == name {
			list[s.active.digest] = true
		}
	}
	return list
}

func (r *Runtime) isBuiltin(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.slots {
		if s.origin == OriginBuiltin && s.name == name {
			return true
		}
	}
	return false
}

// known says whether any place has the name. It needs mu held.
func (r *Runtime) known(name string) bool {
	for _, s := range r.slots {
		if s.name == name {
			return true
		}
	}
	return false
}

func notFound(name string) *Problem {
	return problem(http.StatusNotFound, CodeNotFound, "there is no plugin %s; weir plugin list names those there are", name)
}

func managedByFile(name, done string) *Problem {
	return problem(http.StatusConflict, CodeManagedByFile, "%s comes from a file of the plugin folder and is %s there, not through the API", name, done)
}

// notKept is why nothing that was put through the API can be changed.
func (r *Runtime) notKept(name, done string) *Problem {
	switch {
	case r.inFolder(name, inForce), r.inFolder(name, asCandidate):
		return managedByFile(name, done)
	case r.isBuiltin(name):
		return problem(http.StatusConflict, CodeBuiltin, "%s is built in: it can be switched off (mode off) or overridden by a plugin of its name, and it cannot be %s", name, done)
	}
	return notFound(name)
}

func (r *Runtime) noCandidate(name, done string) *Problem {
	if r.inFolder(name, asCandidate) {
		return problem(http.StatusConflict, CodeManagedByFile, "the candidate of %s is a file of the plugin folder and is %s there: rename it without .shadow to promote it, remove it to drop it", name, done)
	}
	r.mu.Lock()
	known := r.known(name)
	r.mu.Unlock()
	if !known {
		return notFound(name)
	}
	return problem(http.StatusNotFound, CodeNoCandidate, "%s has no candidate; put one with mode shadow", name)
}

// signedText is the id of a key as documents show it.
func signedText(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}
