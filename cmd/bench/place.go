package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// place says on which cores the parts run: a gateway alone on one, so that requests a second are requests a second of
// one core.
type place struct {
	gateway, mock, load string // lists for taskset; empty where cores cannot be chosen
}

// findPlace takes the cores that this process may use. Without taskset or a second core nothing is pinned.
func findPlace() place {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return place{}
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return place{}
	}
	return placeOn(allowed(string(status)))
}

func placeOn(cores []int) place {
	name := func(i int) string { return strconv.Itoa(cores[i]) }
	switch {
	case len(cores) < 2:
		return place{}
	case len(cores) < 4:
		return place{gateway: name(0), mock: name(1), load: name(1)}
	}
	return place{gateway: name(0), mock: name(1), load: name(2) + "," + name(3)}
}

// allowed reads the line Cpus_allowed_list of /proc/PID/status, such as 0-3,8.
func allowed(status string) (cores []int) {
	_, rest, _ := strings.Cut(status, "Cpus_allowed_list:")
	line, _, _ := strings.Cut(rest, "\n")
	for span := range strings.SplitSeq(strings.TrimSpace(line), ",") {
		from, to, ranged := strings.Cut(span, "-")
		if !ranged {
			to = from
		}
		a, err := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil {
			return nil
		}
		for c := a; c <= b; c++ {
			cores = append(cores, c)
		}
	}
	return cores
}

// pinned returns a command line that runs on those cores.
func pinned(cores string, argv ...string) []string {
	if cores == "" {
		return argv
	}
	return append([]string{"taskset", "-c", cores}, argv...)
}

func (p place) String() string {
	if p.gateway == "" {
		return "no core is pinned (taskset or a second core is missing): GOMAXPROCS is 1 for the gateways"
	}
	return "gateways on core " + p.gateway + ", mock on " + p.mock + ", load generator on " + p.load
}
