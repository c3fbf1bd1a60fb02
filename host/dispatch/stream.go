package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// afterDone is how long an upstream may take to close its stream behind the end marker. By then the client has everything; the
// connection is worth waiting for, since only a stream read to its end gives it back.
const afterDone = time.Second

// pump moves one event stream to the client.
type pump struct {
	a        *attempt
	frames   *upstream.Frames
	way      *streamWay // the answer becomes another dialect, or one document; nil: it passes
	held     []byte     // what the client gets before the first useful event
	finished bool       // a finish reason was seen
	done     bool       // the dialect's end marker was seen
	midEvent bool
	told     numbering // of a client whose events are numbered
	over     bool      // the upstream's end marker was seen, whatever its guest made of it
	whole    bool      // the upstream ended the stream properly
	hooked   hookedStream
	mending

	limit  int       // of one event, and of what is held before the first useful one
	now    time.Time // of the last read
	known  bool      // the upstream's dialect is one that we read
	signs  bool      // events are looked at for signs of the model
	always bool      // also behind the first output
	shown  bool      // reasoning, or more, was among them
	output bool      // something for the user was among them
	reason string    // to end, as the upstream stated it
	hold   holding
	ahead  *readAhead // nil: the pump reads itself
	story  *story     // what the client was told, for a continuation; nil: there will be none
}

// stream answers with events. Nothing is sent before the first useful event, so that every earlier failure keeps a true status
// and may go to the next target; after it the stream ends honestly (STM-10, INF-34).
func (a *attempt) stream(ctx, actx context.Context) step {
	p := a.newPump()
	defer p.stop()
	if a.resumed != nil && p.way == nil {
		return stepNext
	}
	if c := a.prep.Calls; c.Events || c.End {
		hook := a.exec.Events(c)
		p.hooked = hookedStream{hook: hook, asks: c.Events}
		defer func() { hook.End(context.WithoutCancel(ctx), p.whole) }()
	}
	for {
		run, err := p.next()
		if err == errRelease { //nolint:errorlint // made here
			p.release()
			continue
		}
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
	p.read(run)
	run, word := p.forClient(run)
	if p.done || p.over {
		a.clock.linger(afterDone)
	}
	if !a.r.t.Committed {
		wait := p.withhold(word)
		switch {
		case failure != nil && wait:
			return a.judge(ctx, a.streamReply(failure), resilience.FaultAnswer), false // STM-51
		case failure == nil && wait:
			if p.held = append(p.held, run...); len(p.held) > p.limit && !p.release() {
				return p.ended(ctx, actx, upstream.ErrFrameTooLarge), false
			}
			return stepNext, true
		}
		p.open()
		if failure == nil {
			a.begun()
		}
	}
	if failure != nil {
		return p.failLate(ctx, failure, run), false
	}
	if p.finished && !p.output && p.known && a.resumed == nil { // whether this is an answer at all is told at its end (STM-24)
		p.held = append(p.held, run...)
		return stepNext, true
	}
	if !p.sendHeld() || !p.send(run) {
		return a.clientLeft(), false
	}
	if a.resumed != nil && a.resumed.stitch.refused {
		return p.endWith(ctx, strayed(), resilience.FaultTransport), false // STM-44
	}
	return stepNext, true
}

// withhold says whether what has come so far is kept back: there is no word among it yet, or the route wants more of the answer first.
// The time for an answer to begin is over with the first word.
func (p *pump) withhold(word bool) bool {
	if !word && (p.way == nil || !p.way.stream.Useful()) {
		return true
	}
	if !p.hold.begun {
		p.hold.begun = true
		p.a.clock.limit(phaseEvent, 0)
		p.beginHold()
	}
	return !word || p.hold.on
}

// open commits the stream and replays what was held back.
func (p *pump) open() {
	h := p.a.answerHeader()
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = []string{"no-cache"}
	p.a.commit(h)
	now := p.a.r.d.Now()
	p.a.sample(now, now.Sub(p.a.began), true)
	p.sendHeld() // when the client is gone, the next write says so too
}

// sendHeld sends what was held back.
func (p *pump) sendHeld() bool {
	held := p.held
	p.held = nil
	return p.send(held)
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
	if numbered(p.a.r.c.Dialect) {
		p.told.note(b)
	}
	return p.a.r.out.Flush() == nil
}

// peek watches the events of a run that is about to be sent: end markers, usage, and errors, with what comes before the
// error. It costs a few searches per read, and a parse only for events that seem to hold what is looked for.
func (p *pump) peek(run []byte) (failure, before []byte) {
	d := p.a.spoken()
	p.a.issued(run)
	if !p.done && marksEnd(d, run) {
		p.done = true
		p.named(run)
	}
	if !p.finished && (finishes(d, run) || p.done && d == wire.OpenAIResponses) {
		p.finished = true
		upstream.Events(run, func(e upstream.Event) bool {
			p.reason = firstOf(p.reason, reasonIn(d, e.Data))
			return true
		})
	}
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
		return p.complete(ctx)
	case ctx.Err() != nil:
		a.abandoned(ctx)
		p.tellFailure()
		return stepDone
	case !a.r.t.Committed && (eof && p.finished || p.done && (p.finished || p.shown)):
		return p.complete(ctx) // what was held back, or an answer without a word
	case !a.r.t.Committed:
		return p.neverBegan(ctx, actx, err, eof)
	case eof && p.finished:
		return p.complete(ctx)
	}
	reply := p.cutReply(actx, err, eof)
	fault := a.faultOf(actx, reply.Facts.Code)
	if s, ok := p.continued(ctx, reply, fault); ok {
		return s
	}
	return p.endWith(ctx, reply, fault)
}

