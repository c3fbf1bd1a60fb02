package sdk

import "github.com/weirgate/weir/sdk/wire"

// Event is the input of OnEvent: one server-sent event of a stream (ABI-5). It and its Data are valid until OnEvent returns.
type Event struct {
	Stream uint32 // the same for all events of one stream
	Name   string // what stands after event:, empty for most
	Data   []byte
}

// JSON is the value at path in the data. The data is not checked beforehand, since most of a stream is not even looked at:
// in data that is no JSON, a path may find what only looks like a value.
func (e *Event) JSON(path string) Value { return loose(e.Data).Get(path) }

// Replace sends data in place of the event's own, under the same name.
func (e *Event) Replace(data []byte) Action {
	return Action{kind: wire.EventReplace, name: e.Name, data: data}
}

// Action is what OnEvent does with an event. The zero Action is Pass.
type Action struct {
	kind   wire.EventAction
	name   string
	data   []byte
	refuse *Error
}

// String is the action in words, for tests.
func (a Action) String() string {
	switch a.kind {
	case wire.EventDrop:
		return "drop"
	case wire.EventReplace:
		return "replace by " + a.name + " " + string(a.data)
	case wire.EventEnd:
		return "end: " + a.refuse.Error()
	}
	return "pass"
}

// What to do with an event: let it through as it is, or take it out of the stream. Event.Replace, Replace and EndStream are
// the other two.
var (
	Pass = Action{kind: wire.EventPass}
	Drop = Action{kind: wire.EventDrop}
)

// Replace sends another event in place of this one.
func Replace(name string, data []byte) Action {
	return Action{kind: wire.EventReplace, name: name, data: data}
}

// EndStream ends the stream as an error.
func EndStream(code, message string) Action {
	return Action{kind: wire.EventEnd, refuse: &Error{code, message}}
}

// onEvent speaks the binary form of ABI-5. Event and answer are kept in the machine: an event that passes costs no allocation.
func (m *machine) onEvent(input []byte) []byte {
	in, ok := wire.ReadEvent(input)
	if !ok || m.plugin.OnEvent == nil {
		return nil
	}
	e := &m.event
	e.Stream, e.Data = in.Stream, in.Data
	if e.Name != string(in.Name) {
		e.Name = string(in.Name)
	}
	a := m.plugin.OnEvent(e)
	w := &m.out
	switch a.kind {
	case wire.EventPass:
		return nil
	case wire.EventDrop:
		w.b = append(w.b, byte(a.kind))
	case wire.EventReplace:
		name := a.name[:min(len(a.name), 1<<16-1)]
		w.b = append(w.b, byte(a.kind), byte(len(name)), byte(len(name)>>8))
		w.b = append(append(w.b, name...), a.data...)
	case wire.EventEnd:
		w.b = append(w.b, byte(a.kind))
		a.refuse.write(w)
	}
	return w.b
}

// End is the input of OnEnd.
type End struct {
	Stream   uint32
	Complete bool // the upstream ended it properly
	NowMS    int64
}

func (p *Plugin) onEnd(v Value) {
	n, ok := v.Get("stream_id").Int()
	if !ok {
		return
	}
	if p.OnEnd != nil {
		p.OnEnd(&End{Stream: uint32(n), Complete: v.Get("complete").Bool(), NowMS: number(v, "now_ms")})
	}
	for _, forget := range forgetters {
		forget(uint32(n))
	}
}

// forgetters are the Streams that hold something.
var forgetters []func(stream uint32)

// Streams keeps what OnEvent remembers of each stream, for plans with HookStreams. The zero Streams is ready; a stream is
// forgotten after its OnEnd.
type Streams[T any] struct{ m map[uint32]*T }

// Of returns the state of a stream, zero at first.
func (s *Streams[T]) Of(stream uint32) *T {
	if s.m == nil {
		s.m = map[uint32]*T{}
		forgetters = append(forgetters, s.Forget)
	}
	x := s.m[stream]
	if x == nil {
		x = new(T)
		s.m[stream] = x
	}
	return x
}

// Forget drops the state of a stream. The sdk does it at the stream's end.
func (s *Streams[T]) Forget(stream uint32) { delete(s.m, stream) }

// Len is how many streams are remembered.
func (s *Streams[T]) Len() int { return len(s.m) }
