// Command clients runs real clients against the gateway: the SDKs of OpenAI, Anthropic and Google in JavaScript and Go, the AI SDK,
// LangChain, and on demand command-line agents. A recording mock is the upstream. Each dialect's clients run on each dialect's upstream;
// what comes of it is printed as a matrix. It downloads some hundred megabytes of packages into a cache folder, once.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// settings are the flags.
type settings struct {
	groups    []string
	upstreams []string
	only      string
	scenario  string
	cache     string
	kit       string
	weir      string
	verbose   bool
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	var groups, upstreams string
	f := flag.NewFlagSet("clients", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&groups, "groups", "sdk,go", "which clients: sdk (JavaScript), go, agents")
	f.StringVar(&upstreams, "upstreams", strings.Join(dialects, ","), "dialects of the upstream")
	f.StringVar(&s.only, "only", "", "comma-separated clients (default: all)")
	f.StringVar(&s.scenario, "scenario", "", "comma-separated scenarios (default: all)")
	f.StringVar(&s.cache, "cache", cacheFolder(), "folder for the clients' packages")
	f.StringVar(&s.kit, "kit", filepath.Join("cmd", "clients", "kit"), "folder of the clients' programs")
	f.StringVar(&s.weir, "weir", "", "gateway binary (default: built from this tree)")
	f.BoolVar(&s.verbose, "v", false, "print passed scenarios too")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.groups, s.upstreams = strings.Split(groups, ","), strings.Split(upstreams, ",")
	for _, g := range s.groups {
		if !slices.Contains([]string{"sdk", "go", "agents"}, g) {
			return s, fmt.Errorf("there is no group %q; take sdk, go or agents", g)
		}
	}
	for _, u := range s.upstreams {
		if !slices.Contains(dialects, u) {
			return s, fmt.Errorf("there is no upstream %q; take some of %s", u, strings.Join(dialects, ", "))
		}
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("clients takes no arguments, got %q", f.Arg(0))
	}
	return s, nil
}

func cacheFolder() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "weir-clients")
	}
	return filepath.Join(os.TempDir(), "weir-clients")
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(2)
	}
	m, err := run(ctx, s, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
	m.print(os.Stdout)
	if m.failed() > 0 || m.passed() == 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, out io.Writer) (*matrix, error) {
	p := &packages{cache: s.cache, kit: s.kit, out: out}
	if err := p.prepare(ctx, s.groups); err != nil {
		return nil, err
	}
	l, err := openLab(ctx, s, p)
	if err != nil {
		return nil, err
	}
	defer l.close()
	m := &matrix{}
	for _, upstream := range s.upstreams {
		for _, group := range s.groups {
			fmt.Fprintf(out, "clients: group %s on the upstream %s\n", group, upstream)
			if err := l.play(ctx, group, upstream, func(line string) {
				r, ok := read(line, upstream)
				switch {
				case !ok:
				case !r.passed || s.verbose:
					fmt.Fprintln(out, " ", line)
				}
				if ok {
					m.add(r)
				}
			}); err != nil {
				return nil, err
			}
		}
	}
	return m, ctx.Err()
}
