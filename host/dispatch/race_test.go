package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// CMB-16: the next target starts beside one that does not answer; the loser is cancelled and has not failed.
func TestHedging(t *testing.T) {
	for _, stream := range []bool{false, true} {
		inLab(t, func(t *testing.T, l *lab) {
			p, q := l.provider("acme", "a"), l.provider("other", "b")
			l.says("a", ok().slowly(10*time.Second))
			l.says("b", ok().slowly(time.Second))
			rt := combo("priority", p, q)
			rt.Config.Hedging = some(true)
			c, trail := l.do(rt, stream)
			if c.status != 200 || strings.Count(c.body.String(), "hello") != 1 || trail.Serving().Provider.ID != "other" || trail.Took != 1500*time.Millisecond {
				t.Errorf("%d %s in %s from %+v", c.status, c.body.String(), trail.Took, trail.Serving())
			}
			if len(l.events) != 0 || trail.Cancelled || trail.Failure != nil {
				t.Errorf("the loser counted: %+v %+v", l.events, trail)
			}
			l.want("a@0 b@0.5")

			l.says("a", ok().slowly(200*time.Millisecond))
			if _, trail := l.do(rt, stream); trail.Serving().Provider.ID != "acme" {
				t.Error("the first one was quick enough")
			}
			l.want("a@1.5")

			rt.Config.HedgeDelay = some(2 * time.Second)
			l.says("a", says(500, "down"))
			if c, trail := l.do(rt, stream); c.status != 200 || trail.Serving().Provider.ID != "other" || len(trail.Attempts) != 2 {
				t.Errorf("the first one failed at once: %d %+v", c.status, trail.Attempts)
			}
		})
	}
	t.Run("both fail", func(t *testing.T) {
		inLab(t, func(t *testing.T, l *lab) {
			l.says("a", says(500, "down").slowly(time.Second))
			l.says("b", says(503, "busy").slowly(time.Second))
			l.says("c", ok())
			rt := combo("priority", l.provider("acme", "a"), l.provider("other", "b"), l.provider("third", "c"))
			rt.Config.Hedging = some(true)
			if c, trail := l.do(rt, false); c.status != 200 || len(trail.Attempts) != 3 {
				t.Errorf("%d %+v", c.status, trail.Attempts)
			}
		})
	})
	t.Run("the request is refused", func(t *testing.T) {
		inLab(t, func(t *testing.T, l *lab) {
			l.says("a", says(400, "bad parameter").slowly(time.Second))
			l.says("b", ok().slowly(10*time.Second))
			rt := combo("priority", l.provider("acme", "a"), l.provider("other", "b"))
			rt.Config.Hedging = some(true)
			if _, trail := l.do(rt, false); trail.Failure == nil || trail.Failure.Status != 400 || trail.Took != time.Second || trail.Cancelled {
				t.Errorf("CMB-18: %+v", trail)
			}
		})
	})
}

// COOL-70 to COOL-73, CMB-50: who is asked nothing because of its state is told which, and never by account.
func TestStatesOfACombo(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.rules(`[{"id":"ban","status":[403],"text_contains":["deactivated"],"then":{"reason":"banned","scope":"connection","terminal":true}}]`)
		l.says("a", says(403, "account deactivated"))
		rt := combo("priority", l.provider("acme", "a"))
		l.do(rt, false)
		_, trail := l.do(rt, false)
		if f := trail.Failure; f.Status != 503 || f.Code != "ALL_ACCOUNTS_INACTIVE" || diagnosis(t, f).reasons() != "unavailable" {
			t.Errorf("%+v", f)
		}
	})
}

// CMB-50, CMB-52: after attempts the last status is surfaced with who was tried; Retry-After is never another target's.
func TestAfterAttempts(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.says("a", says(429, "slow down", 40))
		l.says("b", says(500, "broken"))
		rt := combo("priority", l.provider("acme", "a"), l.provider("other", "b"))
		rt.Config.MaxRetries = some(0)
		_, trail := l.do(rt, false)
		f := trail.Failure
		if f.Status != 500 || f.RetryAfter != 0 || !strings.HasPrefix(f.Message, "broken") || !strings.Contains(f.Message, "acme/m (429), other/m (500)") {
			t.Errorf("%+v", f)
		}
		if d := diagnosis(t, f); d.Attempted != 2 || len(d.AttemptOrder) != 2 || d.AttemptOrder[0].Provider != "acme" || d.TerminalReason != "server_error" || d.Recovery != "retry" {
			t.Errorf("%+v", d)
		}
	})
	t.Run("CMB-46 a surfaced 429", func(t *testing.T) {
		inLab(t, func(t *testing.T, l *lab) {
			l.says("b", says(500, "broken"))
			l.says("a", says(429, "slow down", 40))
			rt := combo("priority", l.provider("other", "b"), l.provider("acme", "a"))
			rt.Config.MaxRetries = some(0)
			_, trail := l.do(rt, false)
			f := trail.Failure
			if f.Status != 429 || f.Type != "rate_limit_error" || f.RetryAfter != 40*time.Second || fact(f, "retry_after") != int64(40) ||
				fact(f, "reset_at") != l.began.Add(40*time.Second).UTC().Format("2006-01-02T15:04:05.000Z") || !strings.HasPrefix(f.Message, "slow down") {
				t.Errorf("%+v", f)
			}
		})
	})
	t.Run("CMB-50 quota of all", func(t *testing.T) {
		inLab(t, func(t *testing.T, l *lab) {
			l.rules(`[{"id":"q","status":[402,429,403],"then":{"reason":"quota_exhausted","scope":"connection"}}]`)
			l.says("a", says(429, "quota"))
			l.says("b", says(403, "quota"))
			_, trail := l.do(combo("priority", l.provider("acme", "a"), l.provider("other", "b")), false)
			if f := trail.Failure; f.Status != 429 || f.Code != "quota_exhausted" || f.RetryAfter != 0 || diagnosis(t, f).Recovery != "switch-combo" {
				t.Errorf("%+v", f)
			}
		})
	})
}

