package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// gateway is the program under test.
type gateway struct {
	url  string
	key  string // of management
	dir  string
	cmd  *exec.Cmd
	out  *output
	log  *output
	file *os.File
	over chan struct{}
}

// output collects what a process prints. Safe for concurrent use.
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

var ready = regexp.MustCompile(`is ready on (http://\S+) with`)

// startGateway builds the program, unless it is given, and starts it.
func startGateway(ctx context.Context, weir, config, log string) (*gateway, error) {
	dir, err := os.MkdirTemp("", "weir-faults-")
	if err != nil {
		return nil, err
	}
	g := &gateway{dir: dir, out: &output{}, log: &output{}, over: make(chan struct{})}
	if weir == "" {
		weir = filepath.Join(dir, "weir")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", weir, "github.com/weirgate/weir/cmd/weir")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the program: %w\n%s", err, out)
		}
	}
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	g.cmd = exec.CommandContext(ctx, weir, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--config", file)
	g.cmd.Dir, g.cmd.Env = dir, []string{"HOME=" + dir, "PATH=/usr/bin:/bin", "WEIR_EXPOSE_CONNECTION=on"}
	g.cmd.Stdout, g.cmd.Stderr = g.out, g.log
	if log != "" {
		if g.file, err = os.Create(log); err != nil {
			return nil, err
		}
		g.cmd.Stderr = g.file
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = g.cmd.Wait() // the log says why
		close(g.over)
	}()
	return g, g.wait()
}

func (g *gateway) wait() error {
	for range 600 {
		if m := ready.FindStringSubmatch(g.out.String()); m != nil {
			g.url = m[1]
			key, err := os.ReadFile(filepath.Join(g.dir, "data", "admin.key"))
			g.key = strings.TrimSpace(string(key))
			return err
		}
		select {
		case <-g.over:
			return fmt.Errorf("the gateway did not start: %s", g.tail(2000))
		case <-time.After(50 * time.Millisecond):
		}
	}
	g.stop()
	return errors.New("the gateway was not ready in time")
}

// stop ends the program, and kills it when it does not.
func (g *gateway) stop() {
	_ = g.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-g.over:
	case <-time.After(5 * time.Second):
		_ = g.cmd.Process.Kill()
		<-g.over
	}
	if g.file != nil {
		_ = g.file.Close()
	}
	_ = os.RemoveAll(g.dir)
}

func (g *gateway) tail(n int) string {
	s := strings.TrimSpace(g.log.String())
	return s[max(0, len(s)-n):]
}
