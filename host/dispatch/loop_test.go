package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// uncooled makes failures of the provider cool nothing, so that only the loop decides what is tried again.
func uncooled(p *catalog.Provider) *catalog.Provider {
	for _, c := range p.Connections {
		c.DisableCooling = true
	}
	return p
}

func some[T any](v T) *T { return &v }

// CMB-13, CMB-19: a further try of the same connection waits for retryDelayMs and is counted; it is made where the failure has left
// the connection free by then.
func TestAgain(t *testing.T) {
	down := says(503, "down")
	for _, c := range []struct {
		name   string
		config catalog.ComboConfig
		steps  []reply
		cools  time.Duration
		status int
		hits   string
	}{
		{"once by default, after 2 s", catalog.ComboConfig{}, []reply{down, ok()}, 0, 200, "a@0 a@2"},
		{"not twice by default", catalog.ComboConfig{}, []reply{down, down, ok()}, 0, 503, "a@0 a@2"},
		{"maxRetries and retryDelayMs", catalog.ComboConfig{MaxRetries: some(3), RetryDelay: some(7 * time.Second)}, []reply{down, down, down, ok()}, 0, 200, "a@0 a@7 a@14 a@21"},
		{"0 is never", catalog.ComboConfig{MaxRetries: some(0)}, []reply{down, ok()}, 0, 503, "a@0"},
		{"a cooldown beyond the delay is not waited for", catalog.ComboConfig{MaxRetries: some(3)}, []reply{down, ok()}, 3 * time.Second, 503, "a@0"},
		{"a cooldown within the delay is", catalog.ComboConfig{MaxRetries: some(1), RetryDelay: some(5 * time.Second)}, []reply{down, ok()}, 3 * time.Second, 200, "a@0 a@5"},
		{"not on 401", catalog.ComboConfig{MaxRetries: some(3)}, []reply{says(401, "bad key"), ok()}, 0, 502, "a@0"},
		{"not on 400", catalog.ComboConfig{MaxRetries: some(3)}, []reply{says(400, "bad parameter"), ok()}, 0, 400, "a@0"},
		{"on 408, 500, 502 and 504", catalog.ComboConfig{MaxRetries: some(4), RetryDelay: some(time.Second)},
			[]reply{says(408, "x"), says(500, "x"), says(502, "x"), says(504, "x"), ok()}, 0, 200, "a@0 a@1 a@2 a@3 a@4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
				p := l.provider("acme", "a")
				if l.snap.Settings.ConnectionCooldown.Local.Base = c.cools; c.cools == 0 {
					uncooled(p)
				}
				l.says("a", c.steps...)
				rt := route(p)
				rt.Config = c.config
				got, trail := l.do(rt, stream)
				status := got.status
				if trail.Failure != nil {
					status = trail.Failure.Status
				}
				if status != c.status {
					t.Errorf("%d %+v", status, trail.Failure)
				}
				l.want(c.hits)
			})
		})
	}
}

// CMB-19, CMB-13: other connections are tried at once and not counted; with a further target a silent combo goes on to it, and one that
// says how often stays.
func TestAgainAmongSeveral(t *testing.T) {
	down := says(503, "down")
	for _, c := range []struct {
		name   string
		config catalog.ComboConfig
		hits   string
	}{
		{"silent", catalog.ComboConfig{}, "a@0 b@0 c@0"},
		{"told", catalog.ComboConfig{MaxRetries: some(1), RetryDelay: some(time.Second)}, "a@0 b@0 b@1 c@1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				l.says("a", down)
				l.says("b", down)
				l.says("c", ok())
				rt := combo("priority", uncooled(l.provider("acme", "a", "b")), l.provider("other", "c"))
				rt.Config = c.config
				if got, trail := l.do(rt, false); got.status != 200 || len(trail.Attempts) < 3 {
					t.Errorf("%d %+v", got.status, trail.Failure)
				}
				l.want(c.hits)
			})
		})
	}
}

// CMB-16: the whole set is repeated after setRetryDelayMs; a bad key stays out (CMB-20, CMB-25).
func TestSetRetries(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p, q := uncooled(l.provider("acme", "a")), uncooled(l.provider("other", "k"))
		l.says("a", says(500, "x"), says(500, "x"), ok())
		l.says("k", says(401, "bad key"), ok())
		rt := combo("priority", p, q)
		rt.Config = catalog.ComboConfig{MaxRetries: some(0), MaxSetRetries: some(2), SetRetryDelay: some(3 * time.Second)}
		if got, trail := l.do(rt, false); got.status != 200 {
			t.Errorf("%+v", trail.Failure)
		}
		l.want("a@0 k@0 a@3 a@6")
	})
}

