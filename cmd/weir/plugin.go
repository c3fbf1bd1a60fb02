package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/devkit"
	"github.com/weirgate/weir/sdk/wire"
)

// plugin groups what is done with plugin files, and with the plugins of a running gateway.
func (a *app) plugin(g *gateway) *cobra.Command {
	c := &cobra.Command{
		Use: "plugin", Short: "Write, check, test, add and see plugins", Args: cobra.NoArgs,
		Example: "  weir plugin new acme-quirks --kind restatement\n  weir plugin check acme-quirks/acme-quirks.yaml",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		a.pluginNew(), a.pluginCheck(), a.pluginTest(), a.pluginPack(), a.pluginBuild(), a.pluginInspect(), a.pluginKeygen(), a.pluginSign(),
	)
	for _, talks := range []func(*gateway) *cobra.Command{
		pluginList, pluginShow, pluginAddCommand, pluginReplay, pluginPromote, pluginRollback, pluginMode, pluginGrant, pluginRemove,
	} {
		c.AddCommand(g.command(talks))
	}
	return c
}

func (a *app) pluginCheck() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "check FILE", Short: "Do all that a gateway does before a plugin goes live", Args: cobra.ExactArgs(1),
		Example: "  weir plugin check acme-quirks.yaml",
		Long: "Do all that a gateway does before a plugin goes live, print a line for each step, and warn of rules that are hardly meant.\n" +
			"FILE is a pack's source (.yaml) or a module (.wasm). Nothing is granted to it. Exit 1 when a gateway would refuse it.",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.kit()
			if err != nil {
				return err
			}
			r, err := k.Check(c.Context(), args[0])
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			if asJSON {
				if err := a.printJSON(r); err != nil {
					return err
				}
				if !r.OK {
					return fail(exitFaulty, "")
				}
				return nil
			}
			return a.printReport(r)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printReport(r devkit.Report) error {
	for _, s := range r.Steps {
		if len(s.Findings) == 0 {
			if err := a.say("%-11s  %s", s.Outcome, s.Step); err != nil {
				return err
			}
		}
		for _, f := range s.Findings {
			if err := a.say("%-11s  %-11s  %s", s.Outcome, s.Step, f); err != nil {
				return err
			}
		}
	}
	for _, f := range r.Warnings {
		if err := a.say("%-11s  %s", "warning", f); err != nil {
			return err
		}
	}
	if !r.OK {
		return fail(exitFaulty, "%s would be refused; mend the faults above", r.File)
	}
	warned := ""
	if n := len(r.Warnings); n > 0 {
		warned = ", with " + count(n, "warning")
	}
	return a.say("%s is good: %s %s%s", r.File, r.Name, r.Version, warned)
}

func (a *app) pluginTest() *cobra.Command {
	return &cobra.Command{
		Use: "test FILE [CASES.jsonl]", Short: "Run the examples of a plugin, and further cases", Args: cobra.RangeArgs(1, 2),
		Example: "  weir plugin test acme-quirks.yaml\n  weir plugin test acme-quirks.wasm cases.jsonl",
		Long: "Run all examples of a plugin and then the given cases, which are JSON Lines in the form of an example: op, input, expect,\n" +
			"and name and now_ms as far as wanted. The plugin is granted what its manifest asks for: its kv is empty and in memory, and calls of\n" +
			"http_fetch are denied all the same. Exit 1 when one fails.",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.kit()
			if err != nil {
				return err
			}
			cases, err := a.cases(args[1:])
			if err != nil {
				return err
			}
			results, findings, err := k.Test(c.Context(), args[0], cases)
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			for _, f := range findings {
				if err := a.say("%s", f); err != nil {
					return err
				}
			}
			if len(findings) > 0 {
				return fail(exitFaulty, "%s does not load, so nothing was tested; mend the faults above", args[0])
			}
			failed := 0
			for _, r := range results {
				line := "ok    " + r.Name
				if r.Err != nil {
					failed++
					line = fmt.Sprintf("FAIL  %s (%s): %v", r.Name, r.Op, r.Err)
				}
				if err := a.say("%s", line); err != nil {
					return err
				}
			}
			if err := a.say("%s", score(len(results), failed)); err != nil || failed == 0 {
				return err
			}
			return fail(exitFaulty, "")
		},
	}
}

