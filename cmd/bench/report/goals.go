package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Goal is one figure that the gateway is held to.
type Goal struct {
	Name    string
	Limit   float64
	AtLeast bool // else the figure has to stay below Limit
	Format  string
	figure  func(r *Results, target, base string) (float64, bool)
}

// Goals are those of this project. Throughput per core is requests per second of CPU time: with a full core that is
// requests per second, and it stays true where the load generator is what is full, or where something else takes a part
// of the core.
var Goals = []Goal{
	{"throughput per core at 1 KB, as a ratio to the reference proxy", 0.90, true, "%.3f", against("max1k", Row.CPUPerRequest, inverse)},
	{"throughput per core at 100 KB, likewise", 0.90, true, "%.3f", against("max100k", Row.CPUPerRequest, inverse)},
	{"CPU per chunk of a stream, us", 3.5, false, "%.2f", own("stream", Row.CPUPerEvent)},
	{"p50 added at 500 requests/s, us", 80, false, "%.0f", against("open500", p50, minus)},
	{"resident memory when idle, MB", 60, false, "%.1f", own(Idle, func(r Row) float64 { return float64(r.RSSAfter) / 1e6 })},
	{"first answer after a start with a warm cache, ms", 300, false, "%.0f", own(ColdStart, func(r Row) float64 { return r.FirstReply })},
}

func own(c string, f func(Row) float64) func(*Results, string, string) (float64, bool) {
	return func(r *Results, target, _ string) (float64, bool) {
		v, ok := r.Median(c, target, f)
		return v, ok && v != 0
	}
}

func against(c string, f func(Row) float64, by func(own, base float64) float64) func(*Results, string, string) (float64, bool) {
	return func(r *Results, target, base string) (float64, bool) {
		v, _ := r.Median(c, target, f)
		b, _ := r.Median(c, base, f)
		if v == 0 || b == 0 {
			return 0, false
		}
		return by(v, b), true
	}
}

// Reached tells whether a figure meets the goal.
func (g Goal) Reached(v float64) bool {
	if g.AtLeast {
		return v >= g.Limit
	}
	return v < g.Limit
}

// Verdicts prints each goal with its figure and whether it was reached, and returns how many were missed. A goal whose
// case did not run is "not measured" and counts as neither.
func (r *Results) Verdicts(w io.Writer, target, base string) (missed int, err error) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "goal\tlimit\tmeasured\t\n")
	for _, g := range Goals {
		sign := "<"
		if g.AtLeast {
			sign = ">="
		}
		v, ok := g.figure(r, target, base)
		verdict, shown := "not measured", "-"
		if ok {
			shown, verdict = fmt.Sprintf(g.Format, v), "reached"
			if !g.Reached(v) {
				verdict = "MISSED"
				missed++
			}
		}
		fmt.Fprintf(tw, "%s\t%s %g\t%s\t%s\n", g.Name, sign, g.Limit, shown, verdict)
	}
	return missed, tw.Flush()
}