// CMB-14: thirty dispatches over targets, retries and waits; reasoning that used up the tokens is told apart.
func TestThirtyDispatches(t *testing.T) {
	for message, code := range map[string]string{"down": "max_attempts_exceeded", "reasoning used the whole token budget": "reasoning_budget_exhausted"} {
		inLab(t, func(t *testing.T, l *lab) {
			var ids []string
			for i := range 4 {
				ids = append(ids, fmt.Sprint("c", i))
				l.says(ids[i], says(500, message))
			}
			rt := combo("priority", uncooled(l.provider("acme", ids...)))
			rt.Config = catalog.ComboConfig{MaxRetries: some(2), MaxSetRetries: some(10)}
			_, trail := l.do(rt, false)
			if len(trail.Attempts) != 30 || trail.Failure.Status != 503 || trail.Failure.Code != code {
				t.Errorf("%d %+v", len(trail.Attempts), trail.Failure)
			}
		})
	}
}

// CMB-23: a provider that limits the rate of this request may be asked on a connection that has been cooling since before, when
// nothing else is left; once.
func TestForced(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
		p := l.provider("acme", "a", "b")
		l.rules(`[{"id":"c","status":[429],"then":{"reason":"rate_limit_exceeded","scope":"connection"}}]`)
		l.says("a", says(429, "slow down", 600), ok())
		l.says("b", says(429, "slow down", 600))
		only := route(p)
		only.Targets[0].Allowed = []string{"a"}
		l.do(only, stream)
		rt := route(p)
		if got, trail := l.do(rt, stream); got.status != 200 {
			t.Errorf("%+v", trail.Failure)
		}
		l.want("a@0 b@0 a@0")
	})
	t.Run("RUL-7 not after a quota", func(t *testing.T) {
		inLab(t, func(t *testing.T, l *lab) {
			p := l.provider("acme", "a", "b")
			l.rules(`[{"id":"q","status":[429],"text_contains":["quota"],"then":{"reason":"quota_exhausted","scope":"connection"}},
				{"id":"c","status":[429],"then":{"reason":"rate_limit_exceeded","scope":"connection"}}]`)
			l.says("a", says(429, "slow down", 600), ok())
			l.says("b", says(429, "quota", 600))
			only := direct(p)
			only.Targets[0].Allowed = []string{"a"}
			l.do(only, false)
			l.do(direct(p), false)
			l.want("a@0 b@0")
		})
	})
}

// CMB-17: an attempt that ends with 499 stops the loop.
func TestUpstreamSays499(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.rules(`[{"id":"c","status":[499],"then":{"reason":"server_error","scope":"connection","fallback":true}}]`)
		l.says("a", says(499, "gone"))
		l.says("b", ok())
		l.do(combo("priority", l.provider("acme", "a"), l.provider("other", "b")), false)
		l.want("a@0")
	})
}

// CMB-20, CMB-22: a CDN that refuses a fingerprint and an empty answer exhaust nothing: a later target on the same connection is tried.
func TestExhaustsNothing(t *testing.T) {
	for name, first := range map[string]reply{
		"fingerprint": {status: 403, text: "<html>error code: 1010</html>"},
		"empty":       {status: 200, text: " "},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				p := uncooled(l.provider("acme", "a"))
				l.says("a", first, ok())
				rt := combo("priority", p, p)
				rt.Targets[1].Key, rt.Targets[1].Model = "acme/n", "n"
				if got, trail := l.do(rt, false); got.status != 200 || len(trail.Attempts) != 2 {
					t.Errorf("%d %+v", got.status, trail.Attempts)
				}
			})
		})
	}
	inLab(t, func(t *testing.T, l *lab) { // a refusal of the key does exhaust
		p := uncooled(l.provider("acme", "a"))
		l.says("a", says(403, "no"), ok())
		rt := combo("priority", p, p)
		rt.Targets[1].Key, rt.Targets[1].Model = "acme/n", "n"
		if _, trail := l.do(rt, false); len(trail.Attempts) != 1 {
			t.Errorf("%+v", trail.Attempts)
		}
	})
}

// CMB-11, SEL-10: a connection that has lately been slower than the combo wants is passed over, and tried when nothing else is left.
func TestPredictedSlow(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p, q := l.provider("acme", "a"), l.provider("other", "b")
		l.says("a", ok().slowly(3*time.Second))
		l.says("b", ok())
		rt := combo("priority", p, q)
		rt.Config.PredictiveTTFT = some(time.Second)
		for range 5 {
			l.do(rt, false)
		}
		if got := l.hits(); strings.Count(got, "a@") != 5 {
			t.Fatal("five samples are needed:", got)
		}
		_, trail := l.do(rt, false)
		if trail.Serving().Provider.ID != "other" || len(trail.Excluded) != 1 || trail.Excluded[0].Refusal.Reason != "predicted_slow" {
			t.Errorf("%+v", trail.Excluded)
		}
		l.says("b", says(401, "bad key"))
		if got, trail := l.do(rt, false); got.status != 200 || trail.Serving().Provider.ID != "acme" {
			t.Errorf("a slow answer is better than none: %d %+v", got.status, trail.Failure)
		}
		time.Sleep(16 * time.Minute)
		if _, trail := l.do(rt, false); trail.Serving().Provider.ID != "acme" || len(trail.Excluded) != 0 {
			t.Errorf("old samples still count: %+v", trail.Excluded)
		}
	})
}

