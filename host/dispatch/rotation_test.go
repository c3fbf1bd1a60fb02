package dispatch_test

import (
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/settings"
)

// rotates puts the switches as they are by default, but for what change does.
func (l *lab) rotates(change func(*settings.Rotation)) {
	on := settings.RotationClass{On: true, Threshold: 1, Window: 2 * time.Minute}
	off := settings.RotationClass{Threshold: 1, Window: 2 * time.Minute}
	l.snap.Settings.Rotation = settings.Rotation{Enabled: true, On400: off, On429: on, On500: on, On502: on}
	change(&l.snap.Settings.Rotation)
}

// CLS-20: a class that is off gives the client the error in place of another account, and the account stays in use: nothing cools and
// no model is locked. On, it rotates.
func TestRotationSwitches(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*settings.Rotation)
		own     map[int]catalog.RotationOverride
		answer  reply
		rotated bool
	}{
		"429 on":                 {func(*settings.Rotation) {}, nil, says(429, "slow down"), true},
		"429 off":                {func(r *settings.Rotation) { r.On429.On = false }, nil, says(429, "slow down", 60), false},
		"500 off":                {func(r *settings.Rotation) { r.On500.On = false }, nil, says(500, "oops"), false},
		"502 off":                {func(r *settings.Rotation) { r.On502.On = false }, nil, says(502, "bad gateway"), false},
		"502 off is not 503":     {func(r *settings.Rotation) { r.On502.On = false }, nil, says(503, "busy"), true},
		"all off":                {func(r *settings.Rotation) { r.Enabled = false }, nil, says(500, "oops"), false},
		"all off, the account's": {func(r *settings.Rotation) { r.Enabled = false }, map[int]catalog.RotationOverride{429: {On: some(true)}}, says(429, "slow down"), true},
		"the account's own off":  {func(*settings.Rotation) {}, map[int]catalog.RotationOverride{429: {On: some(false)}}, says(429, "slow down"), false},
	} {
		t.Run(name, func(t *testing.T) {
			ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
				l.rotates(c.change)
				p := l.provider("acme", "a", "b")
				p.Connections[0].Rotation = c.own
				l.says("a", c.answer)
				l.says("b", ok())
				got, trail := l.do(route(p), stream)
				if c.rotated {
					if got.status != 200 {
						t.Errorf("%+v", trail.Failure)
					}
					l.want("a@0 b@0")
					return
				}
				if trail.Failure == nil || trail.Failure.Status != c.answer.status {
					t.Fatalf("%d %+v", got.status, trail.Failure)
				}
				l.do(route(p), stream) // the account was not left
				l.want("a@0 a@0")
				if l.cooled() != 0 || l.book.Health("a", time.Now()).LastErrorType == nil {
					t.Errorf("%d cooldowns; the error is not shown", l.cooled())
				}
			})
		})
	}
}

// CLS-20: below the threshold the account is not rotated yet; errors count for the window, by account and status.
func TestRotationThreshold(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.rotates(func(r *settings.Rotation) {
			r.On429 = settings.RotationClass{On: true, Threshold: 3, Window: time.Minute}
		})
		p := l.provider("acme", "a", "b")
		p.Connections[1].Rotation = map[int]catalog.RotationOverride{429: {Threshold: 1}}
		l.says("a", says(429, "slow down"))
		l.says("b", says(429, "slow down"), ok())
		ask := func() int {
			got, trail := l.do(direct(p), false)
			if trail.Failure != nil {
				return trail.Failure.Status
			}
			return got.status
		}
		for _, after := range []time.Duration{0, 30 * time.Second, 31 * time.Second} { // the first is out of the window when the third comes
			time.Sleep(after)
			if status := ask(); status != 429 {
				t.Errorf("%d", status)
			}
		}
		l.want("a@0 a@30 a@61")
		time.Sleep(time.Second) // the third within a minute
		l.do(direct(p), false)
		l.want("a@62 b@62")
		time.Sleep(10 * time.Second)
		if status := ask(); status != 200 { // still the third: it rotates at once
			t.Errorf("%d", status)
		}
		l.want("a@72 b@72")
	})
}

// CLS-20: a 400 is only ever added: it leads to another account when that is on, and one that falls back anyway is not held back.
func TestRotationOf400(t *testing.T) {
	refused := says(400, "bad parameter")
	for name, c := range map[string]struct {
		on     bool
		answer reply
		hits   string
		status int
	}{
		"off":                        {false, refused, "a@0", 400},
		"on":                         {true, refused, "a@0 b@0", 200},
		"off, with a fallback of it": {false, says(400, "busy"), "a@0 b@0", 200},
	} {
		t.Run(name, func(t *testing.T) {
			ways(t, func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool) {
				l.rotates(func(r *settings.Rotation) { r.On400.On = c.on })
				l.rules(`[{"id":"b","status":[400],"text_contains":["busy"],"then":{"reason":"overloaded","scope":"connection"}}]`)
				l.says("a", c.answer)
				l.says("b", ok())
				p := l.provider("acme", "a", "b")
				got, trail := l.do(route(p), stream)
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
	t.Run("every account refuses: the first words stay", func(t *testing.T) {
		inLab(t, func(t *testing.T, l *lab) {
			l.rotates(func(r *settings.Rotation) { r.On400.On = true })
			p := l.provider("acme", "a", "b")
			l.says("a", refused)
			l.says("b", says(400, "another parameter"))
			_, trail := l.do(direct(p), false)
			if trail.Failure.Status != 400 || trail.Failure.Message != "bad parameter" || l.cooled() != 0 {
				t.Errorf("%+v", trail.Failure)
			}
			l.want("a@0 b@0")
		})
	})
}

// CLS-20, COOL-60: what ends an account ends it, whatever is held back.
func TestRotationKeepsTerminal(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.rotates(func(r *settings.Rotation) { r.Enabled = false })
		l.snap.Settings.CustomBannedSignals = []string{"gone for good"}
		p := l.provider("acme", "a", "b")
		l.says("a", says(429, "gone for good"))
		l.says("b", ok())
		l.do(direct(p), false)
		if got, trail := l.do(direct(p), false); got.status != 200 {
			t.Errorf("%+v", trail.Failure)
		}
		l.want("a@0 b@0")
	})
}
