package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/cmd/bench/proc"
	"github.com/weirgate/weir/cmd/bench/report"
)

const (
	module = "github.com/weirgate/weir"
	// goodEnough is the share of good answers below which a run is a fault and not a measurement.
	goodEnough = 0.99
	// settled is how long a gateway is left alone before its idle memory is read.
	settled = 3 * time.Second
)

// bench is one invocation: the programs, what is running, and the results so far.
type bench struct {
	s       settings
	log     io.Writer
	dir     string // temporary: binaries, configuration, data folder
	at      place
	out     *os.File
	results report.Results

	mock, proxy, gate   *process
	mockAddr, proxyAddr string
	weir                *weir
}

// newBench builds everything and starts it.
func newBench(ctx context.Context, s settings, log io.Writer) (b *bench, err error) {
	b = &bench{s: s, log: log, at: findPlace()}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp("", "weir-bench-"); err != nil {
		return b, err
	}
	if err := os.MkdirAll(filepath.Dir(s.out), 0o755); err != nil {
		return b, err
	}
	if b.out, err = os.Create(s.out); err != nil {
		return b, err
	}
	if err := b.build(ctx); err != nil {
		return b, err
	}
	fmt.Fprintf(log, "bench: %s\n", b.at)
	return b, b.start(ctx)
}

func (b *bench) bin(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) build(ctx context.Context) error {
	fmt.Fprintln(b.log, "bench: building")
	base := module + "/cmd/bench/"
	if err := build(ctx, b.dir, b.log, nil, base+"mockupstream", base+"loadgen", base+"refproxy"); err != nil {
		return err
	}
	if b.s.referenceOnly || b.s.weir != "" {
		return nil
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	bin := filepath.Join(strings.TrimSpace(string(root)), "bin")
	b.s.weir = filepath.Join(bin, "weir")
	return build(ctx, bin, b.log, []string{"-trimpath", "-ldflags", "-s -w"}, module+"/cmd/weir")
}

func (b *bench) start(ctx context.Context) (err error) {
	if b.mock, err = start("mockupstream", pinned(b.at.mock, b.bin("mockupstream"), "-listen", "127.0.0.1:0")); err != nil {
		return err
	}
	if b.mockAddr, err = b.mock.listening(ctx); err != nil {
		return err
	}
	argv := pinned(b.at.gateway, b.bin("refproxy"), "-listen", "127.0.0.1:0", "-upstream", "http://"+b.mockAddr)
	if b.proxy, err = start(reference, argv, b.at.env()...); err != nil {
		return err
	}
	if b.proxyAddr, err = b.proxy.listening(ctx); err != nil || b.s.referenceOnly {
		return err
	}
	if b.weir, err = newWeir(b.s.weir, b.dir, b.mockAddr); err != nil {
		return err
	}
	b.gate, err = b.weir.start(ctx, b.at)
	return err
}

// close ends what runs and removes the temporary files.
func (b *bench) close() {
	b.gate.stop()
	b.proxy.stop()
	b.mock.stop()
	if b.out != nil {
		_ = b.out.Close()
	}
	_ = os.RemoveAll(b.dir)
}

func (b *bench) has(target string) bool { return target != gateway || b.gate != nil }

// measure runs what was chosen and returns every fault; the other results stay good.
func (b *bench) measure(ctx context.Context, sel selection) error {
	var faults []error
	note := func(err error) bool {
		if err != nil {
			faults = append(faults, err)
		}
		return ctx.Err() == nil
	}
	if sel.idle && !note(b.idle(ctx)) {
		return ctx.Err()
	}
	for _, c := range sel.loads {
		for round, targets := range c.alternate(b.s.rounds, b.has) {
			for _, t := range targets {
				if !note(b.load(ctx, c, t, round)) {
					return ctx.Err()
				}
			}
		}
	}
	if sel.start && b.gate != nil {
		note(b.coldStarts(ctx))
	}
	return errors.Join(faults...)
}

func (b *bench) keep(row report.Row) error {
	b.results.Add(row)
	if err := json.NewEncoder(b.out).Encode(row); err != nil {
		return err
	}
	if row.Success() < goodEnough && row.Case != report.Idle {
		return fmt.Errorf("%s on %s: %d of %d requests failed (%v %s)", row.Case, row.Target, row.Errors, row.OK+row.Errors, row.ErrorKinds, row.LastError)
	}
	return nil
}

// idle reads the memory of gateways that have answered at most one request.
func (b *bench) idle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settled):
	}
	var faults []error
	for _, p := range []*process{b.proxy, b.gate} {
		if p == nil {
			continue
		}
		cpu, rss := proc.Usage(p.cmd.Process.Pid)
		fmt.Fprintf(b.log, "bench: %-11s %-8s %.1f MiB\n", report.Idle, p.name, float64(rss)/(1<<20))
		faults = append(faults, b.keep(report.Row{Target: p.name, Case: report.Idle, CPU: cpu, RSSAfter: rss}))
	}
	return errors.Join(faults...)
}

