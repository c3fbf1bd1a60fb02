// Command bench measures the gateway against the reverse proxy of the standard library, on this machine, with a mock
// provider behind both. It builds what it needs, starts everything with a temporary configuration, runs each case on both
// in alternation and prints medians, ratios and whether the project's goals were reached. docs/benchmarks.md tells how to
// read them. It exits 1 when something did not work, never because a goal was missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weirgate/weir/cmd/bench/report"
)

// settings are the flags.
type settings struct {
	rounds        int
	secs, warm    time.Duration
	quick         bool
	referenceOnly bool
	cases         string
	out           string
	tables        string
	weir          string
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&s.rounds, "rounds", 3, "how often each case runs on each target; medians are printed")
	f.DurationVar(&s.secs, "secs", 4*time.Second, "measured time of one run")
	f.DurationVar(&s.warm, "warm", time.Second, "time before it that is not counted")
	f.BoolVar(&s.quick, "quick", false, "one round of 2s: finished within a minute, with ratios that are good to 10 % at best")
	f.BoolVar(&s.referenceOnly, "reference-only", false, "measure the reference proxy alone, without building the gateway")
	f.StringVar(&s.cases, "cases", "", "comma-separated cases (default: all)")
	f.StringVar(&s.out, "out", filepath.Join("bench-results", "results.jsonl"), "file for the results of each run; an older one is replaced")
	f.StringVar(&s.tables, "tables", "", "run nothing: print the tables of this results file")
	f.StringVar(&s.weir, "weir", "", "measure this gateway binary in place of one built from this tree")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if s.quick {
		s.rounds, s.secs, s.warm = 1, 2*time.Second, 500*time.Millisecond
	}
	if s.rounds < 1 || s.secs <= 0 || s.warm < 0 || f.NArg() > 0 {
		return s, errors.New("bench takes no arguments, and needs at least one round of more than 0s")
	}
	return s, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, s, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, stdout, stderr io.Writer) error {
	if s.tables != "" {
		f, err := os.Open(s.tables)
		if err != nil {
			return err
		}
		defer f.Close()
		res, err := report.Read(f)
		if err != nil {
			return err
		}
		return show(res, stdout)
	}
	chosen, err := choose(s.cases)
	if err != nil {
		return err
	}
	b, err := newBench(ctx, s, stderr)
	if err != nil {
		return err
	}
	defer b.close()
	faults := b.measure(ctx, chosen)
	if err := show(&b.results, stdout); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nEach run is a line of %s.\n", s.out)
	return faults
}

// fullCore is the share of its core that a gateway gets in max1k when nothing else runs on it, in percent.
const fullCore = 85

// show prints the tables and the goals.
func show(res *report.Results, w io.Writer) error {
	if err := res.Tables(w, reference); err != nil {
		return err
	}
	if len(res.Of("max1k", gateway)) == 0 && len(res.Of(report.Idle, gateway)) == 0 {
		return nil // the reference alone has no goals
	}
	fmt.Fprintln(w)
	if busy, ok := res.Median("max1k", reference, report.Row.Busy); ok && busy < fullCore {
		fmt.Fprintf(w, "The reference proxy got %.0f %% of its core in max1k: something else runs on this machine. Latencies and\n"+
			"requests per second say little then; CPU per request and per chunk stay comparable.\n\n", busy)
	}
	missed, err := res.Verdicts(w, gateway, reference)
	if err == nil && missed > 0 {
		fmt.Fprintf(w, "%d missed. On a machine that is busy otherwise, run again before believing it.\n", missed)
	}
	return err
}
