package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/settings"
)

func settingsCommands(g *gateway) *cobra.Command {
	c := &cobra.Command{Use: "settings", Short: "Stored settings", Example: "  weir settings get connectionCooldown"}
	c.AddCommand(settingsGet(g), settingsSet(g))
	return c
}

const (
	resiliencePath = "/api/resilience"
	generalPath    = "/api/settings"
)

// documentOf is where a section of the settings stands: with the general ones when nothing of it is in the resilience.
func documentOf(section string) string {
	table, path := settings.Table(), resiliencePath
	for i := range table {
		name, _, _ := strings.Cut(table[i].Path, ".")
		if name != section || len(table[i].Docs) == 0 {
			continue
		}
		if slices.Contains(table[i].Docs, settings.Resilience) {
			return resiliencePath
		}
		path = generalPath
	}
	return path
}

func settingsGet(g *gateway) *cobra.Command {
	var explain bool
	c := &cobra.Command{
		Use: "get [SECTION]", Short: "Print the settings of the resilience, or one section, also of the general settings", Args: cobra.MaximumNArgs(1),
		Example: "  weir settings get connectionCooldown --explain",
		RunE: func(c *cobra.Command, args []string) error {
			path := resiliencePath
			if len(args) > 0 {
				path = documentOf(args[0])
			}
			if explain {
				path += "?explain=true"
			}
			var sections map[string]json.RawMessage
			if err := g.get(c.Context(), path, &sections); err != nil {
				return err
			}
			if len(args) == 0 {
				return g.app.printJSON(sections)
			}
			section, ok := sections[args[0]]
			if !ok {
				return fail(exitFaulty, "there is no section %q of settings; weir settings get lists all", args[0])
			}
			return g.app.printJSON(section)
		},
	}
	c.Flags().BoolVar(&explain, "explain", false, "say for each value where it came from")
	return c
}

func settingsSet(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "set PATH VALUE", Short: "Store one setting; it holds from the next request", Args: cobra.ExactArgs(2),
		Example: "  weir settings set connectionCooldown.apikey.baseCooldownMs 5000",
		Long: "Store one setting. PATH is a section and its field, with dots; VALUE is JSON, or else taken as text;\n" +
			"null forgets what was stored.",
		RunE: func(c *cobra.Command, args []string) error {
			path := strings.Split(args[0], ".")
			if len(path) < 2 && documentOf(path[0]) == resiliencePath {
				return fail(exitUsage, "%q is not the path of a setting; write a section and a field, such as routeDefaults.targetTimeoutMs", args[0])
			}
			var value any
			if json.Unmarshal([]byte(args[1]), &value) != nil {
				value = args[1]
			}
			for i := len(path) - 1; i >= 0; i-- {
				value = map[string]any{path[i]: value}
			}
			var now any
			show, err := g.call(c.Context(), request{method: http.MethodPatch, path: documentOf(path[0]), body: value}, &now)
			if !show {
				return err
			}
			for _, name := range path { // what is in force: null puts back what was before
				member, _ := now.(map[string]any)
				now = member[name]
			}
			b, err := json.Marshal(now)
			if err != nil {
				return err
			}
			return g.app.say("%s is %s now.", args[0], b)
		},
	}
}
