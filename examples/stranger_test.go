package examples_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A module outside of this repository uses the gateway and the rule language as go get gives them to it: its go.mod says require
// and replace and nothing more, and go mod tidy finds the rest. It serves a request, takes a pack from its plugin folder while it
// runs (PLG-1), and ends without a goroutine left.
func TestStranger(t *testing.T) {
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/stranger")); err != nil {
		t.Fatal(err)
	}
	module := "module example.org/stranger\n\ngo " + language(t) + "\n\nrequire github.com/weirgate/weir v0.0.0\n\nreplace github.com/weirgate/weir => " + repository + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, program := range programs(t, "../docs/embedding.md") {
		page := filepath.Join(dir, fmt.Sprint("page", i))
		if err := os.Mkdir(page, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(page, "main.go"), []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin := t.TempDir()
	golang(t, dir, "mod", "tidy")
	golang(t, dir, "build", "-o", bin+string(filepath.Separator), "./...")
	t.Run("the rule language alone", func(t *testing.T) {
		said, err := exec.CommandContext(t.Context(), filepath.Join(bin, "judge")).Output()
		if want := "true quota_exhausted 5h0m0s mine/quota\n"; err != nil || string(said) != want {
			t.Errorf("%q %v, want %q", said, err, want)
		}
	})
	t.Run("the rule language has no gateway in it", func(t *testing.T) {
		for dep := range strings.FieldsSeq(golang(t, dir, "list", "-deps", "./judge")) {
			if dep == "net/http" || strings.Contains(dep, "wazero") || strings.HasPrefix(dep, "github.com/weirgate/weir/host") {
				t.Errorf("a program with rules only has %s in it", dep)
			}
		}
	})
	t.Run("the page about embedding", func(t *testing.T) {
		said, err := exec.CommandContext(t.Context(), filepath.Join(bin, "page1")).Output()
		if err != nil || string(said) != "true quota_exhausted connection\n" {
			t.Errorf("%q %v", said, err)
		}
		if _, err := os.Stat(filepath.Join(bin, "page0")); err != nil { // it serves for ever; the program below is the same and ends
			t.Error(err)
		}
	})
	t.Run("the gateway", func(t *testing.T) { serves(t, filepath.Join(bin, "stranger")) })
}

// programs are the blocks of Go of a page.
func programs(t *testing.T, page string) []string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, part := range strings.Split(string(b), "```go\n")[1:] {
		program, _, ok := strings.Cut(part, "```")
		if !ok {
			t.Fatalf("%s has a block without an end", page)
		}
		list = append(list, program)
	}
	if len(list) != 2 {
		t.Fatalf("%s has %d programs", page, len(list))
	}
	return list
}

// serves runs the embedding program.
func serves(t *testing.T, program string) {
	plugins := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, plugins)
	const key = "weir-admin-for-this-test"
	cmd.Env, cmd.Dir, cmd.Stderr = append(os.Environ(), "WEIR_ADMIN_KEY="+key), t.TempDir(), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("it ended: %v", cmd.Wait())
	}
	at := lines.Text()
	said := request(t, http.MethodPost, at+"/v1/chat/completions", "", `{"model":"demo/echo","messages":[{"role":"user","content":"Hello"}]}`)
	if !strings.Contains(said, "Hello") {
		t.Errorf("it answered %s", said)
	}
	pack, err := os.ReadFile("packs/acme-quirks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(plugins, "acme-quirks.yaml"), pack, 0o600); err != nil {
		t.Fatal(err)
	}
	state := ""
	for range 100 {
		var p struct{ State string }
		if json.Unmarshal([]byte(request(t, http.MethodGet, at+"/api/plugins/acme-quirks", key, "")), &p) == nil && p.State != "" {
			state = p.State
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if state != "active" {
		t.Errorf("the pack is %q", state)
	}
	http.DefaultClient.CloseIdleConnections()
	_ = in.Close()
	rest := ""
	for lines.Scan() {
		rest += lines.Text() + "\n"
	}
	if err := cmd.Wait(); err != nil || rest != "closed, 0 goroutines more than before\n" {
		t.Errorf("%v, and it said %q", err, rest)
	}
	left, err := os.ReadDir(cmd.Dir)
	if err != nil || len(left) > 0 {
		t.Errorf("it left %v in its folder, %v", left, err)
	}
}

func request(t *testing.T, method, url, key, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// golang runs the go command in the stranger's module, with the module cache of this machine.
func golang(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off")
	var said, faults strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &faults
	if err := cmd.Run(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, faults.String())
	}
	return said.String()
}

// language is the version in the form of a go.mod, as the toolchain that runs the test speaks it.
func language(t *testing.T) string {
	t.Helper()
	parts := strings.Split(strings.TrimPrefix(runtime.Version(), "go"), ".")
	if len(parts) < 2 {
		t.Fatalf("unknown version %s", runtime.Version())
	}
	return parts[0] + "." + parts[1]
}
