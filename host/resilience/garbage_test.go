package resilience_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgate/weir/store"
)

// kinds are those that gates apply, and one that none does.
var kinds = []string{
	"connection.cooldown", "connection.error", "connection.cleared", "connection.terminal", "connection.probe", "rejected.counted",
	"lockout.set", "lockout.decayed", "lockout.cleared", "breaker.changed", "breaker.counted", "no.such.kind",
}

// TestGarbage brings events to all gates that no gate wrote: true ones damaged, under the wrong kind or key, and plain
// noise. None panics, what can be read can be written again, and every target may be asked and settled afterwards.
func TestGarbage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(rt)
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			h.step()
		}
		for range rapid.IntRange(1, 20).Draw(rt, "events") {
			_ = h.ladder.Apply(h.damaged()) // an error is an answer
		}
		again := newNode(rt, &h.now)
		for i, s := range h.spies {
			b, err := s.Snapshot()
			if err != nil || len(b) > 0 && !json.Valid(b) {
				rt.Fatalf("%s: snapshot %q, %v", s.Name(), b, err)
			}
			if err := again.spies[i].Restore(b); err != nil && b != nil {
				rt.Fatalf("%s: its own snapshot: %v", s.Name(), err)
			}
			_ = again.spies[i].Restore(damage(rt, b))
		}
		for _, tt := range h.targets {
			for _, later := range []time.Duration{0, time.Hour, 1000 * time.Hour} {
				h.ladder.Peek(h.later(later), tt)
				if tk, refusal := again.ladder.Admit(h.later(later), tt); refusal == nil {
					again.ladder.Settle(h.later(later), tk, h.outcome())
				}
			}
		}
	})
}

func (h *history) damaged() store.Event {
	e := store.Event{Kind: rapid.SampledFrom(kinds).Draw(h.t, "kind"), Data: []byte("{}")}
	if len(h.journal) > 0 && h.chance(2, "true event") {
		e = rapid.SampledFrom(h.journal).Draw(h.t, "event")
		if h.chance(3, "wrong kind") {
			e.Kind = rapid.SampledFrom(kinds).Draw(h.t, "kind")
		}
	}
	e.Key = rapid.SampledFrom([]string{e.Key, "c0", "p0", "", "p0:c0:exact:m1", "\xff"}).Draw(h.t, "key")
	e.Revision = rapid.Uint64().Draw(h.t, "revision")
	e.Data = damage(h.t, e.Data)
	return e
}

// damage returns b with something about it wrong, or noise.
func damage(t *rapid.T, b []byte) []byte {
	b = bytes.Clone(b)
	switch rapid.IntRange(0, 4).Draw(t, "damage") {
	case 0:
		return rapid.SliceOf(rapid.Byte()).Draw(t, "noise")
	case 1:
		return b[:rapid.IntRange(0, len(b)).Draw(t, "cut")]
	case 2:
		return bytes.ReplaceAll(b, []byte("1"), []byte("-9223372036854775808"))
	case 3:
		return bytes.ReplaceAll(b, []byte(`":`), []byte(`":[`))
	}
	if len(b) > 0 {
		b[rapid.IntRange(0, len(b)-1).Draw(t, "where")] = rapid.Byte().Draw(t, "byte")
	}
	return b
}
