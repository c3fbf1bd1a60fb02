package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

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

// The modes of a plugin (PLG-4). Shadow is treated as off until this host has it.
const (
	ModeActive = "active"
	ModeOff    = "off"
)

// Options say what a Runtime loads and whom it tells.
type Options struct {
	Version         string    // of the host, told to guests
	Builtins        []Builtin // in the order of ownership
	Dir             string    // watched folder, empty: none. It need not exist yet
	CacheDir        string    // for compiled code, empty: none
	Log             *slog.Logger
	Now             func() time.Time
	Modes           map[string]string   // by plugin name, absent: active
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
	modes    map[string]string
	settings map[string]Settings
	counts   map[string]*counters
	wards    map[string]map[string]*ward // by name and digest
	drained  []*version                  // replaced or removed; requests may still hold them
	sequence int
	closed   bool

	watch watchState
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// slot is one place that a plugin can come from: a built-in one or a file of the folder.
type slot struct {
	key      string
	origin   Origin
	file     string
	sequence int      // of its first load: who described a provider first
	active   *version // the last good version, nil: none
	digest   string   // of the bytes that were tried last
	fault    *Fault   // of those bytes, nil: they are active
	name     string   // of the plugin, as far as known
	loading  bool
	retry    bool // the fault depends on other plugins
	again    bool // the next look tries it once more
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
		o: o, slots: map[string]*slot{}, modes: maps.Clone(o.Modes), settings: maps.Clone(o.Settings),
		counts: map[string]*counters{}, wards: map[string]map[string]*ward{},
	}
	r.rooms = newRooms(o.Ports, r.secret, o.Now, o.Log)
	r.watch.init()
	r.set.Store(newSet(nil, owners{}, o.Now))
	return r
}

// Start loads the built-in plugins and the folder, then watches it until Close. A plugin that does not load is no error:
// its fault stands in List. The error is that of the watcher.
func (r *Runtime) Start(ctx context.Context) error {
	r.loadBuiltins(ctx, func(string) bool { return true })
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	r.wg.Go(func() { r.trimLoop(watch) })
	r.wg.Go(func() { r.rooms.keep(watch) })
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
	r.mu.Lock()
	r.closed = true
	var all []*version
	for _, s := range r.slots {
		if s.active != nil {
			all = append(all, s.active)
			s.active.retire()
			s.active = nil
		}
	}
	all = append(all, r.drained...)
	r.drained = nil
	old := r.set.Swap(newSet(nil, owners{}, r.o.Now))
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
	stale := map[string]bool{}
	for key, s := range r.slots {
		if s.fault != nil || !reflect.DeepEqual(before[s.name], settings[s.name]) {
			stale[key] = true
			if s.origin == OriginFolder {
				s.digest, s.again = "", true
			}
		}
	}
	r.rebuild()
	r.mu.Unlock()
	r.changed()
	r.loadBuiltins(ctx, func(key string) bool { return stale[key] })
	r.Rescan(ctx)
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
		ward: r.ward,
	}
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
		s = &slot{key: key, origin: origin, file: file, sequence: r.sequence}
		r.sequence++
		r.slots[key] = s
	}
	return s
}

// slotKey tells apart built-in plugins of one name: one may hold providers, the other rules for them.
func slotKey(origin Origin, file string, i int) string {
	return fmt.Sprintf("%s:%d:%s", origin, i, file)
}
