package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// maxEventBytes bounds one event of a stream; inline images are this large.
const maxEventBytes = 16 << 20

// pump moves one event stream to the client.
type pump struct {
	a        *attempt
	frames   *upstream.Frames
	held     []byte // whole events before the first useful one
	finished bool   // a finish reason was seen
	done     bool   // the dialect's end marker was seen
	usage    []byte // the last event that states usage, kept for the record
	midEvent bool
}

// stream answers with events. Nothing is sent before the first useful event, so that every earlier failure keeps a true status
// and may go to the next target; after it the stream ends honestly (STM-10, INF-34).
func (a *attempt) stream(ctx, actx context.Context) step {
	a.clock.limit(phaseEvent, max(a.eventLimit()-a.firstAt.Sub(a.began), 1))
	p := &pump{a: a, frames: upstream.NewFrames(a.resp.Body, maxEventBytes)}
	for {
		run, err := p.frames.Next()
		if err != nil {
			return p.ended(ctx, actx, err)
		}
		if s, ok := p.take(ctx, run); !ok {
			return s
		}
	}
}

// take handles the whole events of one read: before the commit it looks at each, after it only at what matters.
func (p *pump) take(ctx context.Context, run []byte) (step, bool) {
	a := p.a
	if !a.r.t.Committed {
		useful, failure := p.opening(run)
		if failure != nil {
			return a.streamError(ctx, failure), false
		}
		if !useful {
			p.held = append(p.held, run...)
			return stepNext, true
		}
		p.open()
	} else {
		a.clock.limit(phaseIdle, p.idle())
	}
	if failure, before := p.peek(run); failure != nil {
		return p.failLate(ctx, failure, before), false
	}
	if !p.send(run) {
		return a.clientLeft(), false
	}
	return stepNext, true
}

func (p *pump) idle() time.Duration {
	return smallest(p.a.r.c.Catalog.Settings.StreamIdleTimeout, p.a.prep.Idle)
}

// open commits the stream and replays what was held back.
func (p *pump) open() {
	a := p.a
	a.clock.limit(phaseIdle, p.idle())
	h := a.answerHeader()
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = []string{"no-cache"}
	a.commit(h)
	if len(p.held) > 0 {
		p.send(p.held)
		p.held = nil
	}
}

func (p *pump) send(b []byte) bool {
	if err := p.a.r.out.Write(b); err != nil {
		return false
	}
	p.a.sent += int64(len(b))
	p.midEvent = !bytes.HasSuffix(b, []byte("\n\n")) && !bytes.HasSuffix(b, []byte("\n\r\n"))
	return p.a.r.out.Flush() == nil
}

// opening looks for the first useful event of a run (STM-10): one that is not a comment, a ping, empty, [DONE] or a bare
// error. The payload of an error that comes first is returned.
func (p *pump) opening(run []byte) (useful bool, failure []byte) {
	upstream.Events(run, func(e upstream.Event) bool {
		data := bytes.TrimSpace(e.Data)
		switch {
		case len(data) == 0, bytes.Equal(data, []byte("[DONE]")), e.Name == "ping", isPing(data):
			return true
		}
		if failed := p.errorIn(e.Name, data); failed != nil {
			failure = failed
			return false
		}
		useful = true
		return false
	})
	return useful, failure
}

func isPing(data []byte) bool {
	return len(data) < 64 && bytes.Contains(data, []byte(`"type"`)) && bytes.Contains(data, []byte(`"ping"`))
}

// errorIn returns the payload of an event that is an error: named so, or a bare error object.
func (p *pump) errorIn(name string, data []byte) []byte {
	if name == "error" {
		return bytes.Clone(data)
	}
	if in := p.a.prep.Error; in != nil && in.InStream != nil && in.InStream.Event != "" && in.InStream.Event == name {
		return bytes.Clone(data)
	}
	head := data[:min(len(data), 64)]
	if !bytes.Contains(head, []byte(`"error"`)) && !bytes.Contains(head, []byte(`"base_resp"`)) {
		return nil
	}
	if failed, _ := failedDocument(data); failed {
		return bytes.Clone(data)
	}
	return nil
}

// peek watches the events of a run that is about to be sent: end markers, usage, and errors, with what comes before the
// error. It costs a search per read, not a parse per event.
func (p *pump) peek(run []byte) (failure, before []byte) {
	if bytes.Contains(run, []byte("[DONE]")) {
		p.done = true
	}
	if !p.finished && bytes.Contains(run, []byte(`"finish_reason":"`)) {
		p.finished = true
	}
	if p.a.prep.Usage != nil && bytes.Contains(run, []byte(`"usage":{`)) {
		p.keepUsage(run)
	}
	if !bytes.Contains(run, []byte(`"error"`)) && !bytes.Contains(run, []byte("event: error")) {
		return nil, nil
	}
	return p.findError(run)
}

