package dispatch

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/route"
)

// Order lists every target and connection of a route in the order in which a request would try them, without any effect
// (OBJ-25).
func (d *Dispatcher) Order(rt *catalog.Route, key *catalog.Key, now time.Time) []catalog.Target {
	var out, last []catalog.Target
	ordered := route.Order(rt, route.Question{Now: now})
	for i := range ordered {
		var soon, late []catalog.Target
		for conn := range route.Candidates(&ordered[i], key) {
			t := catalog.Target{Provider: ordered[i].Provider, Connection: conn, Model: ordered[i].Model}
			if d.slow.known(conn.ID, t.Model, now) {
				late = append(late, t)
				continue
			}
			soon = append(soon, t)
		}
		if len(soon) == 0 {
			last = append(last, late...)
			continue
		}
		out = append(append(out, soon...), late...)
	}
	return append(out, last...)
}
