package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weirgate/weir/host/devkit"
)

// pair is a reason that was expected and the one that was given.
type pair struct{ want, got string }

// confusion counts verdicts by expected and given reason.
type confusion map[pair]int

func (c confusion) note(a *devkit.Answer, j devkit.Judged) {
	if want, ok := a.Expect["reason"].(string); ok && !a.Hint {
		c[pair{want, string(j.Reason)}]++
	}
}

// rows are the reasons that some verdict got wrong: how often each was taken for which, the most frequent first.
func (c confusion) rows() [][]string {
	right, wrong := map[string]int{}, []pair(nil)
	for p, n := range c {
		if p.want == p.got {
			right[p.want] = n
		} else {
			wrong = append(wrong, p)
		}
	}
	slices.SortFunc(wrong, func(a, b pair) int {
		return cmp.Or(c[b]-c[a], cmp.Compare(a.want, b.want), cmp.Compare(a.got, b.got))
	})
	var rows [][]string
	for _, p := range wrong {
		rows = append(rows, []string{p.want, p.got, strconv.Itoa(c[p]), strconv.Itoa(right[p.want])})
	}
	return rows
}

// confusionTable prints which reasons were taken for which; nothing when all are right.
func (a *app) confusionTable(c confusion) error {
	rows := c.rows()
	if len(rows) == 0 {
		return nil
	}
	return a.table([]string{"reason", "taken for", "times", "right"}, rows)
}

// causeRows are the lines of --explain below a verdict, in the columns of its table.
func causeRows(j devkit.Judged, expect bool) [][]string {
	var rows [][]string
	add := func(who string, causes []devkit.Cause) {
		for _, c := range causes {
			row := []string{"", who, c.Field, c.Asked, c.Found}
			if !expect {
				row = append(row, "", "", "", "", "")
			}
			rows = append(rows, row)
		}
	}
	add("restated", j.Restating)
	add("decided", j.Deciding)
	if j.WaitFrom != "" {
		add("wait", []devkit.Cause{{Field: j.WaitFrom}})
	}
	return rows
}

// hintsOnly has the times alone read of every answer.
func hintsOnly(answers []devkit.Answer) []devkit.Answer {
	for i := range answers {
		a := &answers[i]
		if ms, ok := a.Expect["cooldown_ms"].(float64); ok && !a.Hint {
			wait := int64(ms)
			a.Wait = &wait
		}
		a.Hint = true
	}
	return answers
}