// complete ends a stream that has brought everything, and adds the end marker that its upstream left out (INF-22). One that has
// brought nothing for the user is a failure (STM-60).
func (p *pump) complete(ctx context.Context) step {
	if p.empty() {
		return p.nothing(ctx)
	}
	p.whole = true
	if p.a.r.t.Committed {
		p.sendHeld()
	}
	var tail []byte
	if p.midEvent {
		tail = append(tail, "\n\n"...)
	}
	if p.way != nil {
		return p.way.complete(ctx, p)
	}
	if !p.a.r.t.Committed {
		p.open()
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
	ph, own := endedPhase(actx)
	if (!own || ph == phaseSlow) && a.mayRepeat(err) {
		return stepNext
	}
	if own && ph == phaseEvent {
		a.code, a.kind = "STREAM_READINESS_TIMEOUT", "stream_timeout"
		return a.judge(ctx, &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{
			Code: wire.TransportTimeout, Message: "The provider began no useful stream in time.",
		}}, a.faultOf(actx, wire.TransportTimeout))
	}
	reply := p.cutReply(actx, err, eof)
	if own || p.hold.begun {
		return a.judge(ctx, reply, a.faultOf(actx, reply.Facts.Code))
	}
	a.code, a.kind = firstOf(a.code, "STREAM_EARLY_EOF"), firstOf(a.kind, "stream_early_eof")
	return a.judge(ctx, reply, resilience.FaultEarlyEOF)
}

func (p *pump) cutReply(actx context.Context, err error, eof bool) *rules.Reply {
	code := wire.TransportEOF
	if !eof {
		p.a.fault, code = err, upstream.TransportCode(err)
	}
	ph, own := endedPhase(actx)
	switch {
	case own && ph == phaseStall:
		p.a.code, p.a.kind = "stream_content_stall", "stream_error"
		return silence("The stream showed no sign of the model for "+p.a.stallBudget(p.output).String()+".", p.a)
	case own && ph == phaseSlow:
		p.a.code, p.a.kind = "STREAM_THROUGHPUT_TOO_LOW", "stream_error"
		s := p.a.r.c.Catalog.Settings.StreamRecovery.Throughput
		return silence(fmt.Sprintf("The stream brought less than %d bytes of text in a second over %s.", s.MinRate, s.Window), p.a)
	case own:
		code = wire.TransportTimeout
	}
	message := "The provider's stream ended before it was complete."
	switch {
	case code == wire.TransportTimeout:
		message = "The provider's stream stopped without an end."
	case errors.Is(err, upstream.ErrFrameTooLarge):
		message = fmt.Sprintf("The provider sent a stream event above %d bytes (streams.maxEventBytes).", p.limit)
		p.a.code, p.a.kind = "stream_frame_too_large", "server_error"
	}
	return &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{Code: code, Message: message}}
}

// silence is a stream that one of the watchdogs ended: 502, whatever the transport says (STM-20, STM-33).
func silence(message string, a *attempt) *rules.Reply {
	a.fault = errSilent
	return &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{Code: wire.TransportEOF, Message: message}}
}

var errSilent = errors.New("ended by a watchdog")

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
	v, facts := p.a.meaning(ctx, reply)
	return p.endAs(ctx, reply, v, facts, fault)
}

// endAs ends a stream whose failure is judged already.
func (p *pump) endAs(ctx context.Context, reply *rules.Reply, v wire.Verdict, facts replyFacts, fault resilience.Fault) step {
	a := p.a
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
	out := dialect.StreamError(p.a.r.c.Dialect, *t.Failure, p.told.place(p.a.r))
	if p.midEvent {
		out = append([]byte("\n\n"), out...)
	}
	p.send(out)
}
