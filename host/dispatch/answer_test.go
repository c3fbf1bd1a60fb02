package dispatch_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/host/settings"
)

// CMB-50, SCN-6: the accounts of one target are back at different times, and the answer names the first of them; the time of another
// target is not taken.
func TestFirstAccountOfTheTarget(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, to func(*catalog.Provider) *catalog.Route, stream bool) {
		l.snap.Settings.WaitForCooldown.Enabled, l.snap.Settings.ComboCooldownWait.Enabled = false, false
		p := l.provider("acme", "a", "b", "c")
		p.Passthrough = false
		for id, seconds := range map[string]int{"a": 20, "b": 30, "c": 300} {
			l.says(id, says(429, "slow down", seconds))
		}
		rt := to(p)
		rt.Config.MaxRetries = some(0)
		_, trail := l.do(rt, stream)
		if f := trail.Failure; f.Status != 429 || f.RetryAfter.Round(time.Second) != 20*time.Second || f.Message[:9] != "slow down" {
			t.Errorf("%+v", f)
		}
		other := l.provider("other", "d")
		l.says("d", says(429, "slow down", 60))
		_, trail = l.do(combo("priority", p, other), stream)
		if f := trail.Failure; f.RetryAfter.Round(time.Second) != 60*time.Second {
			t.Errorf("the surfaced target is back in a minute: %+v", f)
		}
	})
}

// CMB-52, CMB-53, CMB-16, CMB-14: also a combo whose time or whose attempts are used up says what was tried.
func TestDiagnosticsOfItsOwnEnd(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p := l.provider("acme", "a")
		l.says("a", ok().slowly(5*time.Second))
		rt := combo("priority", p)
		rt.Config.ComboTimeout, rt.Notes = some(time.Second), []string{"the reference to best makes a cycle (best > best) and is cut"}
		_, trail := l.do(rt, false)
		d := diagnosis(t, trail.Failure)
		if d.TerminalReason != "COMBO_TIMEOUT" || d.PoolSize != 1 || tell(trail, "Recovery-Action") != "retry" || tell(trail, "Combo-Pool-Size") != "1" {
			t.Errorf("%+v, %+v", d, trail.Tell)
		}
		if !slices.Equal(d.Notes, rt.Notes) { // CMB-3
			t.Errorf("notes %v", d.Notes)
		}

		l.says("b", says(500, "down"))
		rt = combo("priority", uncooled(l.provider("many", "b")))
		rt.Config = catalog.ComboConfig{MaxRetries: some(10), MaxSetRetries: some(10)}
		_, trail = l.do(rt, false)
		if f := trail.Failure; f.Code == "max_attempts_exceeded" {
			if d := diagnosis(t, f); d.TerminalReason != f.Code || d.Attempted != 30 {
				t.Errorf("%+v", d)
			}
		} else {
			t.Errorf("%+v", f)
		}
	})
}

// CMB-50, CMB-53: accounts without credit are back when a person acts; nobody is told to come back in a second.
func TestNoCreditAnywhere(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, to func(*catalog.Provider) *catalog.Route, stream bool) {
		l.rules(`[{"id":"credits","status":[429],"text_contains":["insufficient_quota"],"then":{"reason":"credits_exhausted","scope":"connection","terminal":true}}]`)
		p := l.provider("acme", "a", "b")
		p.Passthrough = false
		for _, id := range []string{"a", "b"} {
			l.says(id, says(429, "insufficient_quota: you exceeded your current quota"))
		}
		rt := to(p)
		_, trail := l.do(rt, stream)
		f := trail.Failure
		if f.Status != 429 || !f.NoRetry || f.RetryAfter != time.Hour || fact(f, "retry_after") != nil {
			t.Errorf("%+v", f)
		}
		if rt.Kind == catalog.KindCombo && (f.Code != "quota_exhausted" || tell(trail, "Recovery-Action") != "switch-combo") {
			t.Errorf("%+v, %+v", f, trail.Tell)
		}
	})
}

// CMB-50, CMB-52, BRK-32: while a breaker is being tested, nobody is sent away until the latest end of the test.
func TestToldWhileABreakerIsTested(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.ComboCooldownWait.Enabled = false
		l.snap.Settings.AttemptDeadline, l.snap.Settings.ExecutionMaxWait = 10*time.Minute, 10*time.Minute
		l.snap.Settings.ProviderBreaker.Local = settings.BreakerProfile{FailureThreshold: 1, DegradationThreshold: 1, ResetTimeout: 15 * time.Second}
		l.d.Circuit = func(p *catalog.Provider, at resilience.Moment) route.Circuit {
			if l.breakers.Status(at, p.ID).State == breaker.HalfOpen {
				return route.HalfOpen
			}
			return route.Closed
		}
		p := l.provider("acme", "a")
		rt := combo("priority", p)
		rt.Config.MaxRetries = some(0)
		l.says("a", says(503, "down"), ok().slowly(3*time.Second))
		l.do(rt, false)
		time.Sleep(20 * time.Second)
		go l.do(rt, false)
		time.Sleep(500 * time.Millisecond)
		_, trail := l.do(rt, false)
		if f := trail.Failure; f.Code != "all_targets_cooling_down" || f.RetryAfter > 2*time.Second {
			t.Errorf("%+v", f)
		}
		if d := diagnosis(t, trail.Failure); len(d.Excluded) != 1 || d.Excluded[0].RetryAfterMs > 2000 {
			t.Errorf("%+v", d)
		}
	})
}

// CMB-7, CMB-26: what holds for all routes, and the combo's own word above it.
func TestCascadeOfSettings(t *testing.T) {
	for _, c := range []struct {
		general bool
		own     *bool
		want    string
	}{{false, nil, "a@0"}, {true, nil, "a@0 b@0"}, {true, some(false), "a@0"}, {false, some(true), "a@0 b@0"}} {
		inLab(t, func(t *testing.T, l *lab) {
			l.rules(`[{"id":"filter","status":[400],"text_contains":["policy"],"then":{"reason":"content_filtered","scope":"request","fallback":true}}]`)
			l.snap.Settings.RouteDefaults.FallbackOnFilter = c.general
			rt := combo("priority", l.provider("acme", "a"), l.provider("other", "b"))
			rt.Config.FallbackOnFilter = c.own
			l.says("a", says(400, "against the policy"))
			l.says("b", ok())
			l.do(rt, false)
			l.want(c.want)
		})
	}
}
