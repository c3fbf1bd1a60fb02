package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// EventHook is the hook of one stream's events (ABI-5). One goroutine uses it: first Event for each event, then End once, whatever
// became of the stream.
type EventHook struct {
	e        *Executor
	stream   uint32
	events   bool // on_event is asked
	ends     bool // on_end is asked
	stateful bool
	in       *instance // of a stateful stream, from its first event
	off      bool      // the stream goes on unhooked
	input    []byte
	output   []byte
}

// Calls are what a plan asks of the guest for a stream: on_event (response.events is hook), all of them by one instance
// (response.stateful), and on_end.
type Calls struct{ Events, Stateful, End bool }

// ErrUnhooked is wrapped by the error of an EventHook whose guest hears no more of the stream (ABI-5).
var ErrUnhooked = errors.New("the stream goes on unhooked")

// Events returns the hook of a new stream.
func (e *Executor) Events(c Calls) *EventHook {
	h := &EventHook{e: e, off: e.v.guest == nil, events: c.Events, ends: c.End, stateful: c.Stateful && c.Events}
	if !h.off {
		h.stream = e.v.guest.streams.Add(1)
	}
	return h
}

// Event asks about one event; the answer lies in memory that the next call uses again. Data of wire.EventEnd is the JSON
// {"error": {"code", "message"}}. After an error the event passes. It wraps ErrUnhooked when there is no use in asking for the
// next ones: a stateful stream, whose state misses an event, goes on unhooked. It wraps ErrUnavailable when the plugin fails
// closed: the stream ends.
func (h *EventHook) Event(ctx context.Context, name, data []byte) (wire.EventAnswer, error) {
	if h.off || !h.events {
		return wire.EventAnswer{}, ErrUnhooked
	}
	g := h.e.v.guest
	t, err := g.begin(ctx, wire.OpEvent, h.in, h.stateful)
	switch {
	case err != nil && ctx.Err() != nil: // nobody waits for the answer: no fault of the guest
		return wire.EventAnswer{}, ctx.Err()
	case err != nil:
		return wire.EventAnswer{}, h.failed(err)
	}
	if h.stateful && h.in == nil {
		g.pool.tie(t.in)
		h.in = t.in
	}
	h.input = wire.AppendEvent(h.input[:0], wire.Event{Stream: h.stream, Name: name, Data: data})
	var said wire.EventAnswer
	out, err := t.in.within(ctx, wire.OpEvent, wire.OpEvent, h.input, t.began, t.deadline)
	result := resultOK
	if err == nil {
		if len(out) == 0 {
			result = resultNoOpinion
		}
		h.output = append(h.output[:0], out...) // the host copies first: the guest's memory is the guest's
		said, err = readEvent(h.output)
	}
	t.end(err, result)
	if err != nil {
		return wire.EventAnswer{}, h.failed(err)
	}
	return said, nil
}

// readEvent decodes what on_event answered. An error of EventEnd is the stream's, not the guest's.
func readEvent(out []byte) (wire.EventAnswer, error) {
	a, ok := wire.ReadEventAnswer(out)
	if !ok {
		return wire.EventAnswer{}, garbage("on_event answered %d bytes that are none of its forms", len(out))
	}
	if a.Action == wire.EventEnd && declined(a.Data) == nil {
		return wire.EventAnswer{}, garbage("on_event ends the stream without an error that can be read")
	}
	return a, nil
}

// failed decides what a fault means for the stream.
func (h *EventHook) failed(err error) error {
	h.off = h.off || h.stateful || h.e.v.closes(err) || errors.Is(err, errDrained)
	err = h.e.v.hookFault(wire.OpEvent, err)
	if h.off {
		err = fmt.Errorf("%w: %w", ErrUnhooked, err)
	}
	return err
}

// End tells the guest that the stream is over, and frees the instance of a stateful one. complete says that the upstream ended it
// properly. It is called once for every hook, also after an error: a guest that is still there has the state of the stream to forget.
// What it does with it changes nothing.
func (h *EventHook) End(ctx context.Context, complete bool) {
	g := h.e.v.guest
	if h.in != nil {
		defer g.pool.untie(h.in)
	}
	if g == nil || !h.ends || h.stateful && h.in == nil {
		return
	}
	ctx = context.WithoutCancel(ctx) // a client that left is an end too
	t, err := g.begin(ctx, wire.OpEnd, h.in, false)
	if err != nil {
		return
	}
	input, err := json.Marshal(wire.StreamEnd{StreamID: h.stream, Complete: complete, NowMS: t.began.UnixMilli()})
	var out []byte
	if err == nil {
		out, err = t.in.within(ctx, wire.OpEnd, wire.OpEnd, input, t.began, t.deadline)
	}
	result := resultOK
	switch {
	case err != nil:
	case out == nil:
		result = resultNoOpinion
	default:
		if no, refuses := errors.AsType[*rules.Declined](declined(out)); refuses {
			err = no
		} else if !json.Valid(out) {
			err = garbage("on_end answered what is not JSON")
		}
	}
	t.end(err, result)
}