func (p *pump) findError(run []byte) (failure, before []byte) {
	rest := run
	for len(rest) > 0 {
		n := eventLength(rest)
		upstream.Events(rest[:n], func(e upstream.Event) bool {
			failure = p.errorIn(e.Name, bytes.TrimSpace(e.Data))
			return false
		})
		if failure != nil {
			return failure, run[:len(run)-len(rest)]
		}
		rest = rest[n:]
	}
	return nil, nil
}

// eventLength is the length of the first event of b with the blank line behind it.
func eventLength(b []byte) int {
	end := len(b)
	for _, sep := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(b, []byte(sep)); i >= 0 {
			end = min(end, i+len(sep))
		}
	}
	return end
}

func (p *pump) keepUsage(run []byte) {
	upstream.Events(run, func(e upstream.Event) bool {
		if bytes.Contains(e.Data, []byte(`"usage":{`)) {
			p.usage = append(p.usage[:0], e.Data...)
		}
		return true
	})
}

// ended decides what the end of the upstream's stream means.
func (p *pump) ended(ctx, actx context.Context, err error) step {
	a := p.a
	if ctx.Err() != nil {
		return a.abandoned(ctx)
	}
	eof := errors.Is(err, io.EOF)
	if !a.r.t.Committed {
		return p.neverBegan(ctx, actx, err, eof)
	}
	if eof && (p.done || p.finished) {
		if !p.done && a.r.c.Dialect == wire.OpenAIChat {
			p.send([]byte("data: [DONE]\n\n")) // INF-22
		}
		if len(p.usage) > 0 {
			a.noteUsage(p.usage)
		}
		a.settleSuccess()
		return stepDone
	}
	reply := p.cutReply(actx, err, eof)
	return p.endWith(ctx, reply, ownDeadline(actx))
}

// neverBegan judges a stream that brought nothing useful (STM-11).
func (p *pump) neverBegan(ctx, actx context.Context, err error, eof bool) step {
	if ph, own := endedPhase(actx); own {
		reply := &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{
			Code: wire.TransportTimeout, Message: "The provider began no useful stream in time.",
		}}
		if ph == phaseEvent {
			p.a.r.lastCode = "STREAM_READINESS_TIMEOUT"
		}
		return p.a.judge(ctx, reply, true)
	}
	p.a.r.lastCode = "STREAM_EARLY_EOF"
	return p.a.judge(ctx, p.cutReply(actx, err, eof), false)
}

func (p *pump) cutReply(actx context.Context, err error, eof bool) *rules.Reply {
	code := wire.TransportEOF
	if !eof {
		code = upstream.TransportCode(err)
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
		p.a.r.lastCode = "stream_frame_too_large"
	}
	return &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{Code: code, Message: message}}
}

// streamReply is a failure that stands in an event, with the status that the payload states (STM-50).
func (a *attempt) streamReply(payload []byte) *rules.Reply {
	var d struct {
		Error json.RawMessage `json:"error"`
	}
	raw := json.RawMessage(payload)
	if json.Unmarshal(payload, &d) == nil && present(d.Error) {
		raw = d.Error
	}
	return &rules.Reply{
		Source: wire.SourceStream, Status: payloadStatus(raw), Original: a.resp.StatusCode,
		Header: a.resp.Header, Body: payload[:min(len(payload), rules.MaxText)], BodyBytes: len(payload),
	}
}

// streamError judges an error that came before anything useful: as if it had been the status (STM-51).
func (a *attempt) streamError(ctx context.Context, payload []byte) step {
	return a.judge(ctx, a.streamReply(payload), false)
}

// failLate judges an error in mid-stream: what came before it is sent, the verdict is applied, and the client gets the
// restated error and then the end (STM-52).
func (p *pump) failLate(ctx context.Context, payload, before []byte) step {
	if len(before) > 0 && !p.send(before) {
		return p.a.clientLeft()
	}
	return p.endWith(ctx, p.a.streamReply(payload), false)
}

// endWith ends a stream that has begun with one error event in the client's own dialect (INF-34).
func (p *pump) endWith(ctx context.Context, reply *rules.Reply, own bool) step {
	a := p.a
	v, facts := a.meaning(ctx, reply)
	a.settleFailure(reply, v, own)
	if ctx.Err() != nil {
		a.r.gone(ctx)
		return stepDone
	}
	a.r.last = lastWord{set: true, verdict: v, reply: facts, target: a.target}
	f := a.r.failureOf(a.r.last)
	a.r.t.Partial, a.r.t.Failure = true, &f
	out := dialect.StreamError(a.r.c.Dialect, f)
	if p.midEvent {
		out = append([]byte("\n\n"), out...)
	}
	p.send(out)
	return stepDone
}
