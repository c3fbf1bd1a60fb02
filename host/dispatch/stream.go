package dispatch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

const (
	// maxEventBytes bounds one event of a stream, since inline images are this large, and what is held before the first
	// useful one.
	maxEventBytes = 16 << 20
	// afterDone is how long an upstream may take to close its stream behind the end marker. By then the client has
	// everything; the connection is worth waiting for, since only a stream read to its end gives it back.
	afterDone = time.Second
)

// pump moves one event stream to the client.
type pump struct {
	a        *attempt
	frames   *upstream.Frames
	way      *streamWay // the answer becomes another dialect, or one document; nil: it passes
	held     []byte     // what the client gets before the first useful event
	finished bool       // a finish reason was seen
	done     bool       // the dialect's end marker was seen
	midEvent bool
	over     bool // the upstream's end marker was seen, whatever its guest made of it
	whole    bool // the upstream ended the stream properly
	hooked   hookedStream
	mending
}

// stream answers with events. Nothing is sent before the first useful event, so that every earlier failure keeps a true status
// and may go to the next target; after it the stream ends honestly (STM-10, INF-34).
func (a *attempt) stream(ctx, actx context.Context) step {
	limit := a.eventLimit()
	if limit > 0 {
		limit = max(limit-a.firstAt.Sub(a.began), 1)
	}
	a.clock.limit(phaseEvent, limit)
	p := &pump{a: a, frames: upstream.NewFrames(a.resp.Body, maxEventBytes)}
	p.findWay()
	if c := a.prep.Calls; c.Events || c.End {
		hook := a.exec.Events(c)
		p.hooked = hookedStream{hook: hook, asks: c.Events}
		defer func() { hook.End(context.WithoutCancel(ctx), p.whole) }()
	}
	for {
		run, err := p.frames.Next()
		if err != nil {
			return p.ended(ctx, actx, err)
		}
		if s, ok := p.take(ctx, actx, run); !ok {
			return s
		}
	}
}

// take handles the whole events of one read. How events are spread over reads makes no difference (STM-63).
func (p *pump) take(ctx, actx context.Context, run []byte) (step, bool) {
	a := p.a
	if p.frames.Torn() && !parses(run) {
		return stepNext, true // half an event; the next read tells how the stream ended (INF-26)
	}
	var said refused
	if p.hooked.asks {
		p.over = p.over || marksEnd(a.spoken(), run)
		if run, said = p.hooked.run(actx, run); said.err != nil {
			return p.unanswerable(run, said.err), false
		}
		if actx.Err() != nil { // nobody was asked; the next read tells why
			return stepNext, true
		}
	}
	failure, before := p.peek(run)
	if failure == nil && said.payload != nil {
		failure, before = said.payload, run
	}
	if failure != nil {
		run = before
	}
	run, word := p.forClient(run)
	if !a.r.t.Committed {
		switch {
		case failure != nil && !word:
			return a.judge(ctx, a.streamReply(failure), resilience.FaultAnswer), false // STM-51
		case failure == nil && !word:
			if p.way != nil && p.way.stream.Useful() { // one document is being collected
				a.clock.limit(phaseIdle, p.idle())
			}
			if p.held = append(p.held, run...); len(p.held) > maxEventBytes {
				return p.ended(ctx, actx, upstream.ErrFrameTooLarge), false
			}
			return stepNext, true
		}
		p.open()
	}
	if failure != nil {
		return p.failLate(ctx, failure, run), false
	}
	a.clock.limit(phaseIdle, p.idle())
	if !p.send(run) {
		return a.clientLeft(), false
	}
	return stepNext, true
}

// idle is how long the upstream may be silent.
func (p *pump) idle() time.Duration {
	if p.done || p.over {
		return afterDone
	}
	return smallest(p.a.r.c.Catalog.Settings.StreamIdleTimeout, p.a.prep.Idle)
}

// open commits the stream and replays what was held back.
func (p *pump) open() {
	h := p.a.answerHeader()
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = []string{"no-cache"}
	p.a.commit(h)
	now := p.a.r.d.Now()
	p.a.sample(now, now.Sub(p.a.began), true)
	if len(p.held) > 0 {
		p.send(p.held) // when the client is gone, the next write says so too
		p.held = nil
	}
}

func (p *pump) send(b []byte) bool {
	if len(b) == 0 { // its guest dropped all of it
		return true
	}
	if err := p.a.r.out.Write(b); err != nil {
		return false
	}
	p.a.sent += int64(len(b))
	p.midEvent = !endsEvent(b)
	return p.a.r.out.Flush() == nil
}

// peek watches the events of a run that is about to be sent: end markers, usage, and errors, with what comes before the
// error. It costs a few searches per read, and a parse only for events that seem to hold what is looked for.
func (p *pump) peek(run []byte) (failure, before []byte) {
	d := p.a.spoken()
	p.done = p.done || marksEnd(d, run)
	p.finished = p.finished || finishes(d, run)
	if usageIn(d, run) != nil {
		upstream.Events(run, func(e upstream.Event) bool {
			p.a.noteUsage(e.Data)
			return true
		})
	}
	if !p.mayFail(run) {
		return nil, nil
	}
	return p.findError(run)
}

