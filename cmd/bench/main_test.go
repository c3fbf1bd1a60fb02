package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/cmd/bench/report"
)

// The whole path: build, start, load, table, file. The gateway is left out so that the test does not depend on its build.
func TestReferenceRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and starts programs")
	}
	out := filepath.Join(t.TempDir(), "sub", "results.jsonl")
	s, err := parse([]string{"-reference-only", "-rounds", "1", "-secs", "200ms", "-warm", "50ms", "-cases", "max1k,stream", "-out", out}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), s, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	res, err := report.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	for c, targets := range map[string][]string{"max1k": {direct, reference}, "stream": {reference}} {
		for _, name := range targets {
			rows := res.Of(c, name)
			if len(rows) != 1 || rows[0].OK == 0 || rows[0].Errors != 0 || rows[0].CPU <= 0 {
				t.Errorf("%s on %s: %+v", c, name, rows)
			}
		}
	}
	if !strings.Contains(stdout.String(), "max1k") || strings.Contains(stdout.String(), "goal") {
		t.Errorf("printed\n%s", &stdout)
	}
	stdout.Reset()
	if err := run(t.Context(), settings{tables: out}, &stdout, io.Discard); err != nil || !strings.Contains(stdout.String(), "stream") {
		t.Errorf("%v\n%s", err, &stdout)
	}
}

// A gateway that does not start is a fault with its own words in it, and leaves nothing behind.
func TestGatewayThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and starts programs")
	}
	bad := filepath.Join(t.TempDir(), "weir")
	if err := os.WriteFile(bad, []byte("#!/bin/sh\necho no such flag >&2\nexit 2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	err := run(t.Context(), settings{rounds: 1, secs: time.Second, weir: bad, out: filepath.Join(t.TempDir(), "r")}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "weir-bench-*")); len(left) > 0 {
		t.Errorf("%v was left behind", left)
	}
}

func TestConfiguration(t *testing.T) {
	var c struct {
		Providers []struct {
			ID      string `yaml:"id"`
			BaseURL string `yaml:"base_url"`
		} `yaml:"providers"`
		Connections []struct {
			Provider string `yaml:"provider"`
			APIKey   string `yaml:"api_key"`
		} `yaml:"connections"`
	}
	if err := yaml.Unmarshal([]byte(configuration("127.0.0.1:9")), &c); err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	for _, x := range c.Connections {
		keys[x.Provider] = append(keys[x.Provider], x.APIKey)
	}
	if d := cmp.Diff(map[string][]string{"bench-mock": {"k-ok"}, "bench-pool": {"k-429", "k-500", "k-ok-a", "k-ok-b"}}, keys); d != "" {
		t.Error(d)
	}
	if len(c.Providers) != 2 || c.Providers[0].BaseURL != "http://127.0.0.1:9/v1" {
		t.Errorf("%+v", c.Providers)
	}
}

func TestChoose(t *testing.T) {
	all, err := choose("")
	if err != nil || len(all.loads) != len(loadCases) || !all.idle || !all.start {
		t.Errorf("%+v, %v", all, err)
	}
	some, err := choose("idle,stream")
	if err != nil || len(some.loads) != 1 || some.loads[0].name != "stream" || !some.idle || some.start {
		t.Errorf("%+v, %v", some, err)
	}
	if _, err := choose("max1k,nonsense"); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Error(err)
	}
}

func TestAlternate(t *testing.T) {
	c := loadCase{targets: both, once: []string{direct}}
	got := c.alternate(3, func(string) bool { return true })
	want := [][]string{{direct, reference, gateway}, {gateway, reference}, {reference, gateway}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = c.alternate(1, func(name string) bool { return name != gateway })
	if d := cmp.Diff([][]string{{direct, reference}}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([][]string{nil}, loadCase{targets: []string{gateway}}.alternate(1, func(string) bool { return false })); d != "" {
		t.Error(d)
	}
}

func TestPlace(t *testing.T) {
	for list, want := range map[string][]int{"0-1": {0, 1}, "3": {3}, "0-1,4,6-7": {0, 1, 4, 6, 7}, "": nil, "x": nil} {
		if got := allowed("Name:\tx\nCpus_allowed_list:\t" + list + "\nMems:\t0\n"); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", list, got, want)
		}
	}
	for _, c := range []struct {
		cores []int
		want  place
	}{
		{[]int{5}, place{}},
		{[]int{2, 5}, place{"2", "5", "5"}},
		{[]int{0, 1, 2, 3, 4}, place{"0", "1", "2,3"}},
	} {
		if got := placeOn(c.cores); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.cores, got, c.want)
		}
	}
	if got := (place{}).env(); !slices.Equal(got, []string{"GOMAXPROCS=1"}) {
		t.Errorf("an unpinned gateway gets %v", got)
	}
}

// Keys and settings of the person who runs the benchmark stay out of it.
func TestBareEnv(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-real")
	t.Setenv("WEIR_DATA", "/elsewhere")
	for _, kv := range bareEnv() {
		if strings.HasPrefix(kv, "OPENAI_") || strings.HasPrefix(kv, "WEIR_") {
			t.Errorf("%s is passed on", strings.SplitN(kv, "=", 2)[0])
		}
	}
}

func TestParse(t *testing.T) {
	s, err := parse([]string{"-quick"}, io.Discard)
	if err != nil || s.rounds != 1 || s.secs != 2*time.Second {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range [][]string{{"-rounds", "0"}, {"-secs", "0s"}, {"extra"}} {
		if _, err := parse(bad, io.Discard); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var x tail
	for range 3 * tailSize / 10 {
		_, _ = x.Write([]byte("0123456789"))
	}
	_, _ = x.Write([]byte("end"))
	if got := x.String(); len(got) != tailSize || !strings.HasSuffix(got, "9end") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-5:])
	}
}
