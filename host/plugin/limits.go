package plugin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirgate/weir/host/plugin/quarantine"
	"github.com/weirgate/weir/sdk/wire"
)

// Limits are the operator's for one plugin (plugins.settings.NAME.limits). Absent numbers are the defaults of ABI-8; what is
// given may be lower or higher, up to the maxima there.
type Limits struct {
	MemoryMiB int              `json:"memory_mib,omitempty"` // linear memory of one instance
	Fuel      map[string]int64 `json:"fuel,omitempty"`       // by operation; besides initialize and example
	WallMS    map[string]int64 `json:"wall_ms,omitempty"`    // by operation: host functions and waiting
	BodyKiB   int              `json:"body_kib,omitempty"`   // of one function (ABI-10); above 64 plugins.compile must be child
}

// The table of ABI-8.
const (
	defaultMemoryMiB, mostMemoryMiB = 32, 256
	defaultBodyKiB, mostBodyKiB     = 64, 512
	pageBytes                       = 64 << 10

	longFuel, mostLongFuel   = 20_000_000, 200_000_000
	hookFuel, mostHookFuel   = 2_000_000, 20_000_000
	eventFuel, mostEventFuel = 200_000, 2_000_000

	longCall, mostLongCall = 5 * time.Second, 30 * time.Second
	hookCall, mostHookCall = 100 * time.Millisecond, time.Second
)

// Operations that have a budget though no guest is asked for them.
const (
	opInitialize wire.Op = 3
	opExample    wire.Op = 31
	maxOp                = 31
)

// budgets are the operations that a guest has budgets for, by the names of manifests and settings. An example runs its
// operation on a budget of its own.
var budgets = []struct {
	op   wire.Op
	name string
	kind *budget
}{
	{opInitialize, "initialize", &long}, {wire.OpDescribe, "describe", &long}, {wire.OpConfigure, "configure", &long},
	{wire.OpPlan, "plan", &long}, {wire.OpRespond, "respond", &long}, {opExample, "example", &long},
	{wire.OpRequest, "on_request", &hook}, {wire.OpResponse, "on_response", &hook}, {wire.OpRestate, "restate", &hook},
	{wire.OpClassify, "classify", &hook}, {wire.OpEvent, "on_event", &event}, {wire.OpEnd, "on_end", &event},
}

// budget is one row of the table. Loading has no request that waits for it, so that describe and the start of an instance
// have the wall clock of the long operations.
type budget struct {
	fuel, mostFuel int64
	wall, mostWall time.Duration
}

var (
	long  = budget{longFuel, mostLongFuel, longCall, mostLongCall}
	hook  = budget{hookFuel, mostHookFuel, hookCall, mostHookCall}
	event = budget{eventFuel, mostEventFuel, hookCall, mostHookCall}
)

// Check returns everything that is wrong with the limits, joined.
func (l Limits) Check() error {
	var errs []error
	bad := func(field string, n, most int64) {
		errs = append(errs, fmt.Errorf("limits.%s is %d; give 1 to %d, or leave it out", field, n, most))
	}
	if l.MemoryMiB < 0 || l.MemoryMiB > mostMemoryMiB {
		bad("memory_mib", int64(l.MemoryMiB), mostMemoryMiB)
	}
	if l.BodyKiB < 0 || l.BodyKiB > mostBodyKiB {
		bad("body_kib", int64(l.BodyKiB), mostBodyKiB)
	}
	for _, x := range []struct {
		field string
		given map[string]int64
		most  func(b *budget) int64
	}{
		{"fuel", l.Fuel, func(b *budget) int64 { return b.mostFuel }},
		{"wall_ms", l.WallMS, func(b *budget) int64 { return b.mostWall.Milliseconds() }},
	} {
		for _, name := range slices.Sorted(maps.Keys(x.given)) {
			b := budgetOf(name)
			switch n := x.given[name]; {
			case b == nil:
				errs = append(errs, fmt.Errorf("limits.%s.%s is no operation that has a limit", x.field, name))
			case n < 1 || n > x.most(b):
				bad(x.field+"."+name, n, x.most(b))
			}
		}
	}
	return errors.Join(errs...)
}

func budgetOf(name string) *budget {
	for i := range budgets {
		if budgets[i].name == name {
			return budgets[i].kind
		}
	}
	return nil
}

// limits are the numbers that hold for one guest.
type limits struct {
	pages   uint32 // of linear memory
	bodyKiB int
	fuel    [maxOp + 1]int64
	wall    [maxOp + 1]time.Duration
}

// resolve lays the operator's numbers over the defaults. What is out of bounds, though a file with it is refused, is cut.
func (l Limits) resolve() *limits {
	r := &limits{pages: defaultMemoryMiB << 20 / pageBytes, bodyKiB: defaultBodyKiB}
	if l.MemoryMiB > 0 {
		r.pages = uint32(min(l.MemoryMiB, mostMemoryMiB)) << 20 / pageBytes
	}
	if l.BodyKiB > 0 {
		r.bodyKiB = min(l.BodyKiB, mostBodyKiB)
	}
	for _, b := range budgets {
		r.fuel[b.op], r.wall[b.op] = b.kind.fuel, b.kind.wall
		if n := l.Fuel[b.name]; n > 0 {
			r.fuel[b.op] = min(n, b.kind.mostFuel)
		}
		if n := l.WallMS[b.name]; n > 0 {
			r.wall[b.op] = min(time.Duration(n)*time.Millisecond, b.kind.mostWall)
		}
	}
	return r
}

// lowered applies the plugin's own limits, which may only lower the host's (ABI-2).
func (l *limits) lowered(own wire.Limits) *limits {
	r := *l
	if own.MemoryMiB > 0 {
		r.pages = min(r.pages, uint32(own.MemoryMiB)<<20/pageBytes)
	}
	for _, b := range budgets {
		if n := own.Fuel[b.name]; n > 0 {
			r.fuel[b.op] = min(r.fuel[b.op], n)
		}
	}
	return &r
}

// widest is what a module may have before it said its name: the most that any plugin may. What it used is compared with its
// own limits when the name is known.
func widest(all []Limits) *limits {
	r := Limits{}.resolve()
	for _, l := range all {
		one := l.resolve()
		r.pages, r.bodyKiB = max(r.pages, one.pages), max(r.bodyKiB, one.bodyKiB)
		for _, b := range budgets {
			r.fuel[b.op], r.wall[b.op] = max(r.fuel[b.op], one.fuel[b.op]), max(r.wall[b.op], one.wall[b.op])
		}
	}
	return r
}

// Limits of one call (ABI-6, ABI-8) that no setting moves.
const (
	maxInput    = 256 << 10
	maxOutput   = 64 << 10
	maxDescribe = 1 << 20
	maxAnswer   = 256 << 10 // respond (ABI-3)
	maxStderr   = 4 << 10
	maxLogLine  = 1 << 10
	maxLogLines = 20
)

// outputLimit is how much an operation may answer.
func outputLimit(op wire.Op) uint32 {
	switch op {
	case wire.OpDescribe:
		return maxDescribe
	case wire.OpRespond:
		return maxAnswer
	}
	return maxOutput
}

// weightOf is the weight of a violation (ABI-8).
func weightOf(kind string) quarantine.Weight {
	if kind == violationDeadline {
		return 2
	}
	return 10
}
