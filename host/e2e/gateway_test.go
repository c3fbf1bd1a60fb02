package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// setup says how a gateway is started.
type setup struct {
	config  string                 // text of weir.yaml; empty: no file
	env     []string               // in addition to almost nothing
	args    []string               // more flags of serve
	data    string                 // data folder; empty: a new one
	plugins bool                   // give it a plugin folder
	packs   map[string]string      // files that are in that folder at the start
	binary  func() (string, error) // default: released
}

// gateway is a running program weir.
type gateway struct {
	t       *testing.T
	path    string // of the program
	dir     string // working folder
	config  string // path of weir.yaml
	data    string
	plugins string
	env     []string
	url     string
	out     *output
	log     *output
	cmd     *exec.Cmd
	ended   chan struct{}
	code    int // after ended
}

// output collects what a process prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// bare is the environment of a machine on which nobody set anything up.
func bare(home string, more ...string) []string {
	return append([]string{"HOME=" + home, "PATH=/usr/bin:/bin", "GORACE=halt_on_error=0"}, more...)
}

// serve starts a gateway and waits until it says that it is ready. It is killed when the test ends.
func serve(t *testing.T, s setup) *gateway {
	t.Helper()
	g := launch(t, s)
	g.ready()
	return g
}

// launch starts the program without waiting for it.
func launch(t *testing.T, s setup) *gateway {
	t.Helper()
	if s.binary == nil {
		s.binary = released
	}
	g := &gateway{t: t, path: binary(t, s.binary), dir: t.TempDir(), data: s.data, out: &output{}, log: &output{}, ended: make(chan struct{})}
	if g.data == "" {
		g.data = filepath.Join(g.dir, "data")
	}
	g.env = bare(g.dir, s.env...)
	args := []string{"serve", "--data", g.data}
	if !strings.Contains(strings.Join(s.args, " "), "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	if s.config != "" {
		g.config = filepath.Join(g.dir, "weir.yaml")
		write(t, g.config, s.config)
	}
	if s.plugins || s.packs != nil {
		g.plugins = filepath.Join(g.dir, "plugins")
		if err := os.MkdirAll(g.plugins, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range s.packs {
			write(t, filepath.Join(g.plugins, name), text)
		}
		args = append(args, "--plugins", g.plugins)
	}
	g.start(append(args, s.args...))
	return g
}

func (g *gateway) start(args []string) {
	g.t.Helper()
	g.cmd = exec.Command(g.path, args...)
	g.cmd.Dir, g.cmd.Env, g.cmd.Stdout, g.cmd.Stderr = g.dir, g.env, g.out, g.log
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	go func() {
		_ = g.cmd.Wait() // the exit code says it
		g.code = g.cmd.ProcessState.ExitCode()
		close(g.ended)
	}()
	g.t.Cleanup(func() {
		g.kill()
		for _, word := range []string{"DATA RACE", "panicked", "panic:", "goroutine "} {
			if strings.Contains(g.log.String(), word) {
				g.t.Errorf("the gateway's log has %q", word)
			}
		}
		if g.t.Failed() {
			g.t.Logf("log of the gateway:\n%s", tail(withoutStart(g.log.String()), 6000))
		}
	})
}

// withoutStart leaves out what every start says.
func withoutStart(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "origin=builtin") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

var readyLine = regexp.MustCompile(`is ready on (http://\S+) with`)

func (g *gateway) ready() {
	g.t.Helper()
	g.eventually(30*time.Second, "the gateway is ready", func() bool {
		if m := readyLine.FindStringSubmatch(g.out.String()); m != nil {
			g.url = m[1]
			return true
		}
		select {
		case <-g.ended:
			g.t.Fatalf("the gateway ended with code %d before it was ready", g.code)
		default:
		}
		return false
	})
}

// eventually waits until ok holds.
func (g *gateway) eventually(within time.Duration, what string, ok func() bool) {
	g.t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	if !ok() {
		g.t.Fatalf("not within %v: %s", within, what)
	}
}

// kill ends the process as kill -9 does, and waits until it is gone.
func (g *gateway) kill() {
	_ = g.cmd.Process.Kill() // it may have ended
	<-g.ended
}

// end sends a signal and returns the exit code.
func (g *gateway) end(s syscall.Signal) int {
	g.t.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		g.t.Fatal(err)
	}
	return g.wait(15 * time.Second)
}

func (g *gateway) wait(within time.Duration) int {
	g.t.Helper()
	select {
	case <-g.ended:
		return g.code
	case <-time.After(within):
		g.t.Fatalf("the gateway did not end within %v", within)
		return 0
	}
}

// answer is an HTTP answer, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// field returns a value of the JSON body by names of objects; nil when it is not there.
func (a answer) field(names ...string) any {
	var v any
	if json.Unmarshal([]byte(a.body), &v) != nil {
		return nil
	}
	for _, n := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[n]
	}
	return v
}

// call sends one request; headers are name, value, name, value.
func (g *gateway) call(method, path, body string, headers ...string) answer {
	g.t.Helper()
	a, err := g.try(g.t.Context(), method, path, body, headers...)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// client is patient with slow machines, and no test hangs.
var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func (g *gateway) try(ctx context.Context, method, path, body string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b)}, err
}

// admin calls the management API with the admin key.
func (g *gateway) admin(method, path, body string, headers ...string) answer {
	g.t.Helper()
	return g.call(method, path, body, append([]string{"Authorization", "Bearer " + g.adminKey()}, headers...)...)
}

func (g *gateway) adminKey() string {
	g.t.Helper()
	for _, e := range g.env {
		if k, ok := strings.CutPrefix(e, "WEIR_ADMIN_KEY="); ok {
			return k
		}
	}
	return strings.TrimSpace(read(g.t, filepath.Join(g.data, "admin.key")))
}

func question(model string, stream bool) string {
	b, err := json.Marshal(map[string]any{
		"model": model, "stream": stream, "messages": []map[string]string{{"role": "user", "content": "How high is the water?"}},
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (g *gateway) chat(model string, stream bool, headers ...string) answer {
	g.t.Helper()
	return g.call(http.MethodPost, "/v1/chat/completions", question(model, stream), headers...)
}

// said is the result of a command.
type said struct {
	code     int
	out, err string
}

// weir runs a command of the program in the gateway's folder, against its data folder.
func (g *gateway) weir(args ...string) said {
	g.t.Helper()
	return command(g.t, g.dir, g.env, append(args, "--data", g.data)...)
}

// command runs the program to its end.
func command(t *testing.T, dir string, env []string, args ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t, released), args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("weir %s: %v", strings.Join(args, " "), err)
	}
	return said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
