package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The client's side of the gateway under test.
const (
	clientKey   = "bench-client-key"
	clientModel = "bench-mock/mock-1"
	poolModel   = "bench-pool/mock-1"
)

// poolKeys are the accounts of the failover case: half of them always fail.
var poolKeys = []string{"k-429", "k-500", "k-ok-a", "k-ok-b"}

// configuration returns a weir.yaml with the mock as two providers: one account, and the pool.
func configuration(mock string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n")
	for _, id := range []string{"bench-mock", "bench-pool"} {
		fmt.Fprintf(&b, "  - {id: %s, executor: openai-compatible, category: local, base_url: \"http://%s/v1\", models: [mock-1]}\n", id, mock)
	}
	fmt.Fprintf(&b, "connections:\n  - {id: main, provider: bench-mock, api_key: k-ok}\n")
	for _, k := range poolKeys {
		fmt.Fprintf(&b, "  - {id: pool-%s, provider: bench-pool, api_key: %s}\n", k, k)
	}
	fmt.Fprintf(&b, "api_keys:\n  - {id: bench, key: %s, scopes: [inference]}\n", clientKey)
	return b.String()
}

// weir is the gateway under test: how it is started, and where.
type weir struct {
	argv []string
	addr string
}

// newWeir writes the configuration into dir and returns the command line, which is the same for every start so that the
// second one finds a warm cache.
func newWeir(bin, dir, mock string) (*weir, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(config, []byte(configuration(mock)), 0o600); err != nil {
		return nil, err
	}
	return &weir{[]string{
		bin, "serve", "--config", config, "--data", filepath.Join(dir, "data"), "--plugins", filepath.Join(dir, "plugins"),
		"--listen", addr, "--log-level", "warn",
	}, addr}, nil
}

// start runs the gateway and waits for a first good answer.
func (w *weir) start(ctx context.Context, at place) (*process, error) {
	p, err := start(gateway, pinned(at.gateway, w.argv...), at.env()...)
	if err != nil {
		return nil, err
	}
	var last string
	if err := p.await(ctx, time.Minute, func() bool { last = w.ask(ctx); return last == "" }); err != nil {
		p.stop()
		return nil, fmt.Errorf("%w\nlast answer: %s", err, last)
	}
	return p, nil
}

// ask sends one request and returns what was wrong with the answer.
func (w *weir) ask(ctx context.Context) (fault string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	body := strings.NewReader(`{"model":"` + clientModel + `","messages":[{"role":"user","content":"ready?"}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.addr+"/v1/chat/completions", body)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+clientKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
	if resp.StatusCode != http.StatusOK {
		return resp.Status + " " + string(text)
	}
	return ""
}

// env makes a gateway use one core where it cannot be pinned to one.
func (p place) env() []string {
	if p.gateway == "" {
		return []string{"GOMAXPROCS=1"}
	}
	return nil
}
