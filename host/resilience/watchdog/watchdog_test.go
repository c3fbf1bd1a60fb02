package watchdog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirgate/weir/host/resilience/watchdog"
)

// The scripts in testdata hold STM-20 (stall), STM-21 (disarmed by output), STM-24 (reasoning that stops), STM-28 (idle counts bytes),
// CMB-26 (stallTimeoutMs also after output), STM-30 to STM-33 and STM-35 (throughput).
//
//	watch [idle=] [stall=] [after=] [slow=WARMUP,WINDOW,RATE,BYTES]
//	play     input: lines "TIME bytes|active|output|text N|busy|linger D|check"; each check tells the fault and when to look again
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var w *watchdog.Watchdog
		start := time.Unix(0, 0)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			if d.Cmd == "watch" {
				w = watchdog.New(limits(t, d), start)
				return ""
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				f := strings.Fields(line)
				at, err := time.ParseDuration(f[0])
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				now := start.Add(at)
				switch f[1] {
				case "bytes":
					w.Heard(now)
				case "active":
					w.Saw(now, watchdog.Sign{Activity: true})
				case "output":
					w.Saw(now, watchdog.Sign{Activity: true, Output: true})
				case "busy":
					w.Saw(now, watchdog.Sign{Activity: true, Busy: true})
				case "text":
					n := 0
					_, _ = fmt.Sscan(f[2], &n)
					w.Saw(now, watchdog.Sign{Activity: true, Output: true, Text: n})
				case "linger":
					rest, _ := time.ParseDuration(f[2])
					w.Linger(rest)
				case "check":
					fault, next := w.Check(now)
					word := [...]string{"fine", "idle", "stalled", "too slow"}[fault]
					if next.IsZero() {
						fmt.Fprintf(&out, "%s %s\n", at, word)
					} else {
						fmt.Fprintf(&out, "%s %s, look at %s\n", at, word, next.Sub(start))
					}
				default:
					d.Fatalf(t, "there is no %s", f[1])
				}
			}
			return out.String()
		})
	})
}

func limits(t *testing.T, d *datadriven.TestData) (l watchdog.Limits) {
	t.Helper()
	for _, a := range d.CmdArgs {
		span := func(i int) time.Duration {
			x, err := time.ParseDuration(a.Vals[i])
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return x
		}
		switch a.Key {
		case "idle":
			l.Idle = span(0)
		case "stall":
			l.Stall = span(0)
		case "after":
			l.StallAfter = span(0)
		case "slow":
			l.Slow = watchdog.Slow{Enabled: true, Warmup: span(0), Window: span(1)}
			_, _ = fmt.Sscan(a.Vals[2], &l.Slow.MinRate)
			_, _ = fmt.Sscan(a.Vals[3], &l.Slow.MinBytes)
		}
	}
	return l
}
