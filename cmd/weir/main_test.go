package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": main})
}

// TestScripts runs weir as a person would: see testdata.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each command otherwise
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "ready": ready, "fake": fake, "busyport": busyPort, "answers": answers, "signal": signalAll, "ask": ask,
		},
	})
}

// code runs a command and checks its exit code: code 3 weir status.
func code(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if (got == want) == neg {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// ready waits until the gateway of a data folder is up, and sets ADDR.
func ready(ts *testscript.TestScript, _ bool, args []string) {
	file := ts.MkAbs(filepath.Join(args[0], "addr"))
	for range 600 {
		if b, err := os.ReadFile(file); err == nil && len(b) > 0 {
			ts.Setenv("ADDR", strings.TrimSpace(string(b)))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("there is no gateway on %s", args[0])
}

// fake starts a management server whose answers are files, named METHOD_path_with_underscores.status, and sets WEIR_ADDR.
func fake(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":{"message":"The key is not known.","type":"authentication_error","code":"invalid_api_key"}}`))
			return
		}
		name := r.Method + strings.ReplaceAll(r.URL.Path, "/", "_")
		found, _ := filepath.Glob(filepath.Join(dir, name+".*"))
		if len(found) != 1 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		b, _ := os.ReadFile(found[0])
		status, _ := strconv.Atoi(strings.TrimPrefix(filepath.Ext(found[0]), "."))
		w.WriteHeader(status)
		_, _ = w.Write(b)
	}))
	ts.Defer(srv.Close)
	ts.Setenv("WEIR_ADDR", strings.TrimPrefix(srv.URL, "http://"))
}

// busyport takes a port and sets PORT.
func busyPort(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	ts.Setenv("PORT", port)
}

// signalAll sends a signal to the gateway in the background: signal HUP.
func signalAll(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}[args[0]]
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(sig))
	}
}

// answers runs the curl line of a file with the request that it describes, and looks for a text in the answer.
func answers(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	curl := lines[len(lines)-1]
	if !strings.HasPrefix(curl, "curl ") {
		ts.Fatalf("no curl line: %q", curl)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		ts.Logf("curl is not installed; the line was not tried")
		return
	}
	ts.Check(ts.Exec("sh", "-c", curl))
	if strings.Contains(ts.ReadFile("stdout"), args[1]) == neg {
		ts.Fatalf("the answer does not say %q", args[1])
	}
}

// ask sends a chat request for a model to the gateway at ADDR, and waits for a row that is written behind: ask demo/echo hello.
func ask(ts *testscript.TestScript, _ bool, args []string) {
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, args[0], args[1])
	r, err := http.NewRequest(http.MethodPost, "http://"+ts.Getenv("ADDR")+"/v1/chat/completions", strings.NewReader(body)) //nolint:noctx // of a script
	ts.Check(err)
	r.Header.Set("User-Agent", "asker/1.0 (script)")
	resp, err := http.DefaultClient.Do(r)
	ts.Check(err)
	b, err := io.ReadAll(resp.Body)
	ts.Check(errors.Join(err, resp.Body.Close()))
	ts.Logf("%s %s", resp.Status, b)
	ts.Setenv("ID", resp.Header.Get("X-Request-Id"))
}
