package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func explainCommand(g *gateway) *cobra.Command {
	var key string
	c := &cobra.Command{
		Use: "explain MODEL", Short: "Say where a request would go, without sending it", Args: cobra.ExactArgs(1),
		Example: "  weir explain demo/limited",
		RunE: func(c *cobra.Command, args []string) error {
			body := map[string]any{"model": args[0]}
			if key != "" {
				body["apiKeyId"] = key
			}
			var answer struct {
				Model      string
				Resolved   struct{ Kind, Name string }
				Candidates []struct {
					Order                                   int
					Provider, ConnectionID, Model, Verdict  string
					Gate, Reason, Since, Until, NextProbeAt *string
					Cause                                   *cause
				}
			}
			show, err := g.call(c.Context(), request{method: http.MethodPost, path: "/api/resilience/explain", body: body}, &answer)
			if !show {
				return err
			}
			if err := g.app.say("%s is %s %s", answer.Model, answer.Resolved.Kind, answer.Resolved.Name); err != nil {
				return err
			}
			var rows [][]string
			for _, x := range answer.Candidates {
				verdict := "would be tried"
				if x.Verdict != "would_try" {
					verdict = "left out by " + text(x.Gate) + ": " + text(x.Reason)
				}
				rows = append(rows, []string{fmt.Sprint(x.Order), x.Provider, x.ConnectionID, x.Model, verdict,
					deref(x.Since), deref(x.Until), deref(x.NextProbeAt), x.Cause.evidence()})
			}
			return g.app.table([]string{"#", "provider", "connection", "model", "verdict", "since", "until", "next probe", "evidence"}, rows)
		},
	}
	c.Flags().StringVar(&key, "key", "", "as the client with this key id")
	return c
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
