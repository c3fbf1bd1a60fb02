package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// errLost is the cause of a leg that another one was quicker than.
var errLost = errors.New("another target answered first")

// hedges says whether targets of this request are started before the one ahead has failed, and after how long (CMB-16).
func (r *run) hedges() (time.Duration, bool) {
	c := &r.c.Route.Config
	return choose(c.HedgeDelay, 500*time.Millisecond), choose(c.Hedging, false) && !r.c.Form.Once()
}

// race tries first and, when it has neither answered nor failed after the delay, second beside it. Whoever is ready to answer first
// does; the other one is cancelled, which is no failure. used is how many of the two were tried.
func (r *run) race(ctx context.Context, first, second, behind *catalog.RouteTarget, delay time.Duration) (next step, used int) {
	spare, err := body.Read(bytes.NewReader(r.c.Body.Bytes()), int64(r.c.Body.Len()), int64(r.c.Body.Len()))
	if err != nil { // out of a buffer that was read already: it does not fail
		return r.connections(ctx, first), 1
	}
	defer spare.Release()
	j := &judgeOfRace{out: r.out}
	a := r.leg(j, first, second)
	a.start(ctx)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-a.done:
		return r.merge(a), 1
	case <-timer.C:
	}
	if j.decided() {
		<-a.done
		return r.merge(a), 1
	}
	b := r.leg(j, second, behind)
	b.r.c, err = withBody(b.r.c, spare)
	if err != nil {
		<-a.done
		return r.merge(a), 1
	}
	b.start(ctx)
	select {
	case <-a.done:
		if a.next != stepNext && !a.lost.Load() { // a loser ends too, and must not take the winner along
			b.lose()
		}
	case <-b.done:
		if b.next != stepNext && !b.lost.Load() {
			a.lose()
		}
	}
	<-a.done
	<-b.done
	return r.merge(a, b), 2
}

// withBody is c with a buffer of its own, since edits happen in place.
func withBody(c *Call, b *body.Buffer) (*Call, error) {
	scan, err := b.Scan()
	if err != nil {
		return nil, err
	}
	own := *c
	own.Body, own.Scan = b, scan
	return &own, nil
}

// judgeOfRace lets one leg commit and cancels the other one.
type judgeOfRace struct {
	out    Sink
	mu     sync.Mutex
	legs   []*leg // guarded by mu
	winner *leg   // guarded by mu
}

func (j *judgeOfRace) decided() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.winner != nil
}

// leg is one target of a race. It is the sink of its own run: only the winner's bytes reach the client.
type leg struct {
	r      run
	judge  *judgeOfRace
	base   int // attempts that the run had before
	next   step
	done   chan struct{}
	cancel context.CancelCauseFunc
	lost   atomic.Bool // it was cancelled because another leg was quicker
}

// lose cancels a leg, which is no failure of its target.
func (l *leg) lose() {
	l.lost.Store(true)
	l.cancel(errLost)
}

// leg makes a run of its own for one target.
func (r *run) leg(j *judgeOfRace, rt, after *catalog.RouteTarget) *leg {
	l := &leg{judge: j, base: len(r.t.Attempts), done: make(chan struct{})}
	l.r = *r
	l.r.out, l.r.target, l.r.after, l.r.turn = l, rt, after, nil
	l.r.exhausted = r.exhausted.Clone()
	l.r.hints, l.r.limited = slices.Clip(r.hints), slices.Clip(r.limited)
	l.r.t = &Trail{Began: r.t.Began, Usage: neutral.NoUsage(), Attempts: slices.Clone(r.t.Attempts)}
	return l
}

func (l *leg) start(ctx context.Context) {
	ctx, l.cancel = context.WithCancelCause(ctx)
	l.judge.mu.Lock()
	l.judge.legs = append(l.judge.legs, l)
	if l.judge.winner != nil {
		l.lose()
	}
	l.judge.mu.Unlock()
	go func() {
		defer close(l.done)
		defer l.cancel(nil)
		defer l.caught()
		l.next = l.r.connections(ctx, l.r.target)
	}()
}