func (a *app) cases(files []string) ([]wire.Example, error) {
	if len(files) == 0 {
		return nil, nil
	}
	r, err := open(files[0])
	if err != nil {
		return nil, fail(exitFaulty, "%v", err)
	}
	defer r.Close()
	cases, faults, err := devkit.Cases(files[0], r)
	if err != nil {
		return nil, fail(exitFaulty, "%v", err)
	}
	for _, f := range faults {
		fmt.Fprintln(a.err, "weir: "+printable(f.Error()))
	}
	if len(faults) > 0 {
		return nil, fail(exitFaulty, "%s cannot be read; mend what is named above", count(len(faults), "case"))
	}
	return cases, nil
}

func (a *app) pluginPack() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "pack FILE.yaml", Short: "Make a module of a pack", Args: cobra.ExactArgs(1),
		Example: "  weir plugin pack acme-quirks.yaml -o acme-quirks.wasm",
		Long: "Check a pack and write it as a module, which any gateway loads as any other plugin. A pack that would be refused is not\n" +
			"written. (A .yaml in the plugin folder works as it is; a module is for handing on.)",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.kit()
			if err != nil {
				return err
			}
			module, r, err := k.Pack(c.Context(), args[0])
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			if module == nil {
				return a.printReport(r)
			}
			if out == "" {
				out = strings.TrimSuffix(filepath.Base(args[0]), ".yaml") + ".wasm"
			}
			return a.writeModule(out, module)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "file to write (default: the name of FILE, in this folder)")
	return c
}

func (a *app) pluginBuild() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "build DIR", Short: "Compile a plugin that is written in Go", Args: cobra.ExactArgs(1),
		Example: "  weir plugin build acme-errors",
		Long:    "Compile the Go plugin in the folder DIR with the Go toolchain that is installed, and write DIR/NAME.wasm.",
		RunE: func(c *cobra.Command, args []string) error {
			module, err := devkit.Build(c.Context(), args[0])
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			if out == "" {
				dir, err := filepath.Abs(args[0])
				if err != nil {
					return fail(exitFaulty, "%s has no name; name the file to write with -o", args[0])
				}
				out = filepath.Join(args[0], filepath.Base(dir)+".wasm")
			}
			return a.writeModule(out, module)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "file to write (default: DIR/NAME.wasm, NAME being DIR's)")
	return c
}

// writeModule writes to the side first, so that a gateway that watches the folder never sees half a file.
func (a *app) writeModule(file string, module []byte) error {
	if filepath.Ext(file) != ".wasm" {
		return fail(exitUsage, "%s would not be loaded; give the module a name that ends with .wasm", file)
	}
	beside := file + ".part"
	err := os.WriteFile(beside, module, 0o644)
	if err == nil {
		err = os.Rename(beside, file)
	}
	if err != nil {
		return fail(exitFaulty, "%s cannot be written (%v); name another place with -o", file, errors.Join(err, os.RemoveAll(beside)))
	}
	return a.say("%s has %d bytes.", file, len(module))
}

func (a *app) pluginInspect() *cobra.Command {
	var asJSON, source bool
	c := &cobra.Command{
		Use: "inspect FILE", Short: "Show what a plugin file holds, and what a gateway would refuse", Args: cobra.ExactArgs(1),
		Example: "  weir plugin inspect acme-quirks.wasm\n  weir plugin inspect --source acme-quirks.wasm > acme-quirks.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			if source {
				text, err := devkit.Source(args[0])
				if err != nil {
					return fail(exitFaulty, "%v", err)
				}
				_, err = a.out.Write(text)
				return err
			}
			k, err := a.kit()
			if err != nil {
				return err
			}
			n, err := k.Inspect(c.Context(), args[0])
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			if asJSON {
				return a.printJSON(n)
			}
			return a.printInspection(n)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&source, "source", false, "print the YAML that a pack was made of, and nothing else")
	return c
}

func (a *app) printInspection(n devkit.Inspection) error {
	lines := [][2]string{
		{"file", n.File}, {"size", fmt.Sprintf("%d bytes", n.Size)}, {"digest", n.Digest}, {"loader", n.Loader},
		{"permissions", string(n.Permissions)},
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"import", n.Imports}, {"export", n.Exports}} {
		for _, item := range list.items {
			lines = append(lines, [2]string{list.name, item})
		}
	}
	for _, f := range n.Refused {
		lines = append(lines, [2]string{"refused", f.String()})
	}
	for _, f := range n.Warnings {
		lines = append(lines, [2]string{"warning", f.String()})
	}
	for _, l := range lines {
		if l[1] == "" {
			l[1] = "-"
		}
		if err := a.say("%-12s %s", l[0], l[1]); err != nil {
			return err
		}
	}
	if string(n.Manifest) == "null" {
		return nil
	}
	if err := a.say("manifest"); err != nil {
		return err
	}
	return a.printJSON(n.Manifest)
}
