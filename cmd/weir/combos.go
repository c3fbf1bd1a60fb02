package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

type combo struct {
	Name      string
	Strategy  string
	IsActive  bool
	ManagedBy string
	Targets   []struct {
		Model        string
		ComboName    string
		ConnectionID string
		Weight       float64
		ExecutionKey string
	}
	Warning *struct{ Code, ModelID, ProviderID string }
}

func combosCommands(g *gateway) *cobra.Command {
	c := &cobra.Command{Use: "combos", Short: "Named lists of targets", Example: "  weir combos set best anthropic/claude-sonnet-4-5 openai/gpt-5"}
	c.AddCommand(combosList(g), combosShow(g), combosSet(g), combosRemove(g))
	return c
}

func combosList(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the combos", Args: cobra.NoArgs, Example: "  weir combos list",
		RunE: func(c *cobra.Command, _ []string) error {
			var all []combo
			show, err := g.list(c.Context(), "/api/combos", "combos", nil, &all)
			if !show {
				return err
			}
			var rows [][]string
			for _, x := range all {
				var targets []string
				for _, t := range x.Targets {
					name := t.Model + t.ComboName
					if t.ConnectionID != "" {
						name += "@" + t.ConnectionID
					}
					targets = append(targets, name)
				}
				rows = append(rows, []string{x.Name, x.Strategy, yes(x.IsActive), strings.Join(targets, ", "), x.ManagedBy})
			}
			return g.app.table([]string{"name", "strategy", "active", "targets", "from"}, rows)
		},
	}
}

func combosShow(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show one combo with its targets", Args: cobra.ExactArgs(1), Example: "  weir combos show best",
		RunE: func(c *cobra.Command, args []string) error {
			var x combo
			show, err := g.call(c.Context(), request{method: http.MethodGet, path: comboPath(args[0])}, &x)
			if !show {
				return err
			}
			if err := g.app.say("%s: %s, from %s", x.Name, x.Strategy, x.ManagedBy); err != nil {
				return err
			}
			var rows [][]string
			for i, t := range x.Targets {
				rows = append(rows, []string{fmt.Sprint(i + 1), t.Model + t.ComboName, t.ConnectionID, fmt.Sprint(t.Weight), t.ExecutionKey})
			}
			return g.app.table([]string{"#", "target", "connection", "weight", "key"}, rows)
		},
	}
}

func combosSet(g *gateway) *cobra.Command {
	var strategy string
	c := &cobra.Command{
		Use: "set NAME TARGET...", Short: "Make a combo, or replace the targets of one", Args: cobra.MinimumNArgs(2),
		Example: "  weir combos set best anthropic/claude-sonnet-4-5 openai/gpt-5@openai-main",
		Long:    "Make a combo, or replace the targets of one, whose other fields stay. A target is provider/model, with @connection to pin it.",
		RunE: func(c *cobra.Command, args []string) error {
			var targets []map[string]any
			for _, t := range args[1:] {
				model, pinned, _ := strings.Cut(t, "@")
				target := map[string]any{"model": model}
				if pinned != "" {
					target["connectionId"] = pinned
				}
				targets = append(targets, target)
			}
			body := map[string]any{"name": args[0]}
			err := g.get(c.Context(), comboPath(args[0]), &body) // what is not given stays
			if f, ok := errors.AsType[*failure](err); err != nil && (!ok || f.status != http.StatusNotFound) {
				return err
			}
			body["targets"] = targets
			if err != nil || c.Flags().Changed("strategy") {
				body["strategy"] = strategy
			}
			var x combo
			show, err := g.call(c.Context(), request{method: http.MethodPut, path: comboPath(args[0]), body: body}, &x)
			if !show {
				return err
			}
			if w := x.Warning; w != nil {
				fmt.Fprintf(g.app.err, "weir: the combo hides the model %s of %s: requests for that name now go to the combo\n",
					w.ModelID, w.ProviderID)
			}
			return g.app.say("The combo %s has %s, tried by %s.", x.Name, count(len(x.Targets), "target"), x.Strategy)
		},
	}
	c.Flags().StringVar(&strategy, "strategy", "priority", "in which order the targets are tried")
	return c
}

func combosRemove(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Delete a combo", Args: cobra.ExactArgs(1), Example: "  weir combos remove best",
		RunE: func(c *cobra.Command, args []string) error {
			show, err := g.call(c.Context(), request{method: http.MethodDelete, path: comboPath(args[0])}, &struct{}{})
			if !show {
				return err
			}
			return g.app.say("The combo %s is removed.", args[0])
		},
	}
}

func comboPath(name string) string { return "/api/combos/" + url.PathEscape(name) }
