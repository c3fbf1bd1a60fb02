package main

import (
	"strconv"
	"strings"

	"github.com/weirgate/weir/sdk"
	"github.com/weirgate/weir/sdk/wire"
)

// maxEvents bounds the answer's size; a longer text has several words in an event.
const maxEvents = 400

// lookBack is how many messages from the end are searched for the last one of the user.
const lookBack = 4

// fields are what respond sees of the request.
func fields() []string {
	list := []string{"stream_options.include_usage"}
	for i := 1; i <= lookBack; i++ {
		at := "messages.-" + strconv.Itoa(i)
		list = append(list, at+".role", at+".content")
	}
	return list
}

// lastText is the text of the last message of the user.
func lastText(r *sdk.Request) string {
	for i := 1; i <= lookBack; i++ {
		at := "messages.-" + strconv.Itoa(i)
		if role, _ := r.Field(at + ".role").Text(); role == "user" {
			return content(r.Field(at + ".content"))
		}
	}
	return "Nothing was said."
}

// content is the text of a message: a string, or the text parts of a list.
func content(v sdk.Value) string {
	if s, ok := v.Text(); ok {
		return s
	}
	if n, ok := v.Member("truncated").Int(); ok {
		return "A text of " + strconv.FormatInt(n, 10) + " bytes, too long to be said again."
	}
	var b strings.Builder
	v.Each(func(_ string, part sdk.Value) bool {
		if s, ok := part.Member("text").Text(); ok {
			b.WriteString(s)
		}
		return true
	})
	return b.String()
}

// tokens counts as OBJ-26 says: bytes / 4.
func tokens(s string) int64 { return int64(len(s)+3) / 4 }

// reply is one answer of the model: what all its parts have in common.
type reply struct {
	id, model, text string
	created         int64
	in, out         int64
}

// echo says the last user text again; a stream's first word comes after first milliseconds, the others after between.
func echo(r *sdk.Request, first, between int64) *sdk.Answer {
	var id [8]byte
	_ = sdk.Random(id[:]) // 8 bytes are never refused
	text := lastText(r)
	p := reply{
		id: "chatcmpl-demo-" + hexText(id[:]), model: r.UpstreamModel, text: text, created: r.NowMS / 1000,
		in: tokens(text), out: tokens(text),
	}
	if r.Stream {
		return &sdk.Answer{Status: 200, Events: p.events(r.Field("stream_options.include_usage").Bool(), first, between)}
	}
	return &sdk.Answer{Status: 200, Body: p.body()}
}

// body is a plain chat completion.
func (p *reply) body() []byte {
	w := &sdk.Writer{}
	w.Object(func() {
		p.head(w, "chat.completion")
		w.Key("choices").List(func() {
			w.Object(func() {
				w.Key("index").Int(0)
				w.Key("message").Object(func() {
					w.Key("role").Text("assistant")
					w.Key("content").Text(p.text)
				})
				w.Key("finish_reason").Text("stop")
			})
		})
		p.usage(w)
	})
	return w.Bytes()
}

// events is the stream in the order of INF-21: role, words, finish, usage if asked for, [DONE].
func (p *reply) events(usage bool, first, between int64) []wire.AnswerEvent {
	delta := func(write func(*sdk.Writer)) string {
		return p.chunk(func(w *sdk.Writer) { write(w) }, "")
	}
	events := []wire.AnswerEvent{{DelayMS: first, Data: delta(func(w *sdk.Writer) {
		w.Key("role").Text("assistant")
		w.Key("content").Text("")
	})}}
	for i, word := range words(p.text) {
		wait := between
		if i == 0 {
			wait = 0
		}
		events = append(events, wire.AnswerEvent{DelayMS: wait, Data: delta(func(w *sdk.Writer) { w.Key("content").Text(word) })})
	}
	events = append(events, wire.AnswerEvent{Data: p.chunk(func(*sdk.Writer) {}, "stop")})
	if usage {
		w := &sdk.Writer{}
		w.Object(func() {
			p.head(w, "chat.completion.chunk")
			w.Key("choices").List(func() {})
			p.usage(w)
		})
		events = append(events, wire.AnswerEvent{Data: string(w.Bytes())})
	}
	return append(events, wire.AnswerEvent{Data: "[DONE]"})
}

func (p *reply) chunk(delta func(*sdk.Writer), finish string) string {
	w := &sdk.Writer{}
	w.Object(func() {
		p.head(w, "chat.completion.chunk")
		w.Key("choices").List(func() {
			w.Object(func() {
				w.Key("index").Int(0)
				w.Key("delta").Object(func() { delta(w) })
				if finish == "" {
					w.Key("finish_reason").Raw(nil)
				} else {
					w.Key("finish_reason").Text(finish)
				}
			})
		})
	})
	return string(w.Bytes())
}

func (p *reply) head(w *sdk.Writer, object string) {
	w.Key("id").Text(p.id)
	w.Key("object").Text(object)
	w.Key("created").Int(p.created)
	w.Key("model").Text(p.model)
}

func (p *reply) usage(w *sdk.Writer) {
	w.Key("usage").Object(func() {
		w.Key("prompt_tokens").Int(p.in)
		w.Key("completion_tokens").Int(p.out)
		w.Key("total_tokens").Int(p.in + p.out)
	})
}

// words cuts a text so that the parts together are the text: each part but the first begins with the white space before its
// word.
func words(s string) []string {
	var parts []string
	start := 0
	for i := 1; i < len(s); i++ {
		if isSpace(s[i]) && !isSpace(s[i-1]) && strings.TrimSpace(s[start:i]) != "" {
			parts, start = append(parts, s[start:i]), i
		}
	}
	if s != "" {
		parts = append(parts, s[start:])
	}
	if n := (len(parts) + maxEvents - 1) / maxEvents; n > 1 {
		var joined []string
		for i := 0; i < len(parts); i += n {
			joined = append(joined, strings.Join(parts[i:min(i+n, len(parts))], ""))
		}
		return joined
	}
	return parts
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func hexText(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}
