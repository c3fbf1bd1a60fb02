package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/host/config"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/store/memory"
)

type checkResult struct {
	OK     bool             `json:"ok"`
	File   string           `json:"file"`
	Faults []document.Fault `json:"faults"`
}

func (a *app) check() *cobra.Command {
	var asJSON, demo bool
	var plugins string
	c := &cobra.Command{
		Use: "check [FILE]", Short: "Validate a configuration file and print every fault with its place", Args: cobra.MaximumNArgs(1),
		Example: "  weir check weir.yaml\n  weir check --json",
		Long: "Validate a configuration file (default: as serve chooses it) with the environment of this shell and the plugins that\n" +
			"it names, and print every fault with file, line and column. Exit 1 if there is any. Nothing is started or written.",
		RunE: func(c *cobra.Command, args []string) error {
			var named string
			if len(args) == 1 {
				named = args[0]
			}
			file, err := a.configFile(named)
			if err != nil {
				return err
			}
			if file == "" {
				return fail(exitUsage, "there is no %s here; name the file to check", config.DefaultFile)
			}
			r, ready := a.checkFile(c.Context(), file, plugins, demo)
			return a.printCheck(r, ready, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&demo, "demo", false, "as with serve --demo: the file may name the provider demo")
	c.Flags().StringVar(&plugins, "plugins", "", "plugin folder, in place of the file's")
	return c
}

// checkFile wires a whole gateway over the file, with a store in memory, a folder of its own for keys and no listener, and
// looks at what it says.
func (a *app) checkFile(ctx context.Context, file, plugins string, demo bool) (checkResult, host.Ready) {
	r := checkResult{File: file, Faults: []document.Fault{}}
	scratch, err := os.MkdirTemp("", "weir-check-")
	if err != nil {
		r.Faults = faultsOf(err, file)
		return r, host.Ready{}
	}
	defer os.RemoveAll(scratch)
	h, err := host.New(ctx, host.Options{
		ConfigFile: file, PluginsDir: plugins, Demo: demo, Listen: host.NoListener, Store: memory.New(memory.Options{}), Env: a.env,
		Version: version, DataDir: scratch,
	})
	if err != nil {
		r.Faults = faultsOf(err, file)
		return r, host.Ready{}
	}
	defer h.Stop(ctx)
	r.OK = true
	return r, h.Ready()
}

// faultsOf returns the faults that an error of the host holds, a line each.
func faultsOf(err error, file string) []document.Fault {
	var faults []document.Fault
	for line := range strings.Lines(err.Error()) {
		faults = append(faults, faultOf(strings.TrimSpace(line), file))
	}
	return faults
}

// faultOf reads a fault as it prints itself: file:line:column: path: message.
func faultOf(line, file string) document.Fault {
	f := document.Fault{File: file, Message: line}
	rest, ok := strings.CutPrefix(line, file+":")
	if !ok {
		return f
	}
	place, message, ok := strings.Cut(rest, ": ")
	if _, err := fmt.Sscanf(place, "%d:%d", &f.Line, &f.Column); err != nil || !ok {
		return f
	}
	f.Message = message
	if path, rest, ok := strings.Cut(message, ": "); ok && !strings.Contains(path, " ") {
		f.Path, f.Message = path, rest
	}
	return f
}

func (a *app) printCheck(r checkResult, ready host.Ready, asJSON bool) error {
	if asJSON {
		if err := a.printJSON(r); err != nil {
			return err
		}
		if !r.OK {
			return fail(exitFaulty, "")
		}
		return nil
	}
	if r.OK {
		return a.say("%s is good: %s, %s, %s", r.File, count(ready.Providers, "provider"), count(ready.Connections, "connection"),
			count(ready.Plugins, "plugin"))
	}
	for _, f := range r.Faults {
		fmt.Fprintln(a.out, printable(f.String()))
	}
	return fail(exitFaulty, "%s has %s; mend the lines above", r.File, count(len(r.Faults), "fault"))
}

// configFile returns the file that is asked for, the usual one when it is there, or none (CFG-6).
func (a *app) configFile(flag string) (string, error) {
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	path := config.FindPath(config.Flags{Config: flag}, a.env, exists)
	if path != "" && !exists(path) {
		return "", fail(exitFaulty, "the configuration file %s cannot be read; name another one", path)
	}
	return path, nil
}
