package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

type connection struct {
	ID          string
	Provider    string
	Name        string
	Priority    int
	IsActive    bool
	ManagedBy   string
	Credentials struct{ Hint *string }
	Health      struct {
		Status           string
		RateLimitedUntil *string
		LastErrorType    *string
	}
}

func connectionsCommands(g *gateway) *cobra.Command {
	c := &cobra.Command{Use: "connections", Short: "Accounts of providers", Example: "  weir connections list --provider openai"}
	c.AddCommand(connectionsList(g), connectionsAdd(g), connectionsTest(g), connectionsRemove(g), connectionsReset(g))
	return c
}

func connectionPath(id, more string) string { return "/api/providers/" + url.PathEscape(id) + more }

func connectionsList(g *gateway) *cobra.Command {
	var provider string
	c := &cobra.Command{
		Use: "list", Short: "List the connections with their health", Args: cobra.NoArgs, Example: "  weir connections list",
		RunE: func(c *cobra.Command, _ []string) error {
			var all []connection
			query := url.Values{}
			if provider != "" {
				query.Set("provider", provider)
			}
			show, err := g.list(c.Context(), "/api/providers", "connections", query, &all)
			if !show {
				return err
			}
			var rows [][]string
			for _, x := range all {
				hint := ""
				if x.Credentials.Hint != nil {
					hint = *x.Credentials.Hint
				}
				rows = append(rows, []string{x.ID, x.Provider, x.Name, fmt.Sprint(x.Priority), yes(x.IsActive), x.Health.Status,
					deref(x.Health.RateLimitedUntil), deref(x.Health.LastErrorType), hint, x.ManagedBy})
			}
			return g.app.table([]string{"id", "provider", "name", "prio", "active", "status", "until", "last error", "key", "from"}, rows)
		},
	}
	c.Flags().StringVar(&provider, "provider", "", "only those of this provider")
	return c
}

func connectionsAdd(g *gateway) *cobra.Command {
	var id, name, key, baseURL string
	var priority, concurrent int
	c := &cobra.Command{
		Use: "add PROVIDER", Short: "Add an account of a provider", Args: cobra.ExactArgs(1),
		Example: "  weir connections add openai --name main --api-key - < key.txt\n  weir connections add ollama",
		Long: "Add an account of a provider. The key is read from --api-key, or from the standard input when --api-key is -\n" +
			"(so that it stays out of the shell's history). A local provider needs none.",
		RunE: func(c *cobra.Command, args []string) error {
			body := map[string]any{"provider": args[0]}
			if key == "-" {
				line, err := bufio.NewReader(g.app.in).ReadString('\n')
				if key = strings.TrimSpace(line); key == "" {
					return fail(exitUsage, "no key on the standard input (%v); pipe it in, or give it with --api-key", err)
				}
			}
			for field, v := range map[string]string{"id": id, "name": name, "apiKey": key, "baseUrl": baseURL} {
				if v != "" {
					body[field] = v
				}
			}
			if c.Flags().Changed("priority") {
				body["priority"] = priority
			}
			if c.Flags().Changed("max-concurrent") {
				body["maxConcurrent"] = concurrent
			}
			var answer struct{ Connection connection }
			show, err := g.call(c.Context(), request{method: http.MethodPost, path: "/api/providers", body: body}, &answer)
			if !show {
				return err
			}
			return g.app.say("The connection %s of %s is added; try it with: weir connections test %s", answer.Connection.ID,
				answer.Connection.Provider, answer.Connection.ID)
		},
	}
	f := c.Flags()
	f.StringVar(&id, "id", "", "id of the connection (default: made by the gateway)")
	f.StringVar(&name, "name", "", "name to show")
	f.StringVar(&key, "api-key", "", "the provider's key; - reads it from the standard input")
	f.StringVar(&baseURL, "base-url", "", "another address than the provider's")
	f.IntVar(&priority, "priority", 1, "1 to 1000, lower first")
	f.IntVar(&concurrent, "max-concurrent", 0, "requests at once (default: no cap)")
	return c
}

func connectionsTest(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "test ID", Short: "Call the provider once with this account", Args: cobra.ExactArgs(1),
		Example: "  weir connections test openai-main",
		RunE: func(c *cobra.Command, args []string) error {
			var answer struct {
				OK      bool
				Status  int
				Reason  string
				Message string
			}
			show, err := g.call(c.Context(), request{method: http.MethodPost, path: connectionPath(args[0], "/test"), slow: true}, &answer)
			if err != nil {
				return err
			}
			if !answer.OK && !show {
				return fail(exitFaulty, "")
			}
			if !answer.OK {
				why := printable(answer.Message)
				if answer.Status != 0 {
					why = fmt.Sprintf("status %d, %s: %s", answer.Status, answer.Reason, why)
				}
				return fail(exitFaulty, "the connection %s failed its test: %s", args[0], why)
			}
			if !show {
				return nil
			}
			return g.app.say("The connection %s answers (status %d).", args[0], answer.Status)
		},
	}
}

func connectionsRemove(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "Delete an account with its state", Args: cobra.ExactArgs(1),
		Example: "  weir connections remove c-7f3a",
		RunE: func(c *cobra.Command, args []string) error {
			show, err := g.call(c.Context(), request{method: http.MethodDelete, path: connectionPath(args[0], "")}, &struct{}{})
			if !show {
				return err
			}
			return g.app.say("The connection %s is removed.", args[0])
		},
	}
}

func connectionsReset(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "reset ID", Short: "Clear an account's terminal state, cooldown and errors", Args: cobra.ExactArgs(1),
		Example: "  weir connections reset openai-main",
		RunE: func(c *cobra.Command, args []string) error {
			var answer struct {
				Connection connection
				Was        string
			}
			show, err := g.call(c.Context(), request{method: http.MethodPost, path: connectionPath(args[0], "/reset")}, &answer)
			if !show {
				return err
			}
			return g.app.say("The connection %s was %s and is %s now.", args[0], answer.Was, answer.Connection.Health.Status)
		},
	}
}
