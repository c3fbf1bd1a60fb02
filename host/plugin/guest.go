package plugin

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/plugin/quarantine"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// guest is the compiled code of one plugin version with the sandbox that it runs in. Safe for concurrent use once loaded.
type guest struct {
	name     string
	log      *slog.Logger
	clock    func() time.Time
	observer Observer
	sandbox
	limits   *limits
	kvQuota  int
	kv       *space
	settings []byte // input of configure
	counters *counters
	ward     *ward
	pool     pool
	bytes    atomic.Int64  // linear memory of all instances
	streams  atomic.Uint32 // the last stream id that was given out

	draining context.Context //nolint:containedctx // ends when the version has no more time: see drain
	drain    context.CancelFunc
	hold     func() (release func(), ok bool) // keeps the version open for work in the background
}

// Observer is told what guests do, as it happens: for metrics. Its methods must not block.
type Observer interface {
	// PluginCall is one call: the operation, and ok, no_opinion, declined, quarantined or the kind of violation.
	PluginCall(name, op, result string, took time.Duration)
	// PluginBusy is a call that got no instance in time.
	PluginBusy(name string)
}

// Results of calls that are no violations.
const (
	resultOK          = "ok"
	resultNoOpinion   = "no_opinion"
	resultDeclined    = "declined"
	resultQuarantined = "quarantined"
)

// turn is one call's hold of an instance, from begin to end.
type turn struct {
	g        *guest
	in       *instance
	op       wire.Op
	pass     quarantine.Pass
	began    time.Time
	deadline time.Time
}

// begin gets an instance for a call: the given one, or any (bound: for a new stream). Errors: errQuarantined, errBusy, errGone,
// errDrained, the caller's own end, and whatever keeps a fresh instance from being made.
func (g *guest) begin(ctx context.Context, op wire.Op, in *instance, bound bool) (t turn, err error) {
	if err := ctx.Err(); err != nil {
		return turn{}, err
	}
	wall := g.limits.wall[op]
	t = turn{g: g, op: op, began: g.clock()}
	t.deadline = t.began.Add(wall)
	var ok, waited bool
	if t.pass, ok = g.ward.admit(t.began); !ok {
		g.counters.refused.Add(1)
		g.observe(op, resultQuarantined, 0)
		return turn{}, errQuarantined
	}
	switch {
	case in != nil:
		t.in, waited, err = g.pool.again(ctx, wall, in)
	case bound:
		t.in, waited, err = g.pool.bind(ctx, wall)
	default:
		t.in, waited, err = g.pool.get(ctx, wall)
	}
	if err != nil {
		g.ward.cancel(t.pass)
		if errors.Is(err, errBusy) && ctx.Err() == nil {
			g.counters.busy.Add(1)
			if g.observer != nil {
				g.observer.PluginBusy(g.name)
			}
		}
		return turn{}, err
	}
	if t.in == nil {
		waited = true
		if t.in, err = g.fresh(ctx, t.began); err != nil {
			g.pool.lost()
			t.count(err, resultOK, g.clock())
			return turn{}, err
		}
	}
	if waited { // what the host was slow in is not the guest's fault: it keeps half of its time
		if least := g.clock().Add(wall / 2); t.deadline.Before(least) {
			t.deadline = least
		}
	}
	return t, nil
}

// end gives the instance back. err is what became of the call: nil, *rules.Declined, or a *violation; result names the good
// ends.
func (t *turn) end(err error, result string) {
	now := t.g.clock()
	v := t.count(err, result, now)
	if lost := t.g.pool.put(t.in, v != nil && !v.kept, now); lost {
		t.g.refill()
	}
}

// count notes how a call ended.
func (t *turn) count(err error, result string, now time.Time) *violation {
	g := t.g
	g.counters.calls.Add(1)
	if _, no := errors.AsType[*rules.Declined](err); no {
		g.counters.declined.Add(1)
		err, result = nil, resultDeclined
	}
	if errors.Is(err, errOversize) {
		g.counters.oversize.Add(1)
		g.ward.cancel(t.pass)
		return nil
	}
	if err == nil {
		if result == resultNoOpinion {
			g.counters.noOpinion.Add(1)
		}
		g.ward.done(now, t.pass, nil)
		g.observe(t.op, result, now.Sub(t.began))
		return nil
	}
	v := asViolation(t.op, err)
	v.cause, v.stderr = g.redacted(v.cause), g.redacted(v.stderr)
	g.counters.violated(v.kind)
	g.log.Warn("the plugin broke the rules; generic behaviour is used", "op", opName(v.op), "violation", v.kind, "cause", v.cause,
		"stderr", v.stderr)
	g.ward.done(now, t.pass, v)
	g.observe(t.op, v.kind, now.Sub(t.began))
	return v
}

// redacted is text of the guest's without known secrets: an upstream may have told it one.
func (g *guest) redacted(text string) string {
	if l := g.kv.lent; l != nil && l.ports.Redact != nil {
		return l.ports.Redact(text)
	}
	return text
}

func (g *guest) observe(op wire.Op, result string, took time.Duration) {
	if g.observer != nil {
		g.observer.PluginCall(g.name, op.String(), result, took)
	}
}

// call runs op on a pooled instance and gives its answer, nil for "no opinion", to read. What read returns is part of the call:
// a *rules.Declined, or the fault that the answer is garbage, which costs the instance (ABI-8). The answer is the reader's
// to keep.
func (g *guest) call(ctx context.Context, op wire.Op, input []byte, read func(out []byte) error) error {
	t, err := g.begin(ctx, op, nil, false)
	if err != nil {
		return err
	}
	result := resultOK
	out, err := t.in.within(ctx, op, op, input, t.began, t.deadline)
	if err == nil {
		if out == nil {
			result = resultNoOpinion
		}
		err = read(bytes.Clone(out))
		if _, no := errors.AsType[*rules.Declined](err); err != nil && !no {
			err = asViolation(op, err)
		}
	}
	t.end(err, result)
	return err
}

// fresh makes an instance with the plugin's own kv.
func (g *guest) fresh(ctx context.Context, now time.Time) (*instance, error) {
	in, err := g.instantiate(ctx, g.kv, rand.Reader, now)
	if err != nil {
		return nil, err
	}
	if err := in.configure(ctx, now); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// refill makes an instance in the background when there is none, so that the next call does not wait for it (ABI-7 step 7). A
// guest that cannot be made again is for the next call to find out; one that is quarantined gets no spare.
func (g *guest) refill() {
	release, ok := g.hold()
	if !ok {
		return
	}
	if q, _, _ := g.ward.see(g.clock()); q != nil || !g.pool.reserve() {
		release()
		return
	}
	go func() {
		defer release()
		now := g.clock()
		in, err := g.fresh(g.draining, now)
		if err != nil {
			g.pool.lost()
			g.log.Debug("no spare instance", "error", err)
			return
		}
		g.pool.put(in, false, now)
	}()
}

// expire ends the time of a version that was replaced: what waits for it is woken, instances are closed when they return.
func (g *guest) expire() {
	g.drain()
	g.pool.close()
}

// close frees everything, in the order that leaks nothing: instances, compiled module, runtime, cache.
func (g *guest) close() {
	g.expire()
	g.sandbox.close()
}
