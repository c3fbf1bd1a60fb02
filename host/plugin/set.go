package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// ErrUnavailable means that a provider has no plugin that could execute it now.
var ErrUnavailable = errors.New("plugin unavailable")

// Set is one immutable set of plugin versions. A request acquires it once, uses it for all its decisions, and releases it;
// so it ends with the versions it began with (PLG-3). Safe for concurrent use.
type Set struct {
	plugins   []*version           // enabled, in no special order
	shadows   []*version           // asked after the answer was sent, and not believed (PLG-4)
	byName    map[string]*Executor // the same, by name
	providers map[string]*offer    // by id
	now       func() time.Time

	holders atomic.Int64 // the runtime, and requests

	tables *tables
	known  map[string]*Judge // of the providers that plugins describe, by id

	mu    sync.Mutex
	other map[string]*Judge // of the operator's own providers, by id; guarded by mu
}

// members are the versions of a set.
type members struct {
	active  []*version
	shadows []*version
}

// offer is one provider of the set with the plugins that describe and execute it.
type offer struct {
	provider  wire.Provider
	describes *version
	executes  *Executor
}

// newSet makes the set of the enabled versions, which come in the order of ownership. own are the owners of all providers.
func newSet(on members, own owners, now func() time.Time) *Set {
	s := &Set{
		plugins: on.active, shadows: on.shadows, byName: map[string]*Executor{}, providers: map[string]*offer{},
		now: now, tables: &tables{}, known: map[string]*Judge{}, other: map[string]*Judge{},
	}
	s.holders.Store(1)
	for _, v := range on.shadows {
		v.hold()
	}
	for _, v := range on.active {
		v.hold()
		s.byName[v.name] = &Executor{v: v, now: now}
		for _, p := range v.manifest.Providers {
			// Only the owner and those that were granted the provider come this far (owners.check); a granted entry
			// replaces the owner's.
			if s.providers[p.ID] == nil || own[p.ID] != v {
				s.providers[p.ID] = &offer{provider: completed(v, p), describes: v}
			}
		}
	}
	for id, e := range s.providers {
		e.executes = s.executor(id, e.describes)
		s.known[id] = s.newJudge(id)
	}
	return s
}

// completed adds to an entry the dialects that the plugin's static plans state.
func completed(v *version, p wire.Provider) wire.Provider {
	p.Dialects = maps.Clone(p.Dialects)
	if p.Dialects == nil {
		p.Dialects = map[string]wire.Dialect{}
	}
	for _, row := range v.manifest.Plans {
		if closeness(row.Match.Providers, p.ID) > 0 {
			addDialects(p.Dialects, row)
		}
	}
	return p
}

func addDialects(to map[string]wire.Dialect, row wire.PlanRow) {
	for _, e := range row.Match.Endpoints {
		if _, given := to[e]; !given && row.Plan.Dialect != "" && !strings.Contains(e, "*") {
			to[e] = row.Plan.Dialect
		}
	}
}

// elect returns the executor of a provider: the first, in the order of ABI-9, of the plugin that describes it and those
// that were granted it.
func (s *Set) elect(id string, describes *version) *version {
	first := describes
	for _, v := range s.plugins {
		if v != describes && v.manifest.Is(wire.KindExecutor) && slices.Contains(v.granted.Providers, id) && v.speaksFor(id) &&
			before(v, first, v.matches(id, "*", "*"), first.matches(id, "*", "*")) < 0 {
			first = v
		}
	}
	return first
}

// executor is the elected one of a provider with the built-in one that takes over for it: each provider has its own, since who
// takes over depends on the provider.
func (s *Set) executor(id string, describes *version) *Executor {
	v := s.elect(id, describes)
	e := &Executor{v: v, now: s.now}
	if v.origin != OriginBuiltin {
		if o := s.substitute(id); o != nil {
			e.fallback = &Executor{v: o, now: s.now}
		}
	}
	return e
}

// substitute is the built-in executor that describes the provider, or was granted it.
func (s *Set) substitute(id string) *version {
	var first *version
	for _, v := range s.plugins {
		describes := slices.ContainsFunc(v.manifest.Providers, func(p wire.Provider) bool { return p.ID == id })
		if v.origin != OriginBuiltin || !v.manifest.Is(wire.KindExecutor) || !describes && (!slices.Contains(v.granted.Providers, id) || !v.speaksFor(id)) {
			continue
		}
		if first == nil || before(v, first, v.matches(id, "*", "*"), first.matches(id, "*", "*")) < 0 {
			first = v
		}
	}
	return first
}

// before is the order of ABI-9: the operator's order, third-party first, the closer match, the higher priority, the name.
func before(a, b *version, closeA, closeB int) int {
	third := func(v *version) int {
		if v.origin == OriginBuiltin {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(a.order, b.order),
		cmp.Compare(third(a), third(b)),
		cmp.Compare(closeB, closeA),
		cmp.Compare(b.manifest.Priority, a.manifest.Priority),
		cmp.Compare(a.name, b.name),
	)
}

// Executor returns the plugin that executes p; the error wraps ErrUnavailable. A provider that a plugin described is
// executed by the plugin that may, whatever an older catalogue says; one that the operator named is
// found by its name.
func (s *Set) Executor(p *catalog.Provider) (*Executor, error) {
	var e *Executor
	if p.Executor != p.Plugin { // the operator named the executor
		e = s.byName[p.Executor]
	} else if o := s.providers[p.ID]; o != nil {
		e = o.executes
	}
	if e == nil || !e.v.manifest.Is(wire.KindExecutor) {
		return nil, fmt.Errorf("%w: no active plugin executes the provider %s", ErrUnavailable, p.ID)
	}
	return e, nil
}

// Described is what the plugins say about providers, built-in ones first, each provider once: under the plugin that it
// belongs to, or that was granted it.
func (s *Set) Described() []catalog.Described {
	var list []catalog.Described
	for _, v := range s.plugins {
		if !v.manifest.Is(wire.KindExecutor) {
			continue
		}
		d := catalog.Described{
			Plugin: v.name, Builtin: v.origin == OriginBuiltin, KeyEnvGranted: v.granted.Providers,
			PlanDialects: map[string]wire.Dialect{},
		}
		for _, p := range v.manifest.Providers {
			if e := s.providers[p.ID]; e.describes == v {
				d.Providers = append(d.Providers, e.provider)
			}
		}
		for _, row := range v.manifest.Plans {
			addDialects(d.PlanDialects, row)
		}
		list = append(list, d)
	}
	return list
}

// acquire takes a hold of the set, false when it is closed already.
func (s *Set) acquire() bool {
	for {
		n := s.holders.Load()
		if n == 0 {
			return false
		}
		if s.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives the set back. It is called once per Acquire.
func (s *Set) Release() {
	if s.holders.Add(-1) == 0 {
		for _, v := range s.plugins {
			v.release()
		}
		for _, v := range s.shadows {
			v.release()
		}
	}
}
