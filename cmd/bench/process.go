package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one started program and the end of what it wrote to stderr.
type process struct {
	name string
	cmd  *exec.Cmd
	said tail
	gone chan struct{}
	err  error // of Wait; readable once gone is closed
}

// start runs argv in a process group of its own, with env added to a bare environment, so that keys of real providers
// stay out.
func start(name string, argv []string, env ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(argv[0], argv[1:]...), gone: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.Env = append(bareEnv(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.gone)
	}()
	return p, nil
}

func bareEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains([]string{"PATH", "HOME", "TMPDIR", "GOGC", "GOMEMLIMIT"}, name)
	})
}

// alive returns how the process ended, and nil while it runs or when there is none.
func (p *process) alive() error {
	if p == nil {
		return nil
	}
	select {
	case <-p.gone:
		return fmt.Errorf("%s ended: %v\n%s", p.name, p.err, p.said.String())
	default:
		return nil
	}
}

// stop asks the process to end and kills it when it does not.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-time.After(15 * time.Second):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.gone
	}
}

// listening waits for the line in which the mock and the reference proxy tell their address.
func (p *process) listening(ctx context.Context) (string, error) {
	var addr string
	err := p.await(ctx, 10*time.Second, func() bool {
		_, rest, ok := strings.Cut(p.said.String(), "listening on ")
		line, _, whole := strings.Cut(rest, "\n")
		addr = line
		return ok && whole
	})
	return addr, err
}

// await asks until it is answered with true. It gives up when the process ends or the time is over.
func (p *process) await(ctx context.Context, limit time.Duration, ready func() bool) error {
	deadline := time.Now().Add(limit)
	for !ready() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.gone:
			return p.alive()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not ready after %s\n%s", p.name, limit, p.said.String())
		}
	}
	return nil
}

// tail keeps the last few KB written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = slices.Delete(t.buf, 0, over)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// freePort returns an address that nobody listens on at the moment.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// build compiles packages of this module into a folder.
func build(ctx context.Context, dir string, out io.Writer, flags []string, packages ...string) error {
	args := append(append([]string{"build", "-o", dir + string(os.PathSeparator)}, flags...), packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	for sc := bufio.NewScanner(&said); sc.Scan(); {
		fmt.Fprintln(out, sc.Text())
	}
	if err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
