package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/devkit"
	"github.com/weirgate/weir/sdk/wire"
)

// changePlugin sends a change and says in one line what is so now.
func (g *gateway) changePlugin(ctx context.Context, r request, format string, args ...any) error {
	r.slow = true
	var answer json.RawMessage
	show, err := g.call(ctx, r, &answer)
	if !show {
		return err
	}
	return g.app.say(format, args...)
}

func pluginPath(name, rest string) string { return "/api/plugins/" + url.PathEscape(name) + rest }

func pluginRemove(g *gateway) *cobra.Command {
	var candidate bool
	c := &cobra.Command{
		Use: "remove NAME", Short: "Take a plugin out of a running gateway", Args: cobra.ExactArgs(1),
		Example: "  weir plugin remove acme-quirks\n  weir plugin remove acme-quirks --candidate",
		Long: "Take out a plugin that was added with weir plugin add, with its versions and grants; what it hid takes over again. A file of\n" +
			"the plugin folder is deleted there, and a built-in plugin is switched off (weir plugin mode NAME off).",
		RunE: func(c *cobra.Command, args []string) error {
			if candidate {
				return g.changePlugin(c.Context(), request{method: http.MethodDelete, path: pluginPath(args[0], "?candidate=true")},
					"The candidate of %s is gone; the active version goes on.", args[0])
			}
			return g.changePlugin(c.Context(), request{method: http.MethodDelete, path: pluginPath(args[0], "")}, "%s is removed.", args[0])
		},
	}
	c.Flags().BoolVar(&candidate, "candidate", false, "only the candidate that runs in shadow")
	return c
}

// versionNow is what a promotion or a rollback came to.
type versionNow struct{ Version, Digest string }

func (g *gateway) exchangePlugin(ctx context.Context, name, how string) error {
	var now versionNow
	show, err := g.call(ctx, request{method: http.MethodPost, path: pluginPath(name, "/"+how), slow: true}, &now)
	if !show {
		return err
	}
	return g.app.say("%s %s is active (%.12s).", name, now.Version, now.Digest)
}

func pluginPromote(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "promote NAME", Short: "Make the candidate of a plugin its active version", Args: cobra.ExactArgs(1),
		Example: "  weir plugin promote acme-quirks",
		Long:    "Make the candidate, which runs in shadow since weir plugin add --mode shadow, the active version. weir plugin rollback goes back.",
		RunE:    func(c *cobra.Command, args []string) error { return g.exchangePlugin(c.Context(), args[0], "promote") },
	}
}

func pluginRollback(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "rollback NAME", Short: "Go back to the version of a plugin before the active one", Args: cobra.ExactArgs(1),
		Example: "  weir plugin rollback acme-quirks",
		RunE:    func(c *cobra.Command, args []string) error { return g.exchangePlugin(c.Context(), args[0], "rollback") },
	}
}

func pluginMode(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "mode NAME active|shadow|off", Short: "Switch a plugin active, to shadow, or off", Args: cobra.ExactArgs(2),
		Example: "  weir plugin mode acme-quirks shadow\n  weir plugin mode openai-rules off",
		Long: "Switch a plugin of any origin: active (its verdicts count), shadow (it is asked after the answer was sent, and what it would\n" +
			"have decided otherwise is counted), or off.",
		RunE: func(c *cobra.Command, args []string) error {
			return g.changePlugin(c.Context(), request{method: http.MethodPost, path: pluginPath(args[0], "/mode"), body: map[string]string{"mode": args[1]}},
				"%s is %s.", args[0], args[1])
		},
	}
}

func pluginGrant(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "grant NAME PERMISSION...", Short: "Say what a plugin may do", Args: cobra.MinimumNArgs(2),
		Example: "  weir plugin grant acme http kv\n  weir plugin grant acme none",
		Long: "Grant a plugin what its manifest asks for, by name: http, kv, secrets, terminate, providers; or all, or none. It takes the place\n" +
			"of what was granted before, and holds for these bytes of the plugin only.",
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			var p struct{ Permissions wire.Permissions }
			if err := g.get(c.Context(), pluginPath(name, ""), &p); err != nil {
				return err
			}
			var names []string
			for _, a := range args[1:] {
				names = append(names, strings.Split(a, ",")...)
			}
			granted, err := devkit.Grant(p.Permissions, names)
			if err != nil {
				return fail(exitUsage, "%v", err)
			}
			return g.changePlugin(c.Context(), request{method: http.MethodPost, path: pluginPath(name, "/grants"), body: granted},
				"%s has now: %s.", name, strings.Join(names, ", "))
		},
	}
}
