// Package proc reads what processes cost from /proc: CPU time and resident memory of a process and all its descendants.
// Where there is no /proc, both are 0.
package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage adds up CPU seconds and resident bytes of a process and all its descendants.
func Usage(pid int) (cpu float64, rss int64) {
	for _, p := range tree(pid) {
		f := statFields(p)
		if len(f) < 22 {
			continue
		}
		if ns := threadTime(p); ns > 0 {
			cpu += ns / 1e9
		} else {
			ut, _ := strconv.ParseFloat(f[11], 64)
			st, _ := strconv.ParseFloat(f[12], 64)
			cpu += (ut + st) / 100 // USER_HZ
		}
		pages, _ := strconv.ParseInt(f[21], 10, 64)
		rss += pages * int64(os.Getpagesize())
	}
	return cpu, rss
}

// threadTime adds up what the scheduler counted for the threads of a process, in nanoseconds; the
// clock ticks of /proc/PID/stat are too coarse for short, mostly idle runs.
func threadTime(pid int) (ns float64) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	ents, _ := os.ReadDir(dir)
	for _, e := range ents {
		b, err := os.ReadFile(filepath.Join(dir, e.Name(), "schedstat"))
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(b), " ")
		v, _ := strconv.ParseFloat(first, 64)
		ns += v
	}
	return ns
}

// statFields are those of /proc/PID/stat that follow the command name, state first.
func statFields(pid int) []string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	s := string(b)
	return strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
}

func tree(root int) []int {
	children := map[int][]int{}
	ents, _ := os.ReadDir("/proc")
	for _, e := range ents {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f := statFields(p); len(f) > 1 {
			pp, _ := strconv.Atoi(f[1])
			children[pp] = append(children[pp], p)
		}
	}
	out := []int{root}
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i]]...)
	}
	return out
}
