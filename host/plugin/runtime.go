package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weirgate/weir/host/plugin/shelf"
	"github.com/weirgate/weir/host/plugin/trust"
	"github.com/weirgate/weir/sdk/wire"
)

// Builtin is a plugin that is part of the program: a pack in YAML, or a module. DemoOnly ones are off without Options.Demo.
type Builtin struct {
	Name     string
	YAML     []byte
	Wasm     []byte
	DemoOnly bool
}

// Settings are the operator's for one plugin.
type Settings struct {
	Order       int      // before all else in ABI-9; lower first
	Config      wire.Raw // for the plugin itself
	Grants      Grants   // of a third-party plugin; a built-in one is granted what it declares
	Limits      Limits   // Limits.Check says whether they are in bounds
	OnViolation string   // FailOpen, also when empty, or FailClosed
}

// What happens when a hook of a plugin breaks the rules, is busy or quarantined (ABI-8).
const (
	FailOpen   = "fail_open"   // generic behaviour
	FailClosed = "fail_closed" // the target is rejected
)

// The modes of a plugin (PLG-4). A shadow is asked after the answer was sent, and what it says is only compared.
const (
	ModeActive = "active"
	ModeShadow = "shadow"
	ModeOff    = "off"
)

// Options say what a Runtime loads and whom it tells.
type Options struct {
	Version         string    // of the host, told to guests
	Builtins        []Builtin // in the order of ownership
	Dir             string    // watched folder, empty: none. It need not exist yet
	DataDir         string    // keeps the plugins put through the API and the lock file, empty: they end with the process
	CacheDir        string    // for compiled code, empty: none
	Log             *slog.Logger
	Now             func() time.Time
	Modes           map[string]string   // by plugin name, absent: what the API set, else active
	Trust           trust.Policy        // of third-party plugins (ABI-11)
	Settings        map[string]Settings // by plugin name
	RequireExamples bool
	Compile         string   // CompileInProcess, also when empty, or CompileInChild, which needs Child
	Child           Child    // a command that runs CompileChild; the cache folder is added as its last argument
	Observer        Observer // nil: nobody is told
	Ports           Ports    // what host functions reach
	Interpret       bool     // run guests without compiling them: slower by far, for where compiling costs more than it gains
	Demo            bool
	OnChange        func()      // after the set changed; it must not call Rescan, Configure or Close
	OnEvent         func(Event) // for the journal; likewise
}

// Event is a change worth a line in the journal.
type Event struct {
	Kind       string // plugin.loaded, plugin.rejected, plugin.removed, plugin.quarantined, plugin.restored
	At         time.Time
	Name       string // empty when the manifest could not be read
	Version    string
	Digest     string
	File       string
	Origin     Origin
	Fault      *Fault      // of plugin.rejected
	Quarantine *Quarantine // of plugin.quarantined
	Violation  *Violation  // likewise: the last one
}

