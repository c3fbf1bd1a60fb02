package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	cooldownsPath = "/api/resilience/cooldowns"
	lockoutsPath  = "/api/resilience/model-cooldowns"
)

// cause is the answer that put a state there (COOL-6).
type cause struct {
	RequestID, ConnectionID, Plugin, Rule, Source, Message string
	At                                                     *string
	Status, OriginalStatus                                 int
}

// evidence says which answer it was, by which rule, and when.
func (c *cause) evidence() string {
	if c == nil {
		return ""
	}
	var parts []string
	if c.Status > 0 {
		status := fmt.Sprint(c.Status)
		if c.OriginalStatus > 0 && c.OriginalStatus != c.Status {
			status += fmt.Sprintf(" (sent as %d)", c.OriginalStatus)
		}
		parts = append(parts, status)
	}
	if c.ConnectionID != "" {
		parts = append(parts, "of connection "+c.ConnectionID)
	}
	if c.Rule != "" {
		parts = append(parts, "rule "+c.Plugin+"/"+c.Rule)
	}
	if c.Source != "" {
		parts = append(parts, "time from "+c.Source)
	}
	if c.At != nil {
		parts = append(parts, "at "+clock(*c.At))
	}
	return strings.Join(parts, ", ")
}

// remaining prints a length of milliseconds.
func remaining(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= time.Second {
		d = d.Round(time.Second)
	}
	return d.String()
}

func cooldownsCommands(g *gateway) *cobra.Command {
	c := &cobra.Command{Use: "cooldowns", Short: "What connections are out for, and until when", Example: "  weir cooldowns list"}
	c.AddCommand(cooldownsList(g), cooldownsClear(g))
	return c
}

type cooledConnection struct {
	ID, Provider, Status, TestStatus string
	CooldownRemainingMs              int64
	BackoffLevel                     int
	LastErrorType, NextProbeAt       *string
	RecheckAt                        *string
	Cause                            *cause
	Lockouts                         []struct {
		Model, Reason string
		RemainingMs   int64
	}
}

func cooldownsList(g *gateway) *cobra.Command {
	var provider string
	var all bool
	c := &cobra.Command{
		Use: "list", Short: "List the connections that are out, with the answer that did it", Args: cobra.NoArgs,
		Example: "  weir cooldowns list --provider openai",
		RunE: func(c *cobra.Command, _ []string) error {
			path := cooldownsPath
			if provider != "" {
				path += "?" + url.Values{"provider": {provider}}.Encode()
			}
			var answer struct{ Connections []cooledConnection }
			show, err := g.call(c.Context(), request{method: http.MethodGet, path: path}, &answer)
			if !show {
				return err
			}
			var rows [][]string
			for _, x := range answer.Connections {
				if x.Status != "healthy" || all {
					rows = append(rows, x.row())
				}
			}
			return g.app.table([]string{"connection", "provider", "state", "because", "back in", "next probe", "locked models", "evidence"}, rows)
		},
	}
	c.Flags().StringVar(&provider, "provider", "", "only those of this provider")
	c.Flags().BoolVar(&all, "all", false, "also healthy ones")
	return c
}

func (x *cooledConnection) row() []string {
	state, back, next := x.Status, "", deref(x.NextProbeAt)
	switch x.Status {
	case "terminal":
		state = x.TestStatus
		if next = ""; x.RecheckAt != nil {
			next = deref(x.RecheckAt)
		}
	case "cooling_down":
		back = remaining(x.CooldownRemainingMs)
	}
	var models []string
	for _, l := range x.Lockouts {
		models = append(models, l.Model+" ("+remaining(l.RemainingMs)+")")
	}
	return []string{x.ID, x.Provider, state, deref(x.LastErrorType), back, next, strings.Join(models, ", "), x.Cause.evidence()}
}