// CMB-5: strict removes known windows that are too small, lenient only tries them last; nothing left is told.
func TestContextRequirements(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p, q, u := l.provider("small", "s"), l.provider("large", "l"), l.provider("unknown", "u")
		p.Models = []wire.Model{{ID: "m", ContextWindow: 8000}}
		q.Models = []wire.Model{{ID: "m", ContextWindow: 200_000}}
		for _, id := range []string{"s", "l", "u"} {
			l.says(id, says(500, "down"))
		}
		all := combo("priority", p, u, q)
		order := func(want catalog.ContextRequirements) string {
			all.Config = catalog.ComboConfig{MaxRetries: some(0), Context: want}
			_, trail := l.do(all, false)
			var out []string
			for _, a := range trail.Attempts {
				out = append(out, a.Provider)
			}
			for _, x := range trail.Excluded {
				out = append(out, "-"+x.Target.Provider.ID)
			}
			time.Sleep(time.Hour)
			return strings.Join(out, " ")
		}
		for _, c := range []struct {
			want catalog.ContextRequirements
			got  string
		}{
			{catalog.ContextRequirements{MinWindow: 100_000}, "unknown large small"},
			{catalog.ContextRequirements{MinWindow: 100_000, Strict: true}, "unknown large -small"},
			{catalog.ContextRequirements{PreferLarge: true}, "large small unknown"},
			{catalog.ContextRequirements{MinWindow: 100_000, PreferLarge: true}, "large unknown small"},
		} {
			if got := order(c.want); got != c.got {
				t.Errorf("%+v: %s, want %s", c.want, got, c.got)
			}
		}
		none := combo("priority", p)
		none.Config.Context = catalog.ContextRequirements{MinWindow: 100_000, Strict: true}
		_, trail := l.do(none, false)
		d := diagnosis(t, trail.Failure)
		if trail.Failure.Status != 404 || d.TerminalReason != "context_requirements_exhausted" || d.reasons() != "context_requirements" {
			t.Errorf("%+v %+v", trail.Failure, d)
		}
	})
}

// BRK-14: within a combo a failure does not count while a target on the same provider is still to tell.
func TestSiblings(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p := l.provider("acme", "a", "b")
		l.says("a", says(500, "down"))
		l.says("b", says(500, "down"))
		count := func(rt *catalog.Route) int {
			time.Sleep(time.Hour)
			at := resilience.Moment{Now: time.Now(), Catalog: l.snap}
			before := l.breakers.Status(at, "acme").FailureCount
			l.do(rt, false)
			return l.breakers.Status(at, "acme").FailureCount - before
		}
		if n := count(direct(p)); n != 2 {
			t.Errorf("a direct request counted %d of 2", n)
		}
		pinned := combo("priority", p, p)
		pinned.Targets[0].Connection, pinned.Targets[1].Connection = p.Connections[0], p.Connections[1]
		if n := count(pinned); n != 1 {
			t.Errorf("two targets of one provider counted %d times", n)
		}
		if n := count(combo("priority", p, l.provider("other"))); n != 2 {
			t.Errorf("with a target of another provider behind it, %d", n)
		}
	})
}

// PCD-8: only combos ask the provider cooldown; a refusal of it speaks for all connections.
func TestProviderCooldownIsForCombos(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.ProviderCooldown = settings.ProviderCooldown{Enabled: true, MinRetry: time.Second, MaxRetry: time.Minute,
			Local: settings.WindowProfile{Threshold: 1, Window: 5 * time.Minute, Cooldown: time.Minute}}
		p := uncooled(l.provider("acme", "a", "b"))
		l.says("a", says(500, "down"))
		l.says("b", says(500, "down"))
		l.do(direct(p), false)
		l.hits()
		_, trail := l.do(combo("priority", p), false)
		if d := diagnosis(t, trail.Failure); d.reasons() != "provider_cooldown" || trail.Failure.Code != "all_targets_cooling_down" {
			t.Errorf("%+v %+v", trail.Failure, d)
		}
		l.want("")
		if _, trail := l.do(direct(p), false); len(trail.Attempts) < 2 {
			t.Errorf("a direct request was refused: %+v", trail.Excluded)
		}
	})
}
