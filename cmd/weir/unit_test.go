package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// Recipe 8: the memory limit is the least of the control group and those above it.
func TestCgroupLimit(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, c := range map[string]struct {
		fs   fstest.MapFS
		want int64
		ok   bool
	}{
		"none":      {fstest.MapFS{}, 0, false},
		"unlimited": {fstest.MapFS{"proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/memory.max": file("max\n")}, 0, false},
		"own":       {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("1000000\n")}, 1000000, true},
		"above": {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"),
			"sys/fs/cgroup/a/memory.max": file("2000000\n")}, 2000000, true},
		"container": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("3000000\n")}, 3000000, true},
		"version 1": {fstest.MapFS{"proc/self/cgroup": file("5:cpu:/x\n4:memory:/x\n"), "sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("4000000\n")}, 4000000, true},
		"version 1 unlimited": {fstest.MapFS{"proc/self/cgroup": file("4:memory:/x\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("9223372036854771712\n")}, 0, false},
	} {
		got, ok := cgroupLimit(c.fs)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %d %v, want %d %v", name, got, ok, c.want, c.ok)
		}
	}
}

// slow is a host whose stop takes a while.
type slow struct {
	reloads int
	fault   error
	stop    time.Duration
	stopErr error
}

func (s *slow) Reload(context.Context) error { s.reloads++; return s.fault }
func (s *slow) Stop(context.Context) error   { time.Sleep(s.stop); return s.stopErr }

func attend(t *testing.T, h *slow, send func(chan<- os.Signal)) (code int, log string) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		a := &app{out: &out, err: &out}
		signals := make(chan os.Signal, 4)
		go send(signals)
		err := a.attend(t.Context(), h, slog.New(slog.NewTextHandler(&out, nil)), signals)
		if f, ok := errors.AsType[*failure](err); ok {
			code = f.code
		}
		time.Sleep(h.stop) // lets a stop that nobody waits for end
		log = out.String()
	})
	return code, log
}

// CLI-4: the first signal stops with 0, a second one ends at once with 130; CLI-5: SIGHUP reloads and a fault stops nothing.
func TestSignals(t *testing.T) {
	h := &slow{stop: 10 * time.Second}
	if code, _ := attend(t, h, func(s chan<- os.Signal) { s <- syscall.SIGTERM }); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	began := time.Now()
	code, _ := attend(t, h, func(s chan<- os.Signal) {
		s <- syscall.SIGINT
		time.Sleep(time.Second)
		s <- syscall.SIGHUP
		s <- syscall.SIGINT
	})
	if code != exitKilled || time.Since(began) > 5*time.Second {
		t.Errorf("exit code %d, want 130", code)
	}
	h = &slow{fault: errors.New("weir.yaml:1:1: nope")}
	code, log := attend(t, h, func(s chan<- os.Signal) { s <- syscall.SIGHUP; time.Sleep(time.Second); s <- syscall.SIGTERM })
	if code != 0 || h.reloads != 1 || !bytes.Contains([]byte(log), []byte("nope")) {
		t.Errorf("code %d, %d reloads, log %s", code, h.reloads, log)
	}
	if code, _ := attend(t, &slow{stopErr: errors.New("disk")}, func(s chan<- os.Signal) { s <- syscall.SIGTERM }); code != exitFaulty {
		t.Errorf("exit code %d after a stop that failed, want 1", code)
	}
}
