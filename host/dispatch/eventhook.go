package dispatch

import (
	"bytes"
	"context"
	"errors"

	"github.com/weirgate/weir/sdk/wire"
)

// hookedStream has a guest look at each event of a stream (ABI-5). It keeps its buffers, so that events that pass cost no memory.
type hookedStream struct {
	hook   EventHook // nil: the stream has none
	asks   bool      // on_event, not only on_end
	out    []byte    // the run that is sent, when it is not what came
	joined []byte    // data of several lines
}

// refused is a stream that its guest ended as an error, or that a plugin which fails closed cannot answer for.
type refused struct {
	payload []byte // of the guest
	err     error  // of the plugin
}

// run asks about the events of a run and returns what is to be sent of it. Comments and empty events are nobody's business; what
// comes behind a refusal is dropped.
func (h *hookedStream) run(ctx context.Context, run []byte) ([]byte, refused) {
	h.out = h.out[:0]
	kept := 0 // run is in out, or gone, up to here
	for at := 0; at < len(run); {
		f := h.frame(run[at:], at == 0)
		answer, err := h.ask(ctx, f)
		switch {
		case err != nil:
			return h.upTo(run, kept, at), refused{err: err}
		case answer.Action == wire.EventEnd:
			return h.upTo(run, kept, at), refused{payload: errorPayload(answer.Data)}
		}
		end := at + len(f.raw)
		if answer.Action != wire.EventPass {
			h.out, kept = append(h.out, run[kept:at]...), end
		}
		if answer.Action == wire.EventReplace {
			h.out = appendFrame(h.out, answer.Name, answer.Data)
		}
		at = end
	}
	return h.upTo(run, kept, len(run)), refused{}
}

// upTo is what of run is to be sent, up to the place at: run itself while nothing in it was changed.
func (h *hookedStream) upTo(run []byte, kept, at int) []byte {
	if kept == 0 {
		return run[:at]
	}
	h.out = append(h.out, run[kept:at]...)
	return h.out
}

// ask lets the guest look at one event. Without a word that can be used the event passes; the error is that of a plugin that fails
// closed.
func (h *hookedStream) ask(ctx context.Context, f frame) (wire.EventAnswer, error) {
	if !f.has || !h.asks || ctx.Err() != nil {
		return wire.EventAnswer{}, nil
	}
	said, err := h.hook.Event(ctx, f.name, f.data)
	if errors.Is(err, ErrPluginUnavailable) {
		return wire.EventAnswer{}, err
	}
	if errors.Is(err, ErrUnhooked) {
		h.asks = false
	}
	if err != nil || !oneLine(said.Name) {
		return wire.EventAnswer{}, nil
	}
	return said, nil
}

// frame is one event as it stands in a stream.
type frame struct {
	raw, name, data []byte
	has             bool // it has data
}

// frame cuts the first event off b, with the blank line behind it. Data of several lines is joined in a buffer that the next call
// uses again.
func (h *hookedStream) frame(b []byte, first bool) (f frame) {
	rest, lines := b, 0
	if first { // of a run
		rest = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	}
	for len(rest) > 0 {
		var line []byte
		if line, rest = cutLine(rest); len(line) == 0 {
			break
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case string(field) == "event":
			f.name = value
		case string(field) != "data":
		case lines == 0:
			f.data, f.has, lines = value, true, 1
		default:
			if lines == 1 {
				h.joined = append(h.joined[:0], f.data...)
			}
			h.joined = append(append(h.joined, '\n'), value...)
			f.data = h.joined
			lines++
		}
	}
	f.raw = b[:len(b)-len(rest)]
	return f
}

// cutLine takes the first line off b. Lines end with \n, \r\n or \r.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	line = b
	if i >= 0 {
		line = b[:i]
	}
	if j := bytes.IndexByte(line, '\r'); j >= 0 {
		i = j
	}
	if i < 0 {
		return b, nil
	}
	if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
		return b[:i], b[i+2:]
	}
	return b[:i], b[i+1:]
}

// oneLine says whether a name can be sent as one.
func oneLine(name []byte) bool {
	return bytes.IndexByte(name, '\n') < 0 && bytes.IndexByte(name, '\r') < 0
}

// appendFrame writes an event, each line of its data with a name of its own.
func appendFrame(b, name, data []byte) []byte {
	if len(name) > 0 {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	for rest := data; ; {
		var line []byte
		i := bytes.IndexAny(rest, "\r\n")
		if line = rest; i >= 0 {
			line = rest[:i]
		}
		b = append(append(append(b, "data: "...), line...), '\n')
		if i < 0 {
			return append(b, '\n')
		}
		_, rest = cutLine(rest[i:])
	}
}

// errorPayload is what a guest ends a stream with, in the form of an upstream's error: {"error": {"code", "message"}} as it stands.
func errorPayload(data []byte) []byte {
	if failed, _ := failedDocument(data); failed {
		return bytes.Clone(data)
	}
	return []byte(`{"error":{"message":"The provider's plugin ended the stream."}}`)
}
