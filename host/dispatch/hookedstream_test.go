package dispatch

import (
	"bytes"
	"context"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

type pass struct{ asked int }

func (p *pass) Event(context.Context, []byte, []byte) (wire.EventAnswer, error) {
	p.asked++
	return wire.EventAnswer{}, nil
}

func (*pass) End(context.Context, bool) {}

// ABI-5: events that pass cost no memory, and the run is sent as it came.
func TestEventsThatPassCostNothing(t *testing.T) {
	run := bytes.Repeat([]byte("event: x\ndata: {\"a\":1}\ndata: {\"b\":2}\n\n: beat\n\ndata: c\n\n"), 20)
	guest := &pass{}
	h := hookedStream{hook: guest, asks: true}
	n := testing.AllocsPerRun(100, func() {
		if out, said := h.run(t.Context(), run); &out[0] != &run[0] || len(out) != len(run) || said.err != nil || said.payload != nil {
			t.Fatal("the run was copied")
		}
	})
	if n > 0 || guest.asked != 101*40 {
		t.Errorf("%v allocations, asked %d times", n, guest.asked)
	}
}

// An event of very many lines costs no more than its length.
func TestEventOfManyLines(t *testing.T) {
	run := append(bytes.Repeat([]byte("data: x\n"), 1<<17), '\n')
	h := hookedStream{}
	if f := h.frame(run, true); len(f.data) != 1<<18-1 || len(f.raw) != len(run) || cap(h.joined) > 1<<20 {
		t.Error(len(f.data), cap(h.joined))
	}
}
