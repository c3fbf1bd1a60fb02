package plugin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

const eventManifest = `{"name":"acme","version":"1.0.0","kinds":["executor"],"hooks":["plan","on_event","on_end"],"providers":[{"id":"acme","base_url":"https://x.example"}]}`

// The memory of counting.
const (
	answerAt = 0x20000 // 2, no name, the number of events that this instance has seen
	endsAt   = 0x20010 // how often on_end was called
	dataHere = 0x30006 // data of an event without a name; of on_end the a of {"stream_id"
)

func i32(v int64) []byte { return append([]byte{0x41}, signed(v)...) }

// more is code that counts up a byte.
func more(at int64) []byte {
	return slices.Concat(i32(at), i32(at), []byte{0x2d, 0, 0}, i32(1), []byte{0x6a, 0x3a, 0, 0})
}

// when is code that runs for data that begins with c.
func when(c byte, code ...byte) []byte {
	return slices.Concat(i32(dataHere), []byte{0x2d, 0, 0}, i32(int64(c)), []byte{0x46, 0x04, 0x40}, code, []byte{0x0b})
}

// counting is a guest that replaces each event by its count. Events that begin with certain letters do more: T traps, G grows
// by a page, S spins, D is dropped, X ends the stream, B answers what is no answer.
func counting() module {
	end := `{"error":{"code":"stopped","message":"enough"}}`
	fixed := func(form byte) []byte {
		return slices.Concat(i32(answerAt+32), i32(int64(form)), []byte{0x3a, 0, 0}, place(answerAt+32, 1), []byte{0x0f})
	}
	return module{manifest: eventManifest, answer: "\x03" + end, call: slices.Concat(
		when('a', slices.Concat(more(endsAt), []byte{0x42, 0, 0x0f})...),
		i32(answerAt), i32(2), []byte{0x3a, 0, 0}, more(answerAt+3),
		when('T', 0x00), when('G', 0x41, 1, 0x40, 0, 0x1a), when('S', codeSpin[:5]...),
		when('D', fixed(1)...), when('B', fixed(9)...),
		when('X', append(place(uint64(manifestAt+len(eventManifest)), uint64(1+len(end))), 0x0f)...),
		place(answerAt, 4))}
}

// hooked is an executor of counting on a pool of that many instances.
func hooked(t testing.TB, o Options, instances int) (*Executor, *guest) {
	t.Helper()
	_, s := setOf(t, o, guestFile(counting()))
	e := s.byName["acme"]
	e.v.guest.pool.init(instances)
	return e, e.v.guest
}

func (h *EventHook) ask(t testing.TB, data string) (wire.EventAction, int) {
	t.Helper()
	a, err := h.Event(t.Context(), nil, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Data) == 0 {
		return a.Action, 0
	}
	return a.Action, int(a.Data[0])
}

func TestEvents(t *testing.T) { // ABI-5
	e, g := hooked(t, Options{}, 1)
	h := e.Events(Calls{Events: true, End: true})
	if a, n := h.ask(t, "one"); a != wire.EventReplace || n != 1 {
		t.Errorf("%v %d", a, n)
	}
	if a, _ := h.ask(t, "Drop"); a != wire.EventDrop {
		t.Errorf("%v", a)
	}
	a, err := h.Event(t.Context(), []byte(""), []byte("X"))
	if err != nil || a.Action != wire.EventEnd || string(a.Data) != `{"error":{"code":"stopped","message":"enough"}}` {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := h.Event(t.Context(), nil, []byte("B")); err == nil || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnhooked) {
		t.Errorf("ABI-8 garbage: %v", err)
	}
	if a, n := h.ask(t, "next"); a != wire.EventReplace || n != 1 {
		t.Errorf("ABI-8 the instance is used again: %v %d", a, n)
	}
	h.End(t.Context(), true)
	if b, _ := g.pool.idle[0].memory.Read(endsAt, 1); b[0] != 1 {
		t.Errorf("on_end was called %d times", b[0])
	}
	if c := g.counters.read(); c.Violations[violationGarbage] != 1 || len(c.Violations) != 1 || c.Calls != 6 {
		t.Errorf("%+v", c)
	}
	if _, err := h.Event(t.Context(), nil, make([]byte, maxInput)); !errors.Is(err, errOversize) || g.counters.read().Oversize != 1 {
		t.Errorf("ABI-8 an input of more than 256 KiB: %v", err)
	}
	none := e.Events(Calls{})
	if _, err := none.Event(t.Context(), nil, nil); !errors.Is(err, ErrUnhooked) {
		t.Error("ABI-5 a plan that asks for nothing:", err)
	}
	none.End(t.Context(), true)
}

