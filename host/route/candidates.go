package route

import (
	"slices"

	"github.com/weirgate/weir/host/catalog"
)

// Candidates walks the connections that may serve a target, best first: those that the key prefers (SEL-2), then the
// others, each group in the order of fill-first, which is priority and then id (SEL-4). It is a value on the stack of its
// request and allocates nothing.
type Candidates struct {
	target   *catalog.RouteTarget
	key      *catalog.Key
	list     []*catalog.Connection
	next     int
	ordinary bool // the preferred ones are done
}

// CandidatesOf starts a walk over the connections of t for key, which is nil when clients need none.
func CandidatesOf(t *catalog.RouteTarget, key *catalog.Key) Candidates {
	c := Candidates{target: t, key: key, list: t.Provider.Connections}
	c.ordinary = key == nil || len(key.PreferredConnections) == 0
	return c
}

// Next returns the next connection that out has not taken out for this request, nil after the last one. Each is returned
// at most once (CMB-19). Out may be nil.
func (c *Candidates) Next(out *Exhausted) *catalog.Connection {
	for {
		for c.next < len(c.list) {
			conn := c.list[c.next]
			c.next++
			if c.turnOf(conn) && c.allows(conn) && !c.isOut(out, conn) {
				return conn
			}
		}
		if c.ordinary {
			return nil
		}
		c.ordinary, c.next = true, 0
	}
}

func (c *Candidates) isOut(out *Exhausted, conn *catalog.Connection) bool {
	return out != nil && out.Target(catalog.Target{Provider: c.target.Provider, Connection: conn, Model: c.target.Model})
}

// turnOf says whether conn belongs to the group that is being walked.
func (c *Candidates) turnOf(conn *catalog.Connection) bool {
	if c.key == nil || len(c.key.PreferredConnections) == 0 {
		return true
	}
	return slices.Contains(c.key.PreferredConnections, conn.ID) != c.ordinary
}

// allows holds the filters of SEL-1 that need no state. Preferring a connection grants no access to it (SEL-2).
func (c *Candidates) allows(conn *catalog.Connection) bool {
	t := c.target
	switch {
	case !conn.Active,
		t.Connection != nil && t.Connection.ID != conn.ID,
		!listed(t.Allowed, conn.ID),
		c.key != nil && !listed(c.key.AllowedConnections, conn.ID),
		!listed(conn.Models, t.Model):
		return false
	}
	return !slices.Contains(conn.ExcludedModels, t.Model)
}

// listed says whether list names id; an empty list means all.
func listed(list []string, id string) bool { return len(list) == 0 || slices.Contains(list, id) }
