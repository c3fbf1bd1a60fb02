package dispatch_test

import (
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience/account"
)

func (l *lab) family(id string, connections ...string) *catalog.Provider {
	p := l.provider(id, connections...)
	p.EgressFamily = "opencode"
	l.snap.Providers = append(l.snap.Providers, p)
	return p
}

// OTH-2, OTH-6, OTH-9: a 429 by address cools the other accounts behind it before they are tried, whatever scope the rule gave, in
// direct requests and combos, whole and streamed; another address is asked, and no model is locked.
func TestEgressLock(t *testing.T) {
	for name, rule := range map[string]string{
		"rate limit":    `{"reason":"rate_limit_exceeded","scope":"connection"}`,
		"quota":         `{"reason":"quota_exhausted","scope":"connection"}`,
		"model's quota": `{"reason":"quota_exhausted","scope":"model"}`,
		"provider's":    `{"reason":"quota_exhausted","scope":"provider","cooldown":"1h"}`,
	} {
		t.Run(name, func(t *testing.T) {
			ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
				l.rules(`[{"id":"q","status":[429],"then":` + rule + `}]`)
				p, go1 := l.family("opencode", "a", "b", "far"), l.family("opencode-go", "g")
				p.Connections[2].EgressIP = "192.0.2.7"
				l.says("a", says(429, "limit", 600))
				l.says("b", ok())
				l.says("far", ok())
				l.says("g", ok())
				if got, trail := l.do(route(p), stream); got.status != 200 {
					t.Errorf("%+v", trail.Failure)
				}
				if got, trail := l.do(route(go1), stream); trail.Failure == nil {
					t.Errorf("%d", got.status)
				}
				l.want("a@0 far@0")
				own, b := l.book.Health("a", time.Now()), l.book.Health("b", time.Now())
				if own.TestStatus != account.Unavailable || b.TestStatus != account.Unavailable || *own.LastErrorType == "egress_sibling" || *b.LastErrorType != "egress_sibling" ||
					b.Cause == nil || b.Cause.ConnectionID != "a" || b.Cause.RequestID != "req-1" || *b.RateLimitedUntil != *own.RateLimitedUntil {
					t.Errorf("a %+v, b %+v %+v", own, b, b.Cause)
				}
				for _, e := range l.events {
					if e.Kind == "lockout.set" {
						t.Error("OTH-6: a model was locked")
					}
				}
			})
		})
	}
}

// OTH-6: a single account without others: the connection cools, its level climbs; after a second refusal it is not forced back in.
func TestEgressLockAlone(t *testing.T) {
	ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
		l.rules(`[{"id":"q","status":[429],"then":{"reason":"rate_limit_exceeded","scope":"model"}}]`)
		p := l.family("opencode", "a")
		rt := route(p)
		rt.Config = catalog.ComboConfig{MaxRetries: some(0)}
		l.says("a", says(429, "limit"))
		_, trail := l.do(rt, stream)
		if h := l.book.Health("a", time.Now()); h.BackoffLevel != 1 || h.Status != account.IsCoolingDown || trail.Failure.Status != 429 {
			t.Errorf("%+v %+v", h, trail.Failure)
		}
		l.want("a@0")
	})
}

// OTH-6, RUL-7: the others cool for the same refusal, so none of them is asked as the last resort of CMB-23.
func TestEgressLockIsNotForced(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p := l.family("opencode", "a", "b")
		l.says("a", says(429, "limit", 600))
		l.says("b", ok())
		_, trail := l.do(direct(p), false)
		if trail.Failure == nil || trail.Failure.Status != 429 || trail.Failure.RetryAfter < 599*time.Second {
			t.Errorf("%+v", trail.Failure)
		}
		l.want("a@0")
	})
}

// OTH-2, COOL-70: a request waits for the end of a short one, as for any limit of rate.
func TestEgressLockIsWaitedFor(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.waits(time.Minute, 5*time.Minute, 3)
		p := l.family("opencode", "a", "b")
		l.says("a", says(429, "limit", 20), ok())
		l.says("b", ok())
		if got, trail := l.do(direct(p), false); got.status != 200 {
			t.Errorf("%+v", trail.Failure)
		}
		l.want("a@0 a@20.05")
	})
}

// OTH-5: accounts that never cool have no part in it: one as the failing one goes on to the next, one as another is asked.
func TestEgressLockWithoutCooling(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		p := l.family("opencode", "a", "b", "c")
		p.Connections[0].DisableCooling, p.Connections[2].DisableCooling = true, true
		l.says("a", says(429, "limit", 600))
		l.says("b", says(429, "limit", 600))
		l.says("c", ok())
		if got, trail := l.do(direct(p), false); got.status != 200 {
			t.Errorf("%+v", trail.Failure)
		}
		l.want("a@0 b@0 c@0")
	})
}
