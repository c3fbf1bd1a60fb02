package account_test

import (
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/store"
)

// COOL-53, COOL-59: when a terminal state is tested next, and what a test that failed changes.
func TestNextCheck(t *testing.T) {
	key := map[string]catalog.Secret{"api_key": catalog.NewSecret("k")}
	tokens := map[string]catalog.Secret{"access_token": catalog.NewSecret("a"), catalog.SecretRefreshToken: catalog.NewSecret("r")}
	in := func(d time.Duration) int64 { return start.Add(d).UnixMilli() }
	for _, c := range []struct {
		name    string
		s       account.State
		secrets map[string]catalog.Secret
		want    time.Duration // 0: never
	}{
		{"COOL-59 without credit", account.State{TestStatus: account.CreditsExhausted}, key, time.Hour},
		{"COOL-59 without credit and without secrets", account.State{TestStatus: account.CreditsExhausted}, nil, time.Hour},
		{"COOL-59 expired, with a key", account.State{TestStatus: account.Expired}, key, time.Hour},
		{"COOL-59 expired, without credentials", account.State{TestStatus: account.Expired}, nil, 0},
		{"COOL-59 banned", account.State{TestStatus: account.Banned}, key, 0},
		{"COOL-59 cooling", account.State{TestStatus: account.Unavailable}, key, 0},
		{"COOL-53 first retry", account.State{TestStatus: account.Expired}, tokens, 5 * time.Minute},
		{"COOL-53 second retry", account.State{TestStatus: account.Expired, ExpiredRetryCount: 1, ExpiredRetryAt: in(7 * time.Minute)}, tokens, 17 * time.Minute},
		{"COOL-53 third retry", account.State{TestStatus: account.Expired, ExpiredRetryCount: 2, ExpiredRetryAt: in(20 * time.Minute)}, tokens, 40 * time.Minute},
		{"COOL-53 no fourth", account.State{TestStatus: account.Expired, ExpiredRetryCount: 3, ExpiredRetryAt: in(20 * time.Minute)}, tokens, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := &catalog.Connection{ID: "c", Provider: "p", Secrets: c.secrets}
			c.s.Since = in(0)
			s := c.s.Scheduled(conn, in(0), time.Hour)
			want := int64(0)
			if c.want > 0 {
				want = in(c.want)
			}
			if got := s.NextCheck(conn); got != want {
				t.Fatalf("next check %v", account.Time(got))
			}
			b := account.NewBook(nil)
			set(b, "c", s)
			fail := func(after time.Duration) []store.Event {
				return b.Unhealed(resilience.Moment{Now: start.Add(after)}, conn, time.Hour)
			}
			if es := fail(c.want - time.Millisecond); len(es) != 0 {
				t.Error("a test before the time counted")
			}
			if es := fail(max(c.want, time.Minute)); (len(es) == 1) != (c.want > 0) {
				t.Errorf("%d events", len(es))
			}
			if after, _ := b.State("c"); c.want > 0 && after.NextCheck(conn) <= want {
				t.Errorf("the next check is at %v", account.Time(after.NextCheck(conn)))
			}
		})
	}
}

// COOL-24: the intervals between probes double up to the longest one, and no probe comes after the end.
func TestProbed(t *testing.T) {
	p := settings.CooldownProbe{Enabled: true, First: time.Minute, Max: 10 * time.Minute}
	now := start.UnixMilli()
	s := account.State{TestStatus: account.Unavailable, Until: now + (30 * time.Minute).Milliseconds(), ProbeAt: now + p.First.Milliseconds()}
	for _, want := range []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		if !s.ProbeDue(s.ProbeAt) || s.ProbeDue(s.ProbeAt-1) {
			t.Fatalf("not due at %v, or before", account.Time(s.ProbeAt))
		}
		now = s.ProbeAt
		if s = s.Probed(now, p); time.Duration(s.ProbeAt-now)*time.Millisecond != want {
			t.Errorf("after %v", time.Duration(s.ProbeAt-now)*time.Millisecond)
		}
		if got := s.NextProbe(now); (got == 0) != (s.ProbeAt >= s.Until) {
			t.Errorf("next probe %v of a cooldown until %v", account.Time(got), account.Time(s.Until))
		}
	}
	if s.NextProbe(now) != 0 || s.ProbeDue(s.Until) {
		t.Error("a probe after the end")
	}
}
