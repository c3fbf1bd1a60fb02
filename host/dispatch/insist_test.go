package dispatch_test

import (
	"testing"
	"time"
)

// COOL-70, LOCK-32: the only account of a plain model, whose server fails for a moment, is waited for once while its cooldown is short;
// clients that do not try again by themselves rely on it. A failure that stays is told after that one wait.
func TestOneServerFailure(t *testing.T) {
	for _, status := range []int{503, 529} {
		for name, c := range map[string]struct {
			cooldown time.Duration
			script   []reply
			want     int
			tries    int
		}{
			"passes":        {3 * time.Second, []reply{says(status, "busy", 0), ok()}, 200, 2},
			"stays":         {3 * time.Second, []reply{says(status, "busy", 0), says(status, "busy", 0), ok()}, 0, 2},
			"long cooldown": {10 * time.Second, []reply{says(status, "busy", 0), ok()}, 0, 1},
		} {
			t.Run(name, func(t *testing.T) {
				inLab(t, func(t *testing.T, l *lab) {
					l.waits(90*time.Second, 300*time.Second, 5)
					p := l.provider("acme", "a")
					p.PerModel = true // the failure cools at once
					l.snap.Settings.ConnectionCooldown.Local.Base, l.snap.Settings.ModelLockout.Base = c.cooldown, c.cooldown
					l.says("a", c.script...)
					got, trail := l.do(direct(p), false)
					if got.status != c.want || len(trail.Attempts) != c.tries {
						t.Errorf("%d: answer %d after %d attempts in %s", status, got.status, len(trail.Attempts), trail.Took)
					}
				})
			})
		}
	}
}
