package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/devkit"
	"github.com/weirgate/weir/sdk/wire"
)

// shownPlugin is one plugin with all that show prints.
type shownPlugin struct {
	loadedPlugin
	Digest, Loader, SignedBy, LoadedAt string
	Size                               int
	Permissions                        wire.Permissions
	Granted                            json.RawMessage
	Candidate                          *shownPlugin
	Hidden                             []shownPlugin
	Differences                        []struct {
		At, Provider, Model, Excerpt string
		Status                       int
		Counted, Shadow              struct {
			Status    int
			DecidedBy string
			Verdict   struct{ Reason, Scope string }
		}
	}
}

func pluginShow(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show one plugin of a running gateway, with its versions and the differences of its shadow", Args: cobra.ExactArgs(1),
		Example: "  weir plugin show acme-quirks",
		RunE: func(c *cobra.Command, args []string) error {
			var p shownPlugin
			show, err := g.call(c.Context(), request{path: pluginPath(args[0], "")}, &p)
			if !show {
				return err
			}
			var v struct {
				Versions []struct {
					Version, Digest, State, Origin, AddedAt string
					Active, Candidate                       bool
				}
			}
			if err := g.get(c.Context(), pluginPath(args[0], "/versions"), &v); err != nil {
				return err
			}
			if err := g.app.printPlugin(&p); err != nil {
				return err
			}
			rows := [][]string{}
			for _, x := range v.Versions {
				role := x.State
				switch {
				case x.Candidate:
					role += ", candidate"
				case x.Active:
					role += ", in force"
				}
				rows = append(rows, []string{x.Version, short(x.Digest)[:min(len(x.Digest), 12)], x.Origin, clock(x.AddedAt), role})
			}
			return g.app.table([]string{"version", "digest", "from", "since", "state"}, rows)
		},
	}
}

func (a *app) printPlugin(p *shownPlugin) error {
	lines := [][2]string{
		{"name", p.Name}, {"version", p.Version}, {"kinds", strings.Join(p.Kinds, ", ")}, {"mode", p.Mode}, {"state", p.State},
		{"from", p.Origin}, {"loader", p.Loader}, {"digest", p.Digest}, {"signed by", p.SignedBy}, {"fault", sentences(p.trouble())},
	}
	for _, ask := range devkit.Asked(p.Permissions) {
		lines = append(lines, [2]string{"asks for", ask.Name + ": " + ask.String()})
	}
	lines = append(lines, [2]string{"granted", string(p.Granted)})
	for _, of := range []*shownPlugin{p, p.Candidate} {
		if of != nil && of.Shadow != nil {
			lines = append(lines, [2]string{"shadow", of.Version + ": " + of.Shadow.String()})
			break
		}
	}
	for _, h := range p.Hidden {
		lines = append(lines, [2]string{"hides", h.Origin + " " + h.Version})
	}
	for _, d := range p.Differences {
		lines = append(lines, [2]string{"differs", fmt.Sprintf("%s %s %s %d: %s → %s by %s: %q", clock(d.At), d.Provider, d.Model, d.Status,
			d.Counted.Verdict.Reason, d.Shadow.Verdict.Reason, orHost(d.Shadow.DecidedBy), short(sentences(d.Excerpt)))})
	}
	for _, l := range lines {
		if l[1] == "" {
			l[1] = "-"
		}
		if err := a.say("%-10s %s", l[0], l[1]); err != nil {
			return err
		}
	}
	return a.say("")
}
