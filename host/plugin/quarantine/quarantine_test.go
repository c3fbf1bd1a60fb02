package quarantine

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

var epoch = time.Unix(1_790_000_000, 0)

// The scripts are the table of ABI-8 as histories. A line is a time and a command:
//
//	ok [n]          n calls without a violation
//	fail W [n]      n calls with a violation of weight W (1, 0.2)
//	begin NAME      a call begins
//	end NAME [W]    it ends
//	cancel NAME     it was not made
//	state           says the state
//	lift            an operator lifts the quarantine
func TestScripts(t *testing.T) { // ABI-8, PLG-5
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var m Machine
		open := map[string]Pass{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for line := range strings.SplitSeq(d.Input, "\n") {
				f := strings.Fields(line)
				after, err := time.ParseDuration(f[0])
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				fmt.Fprintf(&out, "%s %s\n", line, step(t, &m, open, epoch.Add(after), f[1], f[2:]))
			}
			return out.String()
		})
	})
}

var changes = map[Change]string{Same: "same", Quarantined: "quarantined", Again: "quarantined again", Restored: "restored"}

func step(t *testing.T, m *Machine, open map[string]Pass, now time.Time, command string, args []string) string {
	weight := func(s string) Weight {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return Weight(f*10 + 0.5)
	}
	calls := func(n string, w Weight) string {
		times, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for i := range times {
			p, ok := m.Admit(now)
			if !ok {
				return fmt.Sprintf("→ refused at call %d", i+1)
			}
			if c := m.Done(now, p, w); c != Same || i == times-1 {
				last = fmt.Sprintf("→ %s after %d", changes[c], i+1)
			}
		}
		return last
	}
	args = append(args, "1")
	switch command {
	case "ok":
		return calls(args[0], 0)
	case "fail":
		return calls(args[1], weight(args[0]))
	case "begin":
		p, ok := m.Admit(now)
		if !ok {
			return "→ refused"
		}
		open[args[0]] = p
		return "→ admitted"
	case "end":
		w := Weight(0)
		if len(args) > 2 {
			w = weight(args[1])
		}
		return "→ " + changes[m.Done(now, open[args[0]], w)]
	case "cancel":
		m.Cancel(open[args[0]])
		return "→ cancelled"
	case "lift":
		m.Lift()
		return "→ lifted"
	case "state":
		s, until := m.State(now)
		if s == Active {
			return fmt.Sprintf("→ %s, clean %v", s, m.Clean(now))
		}
		return fmt.Sprintf("→ %s, trials from %s", s, until.Sub(epoch))
	}
	t.Fatal("no command", command)
	return ""
}

// Random histories keep what ABI-8 promises, whatever the order of beginnings and ends.
func TestProperties(t *testing.T) { // ABI-8
	rapid.Check(t, func(t *rapid.T) {
		var m Machine
		now, trials := epoch, 0
		type call struct {
			Pass
			trial bool
		}
		var open []call
		var offs []time.Duration
		rapidSteps := rapid.IntRange(1, 200).Draw(t, "steps")
		for range rapidSteps {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			before, until := m.State(now)
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what <= 1:
				p, ok := m.Admit(now)
				if ok != (before == Active || before == Trial && trials == 0) {
					t.Fatalf("admitted %v in state %s with %d trials under way", ok, before, trials)
				}
				if ok {
					open = append(open, call{p, before == Trial})
					if before == Trial {
						trials++
					}
				}
			case len(open) > 0:
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				c := open[i]
				open = append(open[:i], open[i+1:]...)
				if c.trial {
					trials--
				}
				if rapid.IntRange(0, 9).Draw(t, "made") == 0 {
					m.Cancel(c.Pass)
					break
				}
				w := Weight(rapid.SampledFrom([]int{0, 0, 2, 10}).Draw(t, "weight"))
				change := m.Done(now, c.Pass, w)
				state, next := m.State(now)
				switch change {
				case Quarantined:
					offs = []time.Duration{next.Sub(now)}
					if before != Active || w == 0 || offs[0] != FirstOff {
						t.Fatalf("quarantined from %s by weight %d for %s", before, w, offs[0])
					}
				case Again:
					offs = append(offs, next.Sub(now))
					if want := min(2*offs[len(offs)-2], LongestOff); offs[len(offs)-1] != want || !c.trial {
						t.Fatalf("a trial failed: off for %s, want %s", offs[len(offs)-1], want)
					}
				case Restored:
					if !c.trial || state != Active || !m.Clean(now) {
						t.Fatalf("restored to %s", state)
					}
				case Same:
					if state != before || next != until {
						t.Fatalf("no change, but %s became %s", before, state)
					}
				}
			}
		}
	})
}
