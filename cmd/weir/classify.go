package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/host/devkit"
)

// kit is the gateway that plugin files and recorded answers are put before: this program's, not a running one.
func (a *app) kit() (devkit.Kit, error) {
	builtins, err := host.Builtins()
	if err != nil {
		return devkit.Kit{}, err
	}
	return devkit.Kit{Version: version, Builtins: builtins}, nil
}

func (a *app) classify() *cobra.Command {
	var asJSON, expect, explain, hints bool
	var plugins string
	c := &cobra.Command{
		Use: "classify [FILE...]", Short: "Say what recorded error answers mean",
		Example: "  weir classify answers.jsonl\n  weir classify --expect --plugins my-plugins upstream-errors.jsonl\n" +
			"  echo '{\"provider\":\"openai\",\"status\":429,\"body\":\"slow down\"}' | weir classify --json",
		Long: "Read error answers of providers as JSON Lines, from files or the standard input, and print for each the status that a\n" +
			"client would see and the verdict, as a gateway with the built-in packs decides. A line has provider, status (0: no\n" +
			"answer), headers, body, and as far as they matter id, auth, model, endpoint, stream_error and now (the moment of its\n" +
			"arrival); a line with expect_ms has only its times read. With --expect each verdict is compared with the line's expect,\n" +
			"and what was taken for another reason is counted by reason. With --explain each verdict names the parts of the answer\n" +
			"that its rule rests on; with --hints only times are read.\n" +
			"Exit 1 when one differs, or a line cannot be read. No running gateway is needed.",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.kit()
			if err != nil {
				return err
			}
			answers, faults, err := a.answers(args, expect)
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			if hints {
				answers = hintsOnly(answers)
			}
			court, err := k.Open(c.Context(), plugins)
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			defer func() { _ = court.Close(c.Context()) }() // it wrote nothing
			if explain {
				court.Explain()
			}
			differ, err := a.judge(c.Context(), court, answers, expect, asJSON)
			if err != nil {
				return err
			}
			for _, f := range faults {
				fmt.Fprintln(a.err, "weir: "+printable(f.Error()))
			}
			if len(faults) > 0 {
				return fail(exitFaulty, "%s cannot be read; mend what is named above", count(len(faults), "line"))
			}
			if differ > 0 {
				return fail(exitFaulty, "")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON Lines, one verdict each")
	c.Flags().BoolVar(&expect, "expect", false, "compare with each line's expect, and print what differs")
	c.Flags().BoolVar(&explain, "explain", false, "say for each verdict which field of the answer the rule rests on")
	c.Flags().BoolVar(&hints, "hints", false, "only read when each answer says to come back, and compare that")
	c.Flags().StringVar(&plugins, "plugins", "", "folder of plugins to judge with, beside the built-in ones")
	return c
}

// answers reads all files, or the standard input.
func (a *app) answers(files []string, expect bool) (all []devkit.Answer, faults []devkit.LineFault, err error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, file := range files {
		some, bad, err := a.answersOf(file, expect)
		if err != nil {
			return nil, nil, err
		}
		all, faults = append(all, some...), append(faults, bad...)
	}
	return all, faults, nil
}

func (a *app) answersOf(file string, expect bool) ([]devkit.Answer, []devkit.LineFault, error) {
	if file == "-" {
		return devkit.Answers("stdin", a.in, expect)
	}
	r, err := open(file)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	return devkit.Answers(file, r, expect)
}

func open(file string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read; name a file that is there", file)
	}
	return f, nil
}

// compared is a line of --json: with --expect it names what differs.
type compared struct {
	devkit.Judged
	Differs []devkit.Difference `json:"differs,omitempty"`
}

// judge prints the verdicts, or with expect what differs, and returns how many do.
func (a *app) judge(ctx context.Context, court *devkit.Court, answers []devkit.Answer, expect, asJSON bool) (differ int, err error) {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	now := time.Now()
	var rows [][]string
	confused := confusion{}
	for i := range answers {
		c := compared{Judged: court.Judge(ctx, &answers[i], now)}
		if expect {
			c.Differs = devkit.Differ(&answers[i], c.Judged)
			confused.note(&answers[i], c.Judged)
		}
		if len(c.Differs) > 0 {
			differ++
		}
		switch {
		case asJSON:
			if err := e.Encode(c); err != nil {
				return differ, err
			}
		case expect:
			for _, d := range c.Differs {
				rows = append(rows, []string{c.ID, d.Field, string(d.Expected), string(d.Got), c.DecidedBy})
			}
		default:
			rows = append(rows, verdictRow(c.Judged))
		}
		if !asJSON && (!expect || len(c.Differs) > 0) {
			rows = append(rows, causeRows(c.Judged, expect)...)
		}
	}
	if asJSON {
		if expect { // the lines are for programs, the sum for people
			_, err = fmt.Fprintln(a.err, score(len(answers), differ))
		}
		return differ, err
	}
	if !expect {
		return differ, a.table([]string{"id", "status", "reason", "scope", "elsewhere", "wait", "breaker", "terminal", "restated by", "decided by"}, rows)
	}
	if len(rows) > 0 {
		if err := a.table([]string{"id", "field", "expected", "got", "decided by"}, rows); err != nil {
			return differ, err
		}
	}
	if err := a.confusionTable(confused); err != nil {
		return differ, err
	}
	return differ, a.say("%s", score(len(answers), differ))
}

// score is the last line of what is compared or tested.
func score(all, failed int) string { return fmt.Sprintf("%d passed, %d failed", all-failed, failed) }

func verdictRow(j devkit.Judged) []string {
	row := []string{j.ID, "", string(j.Reason), string(j.Scope), "", "", "", "", j.RestatedBy, j.DecidedBy}
	if j.Status != nil {
		row[1] = fmt.Sprint(*j.Status)
	}
	for at, v := range map[int]*bool{4: j.Fallback, 6: j.Breaker, 7: j.Terminal} {
		if v != nil {
			row[at] = yes(*v)
		}
	}
	if j.WaitMS != nil {
		row[5] = (time.Duration(*j.WaitMS) * time.Millisecond).String()
	}
	return row
}
