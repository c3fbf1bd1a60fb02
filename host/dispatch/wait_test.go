package dispatch_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// SCN-6, COOL-70, CMB-41 to CMB-43, CMB-45: accounts that cool for 2, 30 and 300 s. A budget that is long enough waits for the first of
// them; otherwise the answer comes at once, with its time and the reasons.
func TestWaitForTheFirst(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
		p := l.provider("acme", "a", "b", "c")
		l.says("a", says(429, "slow down", 30), ok())
		l.says("b", says(429, "slow down", 2), ok())
		l.says("c", says(429, "slow down", 300), ok())
		rt := route(p)
		if _, trail := l.do(rt, stream); trail.Failure == nil || trail.Failure.Status != 429 {
			t.Fatalf("%+v", trail.Failure)
		}
		l.want("a@0 b@0 c@0")

		l.waits(time.Second, time.Second, 5)
		_, trail := l.do(rt, stream)
		f := trail.Failure
		if f == nil || f.Status != 429 || f.RetryAfter.Round(10*time.Millisecond) != 2*time.Second || trail.Took != 0 {
			t.Errorf("SCN-6: %+v after %s", f, trail.Took)
		}
		gate := "connection_cooldown"
		if rt.Kind == catalog.KindCombo {
			gate = "model_lockout" // a combo locks the model alone (LOCK-11)
		}
		d := diagnosis(t, f)
		if d.reasons() != gate+" "+gate+" "+gate || d.Excluded[1].RetryAfterMs > 2000 || d.Excluded[1].RetryAfterMs < 1900 {
			t.Errorf("CMB-52: %+v", d)
		}
		l.want("")

		l.waits(5*time.Second, 5*time.Second, 5)
		c, trail := l.do(rt, stream)
		if c.status != 200 || !strings.Contains(c.body.String(), "hello") || trail.Failure != nil {
			t.Errorf("SCN-6: %d %+v", c.status, trail.Failure)
		}
		if trail.Took < 2*time.Second || trail.Took > 2100*time.Millisecond {
			t.Errorf("CMB-43: waited %s", trail.Took)
		}
		if got := l.hits(); !strings.HasPrefix(got, "b@2.0") {
			t.Error(got)
		}
	})
}

// CMB-41, COOL-70: a request that itself runs into a short rate limit waits and is answered.
func TestWaitAfterAnAttempt(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
		l.waits(90*time.Second, 300*time.Second, 5)
		p := l.provider("acme", "a")
		l.says("a", says(429, "slow down", 3), says(429, "slow down", 4), ok())
		c, trail := l.do(route(p), stream)
		if c.status != 200 || len(trail.Attempts) != 3 {
			t.Errorf("%d %+v", c.status, trail.Failure)
		}
		if trail.Took < 7*time.Second || trail.Took > 7200*time.Millisecond {
			t.Error(trail.Took)
		}
	})
}

// CMB-42, COOL-70: the number of waits and their sum are bounded.
func TestWaitBounds(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
		p := l.provider("acme", "a")
		l.says("a", says(429, "slow down", 10))
		l.waits(20*time.Second, 300*time.Second, 2)
		_, trail := l.do(route(p), stream)
		if len(trail.Attempts) != 3 || trail.Failure.Status != 429 || trail.Failure.RetryAfter != 10*time.Second {
			t.Errorf("by number: %d attempts, %+v", len(trail.Attempts), trail.Failure)
		}
		time.Sleep(time.Minute)
		l.waits(20*time.Second, 25*time.Second, 9)
		_, trail = l.do(route(p), stream)
		if len(trail.Attempts) != 3 || trail.Took > 25*time.Second {
			t.Errorf("by budget: %d attempts in %s", len(trail.Attempts), trail.Took)
		}
	})
}

// COOL-71, CMB-44: no wait for a quota, a refused credential or an unknown model, even with a short time; and none when it is off.
func TestNoWait(t *testing.T) {
	for name, c := range map[string]struct {
		first reply
		off   bool
	}{
		"quota":      {first: says(429, "quota", 2)},
		"credential": {first: says(401, "bad key", 2)},
		"off":        {first: says(429, "slow down", 2), off: true},
	} {
		t.Run(name, func(t *testing.T) {
			ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
				l.rules(`[{"id":"q","status":[429],"text_contains":["quota"],"then":{"reason":"quota_exhausted","scope":"connection"}}]`)
				if !c.off {
					l.waits(90*time.Second, 300*time.Second, 5)
				}
				p := l.provider("acme", "a")
				l.says("a", c.first)
				rt := route(p)
				zero := 0
				rt.Config.MaxRetries = &zero
				for range 2 {
					if _, trail := l.do(rt, stream); trail.Took != 0 || trail.Failure == nil {
						t.Errorf("waited %s for %+v", trail.Took, trail.Failure)
					}
				}
				l.want("a@0")
			})
		})
	}
}

