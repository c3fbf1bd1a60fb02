package dispatch

import (
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/route"
)

// The run is what strategies ask about the present.
var _ route.World = (*run)(nil)

// Blocked says whether no connection of the target would be admitted now (STR-11).
func (r *run) Blocked(t *catalog.RouteTarget) bool {
	for conn := range route.Candidates(t, r.c.Key) {
		if !r.Refused(t, conn) {
			return false
		}
	}
	return true
}

// Circuit is the state of the provider's breaker.
func (r *run) Circuit(p *catalog.Provider) route.Circuit {
	if r.d.Options.Circuit == nil {
		return route.Closed
	}
	return r.d.Options.Circuit(p, resilience.Moment{Now: r.d.Now(), Catalog: r.c.Catalog, Combo: r.c.Route.Kind == catalog.KindCombo})
}

// Refused asks the ladder without any effect, and what this request knows.
func (r *run) Refused(t *catalog.RouteTarget, c *catalog.Connection) bool {
	target := r.to(t, c)
	return r.exhausted.Target(target) || r.d.Ladder.Peek(r.moment(t), target) != nil
}

// Condition is the health of an account.
func (r *run) Condition(c *catalog.Connection) route.Condition {
	if r.d.Options.Condition == nil {
		return route.Condition{}
	}
	return r.d.Options.Condition(c.ID, r.d.Now())
}