func TestStatefulStreams(t *testing.T) { // ABI-5
	stateful := Calls{Events: true, Stateful: true, End: true}
	t.Run("a stream stays with its instance", func(t *testing.T) {
		e, g := hooked(t, Options{}, 2)
		hooks := make([]*EventHook, 6)
		for i := range hooks {
			hooks[i] = e.Events(stateful)
			hooks[i].ask(t, "first")
		}
		per := map[*instance]int{}
		for _, h := range hooks {
			per[h.in]++
		}
		if len(per) != 2 || per[hooks[0].in] != 3 {
			t.Errorf("the streams lie on the instances as %v", per)
		}
		if _, n := hooks[0].ask(t, "once more"); n != 4 {
			t.Errorf("the instance of the stream has seen %d events, want its three streams' and this", n)
		}
		ids := map[uint32]bool{}
		for _, h := range hooks {
			ids[h.stream] = true
			h.End(t.Context(), false)
		}
		if len(ids) != len(hooks) {
			t.Errorf("stream ids %v", ids)
		}
		for in := range per {
			if b, _ := in.memory.Read(endsAt, 1); in.streams != 0 || b[0] != 3 {
				t.Errorf("%d streams are left, %d have ended", in.streams, b[0])
			}
		}
		if g.pool.free() != 2 {
			t.Errorf("%d free", g.pool.free())
		}
	})
	t.Run("a worn instance finishes its streams", func(t *testing.T) {
		e, g := hooked(t, Options{}, 1)
		old := e.Events(stateful)
		old.ask(t, "first")
		for range 14 { // from 4 pages to 18, above 4 times the first size
			old.ask(t, "Grow")
		}
		young := e.Events(stateful)
		if _, n := young.ask(t, "first"); n != 1 || young.in == old.in {
			t.Errorf("a new stream got the worn instance, event %d", n)
		}
		if _, n := old.ask(t, "late"); n != 16 || g.pool.count() != 2 {
			t.Errorf("event %d on %d instances", n, g.pool.count())
		}
		worn := old.in
		old.End(t.Context(), true)
		if !worn.mod.IsClosed() || g.pool.count() != 1 {
			t.Errorf("the worn instance is kept after its last stream, %d instances", g.pool.count())
		}
		young.End(t.Context(), true)
	})
	t.Run("a trap unhooks its streams", func(t *testing.T) {
		e, g := hooked(t, Options{}, 1)
		a, b := e.Events(stateful), e.Events(stateful)
		a.ask(t, "first")
		b.ask(t, "first")
		if a.in != b.in {
			t.Fatal("two instances")
		}
		if _, err := a.Event(t.Context(), nil, []byte("Trap")); !errors.Is(err, ErrUnhooked) || errors.Is(err, ErrUnavailable) {
			t.Errorf("%v", err)
		}
		for _, h := range []*EventHook{a, b} {
			if _, err := h.Event(t.Context(), nil, []byte("next")); !errors.Is(err, ErrUnhooked) {
				t.Errorf("%v", err)
			}
			h.End(t.Context(), true)
		}
		if _, n := e.Events(stateful).ask(t, "new"); n != 1 {
			t.Errorf("a new stream sees event %d", n)
		}
		if c := g.counters.read(); c.Violations[violationTrap] != 1 || c.Calls != 4 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("the end is told although an event could not be", func(t *testing.T) {
		e, g := hooked(t, Options{}, 1)
		a, b := e.Events(stateful), e.Events(stateful)
		a.ask(t, "first")
		b.ask(t, "first")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.Event(gone, nil, []byte("left")); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnhooked) {
			t.Errorf("the client left: %v", err)
		}
		if _, err := b.Event(t.Context(), nil, make([]byte, maxInput)); !errors.Is(err, ErrUnhooked) {
			t.Errorf("an event of more than 256 KiB: %v", err)
		}
		a.End(gone, false)
		b.End(t.Context(), true)
		if n, _ := g.pool.idle[0].memory.Read(endsAt, 1); n[0] != 2 || g.pool.idle[0].streams != 0 {
			t.Errorf("%d of 2 streams have ended", n[0])
		}
		if c := g.counters.read(); len(c.Violations) > 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("many streams on a small pool", func(t *testing.T) {
		e, g := hooked(t, Options{}, 2)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				h := e.Events(stateful)
				defer h.End(t.Context(), true)
				var in *instance
				for range 20 {
					_, err := h.Event(t.Context(), nil, []byte("event"))
					if in == nil {
						in = h.in
					}
					if err != nil && !errors.Is(err, errBusy) || in != h.in {
						t.Error("moved, or", err)
						return
					}
				}
			})
		}
		wg.Wait()
		if g.pool.count() > 2 || len(g.pool.waiting) != 0 || len(g.pool.retired) != 0 {
			t.Errorf("%d instances, %d waiting", g.pool.count(), len(g.pool.waiting))
		}
		for _, in := range g.pool.idle {
			if in.streams != 0 {
				t.Errorf("%d streams are left", in.streams)
			}
		}
	})
}

func TestEventsOfAPluginThatFailsClosed(t *testing.T) { // ABI-8, on_violation
	e, _ := hooked(t, Options{Settings: map[string]Settings{"acme": {OnViolation: FailClosed}}}, 1)
	h := e.Events(Calls{Events: true})
	if _, err := h.Event(t.Context(), nil, []byte("Trap")); !errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrUnhooked) {
		t.Errorf("%v", err)
	}
}

// BenchmarkEvent is one event through a small guest; with a guest of the sdk it must stay under 5 µs (ABI-5).
func BenchmarkEvent(b *testing.B) {
	e, _ := hooked(b, Options{}, 1)
	for name, c := range map[string]Calls{"stateless": {Events: true}, "stateful": {Events: true, Stateful: true}} {
		b.Run(name, func(b *testing.B) {
			h := e.Events(c)
			data := []byte(strings.Repeat("x", 200))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Event(b.Context(), nil, data); err != nil {
					b.Fatal(err)
				}
			}
			h.End(b.Context(), true)
		})
	}
}