// CMB-43: an upstream that asked for more time than its cooldown lasts is not asked before that.
func TestWaitForTheHint(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.waits(90*time.Second, 300*time.Second, 5)
		l.snap.Settings.ConnectionCooldown.Local.UseHints = false
		p := l.provider("acme", "a")
		l.says("a", says(429, "slow down", 7), ok())
		if c, trail := l.do(direct(p), false); c.status != 200 || trail.Took < 7*time.Second || trail.Took > 7100*time.Millisecond {
			t.Errorf("%d after %s", c.status, trail.Took)
		}
	})
}

// CMB-43: each target is looked up under its own model: a lock of another model is not waited for.
func TestWaitByModel(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.rules(`[{"id":"m","status":[429],"then":{"reason":"rate_limit_exceeded","scope":"model"}}]`)
		p := l.provider("acme", "a")
		l.says("a", says(429, "slow down", 30), ok())
		rt := combo("priority", p)
		l.do(rt, false)
		l.hits()
		l.waits(90*time.Second, 300*time.Second, 5)
		rt.Targets[0].Model = "other"
		if c, trail := l.do(rt, false); c.status != 200 || trail.Took != 0 {
			t.Errorf("another model: %d after %s", c.status, trail.Took)
		}
		rt.Targets[0].Model = "m"
		if c, trail := l.do(rt, false); c.status != 200 || trail.Took < 30*time.Second || trail.Took > 31*time.Second {
			t.Errorf("CMB-45: the model itself: %d after %s, %+v", c.status, trail.Took, trail.Failure)
		}
	})
}

// CMB-46: a combo that may not wait says when; one that only quotas keep from answering does not.
func TestComboThatMayNotWait(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.rules(`[{"id":"q","status":[429],"text_contains":["quota"],"then":{"reason":"quota_exhausted","scope":"connection"}}]`)
		p, q := l.provider("acme", "a"), l.provider("other", "b")
		l.says("a", says(429, "slow down", 20))
		l.says("b", says(429, "quota", 5))
		both, quota := combo("priority", p, q), combo("priority", q)
		quota.Name = "quota"
		l.do(both, false)
		_, trail := l.do(both, false)
		f := trail.Failure
		if f.Status != 429 || f.Type != "rate_limit_error" || f.RetryAfter.Round(10*time.Millisecond) != 20*time.Second || fact(f, "retry_after") != int64(20) {
			t.Errorf("%+v", f)
		}
		if at, err := time.Parse(time.RFC3339, fact(f, "reset_at").(string)); err != nil || at.Sub(l.began).Round(time.Second) != 20*time.Second {
			t.Error(at, err)
		}
		if d := diagnosis(t, f); d.reasons() != "model_lockout quota_exhausted" || d.PoolSize != 2 || d.Recovery != "wait" {
			t.Errorf("CMB-12, CMB-52: %+v", d)
		}
		if tell(trail, "Recovery-Action") != "wait" || tell(trail, "Retry-After-Seconds") != "20" || tell(trail, "Combo-Pool-Size") != "2" {
			t.Errorf("CMB-53: %+v", trail.Tell)
		}
		_, trail = l.do(quota, false)
		if f := trail.Failure; f.Status != 503 || f.Code != "ALL_TARGETS_SKIPPED" || f.RetryAfter != 0 {
			t.Errorf("only quotas: %+v", f)
		}
	})
}

// CMB-47: a combo turns its waits off; it cannot turn on what is off for all.
func TestComboTurnsTheWaitOff(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p := l.provider("acme", "a")
		l.says("a", says(429, "slow down", 4))
		rt := combo("priority", p)
		on, off := true, false
		l.waits(90*time.Second, 300*time.Second, 5)
		rt.Config.CooldownWait = &off
		if _, trail := l.do(rt, false); trail.Took != 0 || trail.Failure == nil {
			t.Errorf("false: waited %s", trail.Took)
		}
		l.snap.Settings.ComboCooldownWait.Enabled = false
		rt.Config.CooldownWait = &on
		if _, trail := l.do(rt, false); trail.Took != 0 || trail.Failure == nil {
			t.Errorf("true: waited %s although it is off for all", trail.Took)
		}
	})
}

