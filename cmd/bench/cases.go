package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirgate/weir/cmd/bench/report"
)

// The targets: the mock itself, the reference proxy, the gateway.
const (
	direct    = "direct"
	reference = "refproxy"
	gateway   = "weir"
)

// loadCase is one kind of load, as arguments of the load generator.
type loadCase struct {
	name    string
	args    []string
	targets []string
	once    []string // targets that one round is enough for
	pool    bool     // asks the gateway for the pool with failing keys
}

var both = []string{reference, gateway}

var loadCases = []loadCase{
	{name: "max1k", args: []string{"-c", "64", "-body", "1024"}, targets: both, once: []string{direct}},
	{name: "max100k", args: []string{"-c", "32", "-body", "102400"}, targets: both},
	{name: "stream", args: []string{"-stream", "-c", "16", "-body", "1024", "-mock", "chunks=100"}, targets: both},
	{name: "open500", args: []string{"-rate", "500", "-c", "256", "-body", "1024"}, targets: both},
	{name: "streampaced", args: []string{"-stream", "-rate", "10", "-c", "64", "-body", "1024", "-mock", "chunks=100;interval=5ms"}, targets: both},
	{name: "failover", args: []string{"-rate", "50", "-c", "256", "-body", "1024"}, targets: []string{gateway}, pool: true},
}

// selection is what one invocation runs.
type selection struct {
	loads       []loadCase
	idle, start bool
}

// choose reads a comma-separated list of cases; an empty one means all.
func choose(list string) (selection, error) {
	if list == "" {
		return selection{loadCases, true, true}, nil
	}
	var s selection
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(loadCases, func(c loadCase) bool { return c.name == name })
		switch {
		case i >= 0:
			s.loads = append(s.loads, loadCases[i])
		case name == report.Idle:
			s.idle = true
		case name == report.ColdStart:
			s.start = true
		default:
			return s, fmt.Errorf("there is no case %q: take max1k, max100k, stream, open500, streampaced, failover, idle or coldstart", name)
		}
	}
	return s, nil
}

// alternate returns the targets of each round, turned by one from round to round, so that slow changes of the machine
// meet all of them alike.
func (c loadCase) alternate(rounds int, has func(string) bool) [][]string {
	out := make([][]string, rounds)
	for r := range out {
		var present []string
		for _, t := range c.targets {
			if has(t) {
				present = append(present, t)
			}
		}
		for i := range present {
			out[r] = append(out[r], present[(i+r)%len(present)])
		}
		if r == 0 {
			out[r] = append(slices.Clone(c.once), out[r]...)
		}
	}
	return out
}
