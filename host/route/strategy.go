// Package route owns in which order the targets of a route are tried, which connections of a target may serve, and what
// is out for the rest of one request. It decides nothing about time: the ladder of gates does.
package route

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
)

// Question is what a strategy may look at.
type Question struct {
	Route *catalog.Route // set by Order
	Now   time.Time
}

// Strategy puts the targets of a route in the order in which they are tried. It never removes one (STR-1), and it does
// not write into the route, which all requests share.
type Strategy func(q Question) []catalog.RouteTarget

// row is one strategy by its name.
type row struct {
	name  string
	order Strategy
}

// strategies is the table: to add one, add a file and a row.
var strategies = [...]row{
	{"priority", priority},
}

// Strategies returns the names that a combo may give.
func Strategies() []string {
	names := make([]string, len(strategies))
	for i, s := range strategies {
		names[i] = s.name
	}
	return names
}

// Order returns the targets of r in the order of its strategy. An unknown name is taken as priority (STR-6); who stores
// or loads a combo warns about it. The result is shared and read only; one target costs nothing.
func Order(r *catalog.Route, q Question) []catalog.RouteTarget {
	if len(r.Targets) < 2 {
		return r.Targets
	}
	q.Route = r
	for _, s := range strategies {
		if s.name == r.Strategy {
			return s.order(q)
		}
	}
	return priority(q)
}

// priority keeps the configured order (STR-10).
func priority(q Question) []catalog.RouteTarget { return q.Route.Targets }