// CMB-54: three failed requests in a row of a combo forget whom it preferred.
func TestThreeFailuresForget(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p, q := uncooled(l.provider("acme", "a")), uncooled(l.provider("other", "b"))
		l.says("a", says(500, "down"))
		l.says("b", ok())
		rt := combo("lkgp", p, q)
		rt.Config.MaxRetries = some(0)
		l.do(rt, false)
		l.hits()
		first := func() string {
			at := l.d.Order(l.snap, rt, nil, time.Now())
			return at[0].Connection.ID
		}
		if first() != "b" {
			t.Fatal("STR-25: the last good provider comes first")
		}
		l.says("b", says(500, "down"))
		for i := range 3 {
			if first() != "b" {
				t.Errorf("forgotten after %d failures", i)
			}
			l.do(rt, false)
		}
		if first() != "a" {
			t.Error("CMB-54: still remembered after three failures")
		}
	})
}

// The record of errors hears each verdict with the reply and its connection, and nothing of answers.
func TestFailedIsHeard(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		var heard []string
		l.d.Failed = func(r *rules.Reply, v wire.Verdict, connection, requestID string) {
			heard = append(heard, fmt.Sprint(connection, " ", r.Status, " ", v.Reason, " ", requestID))
		}
		l.says("a", says(429, "slow down"))
		l.says("b", ok())
		l.do(direct(l.provider("acme", "a", "b")), false)
		if !slices.Equal(heard, []string{"a 429 rate_limit_exceeded req-1"}) {
			t.Error(heard)
		}
	})
}

var _ dispatch.Sink = (*client)(nil)

// BRK-14: two bad accounts of a local provider, whose breaker opens at two failures, do not keep the request from the third; when
// that one fails as well, the breaker opens.
func TestThirdAccountOfALocalProvider(t *testing.T) {
	for _, good := range []bool{true, false} {
		ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
			l.snap.Settings.ProviderBreaker.Local = settings.BreakerProfile{FailureThreshold: 2, DegradationThreshold: 1, ResetTimeout: 15 * time.Second}
			p := l.provider("acme", "a", "b", "c")
			rt := route(p)
			rt.Config.MaxRetries = some(0)
			l.says("a", says(503, "down"))
			l.says("b", says(503, "down"))
			l.says("c", ok())
			if !good {
				l.says("c", says(503, "down"))
			}
			want, state := 200, breaker.Closed
			if !good {
				want, state = 503, breaker.Open
			}
			c, trail := l.do(rt, stream)
			if status := max(c.status, 0); good && status != want || !good && trail.Failure.Status != want {
				t.Errorf("status %d, %+v", status, trail.Failure)
			}
			l.want("a@0 b@0 c@0")
			if s := l.breakers.Status(resilience.Moment{Now: time.Now(), Catalog: l.snap}, "acme"); s.State != state {
				t.Errorf("%+v", s)
			}
		})
	}
}

// BRK-32: a stream that probes a half-open breaker lets the others in when it has begun, not when it is over.
func TestStreamThatProbes(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.snap.Settings.ProviderBreaker.Local = settings.BreakerProfile{FailureThreshold: 1, DegradationThreshold: 1, ResetTimeout: 15 * time.Second}
		p := l.provider("acme", "a")
		rt := direct(p)
		rt.Config.MaxRetries = some(0)
		l.says("a", says(503, "down"), ok().lasting(3*time.Second), ok())
		l.do(rt, false)
		time.Sleep(20 * time.Second)
		go l.do(rt, true) // its first word comes at once, its end after three seconds
		time.Sleep(500 * time.Millisecond)
		if c, trail := l.do(rt, false); c.status != 200 {
			t.Errorf("%d, %+v", c.status, trail.Failure)
		}
		time.Sleep(5 * time.Second)
		if s := l.breakers.Status(resilience.Moment{Now: time.Now(), Catalog: l.snap}, "acme"); s.State != breaker.Closed || s.FailureCount != 0 {
			t.Errorf("%+v", s)
		}
	})
}
