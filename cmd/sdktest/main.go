// Command sdktest runs the conformance kit of the plugin ABI on modules, whatever they were written in:
//
//	go run github.com/weirgate/weir/cmd/sdktest [-calls N] [-json] FILE.wasm...
//
// It prints a line for each step. Exit codes: 0 all passed, 1 something failed, 2 wrong usage or an unreadable file.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/weirgate/weir/sdk/sdktest"
)

// The exit codes.
const (
	passed = 0
	failed = 1
	usage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("sdktest", flag.ContinueOnError)
	flags.SetOutput(errs)
	calls := flags.Int("calls", 20_000, "calls of each hook, to see whether memory stays flat")
	asJSON := flags.Bool("json", false, "print one JSON report for each file, and no lines")
	flags.Usage = func() {
		fmt.Fprintln(errs, "usage: sdktest [-calls N] [-json] FILE.wasm...")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return usage
	}
	if flags.NArg() == 0 || *calls < 1 {
		flags.Usage()
		return usage
	}
	code := passed
	for _, file := range flags.Args() {
		wasm, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(errs, err)
			return usage
		}
		report, err := check(ctx, file, wasm, *calls, *asJSON, out)
		if err != nil {
			fmt.Fprintf(errs, "%s: %v\n", file, err)
			return failed
		}
		if !report.OK {
			code = failed
		}
	}
	return code
}

func check(ctx context.Context, file string, wasm []byte, calls int, asJSON bool, out io.Writer) (sdktest.Report, error) {
	line := func(s sdktest.Step) { fmt.Fprintln(out, s) }
	if asJSON {
		line = nil
	} else {
		fmt.Fprintf(out, "%s\n", file)
	}
	report, err := sdktest.Kit{Calls: calls}.Check(ctx, wasm, line)
	if err != nil {
		return report, err
	}
	if asJSON {
		return report, json.NewEncoder(out).Encode(report)
	}
	word := "conforms"
	if !report.OK {
		word = "does not conform"
	}
	_, err = fmt.Fprintf(out, "%s %s %s\n\n", report.Name, report.Version, word)
	return report, err
}
