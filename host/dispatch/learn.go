package dispatch

import (
	"fmt"
	"time"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// Refused is the trail of a request that was answered without any target.
func Refused(began time.Time, took time.Duration, status int, f dialect.Failure) *Trail {
	return &Trail{Began: began, Took: took, Status: status, Failure: &f, Usage: neutral.NoUsage()}
}

// learn is gate 18: what the head of an answer says about limits goes to whoever keeps it.
func (a *attempt) learn() {
	if a.r.d.Learn != nil {
		a.r.d.Learn(a.target, a.resp.Header, a.firstAt)
	}
	if a.r.t.trace != nil {
		a.r.t.trace.add(gateLearn, "head", fmt.Sprint(a.resp.StatusCode), a.target, "")
	}
}

// left ends an attempt that nobody waits for any more. It stands in the trail, and says nothing about the target (OV-4).
func (a *attempt) left() {
	if a.settled {
		return
	}
	now := a.r.d.Now()
	rec := Attempt{
		Provider: a.target.Provider.ID, Connection: a.target.Connection.ID, Model: a.target.Model, At: a.began, Took: now.Sub(a.began),
		Left: true, Told: a.sent > 0,
	}
	if a.resp != nil {
		rec.FirstByte, rec.Status, rec.Original = a.firstAt.Sub(a.began), a.resp.StatusCode, a.resp.StatusCode
	}
	a.r.t.Attempts = append(a.r.t.Attempts, rec)
	a.r.t.trace.add(gateSettle, "left", "nobody waits", a.target, "")
	a.settle(resilience.Outcome{Ignore: true, Began: a.began})
}

// estimated says whether the client of a whole answer was told tokens that its upstream did not state: where we write or complete the
// answer, and the dialect has a place for them (INF-22).
func (a *attempt) estimated() bool {
	u, c := &a.r.t.Usage, a.r.c
	if _, known := translate.Codec(c.Dialect); !known || u.Input >= 0 && u.Output >= 0 {
		return false
	}
	switch {
	case a.way == nil && (!c.Stream || a.spoken() != c.Dialect):
		return false
	case c.Stream && c.Dialect == wire.OpenAIChat:
		asked, _ := c.Scan.Get("stream_options.include_usage")
		return string(asked) == "true"
	}
	return true
}