// CMB-48, COOL-74, CMB-17: a client that leaves while it waits gets no further attempt.
func TestLeavingWhileWaiting(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
		l.waits(90*time.Second, 300*time.Second, 5)
		p := l.provider("acme", "a")
		l.says("a", says(429, "slow down", 30), ok())
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, trail := l.doCtx(ctx, route(p), stream)
		if !trail.Cancelled || trail.Failure != nil || trail.Took != 5*time.Second {
			t.Errorf("%+v", trail)
		}
		time.Sleep(time.Minute)
		l.want("a@0")
	})
}

// CMB-16: the time of the whole combo also ends a wait.
func TestComboTimeoutEndsAWait(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.waits(90*time.Second, 300*time.Second, 5)
		l.says("a", says(429, "slow down", 30), ok())
		rt := combo("priority", l.provider("acme", "a"))
		rt.Config.ComboTimeout = some(7 * time.Second)
		if _, trail := l.do(rt, false); trail.Failure == nil || trail.Failure.Code != "COMBO_TIMEOUT" || trail.Failure.Status != 504 || trail.Took != 7*time.Second {
			t.Errorf("%+v after %s", trail.Failure, trail.Took)
		}
	})
}

// CMB-45, BRK-44: a combo waits for the probe of an open breaker, a direct request is refused at once and told when.
func TestOpenBreaker(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.waits(90*time.Second, 300*time.Second, 5)
		l.snap.Settings.ProviderBreaker.Local = settings.BreakerProfile{FailureThreshold: 1, DegradationThreshold: 1, ResetTimeout: 15 * time.Second}
		p := l.provider("acme", "a", "b")
		l.says("a", says(503, "down"), ok())
		l.says("b", says(503, "down"), ok())
		l.do(direct(p), false)
		if got := l.hits(); got != "a@0 b@0" {
			t.Errorf("asked, until all accounts had failed and the breaker opened: %s", got)
		}
		_, trail := l.do(direct(p), false)
		f := trail.Failure
		if f.Status != 503 || f.Code != "provider_circuit_open" || f.Type != "server_error" || fact(f, "provider") != "acme" ||
			fact(f, "retry_after") != int64(15) || f.RetryAfter.Round(time.Second) != 15*time.Second || tell(trail, "Provider-Breaker") != "open" {
			t.Errorf("BRK-44: %+v %+v", f, trail.Tell)
		}
		if len(trail.Excluded) != 1 || trail.Took != 0 {
			t.Errorf("one refusal speaks for the provider: %+v", trail.Excluded)
		}
		c, trail := l.do(combo("priority", p), false)
		if c.status != 200 || trail.Took < 15*time.Second || trail.Took > 15100*time.Millisecond {
			t.Errorf("CMB-45: %d after %s, %+v", c.status, trail.Took, trail.Failure)
		}
	})
}

// CMB-51, OTH-51: breakers alone keep a combo from answering, whose targets are all there: 503 with the first end.
func TestAllCoolingDown(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.ProviderBreaker.Local = settings.BreakerProfile{FailureThreshold: 1, DegradationThreshold: 1, ResetTimeout: 15 * time.Second}
		p := l.provider("acme", "a")
		l.says("a", says(503, "down"))
		for _, strategy := range []string{"priority", "weighted"} {
			rt := combo(strategy, p, p)
			rt.Targets[1].Key, rt.Targets[1].Model = "acme/n", "n"
			l.do(rt, false)
			_, trail := l.do(rt, false)
			f := trail.Failure
			if f.Status != 503 || f.Code != "all_targets_cooling_down" || f.Type != "service_unavailable" || f.RetryAfter <= 0 {
				t.Errorf("%s: %+v", strategy, f)
			}
			if d := diagnosis(t, f); d.reasons() != "circuit_open circuit_open" {
				t.Errorf("%+v", d)
			}
		}
	})
}

// CMB-50: weighted selection answers 503 also where the others wait or answer 429.
func TestWeightedCoolingDown(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p := l.provider("acme", "a")
		l.says("a", says(429, "slow down", 20))
		rt := combo("weighted", p)
		l.do(rt, false)
		if _, trail := l.do(rt, false); trail.Failure.Status != 503 || trail.Failure.Code != "all_targets_cooling_down" ||
			trail.Failure.RetryAfter.Round(10*time.Millisecond) != 20*time.Second {
			t.Errorf("%+v", trail.Failure)
		}
	})
}

