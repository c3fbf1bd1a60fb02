package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/host/config"
	"github.com/weirgate/weir/host/observe"
)

type serveFlags struct {
	config, data, listen, plugins, level, format string
	demo, discover, accessLog                    bool
}

func (a *app) serve() *cobra.Command {
	var s serveFlags
	c := &cobra.Command{
		Use: "serve", Short: "Run the gateway", Args: cobra.NoArgs,
		Example: "  weir serve --demo\n  weir serve --config weir.yaml --listen 127.0.0.1:0",
		Long: "Run the gateway until SIGTERM or SIGINT: it then stops accepting, finishes what is running and exits. A second\n" +
			"signal ends it at once. SIGHUP, or a change of the configuration file, reloads it: all or nothing.\n" +
			"Flags beat the environment (WEIR_CONFIG, WEIR_DATA, WEIR_LISTEN, WEIR_LOG_LEVEL, WEIR_LOG_FORMAT), which beats the file.",
		RunE: func(c *cobra.Command, _ []string) error { return a.runServe(c.Context(), s) },
	}
	f := c.Flags()
	f.StringVar(&s.config, "config", "", "configuration file (default: weir.yaml if present)")
	f.StringVar(&s.data, "data", "", "data folder (default: ./weir-data)")
	f.StringVar(&s.listen, "listen", "", "address to listen on; port 0 picks a free one (default: 127.0.0.1:8787)")
	f.StringVar(&s.plugins, "plugins", "", "folder whose plugins are loaded, and reloaded when they change")
	f.BoolVar(&s.demo, "demo", false, "add the provider demo, which answers by itself without a network or a key")
	f.BoolVar(&s.discover, "discover-local", false, "look for Ollama, LM Studio and vLLM on this machine")
	f.StringVar(&s.level, "log-level", "", "debug, info, warn or error (default: info)")
	f.StringVar(&s.format, "log-format", "", "text or json (default: text)")
	f.BoolVar(&s.accessLog, "access-log", false, "log one line for each request")
	return c
}

// settled is how long after the start what only the start needed is given back to the system: compiling a guest takes tens of
// megabytes, which an idle gateway would keep otherwise.
const settled = 2 * time.Second

func (a *app) runServe(ctx context.Context, s serveFlags) error {
	file, err := a.configFile(s.config)
	if err != nil {
		return err
	}
	log, err := a.logger(file, s)
	if err != nil {
		return err
	}
	tuneMemory(a.env, os.DirFS("/"))
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	h, err := host.New(ctx, host.Options{
		ConfigFile: file, DataDir: s.data, Listen: s.listen, PluginsDir: s.plugins, Demo: s.demo, DiscoverLocal: s.discover,
		Log: log, Env: a.env, Version: version, AccessLog: s.accessLog, CompileChild: compileChild,
	})
	if err != nil {
		return a.startFailure(err)
	}
	if err := h.Start(ctx); err != nil {
		_ = h.Stop(ctx) // the error of the start says more
		return a.startFailure(err)
	}
	r := h.Ready()
	fmt.Fprintf(a.out, "weir %s is ready on http://%s with %s, %s and %s; try it:\n%s\n", version, r.Address,
		count(r.Providers, "provider"), count(r.Connections, "connection"), count(r.Plugins, "plugin"), r.Curl)
	defer time.AfterFunc(settled, debug.FreeOSMemory).Stop()
	return a.attend(ctx, h, log, signals)
}

// logger is made from flags, environment and file (CFG-6). Faults of the file are not its business: the host reports them.
func (a *app) logger(path string, s serveFlags) (*slog.Logger, error) {
	var file *config.File
	if path != "" {
		file, _ = config.Load(path, a.env)
	}
	o, faults := config.Resolve(config.Flags{LogLevel: s.level, LogFormat: s.format, Listen: s.listen}, a.env, file)
	if len(faults) > 0 {
		return nil, fail(exitUsage, "%s", faults[0].String())
	}
	log, err := observe.NewLogger(a.err, observe.LogOptions{Level: o.LogLevel, Format: o.LogFormat})
	if err != nil {
		return nil, fail(exitUsage, "%s", err)
	}
	return log, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// startFailure names the port and the flag when somebody else has the port (CLI-6), and prints faults of the configuration
// a line each.
func (a *app) startFailure(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if ok && errors.Is(err, syscall.EADDRINUSE) && op.Addr != nil {
		_, port, _ := net.SplitHostPort(op.Addr.String())
		return fail(exitFaulty, "port %s is in use (%s); stop the other program, or choose another address with --listen", port, op.Addr)
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	if len(lines) == 1 {
		return fail(exitFaulty, "%s", lines[0])
	}
	for _, l := range lines {
		fmt.Fprintln(a.err, printable(l))
	}
	return fail(exitFaulty, "the gateway did not start: mend the %d faults above", len(lines))
}

// running is what attend needs of a host.
type running interface {
	Reload(context.Context) error
	Stop(context.Context) error
}

// attend waits for signals: SIGHUP reloads, the first of the others stops, a second one ends the process (CLI-4, CLI-5).
func (a *app) attend(ctx context.Context, h running, log *slog.Logger, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return a.stop(context.WithoutCancel(ctx), h, log, signals)
		case s := <-signals:
			if s != syscall.SIGHUP {
				log.Info("stopping: finishing what is running; a second signal ends at once", "signal", s.String())
				return a.stop(ctx, h, log, signals)
			}
			if err := h.Reload(ctx); err != nil {
				log.Error("the configuration was not reloaded; the one before stays in force", "fault", err.Error())
				continue
			}
			log.Info("the configuration was reloaded")
		}
	}
}

func (a *app) stop(ctx context.Context, h running, log *slog.Logger, signals <-chan os.Signal) error {
	done := make(chan error, 1)
	go func() { done <- h.Stop(ctx) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fail(exitFaulty, "the gateway did not stop cleanly: %s", err)
			}
			log.Info("stopped")
			return nil
		case s := <-signals:
			if s != syscall.SIGHUP {
				return fail(exitKilled, "")
			}
		}
	}
}
