// Command faults is the fault wall: a crash test for the gateway. It starts the real program with a mock upstream beside it, drives
// sixteen faults of a provider through it, in chat completions and in messages, and prints the card: a line for each fault, then how
// many passed. It takes about two minutes, since some faults take their time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	weir := flag.String("weir", "", "program to test; empty: build it from this tree")
	only := flag.String("only", "", "faults to run, as FLT-8,FLT-9; empty: all")
	log := flag.String("log", "", "file for the gateway's log; empty: shown when a fault fails")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, *weir, *only, *log)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

// limit is how long the whole wall may take.
const limit = 5 * time.Minute

func run(ctx context.Context, weir, only, log string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	up, err := newUpstream()
	if err != nil {
		return false, err
	}
	defer up.close()
	var walls []*wall
	for _, d := range dialects {
		for _, f := range faults {
			if only == "" || slices.Contains(strings.Split(only, ","), f.id) {
				walls = append(walls, newWall(f, d, up))
			}
		}
	}
	g, err := startGateway(ctx, weir, configOf(walls, up.url), log)
	if err != nil {
		return false, err
	}
	defer g.stop()
	var all sync.WaitGroup
	for _, w := range walls {
		w.gateway, w.key = g.url, g.key
		all.Go(func() { w.play(ctx) })
	}
	all.Wait()
	ok := true
	for _, d := range dialects {
		ok = card(d, walls) && ok
	}
	if !ok && log == "" {
		fmt.Println("the end of the gateway's log:")
		fmt.Println(g.tail(8000))
	}
	return ok, nil
}

// card prints what became of the faults in one dialect.
func card(d *spoken, walls []*wall) bool {
	fmt.Println(d.name)
	passed, failed := 0, 0
	for _, w := range walls {
		if w.dialect != d {
			continue
		}
		word := "pass"
		if len(w.wrong) > 0 {
			word = "fail"
			failed++
		} else {
			passed++
		}
		fmt.Printf("%s %s %s\n", w.fault.id, word, w.said())
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	return failed == 0
}
