package dispatch

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/route"
)

// Order lists every target and connection of a route in the order in which a request would try them, without any effect: no
// state moves and nothing is drawn (OBJ-25). Where a strategy draws, see route.Router.Preview. s is the snapshot that the route is
// from.
func (d *Dispatcher) Order(s *catalog.Snapshot, rt *catalog.Route, key *catalog.Key, now time.Time) []catalog.Target {
	r := &run{d: d, c: &Call{Catalog: s, Route: rt, Key: key}}
	var out, last []catalog.Target
	ordered := d.Router.Preview(rt, r, now)
	for i := range ordered.Len() {
		t := ordered.At(i)
		var soon, late []catalog.Target
		for _, conn := range d.Router.Choose(nil, route.Choice{
			Target: t, Key: key, Strategy: route.AccountStrategy(rt, t.Provider, s), Catalog: s, World: r, Now: now,
		}, false) {
			if d.slow.known(conn.ID, now) {
				late = append(late, r.to(t, conn))
				continue
			}
			soon = append(soon, r.to(t, conn))
		}
		if len(soon) == 0 {
			last = append(last, late...)
			continue
		}
		out = append(append(out, soon...), late...)
	}
	return append(out, last...)
}
