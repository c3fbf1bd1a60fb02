package dispatch

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// streamWay turns the events of an upstream's stream into those of the client's dialect, or into one document for a client that asked
// for one (INF-27).
type streamWay struct {
	stream *translate.Stream
	plain  bool // the client wants one document: nothing is told before the end
	out    []byte
}

// findWay settles what becomes of the stream.
func (p *pump) findWay() {
	a := p.a
	if a.resumed != nil {
		if way, err := a.wayBack(); err == nil {
			p.way = &streamWay{stream: way.GoOn(a.resumed.writer, a.resumed.take)}
		}
		return
	}
	if a.way == nil && !a.r.c.Stream { // a stream that nobody asked for
		if _, ok := translate.Codec(a.spoken()); ok && a.spoken() == a.r.c.Dialect {
			if way, err := a.newWay(a.spoken()); err == nil { // a body that cannot be read was good enough for the upstream: its stream passes
				a.way = way
			}
		}
	}
	switch {
	case a.way == nil:
		p.mend = p.mender()
	case a.r.c.Stream:
		p.way = &streamWay{stream: a.way.Stream()}
	default:
		p.way = &streamWay{stream: a.way.Collect(), plain: true}
	}
}

// wayBack is the way of the answer, also within a dialect.
func (a *attempt) wayBack() (*translate.Way, error) {
	if a.way != nil {
		return a.way, nil
	}
	return a.newWay(a.spoken())
}

// forClient is what the client gets of a run of whole events, and whether a useful word is among it (STM-10). The answer is valid until
// the next call.
func (p *pump) forClient(run []byte) (out []byte, word bool) {
	w := p.way
	if w == nil {
		run = p.mended(p.sound(run))
		return run, p.a.r.t.Committed || useful(p.a.spoken(), run) && (p.shown || !p.finished) // what only ends an answer begins none
	}
	w.out = w.out[:0]
	upstream.Events(run, func(e upstream.Event) bool {
		more, err := w.stream.Event(w.out, []byte(e.Name), e.Data)
		if err != nil { // a malformed event is left out (FLT-10)
			p.a.r.t.note("stream: a malformed event was left out")
			return true
		}
		w.out = more
		return true
	})
	if w.plain {
		return nil, false
	}
	return w.out, w.stream.Useful()
}

// complete ends an answer that has brought everything: with the dialect's own end, or as the one document that was asked for.
func (w *streamWay) complete(ctx context.Context, p *pump) step {
	a := p.a
	w.out = w.stream.End(w.out[:0], true)
	if a.resumed != nil && a.resumed.stitch.refused {
		return p.endWith(ctx, strayed(), resilience.FaultTransport)
	}
	for kind, n := range w.stream.Dropped() {
		a.r.t.note("answer: " + strconv.Itoa(n) + " of type " + kind + " dropped")
	}
	if w.plain {
		return w.document(p)
	}
	if !a.r.t.Committed {
		p.open()
	}
	p.send(w.out)
	a.settleSuccess()
	return stepDone
}

// document tells the collected answer whole.
func (w *streamWay) document(p *pump) step {
	a := p.a
	text := w.stream.Document(nil)
	h := a.answerHeader()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	delete(h, "Cache-Control")
	a.settleSuccess()
	a.commit(h)
	if err := a.r.out.Write(text); err != nil {
		return a.clientLeft()
	}
	a.sent += int64(len(text))
	return stepDone
}

// translatedPlain answers with an upstream's whole document in the client's dialect, or as the stream that it asked for (INF-27).
func (a *attempt) translatedPlain(ctx context.Context, text []byte) step {
	way := a.way
	h := a.answerHeader()
	delete(h, "Content-Encoding")
	if !a.r.c.Stream {
		out, _, err := way.Answer(nil, text)
		if err != nil {
			return a.unreadable(ctx, text)
		}
		h["Content-Type"] = []string{"application/json"}
		h["Content-Length"] = []string{strconv.Itoa(len(out))}
		return a.tellWhole(h, out, false)
	}
	out, err := way.Told(nil, text)
	if err != nil {
		return a.unreadable(ctx, text)
	}
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = []string{"no-cache"}
	return a.tellWhole(h, out, true)
}

func (a *attempt) tellWhole(h http.Header, out []byte, flush bool) step {
	a.settleSuccess()
	a.commit(h)
	if err := a.r.out.Write(out); err != nil {
		return a.clientLeft()
	}
	a.sent += int64(len(out))
	if flush && a.r.out.Flush() != nil {
		return a.clientLeft()
	}
	return stepDone
}

// wantsWhole says whether a document must be read whole before it is told: it becomes another dialect, or a stream.
func (a *attempt) wantsWhole() bool {
	if a.way != nil {
		return true
	}
	if _, ok := translate.Codec(a.spoken()); !ok || !a.r.c.Stream || a.spoken() != a.r.c.Dialect {
		return false
	}
	way, err := a.newWay(a.spoken())
	if err != nil {
		return false
	}
	a.way = way
	return true
}

// maxDocument bounds an answer that is translated.
const maxDocument = 64 << 20

// whole reads the rest of a document that begins with text.
func (a *attempt) whole(text []byte) ([]byte, error) {
	var b bytes.Buffer
	b.Write(text)
	_, err := io.Copy(&b, io.LimitReader(a.resp.Body, maxDocument-int64(len(text))))
	return b.Bytes(), err
}

// unreadable judges a good status whose document is none in the dialect that it should be in.
func (a *attempt) unreadable(ctx context.Context, text []byte) step {
	return a.judge(ctx, &rules.Reply{
		Source: wire.SourceHTTP, Status: http.StatusBadGateway, Original: a.resp.StatusCode, Header: a.resp.Header,
		Body: bytes.Clone(text[:min(len(text), rules.MaxText)]), BodyBytes: len(text),
	}, faultOfAnswer(text))
}