// Runtime owns the plugins of one host: what is loaded, from where, and the set in force. Its methods are safe for
// concurrent use; Start is called once, Close once after it.
type Runtime struct {
	o     Options
	rooms *rooms
	set   atomic.Pointer[Set]

	mu       sync.Mutex // guards what follows
	slots    map[string]*slot
	modes    map[string]string // of the configuration file
	stored   map[string]string // set through the API
	policy   trust.Policy
	settings map[string]Settings
	counts   map[string]*counters
	wards    map[string]map[string]*ward // by name and digest
	drained  []*version                  // replaced or removed; requests may still hold them
	sequence int
	closed   bool

	shelving sync.Mutex // one change of kept plugins at a time
	shelf    *shelf.Shelf
	lock     *trust.Lock
	shadows  shadowQueue

	watch watchState
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// slot is one place that a plugin can come from: a built-in one, a file of the folder, or a name that was put through the API.
type slot struct {
	key       string
	origin    Origin
	file      string   // of the API: the name
	candidate bool     // what is here runs in shadow beside the active version of its name
	sequence  int      // of its first load: who described a provider first
	active    *version // the last good version, nil: none
	digest    string   // of the bytes that were tried last
	fault     *Fault   // of those bytes, nil: they are active
	name      string   // of the plugin, as far as known
	loading   bool
	pending   *version // refused since another file has its name, and held in case that file gives it up; nil: none
	retry     bool     // the fault depends on other plugins
	again     bool     // the next look tries it once more
}

// New makes a Runtime with an empty set. Nothing is read before Start.
func New(o Options) *Runtime {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Runtime{
		o: o, slots: map[string]*slot{}, modes: maps.Clone(o.Modes), settings: maps.Clone(o.Settings), policy: o.Trust,
		counts: map[string]*counters{}, wards: map[string]map[string]*ward{},
	}
	r.shelf, _ = shelf.Open("") // in memory, until Start: that reads nothing, and so cannot fail
	r.lock, _ = trust.OpenLock("")
	r.shadows.init()
	r.rooms = newRooms(o.Ports, r.secret, o.Now, o.Log)
	r.watch.init()
	r.set.Store(newSet(members{}, owners{}, o.Now))
	return r
}

// Start loads the built-in plugins, those that were put through the API, and the folder, then watches it until Close. A plugin
// that does not load is no error: its fault stands in List. The error is that of a lock file or index that cannot be read.
func (r *Runtime) Start(ctx context.Context) error {
	if err := r.openShelf(); err != nil {
		return err
	}
	r.loadBuiltins(ctx, func(string) bool { return true })
	r.loadShelf(ctx, func(string) bool { return true })
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	r.wg.Go(func() { r.trimLoop(watch) })
	r.wg.Go(func() { r.rooms.keep(watch) })
	r.wg.Go(func() { r.shadows.run(watch, r) })
	if r.o.Dir == "" {
		r.prune()
		return nil
	}
	r.Rescan(ctx) // removes what an earlier process left in the cache, too
	w, err := fsnotify.NewWatcher()
	if err != nil {
		r.o.Log.Warn("the plugin folder is polled only, its changes cannot be watched", "error", err)
	}
	r.wg.Go(func() { r.watchLoop(watch, w) })
	return nil
}

// idleFor is how long an instance beyond the first of its version may lie idle (ABI-7).
const idleFor = 5 * time.Minute

// trimLoop closes instances that nobody needs any more.
func (r *Runtime) trimLoop(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, v := range r.guests() {
				v.guest.pool.trim(r.o.Now().Add(-idleFor))
				v.release()
			}
		}
	}
}

// guests are the versions in force that have code, also switched off ones. The caller releases each.
func (r *Runtime) guests() []*version {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*version
	for _, s := range r.slots {
		if v := s.active; v != nil && v.guest != nil {
			v.hold()
			list = append(list, v)
		}
	}
	return list
}

// Close stops watching, gives up all versions and waits until the last request that holds one is done, or ctx ends.
func (r *Runtime) Close(ctx context.Context) error {
	if r.stop != nil {
		r.stop()
	}
	r.wg.Wait()
	r.shadows.close()
	r.mu.Lock()
	r.closed = true
	var all []*version
	for _, s := range r.slots {
		s.forgetPending()
		if s.active != nil {
			all = append(all, s.active)
			s.active.retire()
			s.active = nil
		}
	}
	all = append(all, r.drained...)
	r.drained = nil
	old := r.set.Swap(newSet(members{}, owners{}, r.o.Now))
	r.mu.Unlock()
	old.Release()
	for _, v := range all {
		select {
		case <-v.closed:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), r.rooms.close(context.WithoutCancel(ctx)))
		}
	}
	return r.rooms.close(ctx)
}

// Acquire returns the set in force, held until its Release. It takes no lock.
func (r *Runtime) Acquire() *Set {
	for {
		if s := r.set.Load(); s.acquire() {
			return s
		}
	}
}

// Configure changes modes, grants, order and configuration. Plugins whose settings changed are loaded again.
func (r *Runtime) Configure(ctx context.Context, modes map[string]string, settings map[string]Settings) {
	r.mu.Lock()
	before := r.settings
	r.modes, r.settings = maps.Clone(modes), maps.Clone(settings)
	stale := r.stale(func(s *slot) bool { return s.fault != nil || !reflect.DeepEqual(before[s.name], settings[s.name]) })
	r.rebuild()
	r.mu.Unlock()
	r.changed()
	r.reload(ctx, stale)
	r.Rescan(ctx) // what waits for a name or provider may have it now
}

