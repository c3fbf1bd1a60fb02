package main

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

type key struct {
	ID            string
	Name          string
	Key           string
	Hint          string
	IsActive      bool
	Scopes        []string
	AllowedModels []string
	ExpiresAt     *string
	LastUsedAt    *string
	ManagedBy     string
}

func keysCommands(g *gateway) *cobra.Command {
	c := &cobra.Command{Use: "keys", Short: "API keys of the gateway's own clients", Example: "  weir keys create laptop"}
	c.AddCommand(keysCreate(g), keysList(g), keysRevoke(g))
	return c
}

func keysCreate(g *gateway) *cobra.Command {
	var scopes, models, connections []string
	var expires string
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a key and print it once", Args: cobra.ExactArgs(1),
		Example: "  weir keys create laptop --model 'openai/*'",
		RunE: func(c *cobra.Command, args []string) error {
			body := map[string]any{"name": args[0]}
			if len(scopes) > 0 {
				body["scopes"] = scopes
			}
			if len(models) > 0 {
				body["allowedModels"] = models
			}
			if len(connections) > 0 {
				body["allowedConnections"] = connections
			}
			if expires != "" {
				body["expiresAt"] = expires
			}
			var k key
			show, err := g.call(c.Context(), request{method: http.MethodPost, path: "/api/keys", body: body}, &k)
			if !show {
				return err
			}
			if err := g.app.say("%s", k.Key); err != nil {
				return err
			}
			return g.app.say("This is the key %s (%s). It is shown only now: the gateway keeps a hash of it.", k.ID, k.Name)
		},
	}
	c.Flags().StringSliceVar(&scopes, "scope", nil, "inference (default), manage or manage:read; may be repeated")
	c.Flags().StringSliceVar(&models, "model", nil, "only these models, with *; may be repeated (default: all)")
	c.Flags().StringSliceVar(&connections, "connection", nil, "only these connections; may be repeated (default: all)")
	c.Flags().StringVar(&expires, "expires", "", "end of the key, such as 2027-01-31T00:00:00Z (default: never)")
	return c
}

func keysList(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the keys", Args: cobra.NoArgs, Example: "  weir keys list --json",
		RunE: func(c *cobra.Command, _ []string) error {
			var all []key
			show, err := g.list(c.Context(), "/api/keys", "keys", nil, &all)
			if !show {
				return err
			}
			var rows [][]string
			for _, k := range all {
				rows = append(rows, []string{k.ID, k.Name, k.Hint, yes(k.IsActive), strings.Join(k.Scopes, ","),
					orAll(k.AllowedModels), deref(k.ExpiresAt), deref(k.LastUsedAt), k.ManagedBy})
			}
			return g.app.table([]string{"id", "name", "key", "active", "scopes", "models", "expires", "last used", "from"}, rows)
		},
	}
}

func keysRevoke(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Delete a key: its next request is refused", Args: cobra.ExactArgs(1),
		Example: "  weir keys revoke k-7f3a",
		RunE: func(c *cobra.Command, args []string) error {
			show, err := g.call(c.Context(), request{method: http.MethodDelete, path: "/api/keys/" + url.PathEscape(args[0])}, &struct{}{})
			if !show {
				return err
			}
			return g.app.say("The key %s is revoked.", args[0])
		},
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return clock(*s)
}
