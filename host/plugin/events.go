package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// EventHook is the hook of one stream's events (ABI-5). One goroutine uses it: first On for each event, then End once, whatever
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

// EventVerdict is what the hook says about one event. Name and Data are those of EventReplace and valid until the next On.
type EventVerdict struct {
	Action  wire.EventAction
	Name    []byte
	Data    []byte
	Code    string // of EventEnd: the error that ends the stream
	Message string
}

// Events returns the hook of a new stream, nil when the plan asks for none: on_event is asked when response.events is hook, on_end
// when hooks lists it or the stream is stateful.
func (e *Executor) Events(p *wire.Plan) *EventHook {
	h := &EventHook{e: e, events: p.Response.Events == "hook", ends: p.Response.Stateful}
	h.stateful = p.Response.Stateful && h.events
	for _, name := range p.Hooks {
		h.ends = h.ends || name == wire.OpEnd.String()
	}
	if e.v.guest == nil || !h.events && !h.ends {
		return nil
	}
	h.stream = e.v.guest.streams.Add(1)
	return h
}

// On asks about one event. A guest that breaks the rules, is busy or quarantined lets it pass; a stateful stream, whose state
// then misses an event, goes on unhooked. Only with on_violation fail_closed there is an error, which wraps ErrUnavailable: the
// stream ends.
func (h *EventHook) On(ctx context.Context, name, data []byte) (EventVerdict, error) {
	pass := EventVerdict{Action: wire.EventPass}
	if h.off || !h.events {
		return pass, nil
	}
	g := h.e.v.guest
	t, err := g.begin(ctx, wire.OpEvent, h.in, h.stateful)
	if err != nil {
		return pass, h.failed(wire.OpEvent, err)
	}
	if h.stateful && h.in == nil {
		g.pool.tie(t.in)
		h.in = t.in
	}
	h.input = wire.AppendEvent(h.input[:0], wire.Event{Stream: h.stream, Name: name, Data: data})
	var said EventVerdict
	out, err := t.in.within(ctx, wire.OpEvent, wire.OpEvent, h.input, t.began, t.wall)
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
		return pass, h.failed(wire.OpEvent, err)
	}
	return said, nil
}

// readEvent decodes what on_event answered. An error of EventEnd is the stream's, not the guest's.
func readEvent(out []byte) (EventVerdict, error) {
	a, ok := wire.ReadEventAnswer(out)
	if !ok {
		return EventVerdict{}, garbage("on_event answered %d bytes that are none of its forms", len(out))
	}
	v := EventVerdict{Action: a.Action, Name: a.Name, Data: a.Data}
	if a.Action == wire.EventEnd {
		var why struct {
			Error *rules.Declined `json:"error"`
		}
		if err := json.Unmarshal(a.Data, &why); err != nil || why.Error == nil {
			return EventVerdict{}, garbage("on_event ends the stream without an error that can be read")
		}
		v.Code, v.Message, v.Data = why.Error.Code, why.Error.Message, nil
	}
	return v, nil
}

// failed decides what a fault means for the stream.
func (h *EventHook) failed(op wire.Op, err error) error {
	if h.stateful {
		h.off = true
	}
	if !h.e.v.closes(err) {
		return nil
	}
	h.off = true
	return fmt.Errorf("%w: %s of the plugin %s: %w", ErrUnavailable, op, h.e.v.name, err)
}

// End tells the guest that the stream is over, and frees the instance of a stateful one. complete says that the upstream ended it
// properly. It is called once for every hook, also after an error; what the guest does with it changes nothing.
func (h *EventHook) End(ctx context.Context, complete bool) {
	g := h.e.v.guest
	if h.in != nil {
		defer g.pool.untie(h.in)
	}
	if h.off || !h.ends || h.stateful && h.in == nil {
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
		out, err = t.in.call(ctx, wire.OpEnd, input, t.began, t.wall)
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
