package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

type status struct {
	Version  string
	UptimeMs int64
	Address  string
	Demo     bool
	Config   struct{ File, LoadedAt, Fault *string }
	Store    struct {
		Kind, State string
		Fault       *string
		Bytes       int64
	}
	Providers []struct {
		ID          string
		Breaker     *string
		Connections struct{ Total, Usable, Cooling, Terminal int }
		Lockouts    int
		EarliestEnd *string
	}
	Plugins struct {
		Active, Shadow, Quarantined int
		Rejected                    []struct{ Name, Step, Reason string }
	}
	Requests struct {
		LastMinute, FailedLastMinute int
		P50Ms                        *int64
	}
}

func statusCommand(g *gateway) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "status", Short: "Show providers, breakers, connections and faults of a running gateway", Args: cobra.NoArgs,
		Example: "  weir status --all",
		RunE: func(c *cobra.Command, _ []string) error {
			var s status
			show, err := g.call(c.Context(), request{method: http.MethodGet, path: "/api/status"}, &s)
			if !show {
				return err
			}
			return g.app.printStatus(&s, all)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also providers without a connection")
	return c
}

func (a *app) printStatus(s *status, all bool) error {
	demo := ""
	if s.Demo {
		demo = ", with the demo"
	}
	median := ""
	if s.Requests.P50Ms != nil {
		median = fmt.Sprintf(", half of them within %d ms", *s.Requests.P50Ms)
	}
	lines := []string{
		fmt.Sprintf("weir %s at %s, up %s%s", s.Version, s.Address, (time.Duration(s.UptimeMs) * time.Millisecond).Round(time.Second), demo),
		fmt.Sprintf("requests in the last minute: %d, failed: %d%s", s.Requests.LastMinute, s.Requests.FailedLastMinute, median),
		fmt.Sprintf("store: %s, %s, %d bytes", s.Store.Kind, s.Store.State, s.Store.Bytes),
		fmt.Sprintf("plugins: %d active, %d shadow, %d quarantined, %d rejected", s.Plugins.Active, s.Plugins.Shadow,
			s.Plugins.Quarantined, len(s.Plugins.Rejected)),
	}
	if s.Store.Fault != nil {
		lines = append(lines, "store fault: "+*s.Store.Fault)
	}
	if s.Config.Fault != nil {
		lines = append(lines, "configuration fault (the one before is in force): "+sentences(*s.Config.Fault))
	}
	for _, r := range s.Plugins.Rejected {
		lines = append(lines, fmt.Sprintf("plugin %s was rejected at %s: %s", r.Name, r.Step, r.Reason))
	}
	for _, l := range lines {
		if err := a.say("%s", l); err != nil {
			return err
		}
	}
	var rows [][]string
	for _, p := range s.Providers {
		if p.Connections.Total == 0 && !all {
			continue
		}
		rows = append(rows, []string{p.ID, text(p.Breaker), fmt.Sprint(p.Connections.Total), fmt.Sprint(p.Connections.Usable),
			fmt.Sprint(p.Connections.Cooling), fmt.Sprint(p.Connections.Terminal), fmt.Sprint(p.Lockouts), deref(p.EarliestEnd)})
	}
	return a.table([]string{"provider", "breaker", "connections", "usable", "cooling", "terminal", "lockouts", "next back"}, rows)
}
