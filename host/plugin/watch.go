package plugin

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How the folder is watched (PLG-1).
const (
	stillFor  = 200 * time.Millisecond // a file must not have changed for so long
	lookEvery = 50 * time.Millisecond  // while something is not still
	pollEvery = 30 * time.Second       // for file systems without events
	missEvery = 500 * time.Millisecond // while the folder does not exist
)

// What a folder may cost.
const (
	maxFiles = 1000 // the first ones by name; others are not read
	maxLoads = 4    // modules that load beside at once: each is in memory until it is judged
)

// watchState is what the last look at the folder saw.
type watchState struct {
	looks map[string]*look // by file name
	turn  chan struct{}    // held by the one who looks; guards looks
	done  chan struct{}    // a load ended, or a name is free: look again
	loads atomic.Int32     // modules that load beside
}

// look is one file as it was seen.
type look struct {
	info      os.FileInfo
	signature os.FileInfo // of the file beside it, nil: there is none
	since     time.Time   // it has been seen like this
	tried     bool        // like this it was loaded, or refused
}

func (w *watchState) init() {
	w.looks, w.turn, w.done = map[string]*look{}, make(chan struct{}, 1), make(chan struct{}, 1)
}

// wake has the loop look soon.
func (w *watchState) wake() {
	select {
	case w.done <- struct{}{}:
	default:
	}
}

