package route

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
)

// The account strategies (SEL-4).
const (
	FillFirst  = "fill-first"
	rotation   = "round-robin"
	twoChoices = "p2c"
	anyOf      = "random"
)

// AccountStrategy is how the connections of a provider are chosen for a route: the provider's own setting, else the general one,
// else fill-first, which a combo of that strategy forces (SEL-3, STR-14).
func AccountStrategy(rt *catalog.Route, p *catalog.Provider, s *catalog.Snapshot) string {
	v := s.Settings
	if rt.Strategy == FillFirst || v.FallbackStrategy == "" && len(v.ProviderStrategies) == 0 {
		return FillFirst
	}
	if own := v.ProviderStrategies[strings.ToLower(p.ID)]; own != "" {
		return own
	}
	return cmp.Or(v.FallbackStrategy, FillFirst)
}

// accounts is what account strategies remember of each provider. The zero value is ready.
type accounts struct {
	mu    sync.Mutex
	turns uint64                // uses so far, of all; guarded by mu
	of    map[string]*rotated   // by provider; guarded by mu
	uses  map[string]accountUse // by connection; guarded by mu
}

// rotated is the connection that a provider stays on.
type rotated struct {
	connection string // empty after a failure
	uses       int
}

// accountUse is when a connection was used last; turn tells uses within one instant apart.
type accountUse struct {
	turn uint64
	at   time.Time
	row  int // uses in a row, no other connection of the provider between them
}

// maxUses bounds the connections that are remembered; deleted ones stay until then.
const maxUses = 10_000

// Used notes that an attempt goes to c. It is only to be called where a strategy other than fill-first chooses.
func (r *Router) Used(c *catalog.Connection, now time.Time) {
	a := &r.accounts
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil || len(a.uses) >= maxUses {
		a.of, a.uses = map[string]*rotated{}, map[string]accountUse{}
	}
	p := a.of[c.Provider]
	if p == nil {
		p = &rotated{}
		a.of[c.Provider] = p
	}
	if p.connection != c.ID {
		if before, known := a.uses[p.connection]; known {
			before.row = 0
			a.uses[p.connection] = before
		}
		p.connection, p.uses = c.ID, 0
	}
	p.uses++
	a.turns++
	a.uses[c.ID] = accountUse{turn: a.turns, at: now, row: a.uses[c.ID].row + 1}
}

// Failing notes that an attempt on c failed: a rotation goes on to another connection (SEL-4).
func (r *Router) Failing(c *catalog.Connection) {
	a := &r.accounts
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.of[c.Provider]; p != nil && p.connection == c.ID {
		p.connection = ""
	}
}

// Choice is one choosing among the connections of a target.
type Choice struct {
	Target   *catalog.RouteTarget
	Key      *catalog.Key // nil: clients need none
	Strategy string
	Catalog  *catalog.Snapshot
	World    World
	Now      time.Time
}

// Choose appends the connections that may serve the target to into, in the order in which they are to be tried: those that the
// key prefers first, and within both groups as the strategy says. Connections that the ladder would refuse now come last in
// their group, since drawing one is a waste. draws false moves and draws nothing, for explain.
func (r *Router) Choose(into []*catalog.Connection, q Choice, draws bool) []*catalog.Connection {
	walk(q.Target, q.Key, func(c *catalog.Connection) bool {
		into = append(into, c)
		return true
	})
	if q.Strategy == FillFirst {
		return into
	}
	start := 0
	for start < len(into) {
		end := start + 1
		for end < len(into) && prefers(q.Key, into[end]) == prefers(q.Key, into[start]) {
			end++
		}
		r.arrange(into[start:end], &q, draws)
		start = end
	}
	return into
}

func prefers(k *catalog.Key, c *catalog.Connection) bool {
	return k != nil && slices.Contains(k.PreferredConnections, c.ID)
}

// arrange orders one group.
func (r *Router) arrange(group []*catalog.Connection, q *Choice, draws bool) {
	var refused []*catalog.Connection
	free := group[:0]
	for _, c := range group {
		if q.World.Refused(q.Target, c) {
			refused = append(refused, c)
			continue
		}
		free = append(free, c)
	}
	copy(group[len(free):], refused)
	group = free
	if len(group) < 2 {
		return
	}
	switch q.Strategy {
	case rotation:
		r.rotateAccounts(group, q)
	case twoChoices:
		r.weigh(group, q, draws)
	case anyOf:
		for i := len(group) - 1; draws && i > 0; i-- {
			j := r.dice.IntN(i + 1)
			group[i], group[j] = group[j], group[i]
		}
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rotateAccounts puts the connection that the provider stays on first, while its uses last; else the least recently used one,
// lower backoff levels before all (SEL-4).
func (r *Router) rotateAccounts(group []*catalog.Connection, q *Choice) {
	limit := q.Catalog.Settings.StickyRoundRobinLimit
	if limit <= 0 {
		limit = 3
	}
	a := &r.accounts
	a.mu.Lock()
	defer a.mu.Unlock()
	level := func(c *catalog.Connection) int { return q.World.Condition(c).Backoff }
	stays := ""
	if p := a.of[q.Target.Provider.ID]; p != nil && p.uses < limit {
		stays = p.connection
	}
	slices.SortStableFunc(group, func(x, y *catalog.Connection) int {
		return cmp.Or(
			cmp.Compare(level(x), level(y)),
			cmp.Compare(one(x.ID != stays), one(y.ID != stays)),
			cmp.Compare(a.uses[x.ID].turn, a.uses[y.ID].turn),
		)
	})
}
