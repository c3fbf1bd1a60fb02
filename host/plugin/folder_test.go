//go:build unix

package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// PLG-1: a folder of many packs becomes one set, not one for each of them.
func TestManyFiles(t *testing.T) {
	dir, old := t.TempDir(), time.Now().Add(-time.Hour)
	for i := range maxFiles + 5 {
		path := filepath.Join(dir, fmt.Sprintf("p%05d.yaml", i))
		text := "not: [a, pack]\n" // most are refused, so that the test is quick
		if i%20 == 0 {
			text = fmt.Sprintf("name: many-%d\nversion: 1.0.0\nkinds: [executor]\nproviders: [{id: many-%d, auth: local}]\n", i, i)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Chtimes(path, old, old)
	}
	var changes atomic.Int32
	r := started(t, Options{Dir: dir, OnChange: func() { changes.Add(1) }})
	if n := len(r.List()); n != maxFiles || changes.Load() > 2 {
		t.Errorf("%d files were read with %d changes, want %d with 1", n, changes.Load(), maxFiles)
	}
}

// ABI-7, step 4: the cache holds the code of what is in force, also after files that were refused when they ran.
func TestCacheIsPrunedAfterRescan(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	path, old := filepath.Join(dir, "a.wasm"), time.Now().Add(-time.Hour)
	if err := os.WriteFile(path, module{manifest: "no manifest"}.wasm(), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Chtimes(path, old, old)
	r := started(t, Options{Dir: dir, CacheDir: cache}) // it looks before it watches
	left, _ := os.ReadDir(cache)
	if s := byFile(r, "a.wasm"); s.Fault == nil || s.Fault.Step != StepValidate || len(left) != 0 {
		t.Errorf("%+v, %d entries are left", s.Fault, len(left))
	}
}

// PLG-1: nothing is remembered of files that came and went, and a pipe that takes the place of a file blocks nobody.
func TestFleetingFiles(t *testing.T) {
	dir := t.TempDir()
	r := started(t, Options{Dir: dir})
	for i := range 20 {
		path := filepath.Join(dir, fmt.Sprintf("storm-%d.wasm", i))
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.scan(t.Context(), false)
		_ = os.Remove(path)
	}
	r.scan(t.Context(), false)
	r.watch.turn <- struct{}{}
	n := len(r.watch.looks)
	<-r.watch.turn
	if n != 0 {
		t.Errorf("%d files that are gone are remembered", n)
	}
	pipe := filepath.Join(dir, "pipe.wasm")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	r.scan(t.Context(), true)
	if _, err := readFile(pipe); err == nil {
		t.Error("a pipe was read")
	}
}
