package main

import (
	"io/fs"
	"math"
	"runtime/debug"
	"strconv"
	"strings"
)

// tuneMemory sets the collector's pace and the memory limit, unless the environment has them: a gateway allocates short-lived
// buffers, and collecting half as often gains throughput for little memory.
func tuneMemory(env func(string) (string, bool), root fs.FS) {
	if _, ok := env("GOGC"); !ok {
		debug.SetGCPercent(200)
	}
	if _, ok := env("GOMEMLIMIT"); ok {
		return
	}
	if limit, ok := cgroupLimit(root); ok {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}

// cgroupLimit returns the least memory limit of the process's control group and those above it. Version 2 first, then 1.
func cgroupLimit(root fs.FS) (int64, bool) {
	least := int64(math.MaxInt64)
	membership, _ := fs.ReadFile(root, "proc/self/cgroup") // no such file: no control groups
	for line := range strings.Lines(string(membership)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		if strings.Contains(","+part[1]+",", ",memory,") {
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if part[1] != "" {
			continue
		}
		for path := strings.Trim(part[2], "/"); ; path = path[:max(strings.LastIndexByte(path, '/'), 0)] {
			least = min(least, readLimit(root, strings.TrimSuffix(base+"/"+path, "/")+"/"+file))
			if path == "" {
				break
			}
		}
	}
	return least, least < 1<<60 // version 1 writes "no limit" as a number near 2^63
}

func readLimit(root fs.FS, name string) int64 {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n <= 0 { // "max"
		return math.MaxInt64
	}
	return n
}
