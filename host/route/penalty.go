package route

import (
	"math"
	"time"

	"github.com/weirgate/weir/host/catalog"
)

// The points of SEL-6.
const (
	pointsError   = 6
	pointsLimit   = 24
	pointsAuth    = 18
	pointsServer  = 10
	pointsSpent   = 200 // quota exhausted
	pointsUnknown = 4   // headroom
	pointsTight   = 10  // headroom at or below tight
	pointsNarrow  = 4   // headroom at or below narrow

	tight         = 10 // percent
	narrow        = 25
	perQuotaPoint = 8 // percent that are used
)

// weigh draws two different connections and puts the one with the lower penalty first and the other one behind it; of two or
// fewer all are compared. Ties go to the lower priority number and then to the id, which is the order of the group (SEL-5).
func (r *Router) weigh(group []*catalog.Connection, q *Choice, draws bool) {
	a, b := 0, 1
	if len(group) > 2 && draws {
		a = r.dice.IntN(len(group))
		if b = r.dice.IntN(len(group) - 1); b >= a {
			b++
		}
	}
	if a > b {
		a, b = b, a
	}
	x, y := group[a], group[b]
	px, py := r.penalty(x, q), r.penalty(y, q)
	mx, my := r.latency(x, y, q)
	if py+my < px+mx {
		a, b = b, a
	}
	promote(group, group[a], group[b])
}

// promote moves first and second to the front and keeps the others as they are.
func promote(group []*catalog.Connection, first, second *catalog.Connection) {
	at := len(group) - 1
	for i := len(group) - 1; i >= 0; i-- {
		if c := group[i]; c != first && c != second {
			group[at] = c
			at--
		}
	}
	group[0], group[1] = first, second
}

// penalty is the sum of SEL-6.
func (r *Router) penalty(c *catalog.Connection, q *Choice) float64 {
	is := q.World.Condition(c)
	points := headroomPoints(is) + min(40, 8*is.Backoff)
	switch is.Error {
	case NoTrouble:
	case OtherTrouble:
		points += pointsError
	case LimitTrouble:
		points += pointsError + pointsLimit
	case AuthTrouble:
		points += pointsError + pointsAuth
	case ServerTrouble:
		points += pointsError + pointsServer
	}
	a := &r.accounts
	a.mu.Lock()
	use := a.uses[c.ID]
	a.mu.Unlock()
	points += min(12, 2*use.row) + recency(use, q.Now) + max(0, min(6, c.Priority-1))
	return float64(points)
}

// headroomPoints are those for what is left of an account's quota.
func headroomPoints(is Condition) int {
	switch {
	case !is.Known:
		return pointsUnknown
	case is.Headroom <= 0:
		return pointsSpent
	}
	points := int(math.Round((100 - is.Headroom) / perQuotaPoint))
	switch {
	case is.Headroom <= tight:
		points += pointsTight
	case is.Headroom <= narrow:
		points += pointsNarrow
	}
	return points
}

// recency is a little for a connection that was used just now.
func recency(u accountUse, now time.Time) int {
	if u.turn == 0 {
		return 0
	}
	switch since := now.Sub(u.at); {
	case since <= 15*time.Second:
		return 3
	case since <= time.Minute:
		return 2
	case since <= 5*time.Minute:
		return 1
	}
	return 0
}

// minSamples is how many both candidates must have (SEL-12).
const minSamples = 3

// latency is what the samples of a pair add to their penalties: half of the weight by the ratio to the faster one, half by the
// rolling error rate (SEL-11, SEL-12).
func (r *Router) latency(x, y *catalog.Connection, q *Choice) (px, py float64) {
	weight := q.Catalog.Settings.P2CLatencyWeight
	if weight <= 0 {
		return 0, 0
	}
	sx, sy := r.Samples.Connection(x.ID, q.Target.Model, q.Now), r.Samples.Connection(y.ID, q.Target.Model, q.Now)
	if sx.N < minSamples || sy.N < minSamples {
		sx, sy = r.Samples.Connection(x.ID, "", q.Now), r.Samples.Connection(y.ID, "", q.Now)
	}
	if sx.N < minSamples || sy.N < minSamples {
		return 0, 0
	}
	half := weight / 2
	return half * (slower(sx, sy) + sx.ErrorRate), half * (slower(sy, sx) + sy.ErrorRate)
}

// slower is how much slower a is than the faster of both: 0 for the faster one, 1 for twice as slow or more.
func slower(a, b Summary) float64 {
	if a.FirstByte <= 0 || b.FirstByte <= 0 {
		return 0
	}
	return min(1, float64(a.FirstByte)/float64(min(a.FirstByte, b.FirstByte))-1)
}
