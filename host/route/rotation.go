package route

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/catalog"
)

// weighted draws the first target by weight among those that are not blocked; the others follow by weight, the blocked ones
// last. A sticky target stays first while its successes last (STR-11).
func weighted(q *question) {
	ts := q.route.Targets
	slices.SortStableFunc(q.order, func(a, b int) int {
		if q.blocked[a] != q.blocked[b] {
			if q.blocked[b] {
				return -1
			}
			return 1
		}
		return cmp.Compare(ts[b].Weight, ts[a].Weight)
	})
	free := 0
	for free < len(q.order) && !q.blocked[q.order[free]] {
		free++
	}
	if free == 0 {
		return
	}
	for _, i := range q.order[:free] {
		if limitOf(q.route.Config.StickyWeighted) > 1 && ts[i].Key == q.memory.sticky {
			q.first(i)
			return
		}
	}
	if q.dice != nil {
		q.first(q.order[q.draw(q.order[:free])])
	}
}

// draw picks a place of part with probability weight by sum, or uniformly when all weights are 0.
func (q *question) draw(part []int) int {
	sum := 0.0
	for _, i := range part {
		sum += q.route.Targets[i].Weight
	}
	if sum <= 0 {
		return q.dice.IntN(len(part))
	}
	at := q.dice.Float64() * sum
	for place, i := range part {
		w := q.route.Targets[i].Weight
		if at < w {
			return place
		}
		at -= w
	}
	return 0 // rounding; part is by weight, so this one has some
}

// stick counts a success of a target that is to stay first for limit of them. It needs mu.
func (m *memory) stick(key string, limit int) {
	switch {
	case limit <= 1:
		return
	case m.sticky != key:
		m.sticky, m.served = key, 1
	default:
		m.served++
	}
	if m.served >= limit {
		m.sticky, m.served = "", 0
	}
}

// roundRobin starts at the counter and goes round (STR-12).
func roundRobin(q *question) {
	n := len(q.order)
	start := q.memory.counter % n
	for i := range q.order {
		q.order[i] = (start + i) % n
	}
	if q.dice != nil && limitOf(q.route.Config.StickyRoundRobin) == 1 {
		q.memory.counter = (start + 1) % n
	}
}

// rotate counts a success of the present target of a sticky rotation; the next one begins behind it after limit of them. It
// needs mu.
func (m *memory) rotate(rt *catalog.Route, t *catalog.RouteTarget, limit int) {
	n := len(rt.Targets)
	if limit <= 1 || n == 0 || rt.Targets[m.counter%n].Key != t.Key {
		return
	}
	if m.served++; m.served >= limit {
		m.counter, m.served = (m.counter+1)%n, 0
	}
}

// strictRandom deals a shuffled deck: each target comes first once before any comes again, and a new deck does not begin with
// the card that was dealt last. The rest of a request's order is shuffled too (STR-23).
func strictRandom(q *question) {
	m, n := q.memory, len(q.order)
	if q.dice == nil {
		if len(m.deck) > 0 {
			q.first(m.deck[0])
		}
		return
	}
	if len(m.deck) == 0 {
		m.deck = configured(n)
		q.shuffle(m.deck)
		if m.deck[0]+1 == m.dealt {
			other := 1 + q.dice.IntN(n-1)
			m.deck[0], m.deck[other] = m.deck[other], m.deck[0]
		}
	}
	card := m.deck[0]
	m.deck, m.dealt = m.deck[1:], card+1
	q.first(card)
	q.shuffle(q.order[1:])
}

// leastUsed is ascending by dispatched requests (STR-17).
func leastUsed(q *question) {
	ts := q.route.Targets
	slices.SortStableFunc(q.order, func(a, b int) int {
		return cmp.Compare(q.memory.used[ts[a].Key], q.memory.used[ts[b].Key])
	})
}

// lastKnownGood puts first who answered last: the connection, else its provider, else a target whose key begins with the
// provider's name (STR-25).
func lastKnownGood(q *question) {
	good := q.memory.good
	if good.provider == "" {
		return
	}
	ts := q.route.Targets
	for _, same := range []func(t *catalog.RouteTarget) bool{
		func(t *catalog.RouteTarget) bool {
			return t.Provider.ID == good.provider && t.Connection != nil && t.Connection.ID == good.connection
		},
		func(t *catalog.RouteTarget) bool { return t.Provider.ID == good.provider },
		func(t *catalog.RouteTarget) bool { return strings.HasPrefix(t.Key, good.provider+"/") },
	} {
		for i := range ts {
			if same(&ts[i]) {
				q.first(i)
				return
			}
		}
	}
}