// Rescan looks at the folder now, and returns when every file that is still was loaded or refused.
func (r *Runtime) Rescan(ctx context.Context) {
	defer r.prune()
	for r.o.Dir != "" {
		if waiting := r.scan(ctx, true); !waiting {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// watchLoop owns the watcher and looks whenever something may have changed.
func (r *Runtime) watchLoop(ctx context.Context, w *fsnotify.Watcher) {
	var events chan fsnotify.Event
	var faults chan error
	if w != nil {
		defer w.Close()
		events, faults = w.Events, w.Errors
	}
	watched := os.FileInfo(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.watch.done:
			timer.Reset(0)
			continue
		case e := <-events:
			r.touched(filepath.Base(e.Name))
			timer.Reset(lookEvery)
			continue
		case err := <-faults:
			r.o.Log.Warn("watching the plugin folder", "error", err)
			timer.Reset(0)
			continue
		case <-timer.C:
		}
		watched = r.follow(w, watched)
		next := pollEvery
		if watched == nil {
			next = missEvery
		}
		if r.scan(ctx, false) {
			next = lookEvery
		}
		timer.Reset(next)
	}
}

// follow watches the folder, also when it is made, or replaced by another one, later.
func (r *Runtime) follow(w *fsnotify.Watcher, watched os.FileInfo) os.FileInfo {
	now, err := os.Stat(r.o.Dir)
	switch {
	case err != nil || !now.IsDir():
		if watched != nil && w != nil {
			_ = w.Remove(r.o.Dir) // it is gone, so the watch may be gone too
		}
		return nil
	case watched != nil && os.SameFile(watched, now):
		return watched
	case w == nil:
		return now
	case watched != nil:
		_ = w.Remove(r.o.Dir)
	}
	if err := w.Add(r.o.Dir); err != nil {
		r.o.Log.Warn("the plugin folder is polled only, its changes cannot be watched", "folder", r.o.Dir, "error", err)
	}
	return now
}

// signatureEnding is that of the signature that lies beside a file (ABI-11).
const signatureEnding = ".minisig"

// signatureOf is the signature beside a file of the folder, nil: there is none that could be one.
func (r *Runtime) signatureOf(name string) []byte {
	b, err := readFile(filepath.Join(r.o.Dir, name+signatureEnding))
	if err != nil || len(b) > 64<<10 {
		return nil
	}
	return b
}

// touched makes the next look read the file, also when size and time look the same. A signature that came or changed has its file
// loaded again.
func (r *Runtime) touched(name string) {
	name, signature := strings.CutSuffix(name, signatureEnding)
	if signature {
		r.forgetDigest(name)
	}
	r.watch.turn <- struct{}{}
	if l := r.watch.looks[name]; l != nil {
		l.tried, l.since = false, time.Now() //nolint:forbidigo // how long a file is still is measured at the edge
	}
	<-r.watch.turn
}

// followLock has the files judged again when somebody edited the lock file.
func (r *Runtime) followLock() {
	changed, err := r.lock.Follow()
	if err != nil {
		r.o.Log.Warn("the edited lock file of plugins is not in force; what it said before still counts", "error", err)
	}
	if changed {
		r.mu.Lock()
		r.stale(func(s *slot) bool { return s.origin == OriginFolder })
		r.mu.Unlock()
	}
}

// forgetDigest has a file loaded again though its bytes are the same.
func (r *Runtime) forgetDigest(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.slots[slotKey(OriginFolder, name, 0)]; s != nil {
		s.digest = ""
	}
}

// scan looks at the folder once: removes what is gone and loads what is new and still. It reports whether a look is needed
// soon. With wait it loads in turn; without, modules that must be compiled load beside, so that they delay no pack.
func (r *Runtime) scan(ctx context.Context, wait bool) (soon bool) {
	r.watch.turn <- struct{}{}
	defer func() { <-r.watch.turn }()
	now := time.Now() //nolint:forbidigo // how long a file is still is measured at the edge
	r.followLock()
	files, signatures := r.files()
	r.removeMissing(files)
	moved := false
	for _, name := range sortedPacksFirst(files) {
		if ctx.Err() != nil {
			break
		}
		info := files[name]
		l := r.watch.looks[name]
		if l == nil || !sameLook(l.info, info) {
			since := now
			if l == nil && wait { // at the start a file that is older was not written just now
				since = info.ModTime()
			}
			l = &look{info: info, signature: signatures[name], since: since}
			r.watch.looks[name] = l
		}
		if !sameLook(l.signature, signatures[name]) {
			l.signature, l.since, l.tried = signatures[name], now, false
			r.forgetDigest(name)
		}
		if l.tried && !r.wanted(name) {
			continue
		}
		if age := now.Sub(l.since); age < stillFor {
			soon = true
			continue
		}
		if r.busy(name) {
			continue // looked at again when that load ends
		}
		if !wait && !isYAML(name) && r.watch.loads.Load() >= maxLoads {
			continue // likewise
		}
		l.tried = true
		moved = r.try(ctx, name, wait) || moved
	}
	if moved { // once for all of them: a folder of packs would make as many sets
		r.mu.Lock()
		r.rebuild()
		r.mu.Unlock()
		r.changed()
	}
	return soon
}

// files are the plugin files of the folder, through links, and their signatures by the same names.
func (r *Runtime) files() (files, signatures map[string]os.FileInfo) {
	files, signatures = map[string]os.FileInfo{}, map[string]os.FileInfo{}
	entries, err := os.ReadDir(r.o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.o.Log.Warn("reading the plugin folder", "folder", r.o.Dir, "error", err)
	}
	for _, e := range entries {
		if len(files) == maxFiles {
			r.o.Log.Warn("the plugin folder has more files than are read; take some out", "folder", r.o.Dir, "most", maxFiles)
			break
		}
		name, signature := strings.CutSuffix(e.Name(), signatureEnding)
		if strings.HasPrefix(name, ".") || !isYAML(name) && !strings.HasSuffix(name, ".wasm") {
			continue
		}
		into := files
		if signature {
			into = signatures
		}
		if info, err := os.Stat(filepath.Join(r.o.Dir, e.Name())); err == nil && info.Mode().IsRegular() {
			into[name] = info
		}
	}
	return files, signatures
}

func sameLook(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// sortedPacksFirst puts what loads in a moment before what must be compiled.
func sortedPacksFirst(files map[string]os.FileInfo) []string {
	var packs, modules []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if isYAML(name) {
			packs = append(packs, name)
		} else {
			modules = append(modules, name)
		}
	}
	return append(packs, modules...)
}

func (r *Runtime) busy(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.slots[slotKey(OriginFolder, name, 0)]
	return s != nil && s.loading
}

// wanted says, once, whether the file shall be tried again though it is the same.
func (r *Runtime) wanted(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.slots[slotKey(OriginFolder, name, 0)]
	if s == nil || !s.again {
		return false
	}
	s.again = false
	return true
}

// removeMissing gives up plugins whose files are gone, and has those tried again that wanted their names or providers.
func (r *Runtime) removeMissing(files map[string]os.FileInfo) {
	for name := range r.watch.looks {
		if _, there := files[name]; !there {
			delete(r.watch.looks, name)
		}
	}
	var events []Event
	r.mu.Lock()
	for _, s := range r.ordered() {
		if _, there := files[s.file]; s.origin == OriginFolder && !there {
			events = append(events, r.remove(s))
		}
	}
	if len(events) > 0 {
		r.rebuild()
		r.again()
	}
	r.mu.Unlock()
	for _, e := range events {
		r.tell(e)
	}
	if len(events) > 0 {
		r.changed()
	}
}

// try reads the file and loads it when its bytes are new. It reports whether versions changed, so that the set must be made anew.
func (r *Runtime) try(ctx context.Context, name string, wait bool) (moved bool) {
	b, err := readFile(filepath.Join(r.o.Dir, name))
	s := r.slot(OriginFolder, name, 0)
	if err != nil {
		return r.settle(s, "", nil, fault(StepRead, CodeUnreadable, "cannot be read: %v", err), false)
	}
	digest := digestOf(b)
	r.mu.Lock()
	same := digest == s.digest
	s.loading = !same
	r.mu.Unlock()
	if same {
		return false
	}
	src := source{origin: OriginFolder, file: name, yaml: isYAML(name), bytes: b, candidate: s.candidate, signature: r.signatureOf(name)}
	load := func(rebuild bool) bool {
		v, f := r.loader().load(ctx, src)
		if ctx.Err() != nil && f != nil {
			s.giveUp(r)
			return false
		}
		return r.settle(s, digest, v, f, rebuild)
	}
	if wait || src.yaml {
		return load(false)
	}
	r.watch.loads.Add(1)
	r.wg.Go(func() {
		load(true)
		r.watch.loads.Add(-1)
		r.prune()
		r.watch.wake()
	})
	return false
}

// giveUp ends a load that was cancelled: it says nothing about the file.
func (s *slot) giveUp(r *Runtime) {
	r.mu.Lock()
	s.loading = false
	r.mu.Unlock()
}

// readFile reads at most a byte more than a plugin may have, so that the size is judged without reading it all. A pipe that took
// the place of the file since it was looked at blocks nobody.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is no regular file"))
	}
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}

// prune removes compiled code that no version uses.
func (r *Runtime) prune() {
	if r.o.CacheDir == "" {
		return
	}
	used := map[string]bool{}
	r.mu.Lock()
	for _, s := range r.slots {
		if s.loading {
			r.mu.Unlock()
			return // its digest is not known yet
		}
		if s.active != nil {
			used[s.active.code] = true
		}
	}
	r.mu.Unlock()
	if err := pruneCache(r.o.CacheDir, func(d string) bool { return used[d] }); err != nil {
		r.o.Log.Warn("pruning the cache of compiled plugins", "error", err)
	}
}
