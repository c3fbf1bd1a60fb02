package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// lab is a mock and a gateway in front of it, with one provider for each dialect.
type lab struct {
	s         settings
	p         *packages
	dir       string
	mock      string // address
	gateway   string
	processes []*exec.Cmd
}

// clientKey is the key that the clients send; inference on loopback is open, so any will do.
const clientKey = "sk-clients-kit-0123456789"

func openLab(ctx context.Context, s settings, p *packages) (*lab, error) {
	dir, err := os.MkdirTemp("", "weir-clients-")
	if err != nil {
		return nil, err
	}
	l := &lab{s: s, p: p, dir: dir}
	if err := l.open(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) open(ctx context.Context) error {
	weir := l.s.weir
	if weir == "" {
		weir = filepath.Join(l.dir, "weir")
		if err := l.p.tell(ctx, ".", "go", "build", "-o", weir, "./cmd/weir"); err != nil {
			return err
		}
	}
	mock, err := freeAddress()
	if err != nil {
		return err
	}
	gateway, err := freeAddress()
	if err != nil {
		return err
	}
	l.mock, l.gateway = "http://"+mock, "http://"+gateway
	config := filepath.Join(l.dir, "weir.yaml")
	if err := os.WriteFile(config, []byte(configuration(gateway, l.mock)), 0o600); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(mock)
	if err := l.start("mock", l.mock+"/__mock/health", l.p.node, filepath.Join(l.s.kit, "mock", "mock.mjs"), "--port", port); err != nil {
		return err
	}
	return l.start("weir", l.gateway+"/v1/models", weir, "serve", "--config", config, "--data", filepath.Join(l.dir, "data"))
}

// accounts is how many connections each upstream has: clients that do not try again by themselves rely on there being another one.
const accounts = 4

// configuration has one provider for each dialect of an upstream, each with some accounts of the same mock.
func configuration(listen, mock string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\nproviders:\n", listen)
	for _, p := range []struct{ dialect, executor, base, endpoints string }{
		{"chat", "openai", "/v1", "{/v1/chat/completions: openai_chat}"},
		{"responses", "openai", "/v1", "{/v1/responses: openai_responses, /v1/responses/input_tokens: raw}"},
		{"messages", "anthropic", "/v1", "{/v1/messages: anthropic_messages, /v1/messages/count_tokens: raw}"},
		{"gemini", "gemini", "/v1beta", `{"/v1beta/models:generateContent": gemini_generate}`},
	} {
		fmt.Fprintf(&b, "  - {id: kit-%s, executor: %s, base_url: %q, auth: api_key, dialects: %s, passthrough_models: true, models: [{id: mock-large}, {id: mock-small}]}\n",
			p.dialect, p.executor, mock+p.base, p.endpoints)
	}
	b.WriteString("connections:\n")
	for _, d := range dialects {
		for n := range accounts {
			fmt.Fprintf(&b, "  - {id: %s-%d, provider: kit-%s, api_key: key-%s-%d}\n", d, n, d, d, n)
		}
	}
	return b.String()
}

// start starts a process that answers at url when it is ready.
func (l *lab) start(name, url string, argv ...string) error {
	log, err := os.Create(filepath.Join(l.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, l.p.env()
	if err := cmd.Start(); err != nil {
		return err
	}
	l.processes = append(l.processes, cmd)
	for range 100 {
		resp, err := http.Get(url) //nolint:noctx // loopback
		if err == nil {
			resp.Body.Close()
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	said, _ := os.ReadFile(log.Name())
	return fmt.Errorf("%s did not start: %s", name, said)
}

// close ends what was started.
func (l *lab) close() {
	for _, cmd := range l.processes {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
	_ = os.RemoveAll(l.dir)
}

// play runs a group of clients on one upstream and hands on each line that they print.
func (l *lab) play(ctx context.Context, group, upstream string, line func(string)) error {
	model := "kit-" + upstream + "/mock-large"
	var argv []string
	switch group {
	case "sdk":
		argv = []string{l.p.node, "sdk.mjs", "--base", l.gateway, "--key", clientKey, "--mock", l.mock}
		argv = append(argv, chosen("--only", l.s.only, "--scenario", l.s.scenario)...)
	case "go":
		argv = []string{l.p.clients, "-base", l.gateway, "-key", clientKey, "-mock", l.mock}
		argv = append(argv, chosen("-only", l.s.only, "-scenario", l.s.scenario)...)
	default:
		return l.playAgents(ctx, upstream, model, line)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = l.p.env("CK_MODEL_OPENAI="+model, "CK_MODEL_ANTHROPIC="+model, "CK_MODEL_GEMINI="+model)
	if group == "sdk" {
		cmd.Dir = filepath.Join(l.p.cache, "sdk")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line(lines.Text())
	}
	err = cmd.Wait()
	if code, ok := errors.AsType[*exec.ExitError](err); ok && code.ExitCode() == 1 { // some scenario failed, as the lines say
		return nil
	}
	return err
}

func chosen(flags ...string) (args []string) {
	for i := 0; i+1 < len(flags); i += 2 {
		if flags[i+1] != "" {
			args = append(args, flags[i], flags[i+1])
		}
	}
	return args
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
