package sdk

import "github.com/weirgate/weir/sdk/wire"

// machine answers the host for one plugin. It keeps its buffers, since the host copies an answer before it calls again: a
// call allocates only what the author's function does. One call at a time.
type machine struct {
	plugin *Plugin
	out    Writer
	event  Event
}

// call runs one operation. nil is "no opinion", which is also the answer to an operation that this sdk does not know. The
// answer is valid until the next call.
func (m *machine) call(op wire.Op, input []byte) []byte {
	m.out.Reset()
	if op == wire.OpEvent {
		return m.onEvent(input)
	}
	p, w := m.plugin, &m.out
	switch op {
	case wire.OpDescribe:
		p.describe(w)
	case wire.OpConfigure:
		p.configure(w, input)
	case wire.OpPlan:
		answer(w, input, p.Plan, planRequest)
	case wire.OpRequest:
		answer(w, input, p.OnRequest, request)
	case wire.OpResponse:
		answer(w, input, p.OnResponse, response)
	case wire.OpEnd:
		p.onEnd(loose(input))
	case wire.OpRespond:
		answer(w, input, p.Respond, request)
	case wire.OpRestate:
		answer(w, input, p.OnRestate, failure)
	case wire.OpClassify:
		answer(w, input, p.OnClassify, failure)
	}
	if len(w.b) == 0 {
		return nil
	}
	return w.b
}

// written is what an author's function returns.
type written[T any] interface {
	*T
	write(w *Writer)
}

// answer calls f, when the plugin has it, with the input that read makes, and writes what it returned. Input that is not an
// object gets no opinion.
func answer[In, Out any, P written[Out]](w *Writer, input []byte, f func(In) P, read func(Value) In) {
	if f == nil {
		return
	}
	v := loose(input) // the host writes JSON
	if !v.isObject() {
		return
	}
	if out := f(read(v)); out != nil {
		out.write(w)
	}
}

func text(v Value, path string) string {
	s, _ := v.Get(path).Text()
	return s
}

func number(v Value, path string) int64 {
	n, _ := v.Get(path).Int()
	return n
}
