package dispatch

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// story is what a client was told so far, as far as a continuation must know it (STM-43).
type story struct {
	text  []byte
	spoil bool // a tool call, or another part that is no text: there will be no continuation (STM-44)
	told  neutral.Told
	block int64 // messages: the block that is open, or the next one
	open  bool  // messages: a text block is open
}

// maxStory is how long a text may be that is continued.
const maxStory = 4 << 20

// newStory begins one; nil when this answer will not be continued, whatever comes.
func (a *attempt) newStory() *story {
	c := a.r.c
	if a.resumed != nil || a.r.resumed || c.Dialect != wire.OpenAIChat && c.Dialect != wire.AnthropicMessages {
		return nil
	}
	if n, ok := c.Scan.Get("n"); ok && string(n) != "1" && string(n) != "null" {
		return nil
	}
	if c.Dialect == wire.AnthropicMessages && asksToReason(c) { // reasoning cannot be begun anew behind its own text
		return nil
	}
	if _, ok := c.Scan.Get("messages"); !ok {
		return nil
	}
	return &story{}
}

// take notes an event of the upstream.
func (s *story) take(d wire.Dialect, name string, data []byte, x *sign) {
	s.spoil = s.spoil || x.tool || len(s.text) > maxStory
	s.text = append(s.text, x.text...)
	switch d {
	case wire.OpenAIChat:
		if s.told.ID == "" {
			s.told.ID, s.told.Model = gjson.GetBytes(data, "id").Str, gjson.GetBytes(data, "model").Str
			s.told.Created = gjson.GetBytes(data, "created").Int()
		}
	case wire.AnthropicMessages:
		switch kindOf(name, data) {
		case "content_block_start":
			s.open = gjson.GetBytes(data, "content_block.type").Str == "text"
			s.spoil = s.spoil || !s.open
			s.block = gjson.GetBytes(data, "index").Int()
		case "content_block_stop":
			s.open = false
			s.block++
		}
	default:
	}
}

// continued has another request go on with a text that was cut, and says whether it did (STM-43, STM-44).
func (p *pump) continued(ctx context.Context, reply *rules.Reply, fault resilience.Fault) (step, bool) {
	a, s := p.a, p.story
	if s == nil || s.spoil || len(s.text) == 0 || p.finished || p.midEvent || a.r.resumed || errors.Is(a.fault, upstream.ErrFrameTooLarge) {
		return stepNext, false
	}
	text := bytes.TrimRight(s.text, blanks)
	if len(text) == 0 {
		return stepNext, false
	}
	call, release, err := withTurn(a.r.c, text)
	if err != nil {
		return stepNext, false
	}
	defer release()
	next, ok := a.r.heir(a)
	if !ok {
		return stepNext, false
	}
	a.r.resumed = true
	v, facts := a.meaning(ctx, reply)
	if next.ticket == a.ticket {
		a.settled = true // the same slot, held through the recovery and given back once (STM-46)
		a.bill()
	} else {
		a.settleFailure(reply, v, fault)
	}
	a.r.t.note("stream: cut behind " + strconv.Itoa(len(s.text)) + " bytes of text, continued by " + next.target.Provider.ID + "/" + next.target.Model)
	own := *a.r
	own.c, own.neutral, own.neutralErr, own.target, own.after = call, nil, nil, next.rt, nil
	b := &attempt{r: &own, target: next.target, ticket: next.ticket, began: a.r.d.Now(), usage: neutral.NoUsage(), spent: neutral.NoUsage()}
	b.resumed = &resumption{stitch: stitch{old: s.text}, open: p.partOpen(), usage: a.usage}
	b.resumed.writer = p.goesOn(call)
	if done := b.run(ctx); done == stepDone {
		return stepDone, true
	}
	a.r.last = lastWord{set: true, verdict: v, reply: facts, target: a.target}
	f := a.r.failureOf(a.r.last)
	a.r.t.Partial, a.r.t.Failure = true, &f
	p.tellFailure()
	return stepDone, true
}

// partOpen says whether the client's last part of text is open.
func (p *pump) partOpen() bool {
	if p.way != nil || p.a.r.c.Dialect == wire.OpenAIChat {
		return true
	}
	return p.story.open
}

// goesOn is the writer that goes on with the client's stream: the one that wrote it, or a new one that knows its state.
func (p *pump) goesOn(c *Call) neutral.StreamWriter {
	if p.way != nil {
		return p.way.stream.Writer()
	}
	s := p.story
	told := s.told
	include, _ := c.Scan.Get("stream_options.include_usage")
	told.Usage, told.Prompt = string(include) == "true", int64(c.Body.Len()/4)
	return translate.GoOn(c.Dialect, told, s.block, s.open)
}

// heir is who goes on with an answer.
type heir struct {
	rt     *catalog.RouteTarget
	target catalog.Target
	ticket resilience.Ticket
}

// heir finds who may go on with the answer of a: another target that takes the beginning of an answer, else the same one.
func (r *run) heir(a *attempt) (heir, bool) {
	for i := range r.order.Len() {
		rt := r.order.At(i)
		if rt == r.target || !r.takesPrefill(rt.Provider) {
			continue
		}
		for conn := range route.Candidates(rt, r.c.Key) {
			t := r.to(rt, conn)
			if r.exhausted.Target(t) {
				continue
			}
			if ticket, refusal := r.d.Ladder.Admit(r.moment(rt), t); refusal == nil {
				return heir{rt, t, ticket}, true
			}
		}
	}
	if r.target == nil || !r.takesPrefill(a.target.Provider) {
		return heir{}, false
	}
	return heir{r.target, a.target, a.ticket}, true
}

// takesPrefill says whether the models of a provider go on with the beginning of an answer: those of chat completions unless their
// entry says no, all others only when it says yes (STM-43).
func (r *run) takesPrefill(p *catalog.Provider) bool {
	if p.Prefill != nil {
		return *p.Prefill
	}
	d, known := p.Dialects[endpointOf(p, r.c)]
	if !known {
		d = r.c.Dialect
	}
	return d == wire.OpenAIChat
}

// withTurn is c with one more turn: the text so far, as the assistant's.
func withTurn(c *Call, text []byte) (*Call, func(), error) {
	b := c.Body.Bytes()
	list := gjson.GetBytes(b, "messages")
	if !list.IsArray() || list.Index <= 0 {
		return nil, nil, errors.New("the request has no messages")
	}
	end := list.Index + len(list.Raw) - 1 // the bracket
	w := jsonw.Writer{B: append(make([]byte, 0, len(b)+len(text)+len(text)/8+64), b[:end]...)}
	if len(list.Array()) > 0 {
		w.B = append(w.B, ',')
	}
	turn := jsonw.Writer{}
	turn.Open().Key("role").String("assistant").Key("content").String(string(text)).Close()
	out := append(append(w.B, turn.B...), b[end:]...)
	buf, err := body.Read(bytes.NewReader(out), int64(len(out)), int64(len(out)))
	if err != nil {
		return nil, nil, err
	}
	own, err := withBody(c, buf)
	if err != nil {
		buf.Release()
		return nil, nil, err
	}
	return own, buf.Release, nil
}

// strayed is an answer that does not go on with the text that it was to go on with (STM-44).
func strayed() *rules.Reply {
	return &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{
		Code: wire.TransportEOF, Message: "The provider's stream ended before it was complete, and the answer that was to go on with it began anew.",
	}}
}
