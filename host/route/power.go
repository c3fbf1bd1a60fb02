package route

import (
	"cmp"
	"math"
	"slices"
)

// p2c draws two different targets and tries the one with the higher score first, then the other ones in configured order
// (STR-15). A preview orders all of them by score.
func p2c(q *question) {
	if q.dice == nil {
		scores := make([]float64, len(q.order))
		for i := range scores {
			scores[i] = q.score(i)
		}
		slices.SortStableFunc(q.order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
		return
	}
	n := len(q.order)
	a := q.dice.IntN(n)
	b := q.dice.IntN(n - 1)
	if b >= a {
		b++
	}
	if q.score(b) > q.score(a) {
		a = b
	}
	q.first(a)
}

// score is the success rate, and more for a quick answer, less for a breaker that is being tried out.
func (q *question) score(i int) float64 {
	t := &q.route.Targets[i]
	points := 0.0
	switch q.world.Circuit(t.Provider) {
	case Open:
		return math.Inf(-1)
	case HalfOpen:
		points = -0.25
	case Closed:
	}
	rate, speed := 0.5, 0.25
	if s := q.samples.Target(t, q.now); s.N > 0 {
		rate = 1 - s.ErrorRate
		if s.FirstByte > 0 {
			speed = 1 / math.Log10(float64(s.FirstByte.Milliseconds())+10)
		}
	}
	return points + rate + speed
}
