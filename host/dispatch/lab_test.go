package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// lab is a bench without a network: a script says what each connection answers, one step for each time that it is asked and the
// last one from then on. It runs in a bubble, where waiting costs nothing.
type lab struct {
	*bench
	began  time.Time
	script map[string][]reply
	asked  []string // connection@seconds, in order; guarded by mu
	turns  map[string]int
}

// reply is one step of a script.
type reply struct {
	status  int
	text    string
	headers map[string]string
	after   time.Duration
	lasts   time.Duration // from the first word of a stream to its end
}

func ok() reply { return reply{status: 200} }

// says is an error answer; retry in seconds is its Retry-After.
func says(status int, message string, retry ...int) reply {
	r := reply{status: status, text: fmt.Sprintf(`{"error":{"message":%q}}`, message)}
	if len(retry) > 0 {
		r.headers = map[string]string{"retry-after": fmt.Sprint(retry[0])}
	}
	return r
}

func (r reply) lasting(d time.Duration) reply { r.lasts = d; return r }

func (r reply) slowly(d time.Duration) reply { r.after = d; return r }

// inLab runs a test in a bubble.
func inLab(t *testing.T, test func(t *testing.T, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{bench: &bench{t: t}, began: time.Now(), script: map[string][]reply{}, turns: map[string]int{}}
		l.setUp("https://upstream.example")
		l.plan = wire.Plan{Upstream: "none", Dialect: wire.OpenAIChat}
		l.guest.respond = l.answer
		test(t, l)
	})
}

func (l *lab) answer(ctx context.Context, f wire.RequestFacts) (*wire.Answer, error) {
	id := f.Connection.ID
	l.mu.Lock()
	l.asked = append(l.asked, fmt.Sprintf("%s@%v", id, time.Since(l.began).Seconds()))
	steps := l.script[id]
	r := steps[min(l.turns[id], len(steps)-1)]
	l.turns[id]++
	l.mu.Unlock()
	if r.after > 0 && !f.Stream {
		select {
		case <-time.After(r.after):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch {
	case r.status == 200 && r.text == "" && f.Stream:
		return &wire.Answer{Status: 200, Events: []wire.AnswerEvent{
			{Data: `{"choices":[{"delta":{"content":"hello"}}]}`, DelayMS: r.after.Milliseconds()}, {Data: `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, DelayMS: r.lasts.Milliseconds()}, {Data: "[DONE]"},
		}}, nil
	case r.status == 200 && r.text == "":
		return &wire.Answer{Status: 200, Body: wire.Raw(`{"choices":[{"message":{"content":"hello"}}]}`)}, nil
	}
	body, _ := json.Marshal(r.text)
	return &wire.Answer{Status: r.status, Headers: r.headers, Body: body}, nil
}

// provider adds one with connections of these ids.
func (l *lab) provider(id string, connections ...string) *catalog.Provider {
	p := &catalog.Provider{ID: id, Category: catalog.Local, Auth: wire.AuthAPIKey, Passthrough: true}
	for i, c := range connections {
		p.Connections = append(p.Connections, &catalog.Connection{ID: c, Provider: id, Active: true, Priority: i + 1, AuthType: wire.AuthAPIKey})
	}
	return p
}

func direct(p *catalog.Provider) *catalog.Route {
	return &catalog.Route{Kind: catalog.KindDirect, Name: p.ID + "/m", Strategy: catalog.Priority,
		Targets: []catalog.RouteTarget{{Key: p.ID + "/m", Provider: p, Model: "m", Weight: 1}}}
}

func combo(strategy string, ps ...*catalog.Provider) *catalog.Route {
	rt := &catalog.Route{Kind: catalog.KindCombo, Name: "best", Strategy: strategy}
	for _, p := range ps {
		rt.Targets = append(rt.Targets, catalog.RouteTarget{Key: p.ID + "/m", Provider: p, Model: "m", Weight: 1})
	}
	return rt
}

func (l *lab) says(connection string, steps ...reply) { l.script[connection] = steps }

// waits turns both waits on.
func (l *lab) waits(most, budget time.Duration, times int) {
	l.snap.Settings.WaitForCooldown = settings.WaitForCooldown{Enabled: true, MaxRetries: times, MaxRetryWait: most, Budget: budget}
	l.snap.Settings.ComboCooldownWait = settings.ComboCooldownWait{Enabled: true, MaxAttempts: times, MaxWait: most, Budget: budget}
}

// hits are the connections that were asked since the last call, with the second at which they were.
func (l *lab) hits() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := strings.Join(l.asked, " ")
	l.asked = nil
	return out
}

// ways runs a test for direct and combo, plain and streamed: the outcome is the same.
func ways(t *testing.T, test func(t *testing.T, l *lab, route func(*catalog.Provider) *catalog.Route, stream bool)) {
	t.Helper()
	for _, kind := range []string{"direct", "combo"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", kind, stream), func(t *testing.T) {
				inLab(t, func(t *testing.T, l *lab) {
					test(t, l, func(p *catalog.Provider) *catalog.Route {
						if kind == "direct" {
							return direct(p)
						}
						return combo("priority", p)
					}, stream)
				})
			})
		}
	}
}

func (l *lab) want(hits string) {
	l.t.Helper()
	if got := l.hits(); got != hits {
		l.t.Errorf("asked %q, want %q", got, hits)
	}
}

// fact is one field of a failure's body.
func fact(f *dialect.Failure, name string) any {
	i := slices.IndexFunc(f.Facts, func(x dialect.Fact) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return f.Facts[i].Value
}

// shown is the diagnostics of a failure as a client reads them.
type shown struct {
	PoolSize  int
	Attempted int
	Excluded  []struct {
		Provider, Model, Reason string
		RetryAfterMs            int64
	}
	AttemptOrder   []struct{ Provider, Model string }
	TerminalReason string
	Recovery       string
	Notes          []string
}

func diagnosis(t *testing.T, f *dialect.Failure) (d shown) {
	t.Helper()
	b, err := json.Marshal(fact(f, "diagnostics"))
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d shown) reasons() string {
	var out []string
	for _, x := range d.Excluded {
		out = append(out, x.Reason)
	}
	return strings.Join(out, " ")
}

func tell(trail *dispatch.Trail, name string) string {
	for _, h := range trail.Tell {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}
