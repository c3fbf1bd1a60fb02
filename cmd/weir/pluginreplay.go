package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// replayed is the answer of a replay.
type replayed struct {
	Replayed, Changed, Failed int
	Table                     []struct {
		From, To       replayVerdict
		Count          int
		CooldownVaries bool
		Examples       []struct {
			At, Provider, Model, Message, RequestID, DecidedBy, Today string
			Status                                                    int
		}
	}
}

type replayVerdict struct {
	Status        int
	Reason, Scope string
	Elsewhere     bool   `json:"retryable_elsewhere"`
	WaitMS        *int64 `json:"cooldown_ms"`
	ChosenMS      int64  `json:"chosen_cooldown_ms"`
	Breaker       bool   `json:"trips_breaker"`
	Terminal      bool
}

// String is the verdict as a few words.
func (v replayVerdict) String() string {
	s := fmt.Sprintf("%d %s (%s)", v.Status, v.Reason, v.Scope)
	if v.WaitMS != nil {
		s += ", wait " + (time.Duration(*v.WaitMS) * time.Millisecond).String()
	}
	if v.ChosenMS > 0 {
		s += ", cool " + (time.Duration(v.ChosenMS) * time.Millisecond).String()
	}
	for _, flag := range []struct {
		on   bool
		word string
	}{{!v.Elsewhere, "stays"}, {v.Breaker, "breaker"}, {v.Terminal, "terminal"}} {
		if flag.on {
			s += ", " + flag.word
		}
	}
	return s
}

func pluginReplay(g *gateway) *cobra.Command {
	var last int
	var provider string
	c := &cobra.Command{
		Use: "replay FILE", Short: "Say what a plugin would decide otherwise on recorded errors", Args: cobra.ExactArgs(1),
		Example: "  weir plugin replay acme-quirks.yaml\n  weir plugin replay acme.wasm --last 200 --provider acme",
		Long: "Judge the error answers that a running gateway has recorded (setting errorRecord) twice, with the plugins in force and with FILE\n" +
			"beside them or in place of the one of its name, and print where the verdicts differ, with examples. Nothing is changed.",
		RunE: func(c *cobra.Command, args []string) error {
			module, err := os.ReadFile(args[0])
			if err != nil {
				return fail(exitFaulty, "%s cannot be read; name a file that is there", args[0])
			}
			query := url.Values{"last": {fmt.Sprint(last)}}
			if provider != "" {
				query.Set("provider", provider)
			}
			var a replayed
			show, err := g.call(c.Context(), request{method: http.MethodPost, path: "/api/plugins/replay?" + query.Encode(), raw: module, slow: true}, &a)
			if !show {
				return err
			}
			return g.app.printReplay(&a)
		},
	}
	c.Flags().IntVar(&last, "last", 1000, "how many of the newest records")
	c.Flags().StringVar(&provider, "provider", "", "only the records of this provider")
	return c
}

func (a *app) printReplay(r *replayed) error {
	if r.Changed > 0 {
		var rows [][]string
		for _, t := range r.Table {
			to := t.To.String()
			if t.CooldownVaries {
				to += " (waits vary)"
			}
			rows = append(rows, []string{fmt.Sprint(t.Count), t.From.String(), to})
		}
		if err := a.table([]string{"count", "today", "with it"}, rows); err != nil {
			return err
		}
		if err := a.say(""); err != nil {
			return err
		}
	}
	for _, t := range r.Table {
		for _, x := range t.Examples {
			if err := a.say("%s  %s %s  %d  %s → %s  by %s  %q", clock(x.At), x.Provider, x.Model, x.Status, t.From.Reason, t.To.Reason,
				orHost(x.DecidedBy), short(sentences(x.Message))); err != nil {
				return err
			}
		}
	}
	if r.Failed > 0 {
		if err := a.say("A hook failed on %s.", count(r.Failed, "record")); err != nil {
			return err
		}
	}
	return a.say("%d replayed, %d would change. Nothing was changed.", r.Replayed, r.Changed)
}

// orHost names who decides when no plugin has an opinion.
func orHost(decidedBy string) string {
	if decidedBy == "" {
		return "status alone"
	}
	return decidedBy
}