// load runs one case once on one target.
func (b *bench) load(ctx context.Context, c loadCase, target string, round int) error {
	for _, p := range []*process{b.mock, b.proxy, b.gate} {
		if err := p.alive(); err != nil {
			return fmt.Errorf("%s on %s: %w", c.name, target, err)
		}
	}
	addr, key, model, pid := b.mockAddr, "k-ok", "mock-1", b.mock.cmd.Process.Pid
	switch target {
	case reference:
		addr, pid = b.proxyAddr, b.proxy.cmd.Process.Pid
	case gateway:
		addr, key, model, pid = b.weir.addr, clientKey, clientModel, b.gate.cmd.Process.Pid
		if c.pool {
			model = poolModel
		}
	}
	args := append([]string{
		"-url", "http://" + addr + "/v1", "-key", key, "-model", model, "-pid", strconv.Itoa(pid),
		"-d", b.s.secs.String(), "-warm", b.s.warm.String(), "-timeout", "10s",
	}, c.args...)
	row, err := b.generate(ctx, c.name, target, args...)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.log, "bench: %-11s %-8s %d/%d  %.0f req/s, p50 %.0f us, %.1f us of CPU a request, %d errors\n",
		c.name, target, round+1, b.s.rounds, row.RPS, row.Latency["p50"], row.CPUPerRequest(), row.Errors)
	return b.keep(row)
}

// generate runs the load generator and reads its result.
func (b *bench) generate(ctx context.Context, name, target string, args ...string) (row report.Row, err error) {
	argv := pinned(b.at.load, append([]string{b.bin("loadgen"), "-case", name, "-name", target}, args...)...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said tail
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return row, fmt.Errorf("%s on %s: %w\n%s", name, target, err, said.String())
	}
	return row, json.Unmarshal(out, &row)
}

// coldStarts ends the gateway and measures starts on its data folder, whose cache is warm by now.
func (b *bench) coldStarts(ctx context.Context) error {
	b.gate.stop()
	b.gate = nil
	argv := pinned(b.at.gateway, b.weir.argv...)
	for i, a := range argv {
		argv[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	command := strings.Join(argv, " ")
	if env := b.at.env(); env != nil {
		command = "env " + strings.Join(env, " ") + " " + command
	}
	for round := range b.s.rounds {
		row, err := b.generate(ctx, report.ColdStart, gateway, "-url", "http://"+b.weir.addr+"/v1", "-key", clientKey, "-model", clientModel, "-start", command)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.log, "bench: %-11s %-8s %d/%d  first answer after %.0f ms\n", report.ColdStart, gateway, round+1, b.s.rounds, row.FirstReply)
		if err := b.keep(row); err != nil {
			return err
		}
	}
	return nil
}
