// Package route owns in which order the targets of a route are tried, which connections of a target may serve and in which
// order, and what is out for the rest of one request. It decides nothing about time: the ladder of gates does.
package route

import (
	"math/rand/v2"
	"time"

	"github.com/weirgate/weir/host/catalog"
)

// Dice is the one source of chance of all strategies (STR-2). Safe for concurrent use.
type Dice interface {
	IntN(n int) int   // 0 to n-1
	Float64() float64 // 0 to below 1
}

// chance is the process' own source.
type chance struct{}

func (chance) IntN(n int) int   { return rand.IntN(n) }
func (chance) Float64() float64 { return rand.Float64() }

// Circuit is what a strategy asks about a provider's breaker (STR-15).
type Circuit uint8

// The answers. A degraded breaker is closed here: it admits all traffic.
const (
	Closed Circuit = iota
	HalfOpen
	Open
)

// Condition is what a strategy asks about an account (SEL-4, SEL-6). The zero value is a healthy one.
type Condition struct {
	Error   Trouble
	Backoff int // steps, 0 at rest

	Headroom float64 // percentage that is left of its quota, when Known (OBJ-20)
	Known    bool
}

// Trouble sorts the last error of an account.
type Trouble uint8

// The sorts of trouble.
const (
	NoTrouble Trouble = iota
	OtherTrouble
	LimitTrouble  // a rate limit or a quota
	AuthTrouble   // a refused credential
	ServerTrouble // 5xx
)

// World is what strategies ask about the present. It changes nothing, and is asked by the goroutine that orders.
type World interface {
	// Blocked says whether no connection of the target would be admitted now.
	Blocked(t *catalog.RouteTarget) bool
	Circuit(p *catalog.Provider) Circuit
	// Refused says whether the ladder would refuse this connection for the target now.
	Refused(t *catalog.RouteTarget, c *catalog.Connection) bool
	Condition(c *catalog.Connection) Condition
}

// Router orders targets and connections, and keeps what strategies remember between requests: per combo name and per provider,
// in memory only (STR-2). Safe for concurrent use.
type Router struct {
	dice     Dice
	memories memories
	accounts accounts
	Samples  Samples
}

// NewRouter makes a router; dice may be nil.
func NewRouter(dice Dice) *Router {
	if dice == nil {
		dice = chance{}
	}
	return &Router{dice: dice}
}

// Sequence is the order in which the targets of a route are tried. It holds the route's own targets: read only.
type Sequence struct {
	targets []catalog.RouteTarget
	order   []int // nil: as configured
}

// Len is the number of targets.
func (s Sequence) Len() int { return len(s.targets) }

// At is the i-th target to be tried.
func (s Sequence) At(i int) *catalog.RouteTarget {
	if s.order != nil {
		i = s.order[i]
	}
	return &s.targets[i]
}

// question is one ordering: strategies fill order.
type question struct {
	route   *catalog.Route
	now     time.Time
	world   World
	dice    Dice // nil: nothing is drawn and nothing moves, for explain
	memory  *memory
	blocked []bool // of a strategy that asks, by target
	samples *Samples
	order   []int
}

// row is one strategy by its name.
type row struct {
	name  string
	order func(*question) // nil: configured order
	// asks: blocked is filled; remembers: memory is there, locked, and the outcomes of requests come to it.
	asks, remembers bool
}

// strategies is the table: to add one, add a file and a row, and its name in the catalogue.
var strategies = [...]row{
	{name: catalog.Priority},
	{name: "weighted", order: weighted, asks: true, remembers: true},
	{name: "round-robin", order: roundRobin, remembers: true},
	{name: FillFirst}, // differs in the account strategy alone (STR-14)
	{name: "p2c", order: p2c},
	{name: "random", order: random},
	{name: "least-used", order: leastUsed, remembers: true},
	{name: "strict-random", order: strictRandom, remembers: true},
	{name: "lkgp", order: lastKnownGood, remembers: true},
}

// Strategies returns the names that a combo may give.
func Strategies() []string {
	names := make([]string, len(strategies))
	for i, s := range strategies {
		names[i] = s.name
	}
	return names
}

func find(name string) *row {
	for i := range strategies {
		if strategies[i].name == name {
			return &strategies[i]
		}
	}
	return &strategies[0] // STR-6; who stores or loads a combo warns about it
}

// Order returns the targets of rt in the order of its strategy, and moves what the strategy keeps, as for one request. One
// target, and the configured order, cost nothing.
func (r *Router) Order(rt *catalog.Route, w World, now time.Time) Sequence {
	return r.ask(rt, w, now, r.dice)
}

// Preview is Order without any effect: nothing is drawn and no state moves. Where a strategy draws, the likeliest comes first, or
// the configured order stays (OBJ-25).
func (r *Router) Preview(rt *catalog.Route, w World, now time.Time) Sequence {
	return r.ask(rt, w, now, nil)
}

func (r *Router) ask(rt *catalog.Route, w World, now time.Time, dice Dice) Sequence {
	s := Sequence{targets: rt.Targets}
	if len(rt.Targets) < 2 {
		return s
	}
	if strategy := find(rt.Strategy); strategy.order != nil {
		q := &question{route: rt, now: now, world: w, dice: dice, samples: &r.Samples, order: configured(len(rt.Targets))}
		if strategy.asks {
			q.blocked = make([]bool, len(rt.Targets))
			for i := range rt.Targets {
				q.blocked[i] = w.Blocked(&rt.Targets[i])
			}
		}
		r.run(strategy, q)
		s.order = q.order
	}
	if want := rt.Config.Context; want != (catalog.ContextRequirements{}) {
		s.order = byContext(rt.Targets, want, s.order)
	}
	return s
}

func (r *Router) run(strategy *row, q *question) {
	if !strategy.remembers {
		strategy.order(q)
		return
	}
	if q.dice == nil {
		q.memory = r.memories.copyOf(q.route)
		strategy.order(q)
		return
	}
	q.memory = r.memories.of(q.route)
	q.memory.mu.Lock()
	defer q.memory.mu.Unlock()
	strategy.order(q)
}

func configured(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// first moves the place of target i to the front and keeps the others as they are.
func (q *question) first(i int) {
	for at, j := range q.order {
		if j == i {
			copy(q.order[1:at+1], q.order[:at])
			q.order[0] = i
			return
		}
	}
}

// shuffle puts part of the order in a uniform order.
func (q *question) shuffle(part []int) {
	for i := len(part) - 1; i > 0; i-- {
		j := q.dice.IntN(i + 1)
		part[i], part[j] = part[j], part[i]
	}
}

// random is a uniform shuffle (STR-16).
func random(q *question) {
	if q.dice != nil {
		q.shuffle(q.order)
	}
}