// caught turns a panic into the end of the request, as Do does on its own goroutine.
func (l *leg) caught() {
	v := recover()
	if v == nil {
		return
	}
	c, t := l.r.c, l.r.t
	l.r.d.Log.Error("a request panicked", "request_id", c.RequestID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	t.Partial, t.Cut, l.next = t.Committed, t.Committed, stepDone
	t.Failure = &dialect.Failure{Status: http.StatusInternalServerError, Code: "internal_server_error", RequestID: c.RequestID,
		Message: "The gateway failed to handle this request; its log tells more under the request's id."}
}

// Commit decides the race.
func (l *leg) Commit(status int, h http.Header, t *Trail) {
	j := l.judge
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.winner == nil {
		j.winner = l
		for _, other := range j.legs {
			if other != l {
				other.lose()
			}
		}
		j.out.Commit(status, h, t)
	}
}

func (l *leg) won() bool {
	l.judge.mu.Lock()
	defer l.judge.mu.Unlock()
	return l.judge.winner == l
}

// Write passes the winner's bytes on.
func (l *leg) Write(p []byte) error {
	if !l.won() {
		return errLost
	}
	return l.judge.out.Write(p)
}

// Flush sends what the winner wrote.
func (l *leg) Flush() error {
	if !l.won() {
		return errLost
	}
	return l.judge.out.Flush()
}

// decider is the leg whose end is the race's: the winner, else one that ended the request, else the last one that failed.
func decider(legs []*leg) *leg {
	for _, l := range legs {
		if l.won() {
			return l
		}
	}
	for _, l := range legs {
		if l.next != stepNext && !l.lost.Load() {
			return l
		}
	}
	return legs[len(legs)-1]
}

// merge takes over what the legs learned, the one that decides last, and says how the request goes on.
func (r *run) merge(legs ...*leg) step {
	last := decider(legs)
	for _, l := range legs {
		if l != last {
			r.learn(l)
		}
	}
	r.learn(last)
	if t, own := r.t, last.r.t; last.next == stepDone {
		t.Committed, t.Cancelled, t.Partial, t.Cut, t.Status = own.Committed, own.Cancelled, own.Partial, own.Cut, own.Status
		t.Failure, t.Unchanged, t.FirstByte, t.Usage, t.serving = own.Failure, own.Unchanged, own.FirstByte, own.Usage, own.serving
		t.Estimated, t.Degraded, t.FewerTools = own.Estimated, own.Degraded, own.FewerTools
	}
	return last.next
}

func (r *run) learn(l *leg) {
	r.t.Attempts = append(r.t.Attempts, l.r.t.Attempts[l.base:]...)
	r.t.Excluded = append(r.t.Excluded, l.r.t.Excluded...)
	for _, n := range l.r.t.Notes {
		r.t.note(n)
	}
	if l.r.t.Restated != "" {
		r.t.Restated = l.r.t.Restated
	}
	keep := r.last.set && r.last.verdict.Reason == wire.InvalidRequest
	if l.r.last.set && !keep {
		r.last = l.r.last
	}
	r.exhausted.Merge(l.r.exhausted)
	if r.fit.learned = max(r.fit.learned, l.r.fit.learned); r.fit.word == nil {
		r.fit.word = l.r.fit.word
	}
	r.needWindow = max(r.needWindow, l.r.needWindow)
	r.hints = append(r.hints, l.r.hints[min(len(r.hints), len(l.r.hints)):]...)
	r.limited = append(r.limited, l.r.limited...)
	if r.t.trace != nil {
		for _, a := range l.r.t.Attempts[l.base:] {
			r.t.trace.note(gateSend, "upstream", "hedged", a.Provider+"/"+a.Model+" on "+a.Connection)
		}
	}
}
