package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk/sdktest"
)

func TestRun(t *testing.T) { // ABI-12
	dir := t.TempDir()
	for _, e := range sdktest.Evil() {
		if err := os.WriteFile(filepath.Join(dir, e.Name), e.Wasm, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", usage, "usage:"},
		{"-calls 0 spins", usage, "usage:"},
		{"-bogus", usage, "bogus"},
		{"missing", usage, "missing"},
		{"-calls 9 spins", failed, "fuel"},
		{"-calls 9 header-only spins", failed, "missing_export"},
		{"-calls 9 floods-the-log", passed, "evil-floods-the-log 1.0.0 conforms"},
	} {
		args := strings.Fields(c.args)
		for i, a := range args {
			if !strings.HasPrefix(a, "-") && (i == 0 || args[i-1] != "-calls") {
				args[i] = filepath.Join(dir, a)
			}
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != c.code || !strings.Contains(out.String()+errs.String(), c.says) {
			t.Errorf("%s: code %d, want %d with %q\n%s%s", c.args, code, c.code, c.says, &out, &errs)
		}
	}
	var out, errs bytes.Buffer
	run(t.Context(), []string{"-json", "-calls", "9", filepath.Join(dir, "spins")}, &out, &errs)
	var r sdktest.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.OK || r.Name != "evil-spins" {
		t.Errorf("%v in %s", err, &out)
	}
}