// ended decides what the end of the upstream's stream means. Behind the end marker nothing matters any more.
func (p *pump) ended(ctx, actx context.Context, err error) step {
	a, eof := p.a, errors.Is(err, io.EOF)
	switch {
	case a.r.t.Committed && (p.done || p.over):
		return p.complete()
	case ctx.Err() != nil:
		a.abandoned(ctx)
		p.tellFailure()
		return stepDone
	case !a.r.t.Committed && p.way != nil && (eof && p.finished || p.done):
		return p.complete() // one document, or an answer without a word
	case !a.r.t.Committed:
		return p.neverBegan(ctx, actx, err, eof)
	case eof && p.finished:
		return p.complete()
	}
	reply := p.cutReply(actx, err, eof)
	return p.endWith(ctx, reply, a.faultOf(actx, reply.Facts.Code))
}

// complete ends a stream that has brought everything, and adds the end marker that its upstream left out (INF-22).
func (p *pump) complete() step {
	p.whole = true
	var tail []byte
	if p.midEvent {
		tail = append(tail, "\n\n"...)
	}
	if p.way != nil {
		return p.way.complete(p)
	}
	tail = p.mendEnd(tail)
	if !p.done {
		tail = append(tail, properEnd(p.a.r.c.Dialect)...)
	}
	if len(tail) > 0 {
		p.send(tail)
	}
	p.a.settleSuccess()
	return stepDone
}

// neverBegan judges a stream that brought nothing useful (STM-11).
func (p *pump) neverBegan(ctx, actx context.Context, err error, eof bool) step {
	a := p.a
	if ph, own := endedPhase(actx); own {
		if ph == phaseEvent {
			a.code, a.kind = "STREAM_READINESS_TIMEOUT", "stream_timeout"
		}
		return a.judge(ctx, &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{
			Code: wire.TransportTimeout, Message: "The provider began no useful stream in time.",
		}}, a.faultOf(actx, wire.TransportTimeout))
	}
	a.code, a.kind = "STREAM_EARLY_EOF", "stream_early_eof"
	return a.judge(ctx, p.cutReply(actx, err, eof), resilience.FaultEarlyEOF)
}

func (p *pump) cutReply(actx context.Context, err error, eof bool) *rules.Reply {
	code := wire.TransportEOF
	if !eof {
		p.a.fault, code = err, upstream.TransportCode(err)
	}
	if ownDeadline(actx) {
		code = wire.TransportTimeout
	}
	message := "The provider's stream ended before it was complete."
	switch {
	case code == wire.TransportTimeout:
		message = "The provider's stream stopped without an end."
	case errors.Is(err, upstream.ErrFrameTooLarge):
		message = "The provider sent a stream event above 16 MiB."
		p.a.code, p.a.kind = "stream_frame_too_large", ""
	}
	return &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{Code: code, Message: message}}
}

// streamReply is a failure that stands in an event, with the status that the payload states (STM-50).
func (a *attempt) streamReply(payload []byte) *rules.Reply {
	return &rules.Reply{
		Source: wire.SourceStream, Status: EventStatus(payload), Original: a.resp.StatusCode,
		Header: a.resp.Header, Body: payload[:min(len(payload), rules.MaxText)], BodyBytes: len(payload),
	}
}

// unanswerable ends a stream whose plugin fails closed and cannot look at it any more: nothing is passed that it was to see, and
// nothing is counted against the provider (ABI-8).
func (p *pump) unanswerable(before []byte, err error) step {
	a := p.a
	if !a.r.t.Committed {
		return a.impossible(err)
	}
	if !p.send(before) {
		return a.clientLeft()
	}
	a.impossible(err)
	a.r.t.Partial, a.r.t.Failure = true, &dialect.Failure{
		Status: http.StatusBadGateway, Type: "server_error", Code: "plugin_unavailable", RequestID: a.r.c.RequestID,
		Message: "The plugin of the provider " + a.target.Provider.ID + " cannot check the rest of this answer.",
	}
	p.tellFailure()
	return stepDone
}

// failLate judges an error in mid-stream: what came before it is sent, the verdict is applied, and the client gets the
// restated error and then the end (STM-52).
func (p *pump) failLate(ctx context.Context, payload, before []byte) step {
	if len(before) > 0 && !p.send(before) {
		return p.a.clientLeft()
	}
	return p.endWith(ctx, p.a.streamReply(payload), resilience.FaultAnswer)
}

// endWith judges a stream that broke after the commit, and ends it.
func (p *pump) endWith(ctx context.Context, reply *rules.Reply, fault resilience.Fault) step {
	a := p.a
	v, facts := a.meaning(ctx, reply)
	a.settleFailure(reply, v, fault)
	if ctx.Err() != nil {
		a.r.gone(ctx)
	} else {
		a.r.last = lastWord{set: true, verdict: v, reply: facts, target: a.target}
		f := a.r.failureOf(a.r.last)
		a.r.t.Partial, a.r.t.Failure = true, &f
	}
	p.tellFailure()
	return stepDone
}

// tellFailure ends a stream that has begun with one error event in the client's own dialect (INF-34).
func (p *pump) tellFailure() {
	t := p.a.r.t
	if !t.Committed || t.Failure == nil {
		return
	}
	out := dialect.StreamError(p.a.r.c.Dialect, *t.Failure)
	if p.midEvent {
		out = append([]byte("\n\n"), out...)
	}
	p.send(out)
}
