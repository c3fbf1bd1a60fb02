package messages

import (
	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/neutral"
)

// The events of a block.
const (
	blockStart = "content_block_start"
	blockDelta = "content_block_delta"
	blockStop  = "content_block_stop"
)

// maxHeld bounds what is kept of calls that wait for the one before them.
const maxHeld = 16 << 20

// interleaving holds the events of calls that began before the open one ended: the neutral form tells one part after the other
// (SCN-13).
type interleaving struct {
	at        int64          // the upstream's index of the open block
	held      []gjson.Result // events of later blocks, in order; the first one opens a block
	heldBytes int
}

// block takes an event of a block.
func (r *Reader) block(kind string, v gjson.Result, emit func(*neutral.Event)) {
	if r.waits(kind, v) {
		r.held, r.heldBytes = append(r.held, v), r.heldBytes+len(v.Raw)
		return
	}
	switch kind {
	case blockStart:
		r.begin("", "", emit)
		r.closeAll(emit)
		r.at = v.Get("index").Int()
		r.start(v.Get("content_block"), emit)
	case blockDelta:
		r.delta(v.Get("delta"), emit)
	case blockStop:
		r.close(emit)
		r.release(emit)
	}
}

// waits says whether an event belongs to a block behind the open one: a call that begins while another one is open, and what follows of
// it. Every other beginning ends the open block, since not every upstream says that it is over. An event without an index belongs to the
// block that began last.
func (r *Reader) waits(kind string, v gjson.Result) bool {
	if !r.open || r.part.Kind != neutral.Call {
		return false
	}
	index := v.Get("index")
	other := index.Type == gjson.Number && index.Int() != r.at
	if kind == blockStart {
		return other && v.Get("content_block.type").Str == "tool_use"
	}
	return len(r.held) > 0 && (other || index.Type != gjson.Number)
}

// release tells what waited for a block that is over.
func (r *Reader) release(emit func(*neutral.Event)) {
	held := r.held
	r.held, r.heldBytes = nil, 0
	for _, v := range held {
		r.block(v.Get("type").Str, v, emit)
	}
}

// closeAll ends the open block and those that wait for it.
func (r *Reader) closeAll(emit func(*neutral.Event)) {
	r.close(emit)
	for len(r.held) > 0 {
		r.release(emit)
		r.close(emit)
	}
}
