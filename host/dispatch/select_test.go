package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/settings"
)

// SEL-3, SEL-4: the provider's account strategy decides which connection a request goes to, directly and through a combo; a combo
// that fills first does not ask it (STR-14).
func TestAccountsAreChosen(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
		l.snap.Settings.ProviderStrategies = map[string]string{"acme": "round-robin"}
		l.snap.Settings.StickyRoundRobinLimit = 2
		p := l.provider("acme", "a", "b")
		l.says("a", ok())
		l.says("b", ok())
		rt := route(p)
		for range 5 {
			l.do(rt, stream)
		}
		l.want("a@0 a@0 b@0 b@0 a@0")
		if got := l.d.Order(l.snap, rt, nil, time.Now()); got[0].Connection.ID != "a" || len(got) != 2 {
			t.Errorf("OBJ-25: explained as %s", got[0].Connection.ID)
		}
		filling := combo("fill-first", p)
		for range 5 {
			l.do(filling, stream)
		}
		l.want("a@0 a@0 a@0 a@0 a@0")
	})
}

// SEL-4: after a failure a rotation goes on to the least recently used connection.
func TestRotationLeavesAFailure(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.FallbackStrategy = "round-robin"
		p := uncooled(l.provider("acme", "a", "b"))
		l.says("a", says(500, "down"), ok())
		l.says("b", ok())
		for range 3 {
			l.do(direct(p), false)
		}
		l.want("a@0 b@0 b@0 b@0")
	})
}

// SEL-10, SEL-14: an attempt is one sample with its outcome; of a stream at its first useful byte; a client that leaves gives none.
func TestSamplesOfAttempts(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
		p := uncooled(l.provider("acme", "a"))
		l.says("a", ok().slowly(3*time.Second), says(500, "down"), ok().slowly(time.Minute))
		rt := route(p)
		rt.Config.MaxRetries = some(0)
		l.snap.Settings.ReadinessTimeout = time.Hour
		l.do(rt, stream)
		got := l.d.Router.Samples.Connection("a", "m", time.Now())
		if got.N != 1 || got.ErrorRate != 0 || got.FirstByte != 3*time.Second {
			t.Errorf("%+v", got)
		}
		l.do(rt, stream)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l.doCtx(ctx, rt, stream)
		if got := l.d.Router.Samples.Connection("a", "", time.Now()); got.N != 2 || got.ErrorRate != 0.5 {
			t.Errorf("%+v", got)
		}
	})
}

// STR-12, STR-25, CMB-10: the strategy orders the targets of a request and hears who answered.
func TestStrategiesOfRequests(t *testing.T) {
	for strategy, want := range map[string]string{
		"priority":    "a b a b a b a b",
		"round-robin": "a b b a b b",
		"lkgp":        "a b b b b",
	} {
		t.Run(strategy, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				p, q := uncooled(l.provider("acme", "a")), uncooled(l.provider("other", "b"))
				l.says("a", says(500, "down"))
				l.says("b", ok())
				rt := combo(strategy, p, q)
				rt.Config.MaxRetries = some(0)
				for range 4 {
					l.do(rt, false)
				}
				if got := strings.ReplaceAll(l.hits(), "@0", ""); got != want {
					t.Errorf("asked %s, want %s", got, want)
				}
			})
		})
	}
}

// STR-11: what a gate excludes is not drawn, and a weighted combo still falls over to the rest.
func TestWeightedPassesOverTheOpen(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.ProviderBreaker.Local = settings.BreakerProfile{FailureThreshold: 1, DegradationThreshold: 1, ResetTimeout: time.Minute}
		p, q := l.provider("acme", "a"), l.provider("other", "b")
		l.says("a", says(500, "down"))
		l.says("b", ok())
		rt := combo("weighted", p, q)
		rt.Targets[0].Weight, rt.Targets[1].Weight = 1000, 0
		rt.Config.MaxRetries = some(0)
		l.do(rt, false)
		l.want("a@0 b@0")
		for range 5 {
			_, trail := l.do(rt, false)
			if len(trail.Excluded) != 0 || trail.Serving().Provider.ID != "other" {
				t.Errorf("%+v", trail.Excluded)
			}
		}
	})
}

// CMB-6: a key that may use none of a target's connections.
func TestKeyWithoutConnections(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p, q := l.provider("acme"), l.provider("other", "b")
		l.says("b", ok())
		if c, trail := l.do(combo("priority", p, q), false); c.status != 200 || len(trail.Excluded) != 1 || trail.Excluded[0].Refusal.Reason != "unavailable" {
			t.Errorf("%d %+v", c.status, trail.Excluded)
		}
	})
}
