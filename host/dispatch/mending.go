package dispatch

import (
	"strconv"

	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/mend"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// mending is what a pump keeps to put right a stream that passes.
type mending struct {
	mend    *mend.Mender // nil: there is nothing to put right
	mendOut []byte       // of the last run
}

// mender puts a stream right whose upstream speaks the client's own dialect; nil where there is nothing to know about the dialect
// (INF-22, INF-23).
func (p *pump) mender() *mend.Mender {
	c := p.a.r.c
	if _, ok := translate.Codec(c.Dialect); !ok || p.a.spoken() != c.Dialect {
		return nil
	}
	o := mend.Options{Prompt: int64(c.Body.Len() / 4), Beta: len(c.Header["Openai-Beta"]) > 0}
	switch c.Dialect {
	case wire.AnthropicMessages:
		o.Beta = len(c.Header["Anthropic-Beta"]) > 0
	case wire.OpenAIChat:
		if raw, ok := c.Scan.Get("stream_options.include_usage"); ok {
			o.Usage = string(raw) == "true"
		}
	default:
	}
	return mend.New(c.Dialect, o)
}

// mended is a run of whole events as the client gets it. It is the run itself unless something in it has to be put right.
func (p *pump) mended(run []byte) []byte {
	if p.mend == nil || p.mend.Passes(run) {
		return run
	}
	p.mendOut = p.mendOut[:0]
	for rest := run; len(rest) > 0; {
		n := eventLength(rest)
		raw := rest[:n]
		rest = rest[n:]
		var name string
		var data []byte
		upstream.Events(raw, func(e upstream.Event) bool {
			name, data = e.Name, e.Data
			return false
		})
		p.mendOut = p.mend.Event(p.mendOut, raw, name, data)
	}
	return p.mendOut
}

// mendEnd appends what has to stand before the end that an upstream left out, and notes what was put right.
func (p *pump) mendEnd(tail []byte) []byte {
	if p.mend == nil {
		return tail
	}
	if !p.done {
		tail = p.mend.End(tail)
	}
	if n := p.mend.Mended(); n > 0 {
		p.a.r.t.note("answer: " + strconv.Itoa(n) + " events of the stream put right")
	}
	for kind, n := range p.mend.Dropped() {
		p.a.r.t.note("answer: " + strconv.Itoa(n) + " of type " + kind + " dropped")
	}
	return tail
}
