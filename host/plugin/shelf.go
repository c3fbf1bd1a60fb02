package plugin

import (
	"context"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"

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
