package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

const commandsPage = "../../docs/commands.md"

// docs/commands.md is made from the commands themselves, and every command that does something has an example.
func TestCommandsAreDocumented(t *testing.T) {
	var page bytes.Buffer
	page.WriteString("# Commands\n\n<!-- Made from the commands: go test ./cmd/weir -run Documented -update -->\n\n" +
		"Exit codes: 0 done, 1 the thing asked about is faulty, 2 wrong usage, 3 the gateway cannot be reached, 4 refused, 130 ended by a second signal.\n")
	root := (&app{}).root()
	root.InitDefaultCompletionCmd()
	describe(t, &page, root)
	if *update {
		if err := os.WriteFile(commandsPage, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(committed), page.String()); diff != "" {
		t.Errorf("docs/commands.md is not what the commands say; run go test ./cmd/weir -run Documented -update\n%s", diff)
	}
}

func describe(t *testing.T, page *bytes.Buffer, c *cobra.Command) {
	if c.Hidden || c.Name() == "completion" || c.Name() == "help" {
		return
	}
	if c.HasParent() {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		level := "##"
		if c.Parent().HasParent() {
			level = "###"
		}
		says := c.Long
		if says == "" {
			says = c.Short + "."
		}
		fmt.Fprintf(page, "\n%s %s\n\n%s\n", level, c.UseLine(), says)
		fmt.Fprintf(page, "\n```sh\n%s\n```\n", strings.ReplaceAll(c.Example, "\n  ", "\n")[2:])
		flags(page, c)
	}
	for _, sub := range c.Commands() {
		describe(t, page, sub)
	}
}

// flags lists those of the command itself; a group's flags stand at the group.
func flags(page *bytes.Buffer, c *cobra.Command) {
	first := true
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		if first {
			page.WriteString("\n| flag | means |\n|---|---|\n")
			first = false
		}
		fmt.Fprintf(page, "| `--%s` | %s |\n", f.Name, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
}