func cooldownsClear(g *gateway) *cobra.Command {
	var provider string
	var all bool
	c := &cobra.Command{
		Use: "clear [CONNECTION...]", Short: "End cooldowns and lockouts of connections; terminal states stay",
		Example: "  weir cooldowns clear openai-main\n  weir cooldowns clear --all --provider openai",
		RunE: func(c *cobra.Command, args []string) error {
			body := map[string]any{}
			switch {
			case all && len(args) > 0, !all && len(args) == 0:
				return fail(exitUsage, "say which: connections by id, or --all")
			case all:
				body["all"] = true
				if provider != "" {
					body["provider"] = provider
				}
			case provider != "":
				return fail(exitUsage, "--provider goes with --all; connections are named by their ids")
			default:
				body["connectionIds"] = args
			}
			var done struct{ Cleared, Unchanged, SkippedTerminal, LockoutsCleared int }
			show, err := g.call(c.Context(), request{method: http.MethodPost, path: cooldownsPath, body: body}, &done)
			if !show {
				return err
			}
			if err := g.app.say("Cleared %d connection(s) and %d lockout(s); %d had nothing to clear.", done.Cleared, done.LockoutsCleared,
				done.Unchanged); err != nil || done.SkippedTerminal == 0 {
				return err
			}
			return g.app.say("%d in a terminal state stayed as they are; weir connections reset ID ends one.", done.SkippedTerminal)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all connections")
	c.Flags().StringVar(&provider, "provider", "", "with --all: only those of this provider")
	return c
}

func lockoutsCommands(g *gateway) *cobra.Command {
	c := &cobra.Command{Use: "lockouts", Short: "Models that are locked out on a connection", Example: "  weir lockouts list"}
	c.AddCommand(lockoutsList(g), lockoutsClear(g))
	return c
}

func lockoutsList(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the lockouts, the longest first", Args: cobra.NoArgs, Example: "  weir lockouts list",
		RunE: func(c *cobra.Command, _ []string) error {
			var answer struct {
				Items []struct {
					Provider, ConnectionID, Model, Reason, Scope string
					RemainingMs                                  int64
					FailureCount                                 int
					Cause                                        *cause
				}
			}
			show, err := g.call(c.Context(), request{method: http.MethodGet, path: lockoutsPath}, &answer)
			if !show {
				return err
			}
			var rows [][]string
			for _, x := range answer.Items {
				rows = append(rows, []string{x.Provider, x.ConnectionID, x.Model, x.Scope, x.Reason, remaining(x.RemainingMs), fmt.Sprint(x.FailureCount), x.Cause.evidence()})
			}
			return g.app.table([]string{"provider", "connection", "model", "scope", "because", "back in", "failures", "evidence"}, rows)
		},
	}
}

func lockoutsClear(g *gateway) *cobra.Command {
	var connection string
	var all bool
	c := &cobra.Command{
		Use: "clear [PROVIDER MODEL]", Short: "End the lockouts of a model or family, or all",
		Example: "  weir lockouts clear openai gpt-5 --connection openai-main\n  weir lockouts clear --all",
		RunE: func(c *cobra.Command, args []string) error {
			var body map[string]any
			switch {
			case all && len(args) == 0 && connection == "":
				body = map[string]any{"all": true}
			case !all && len(args) == 2:
				body = map[string]any{"provider": args[0], "model": args[1]}
				if connection != "" {
					body["connection"] = connection
				}
			default:
				return fail(exitUsage, "say which: a provider and a model, or --all alone")
			}
			var done struct{ Removed, ClearedAll bool }
			show, err := g.call(c.Context(), request{method: http.MethodDelete, path: lockoutsPath, body: body}, &done)
			switch {
			case !show:
				return err
			case done.ClearedAll:
				return g.app.say("All lockouts are cleared.")
			case done.Removed:
				return g.app.say("The model %s of %s is enabled again.", args[1], args[0])
			}
			return g.app.say("The model %s of %s was not locked out.", args[1], args[0])
		},
	}
	c.Flags().StringVar(&connection, "connection", "", "only on this connection")
	c.Flags().BoolVar(&all, "all", false, "all lockouts")
	return c
}

func breakersCommands(g *gateway) *cobra.Command {
	c := &cobra.Command{Use: "breakers", Short: "The circuit breakers of providers", Example: "  weir breakers list"}
	c.AddCommand(breakersList(g), breakersReset(g))
	return c
}

func breakersList(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the breakers that ever counted a failure", Args: cobra.NoArgs, Example: "  weir breakers list",
		RunE: func(c *cobra.Command, _ []string) error {
			var answer struct{ Breakers json.RawMessage }
			if err := g.get(c.Context(), "/api/resilience/connections?windowMs=86400000", &answer); err != nil {
				return err
			}
			if g.asJSON {
				return g.app.printJSON(map[string]any{"breakers": answer.Breakers})
			}
			var all []struct {
				Name, State                      string
				FailureCount, OpenCycleCount     int
				LastFailureTime, LastFailureKind *string
				RetryAfterMs                     int64
				TransitionHistory                []struct{ Reason string }
			}
			if json.Unmarshal(answer.Breakers, &all) != nil {
				return unreadable()
			}
			var rows [][]string
			for _, x := range all {
				last, probe := "", ""
				if n := len(x.TransitionHistory); n > 0 {
					last = x.TransitionHistory[n-1].Reason
				}
				if x.RetryAfterMs > 0 {
					probe = remaining(x.RetryAfterMs)
				}
				rows = append(rows, []string{x.Name, x.State, fmt.Sprint(x.FailureCount), deref(x.LastFailureKind), deref(x.LastFailureTime), probe,
					fmt.Sprint(x.OpenCycleCount), last})
			}
			return g.app.table([]string{"provider", "state", "failures", "last kind", "last failure", "probe in", "cycles", "last change"}, rows)
		},
	}
}

func breakersReset(g *gateway) *cobra.Command {
	var include []string
	c := &cobra.Command{
		Use: "reset [PROVIDER]", Short: "Close the breaker of a provider, or all", Args: cobra.MaximumNArgs(1),
		Example: "  weir breakers reset openai --include lockouts,cooldowns",
		RunE: func(c *cobra.Command, args []string) error {
			body := map[string]any{}
			if len(args) == 1 {
				body["provider"] = args[0]
			}
			if len(include) > 0 {
				body["include"] = include
			}
			var done struct{ Message string }
			show, err := g.call(c.Context(), request{method: http.MethodPost, path: "/api/resilience/reset", body: body}, &done)
			if !show {
				return err
			}
			return g.app.say("%s.", done.Message)
		},
	}
	c.Flags().StringSliceVar(&include, "include", nil, "also clear: providerCooldown, lockouts, cooldowns")
	return c
}