// Trust changes whom the operator trusts. Third-party plugins are judged again: what is not trusted any more is given up.
func (r *Runtime) Trust(ctx context.Context, p trust.Policy) {
	r.mu.Lock()
	r.policy = p
	stale := r.stale(func(s *slot) bool { return s.origin != OriginBuiltin })
	r.mu.Unlock()
	r.reload(ctx, stale)
}

// stale marks slots whose bytes are to be loaded again though they are the same, and returns their keys. It needs mu held.
func (r *Runtime) stale(is func(*slot) bool) map[string]bool {
	keys := map[string]bool{}
	for key, s := range r.slots {
		if is(s) {
			keys[key] = true
			if s.origin == OriginFolder {
				s.digest, s.again = "", true
			}
		}
	}
	return keys
}

// reload loads the stale slots again.
func (r *Runtime) reload(ctx context.Context, stale map[string]bool) {
	r.loadBuiltins(ctx, func(key string) bool { return stale[key] })
	r.shelving.Lock()
	r.loadShelf(ctx, func(key string) bool { return stale[key] })
	r.shelving.Unlock()
	for key := range stale {
		if strings.HasPrefix(key, string(OriginFolder)+":") {
			r.Rescan(ctx)
			return
		}
	}
}

// loadBuiltins loads them one after the other and then makes them the set at once.
func (r *Runtime) loadBuiltins(ctx context.Context, wanted func(key string) bool) {
	some := false
	for i, b := range r.o.Builtins {
		if b.DemoOnly && !r.o.Demo || !wanted(slotKey(OriginBuiltin, b.Name, i)) {
			continue
		}
		some = true
		src := source{origin: OriginBuiltin, file: b.Name, yaml: b.Wasm == nil, bytes: b.Wasm}
		if src.yaml {
			src.bytes = b.YAML
		}
		s := r.slot(OriginBuiltin, b.Name, i)
		v, f := r.loader().load(ctx, src)
		r.settle(s, digestOf(src.bytes), v, f, false)
	}
	if !some {
		return
	}
	r.mu.Lock()
	r.rebuild()
	r.mu.Unlock()
	r.changed()
}

func (r *Runtime) loader() *loader {
	return &loader{
		hostVersion: r.o.Version, cacheDir: r.o.CacheDir, compileMode: r.o.Compile, child: r.o.Child, widest: r.widest(), observer: r.o.Observer,
		log: r.o.Log, now: r.o.Now, requireEx: r.o.RequireExamples, interpret: r.o.Interpret,
		settings: func(name string) Settings { r.mu.Lock(); defer r.mu.Unlock(); return r.settings[name] },
		space:    r.rooms.space,
		counters: func(name string) *counters {
			return kept(&r.mu, r.counts, name, func() *counters { return &counters{} })
		},
		ward: r.ward, policy: r.trusts(), lock: r.lock,
	}
}

func (r *Runtime) trusts() trust.Policy {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.policy
}

// widest are the limits for a module that has no name yet.
func (r *Runtime) widest() *limits {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Limits
	for _, s := range r.settings {
		all = append(all, s.Limits)
	}
	return widest(all)
}

// kept returns what m holds for name, made at the first time: state belongs to the name and outlives versions.
func kept[T any](mu *sync.Mutex, m map[string]*T, name string, fresh func() *T) *T {
	mu.Lock()
	defer mu.Unlock()
	x := m[name]
	if x == nil {
		x = fresh()
		m[name] = x
	}
	return x
}

// slot returns the slot of a file, or of the i-th built-in plugin, made at the first time.
func (r *Runtime) slot(origin Origin, file string, i int) *slot {
	key := slotKey(origin, file, i)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.slots[key]
	if s == nil {
		s = &slot{key: key, origin: origin, file: file, candidate: isCandidate(origin, file, i), sequence: r.sequence}
		r.sequence++
		r.slots[key] = s
	}
	return s
}

// slotKey tells apart built-in plugins of one name: one may hold providers, the other rules for them.
func slotKey(origin Origin, file string, i int) string {
	return fmt.Sprintf("%s:%d:%s", origin, i, file)
}

// The two places of one name on the shelf.
const (
	inForce     = 0
	asCandidate = 1
)

// isCandidate says whether a place holds candidates (PLG-4).
func isCandidate(origin Origin, file string, i int) bool {
	switch origin {
	case OriginFolder:
		return strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(file, ".wasm"), ".yaml"), ".shadow")
	case OriginAPI:
		return i == asCandidate
	}
	return false
}
