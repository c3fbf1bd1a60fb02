package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

type loadedPlugin struct {
	Name, Version, Origin, File, Mode, State string
	Kinds                                    []string
	Rules                                    int
	Fault                                    *pluginFault
	Quarantine                               *struct{ Until string }
	Violation                                *struct{ Op, Kind, Cause string }
	Shadow                                   *shadowTally
}

// shadowTally is how the verdicts of a shadow compare with those that counted.
type shadowTally struct{ Agreed, Differed, Failed, Dropped int }

// String is the counts in words; empty: it is no shadow.
func (t *shadowTally) String() string {
	if t == nil {
		return ""
	}
	s := fmt.Sprintf("%d agreed, %d differed, %d failed", t.Agreed, t.Differed, t.Failed)
	if t.Dropped > 0 {
		s += fmt.Sprintf(", %d not compared", t.Dropped)
	}
	return s
}

type pluginFault struct {
	Step, Code, Message, File string
	Line, Column              int
}

// String is [file:line:column: ]step: message (code).
func (f *pluginFault) String() string {
	if f == nil {
		return ""
	}
	where := ""
	switch {
	case f.Line > 0:
		where = fmt.Sprintf("%s:%d:%d: ", f.File, f.Line, f.Column)
	case f.File != "":
		where = f.File + ": "
	}
	return fmt.Sprintf("%s%s: %s (%s)", where, f.Step, f.Message, f.Code)
}

// trouble is what keeps a plugin from its work: its fault, else its quarantine.
func (p *loadedPlugin) trouble() string {
	if p.Fault != nil || p.Quarantine == nil {
		return p.Fault.String()
	}
	said := "quarantined until " + clock(p.Quarantine.Until)
	if v := p.Violation; v != nil {
		said += ": " + v.Op + ", " + v.Kind + ", " + short(sentences(v.Cause))
	}
	return said
}

func pluginList(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the plugins of a running gateway, with the faults of those that it refused", Args: cobra.NoArgs,
		Example: "  weir plugin list\n  weir plugin list --json",
		RunE: func(c *cobra.Command, _ []string) error {
			var all []loadedPlugin
			show, err := g.list(c.Context(), "/api/plugins", "plugins", nil, &all)
			if !show {
				return err
			}
			var rows [][]string
			for i := range all {
				p := &all[i]
				rows = append(rows, []string{
					p.Name, p.Version, p.Origin, strings.Join(p.Kinds, ","), p.Mode, p.State, fmt.Sprint(p.Rules), p.Shadow.String(), sentences(p.trouble()),
				})
			}
			return g.app.table([]string{"name", "version", "from", "kinds", "mode", "state", "rules", "shadow", "fault"}, rows)
		},
	}
}