// CMB-15: a combo that may wait gives its targets more time, unless it says how much or does not wait.
func TestTargetTimeoutIsRaised(t *testing.T) {
	off, own := false, 60*time.Second
	for name, c := range map[string]struct {
		config catalog.ComboConfig
		want   int
	}{
		"raised":   {catalog.ComboConfig{}, 200},
		"no wait":  {catalog.ComboConfig{CooldownWait: &off}, 504},
		"explicit": {catalog.ComboConfig{TargetTimeout: &own}, 504},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				l.waits(90*time.Second, 300*time.Second, 5)
				l.snap.Settings.FetchTimeout, l.snap.Settings.ReadinessTimeout, l.snap.Settings.StreamIdleTimeout = time.Hour, time.Hour, time.Hour
				l.says("a", ok().slowly(200*time.Second))
				rt := combo("priority", l.provider("acme", "a"))
				rt.Config = c.config
				got, trail := l.do(rt, true)
				if got.status != c.want && (trail.Failure == nil || trail.Failure.Status != c.want) {
					t.Errorf("%d %+v", got.status, trail.Failure)
				}
			})
		})
	}
}

// COOL-70: requests that wait for one account do not fall upon it together when its cooldown ends: one of them finds out whether it
// answers, and the others follow it or wait on.
func TestWaitersGoOneByOne(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p := l.provider("acme", "a")
		l.says("a", says(429, "slow down", 2), says(429, "slow down", 5).slowly(100*time.Millisecond), ok())
		l.do(direct(p), false)
		l.waits(90*time.Second, 300*time.Second, 5)
		var all sync.WaitGroup
		trails := make([]*dispatch.Trail, 20)
		for i := range trails {
			all.Go(func() { _, trails[i] = l.do(direct(p), false) })
		}
		time.Sleep(4 * time.Second)
		if got := l.hits(); strings.Count(got, "a@") != 2 {
			t.Errorf("the account was asked by more than one: %s", got)
		}
		all.Wait()
		for _, trail := range trails {
			if trail.Status != 200 || trail.Took > 8*time.Second {
				t.Errorf("%d after %s: %+v", trail.Status, trail.Took, trail.Failure)
			}
		}
	})
}

// CMB-42: nothing is waited for where the model itself is refused.
func TestNoWaitForARefusedRequest(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.waits(90*time.Second, 300*time.Second, 5)
		p, q := l.provider("acme", "a"), l.provider("other", "b")
		l.says("b", says(429, "slow down", 20))
		l.do(combo("priority", q), false)
		l.hits()
		began := time.Now()
		l.says("a", says(400, "bad parameter"))
		_, trail := l.do(combo("priority", p, q), false)
		if trail.Failure.Status != 400 || trail.Took != 0 || time.Since(began) != 0 || trail.Last().Verdict.Reason != wire.InvalidRequest {
			t.Errorf("CMB-18: %+v after %s", trail.Failure, trail.Took)
		}
	})
}

// BRK-44, CMB-45: while one request tests a half-open breaker the others are told to come back soon, and a combo asks again soon; the
// breaker itself only knows when the test ends at the latest (BRK-32).
func TestBreakerUnderTest(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.waits(90*time.Second, 300*time.Second, 5)
		l.snap.Settings.AttemptDeadline, l.snap.Settings.ExecutionMaxWait = 10*time.Minute, 10*time.Minute
		l.snap.Settings.ProviderBreaker.Local = settings.BreakerProfile{FailureThreshold: 1, DegradationThreshold: 1, ResetTimeout: 15 * time.Second}
		l.d.Circuit = func(p *catalog.Provider, at resilience.Moment) route.Circuit {
			if l.breakers.Status(at, p.ID).State == breaker.HalfOpen {
				return route.HalfOpen
			}
			return route.Closed
		}
		p := l.provider("acme", "a")
		l.says("a", says(503, "down"), ok().slowly(3*time.Second), ok())
		l.do(direct(p), false)
		time.Sleep(20 * time.Second)
		go l.do(direct(p), false)
		time.Sleep(500 * time.Millisecond)
		_, trail := l.do(direct(p), false)
		if f := trail.Failure; f == nil || f.Code != "provider_circuit_open" || f.RetryAfter != time.Second {
			t.Errorf("%+v", f)
		}
		if c, trail := l.do(combo("priority", p), false); c.status != 200 || trail.Took > 4*time.Second {
			t.Errorf("%d after %s: %+v", c.status, trail.Took, trail.Failure)
		}
	})
}
