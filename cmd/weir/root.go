package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes (CLI-2).
const (
	exitFaulty      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitRefused     = 4
	exitKilled      = 130 // a second signal (CLI-4)
)

// failure ends a command with an exit code and one sentence (CLI-3). An empty sentence prints nothing: the command has
// said already what is wrong.
type failure struct {
	code     int
	sentence string
	status   int // of the gateway's answer; 0: there was none
}

func (f *failure) Error() string { return f.sentence }

func fail(code int, format string, args ...any) error {
	return &failure{code: code, sentence: fmt.Sprintf(format, args...)}
}

// run executes one command and returns the process's exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	f, ok := errors.AsType[*failure](err)
	if !ok { // cobra's own: an unknown command or flag, or a wrong number of arguments
		f = &failure{code: exitUsage, sentence: usage(c, err)}
	}
	if f.sentence != "" {
		fmt.Fprintln(a.err, "weir: "+oneLine(f.sentence))
	}
	return f.code
}

// usage is cobra's complaint with the name of the command and the way to its help.
func usage(c *cobra.Command, err error) string {
	what := c.CommandPath() + ": "
	if c == c.Root() {
		what = ""
	}
	text, _, _ := strings.Cut(oneLine(err.Error()), ": strconv.") // the words of the Go library help nobody
	return what + text + "; see " + c.CommandPath() + " --help"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "An LLM gateway: one address for many providers, with fallback, cooldowns and rules as plugins",
		SilenceUsage:  true,
		SilenceErrors: true,
		Example:       "  weir serve --demo\n  weir status",
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	g := &gateway{app: a}
	root.AddCommand(
		a.serve(), a.check(), a.classify(), a.version(), a.compile(),
		g.command(statusCommand), g.command(explainCommand), g.command(historyCommand),
		g.group(keysCommands), g.group(connectionsCommands), g.group(combosCommands), g.group(settingsCommands),
		g.group(requestsCommands), g.group(cooldownsCommands), g.group(lockoutsCommands), g.group(breakersCommands),
		a.plugin(g),
	)
	return root
}

func (a *app) version() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  weir version --json",
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(map[string]string{"version": version})
			}
			_, err := fmt.Fprintln(a.out, "weir "+version)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
