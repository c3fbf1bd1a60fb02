package main

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/plugin"
)

// compileName is the hidden command of plugins.compile: child (ABI-7).
const compileName = "compile-plugin"

// compile is what serve runs in a process of its own: it fills the cache with the compiled form of the module on its standard
// input.
func (a *app) compile() *cobra.Command {
	return &cobra.Command{
		Use: compileName + " DIR", Short: "Compile a module for serve", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := plugin.CompileChild(a.in, args[0]); err != nil {
				return fail(exitFaulty, "%v", err)
			}
			return nil
		},
	}
}

// compileChild is this program with that command, and nothing of the environment: a module is the work of strangers.
func compileChild() *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	cmd := exec.Command(program, compileName) //nolint:noctx // killed by the loader when its time is over
	cmd.Env = []string{}
	return cmd
}
