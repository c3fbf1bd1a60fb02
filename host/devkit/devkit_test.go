package devkit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weirgate/weir/host/devkit"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/host/plugin/pack"
	"github.com/weirgate/weir/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const manifest = `{"name":"two-faced","version":"1.0.0","kinds":["classifier"],"rules":[{"id":"a","status":[503],"then":{"reason":"overloaded"}}],` +
	`"examples":[{"op":"classify","input":{"provider":"x","status":503},"expect":{"reason":"overloaded"}}]}`

func packed(t *testing.T, json string) []byte {
	t.Helper()
	b, err := pack.Pack([]byte(json), nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func file(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func check(t *testing.T, path string) devkit.Report {
	t.Helper()
	r, err := (devkit.Kit{}).Check(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// faults are the steps and codes of what a report refuses.
func faults(r devkit.Report) []string {
	var all []string
	for _, s := range r.Steps {
		for _, f := range s.Findings {
			all = append(all, s.Step+" "+f.Code)
		}
	}
	return all
}

// A gateway believes the data of a pack without running its code; the check is where the two are compared.
func TestCheckComparesDescribeWithTheData(t *testing.T) {
	t.Run("ABI-2.3", func(t *testing.T) {
		good := packed(t, manifest)
		if r := check(t, file(t, "good.wasm", good)); !r.OK || r.Name != "two-faced" {
			t.Fatalf("a good pack is refused: %v", faults(r))
		}
		// The same length in the section only, which comes after the code's copy.
		at := bytes.LastIndex(good, []byte(`"1.0.0"`))
		if at == bytes.Index(good, []byte(`"1.0.0"`)) {
			t.Fatal("the pack holds its manifest once; this test needs to be thought of anew")
		}
		for _, at := range []int{at, bytes.Index(good, []byte(`"1.0.0"`))} {
			other := slices.Clone(good)
			copy(other[at:], `"6.6.6"`)
			r := check(t, file(t, "other.wasm", other))
			if diff := cmp.Diff([]string{"describe " + plugin.CodeDiffers}, faults(r)); r.OK || diff != "" {
				t.Errorf("changed at %d: %s", at, diff)
			}
		}
	})
	t.Run("PLG-2: a failed example does not hide that the code runs", func(t *testing.T) {
		r := check(t, file(t, "failing.wasm", packed(t, strings.Replace(manifest, `"expect":{"reason":"overloaded"}`, `"expect":{"reason":"timeout"}`, 1))))
		if diff := cmp.Diff([]string{"examples " + plugin.CodeExample}, faults(r)); diff != "" {
			t.Error(diff)
		}
		if s := r.Steps[2]; s.Step != plugin.StepCompile || s.Outcome != devkit.OK {
			t.Errorf("compile: %+v", s)
		}
	})
}

// PLG-14: each guest that a host must refuse is refused by the check too, with one of the same codes.
func TestCheckRefusesWhatAHostRefuses(t *testing.T) {
	for _, evil := range sdktest.Evil() {
		if len(evil.LoadCodes) == 0 {
			continue
		}
		t.Run("PLG-14/"+evil.Name, func(t *testing.T) {
			t.Parallel()
			r := check(t, file(t, "evil.wasm", evil.Wasm))
			all := faults(r)
			if r.OK || len(all) == 0 {
				t.Fatal("it would be loaded")
			}
			_, code, _ := strings.Cut(all[0], " ")
			if !slices.Contains(evil.LoadCodes, code) {
				t.Errorf("refused with %s, want one of %v", all[0], evil.LoadCodes)
			}
		})
	}
}

// The remembered answers keep their own time, and lines of hints are read by the hint reader alone.
func TestJudge(t *testing.T) {
	lines := `{"id":"a","provider":"X","status":503,"headers":{"Retry-After":"Mon, 04 May 2026 20:00:07 GMT"},"now":"2026-05-04T20:00:00Z"}` + "\n" +
		`{"id":"b","provider":"x","status":503,"headers":{"Retry-After":"Mon, 04 May 2026 20:00:07 GMT"}}` + "\n" +
		`{"id":"c","body":"","headers":{},"expect_ms":null}` + "\n"
	answers, bad, err := devkit.Answers("lines", strings.NewReader(lines), false)
	if err != nil || len(bad) > 0 || len(answers) != 3 {
		t.Fatal(answers, bad, err)
	}
	court, err := (devkit.Kit{}).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer court.Close(t.Context())
	now := time.Date(2026, 5, 4, 20, 0, 5, 0, time.UTC)
	var waits []int64
	for i := range answers {
		j := court.Judge(t.Context(), &answers[i], now)
		if j.WaitMS == nil {
			waits = append(waits, -1)
			continue
		}
		waits = append(waits, *j.WaitMS)
	}
	if diff := cmp.Diff([]int64{7000, 2000, -1}, waits); diff != "" {
		t.Error(diff)
	}
}
