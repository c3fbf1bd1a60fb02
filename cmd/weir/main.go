// Command weir runs the gateway and talks to a running one. This package holds flags, signals, exit codes and the printing
// of answers; everything else is in package host.
package main

import (
	"context"
	"io"
	"os"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
	return a.run(context.Background(), os.Args[1:])
}

// app is what commands share: the streams and the environment of the process.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
}

// lookup returns the first of a flag's value and the environment's.
func (a *app) lookup(flag, name string) string {
	if flag != "" {
		return flag
	}
	v, _ := a.env(name)
	return v
}
