package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// frame is an event of a film: after a pause, a name and data.
type frame = wire.AnswerEvent

// after is f, later by d.
func after(d time.Duration, f frame) frame {
	f.DelayMS = d.Milliseconds()
	return f
}

func data(s string) frame        { return frame{Data: s} }
func named(name, s string) frame { return frame{Event: name, Data: s} }

// says is a chunk of chat with content.
func content(s string) frame {
	b, _ := json.Marshal(s)
	return data(`{"id":"c9","created":7,"model":"up","choices":[{"index":0,"delta":{"content":` + string(b) + `}}]}`)
}

var (
	roleChunk = data(`{"id":"c9","created":7,"model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`)
	stopChunk = data(`{"id":"c9","created":7,"model":"up","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	doneMark  = data("[DONE]")
	silence   = after(time.Hour, data(`{"choices":[]}`))
)

// film has each connection answer with streams: the first request to it with the first one, the last one from then on.
func (l *lab) film(films map[string][][]frame) *[]string {
	turns, asked := map[string]int{}, &[]string{}
	l.plan = wire.Plan{Upstream: "none", Dialect: l.plan.Dialect}
	l.guest.respond = func(_ context.Context, f wire.RequestFacts) (*wire.Answer, error) {
		id := f.Connection.ID
		l.mu.Lock()
		defer l.mu.Unlock()
		*asked = append(*asked, fmt.Sprintf("%s@%v", id, time.Since(l.began).Seconds()))
		steps := films[id]
		if len(steps) == 0 {
			return nil, errors.New("nothing to show")
		}
		events := steps[min(turns[id], len(steps)-1)]
		turns[id]++
		return &wire.Answer{Status: 200, Events: events}, nil
	}
	return asked
}

// viewer is a client that notes what it got, and when.
type viewer struct {
	client
	began time.Time
	notes []string
}

func (v *viewer) Commit(status int, h http.Header, t *dispatch.Trail) {
	v.client.Commit(status, h, t)
	v.notes = append(v.notes, fmt.Sprintf("%v head %d", v.at(), status))
}

func (v *viewer) Write(p []byte) error {
	v.notes = append(v.notes, fmt.Sprintf("%v %s", v.at(), strings.TrimSpace(string(p))))
	return v.client.Write(p)
}

func (v *viewer) at() float64 { return time.Since(v.began).Round(time.Millisecond).Seconds() }

// texts is what a chat client reads.
func (c *client) texts() string {
	var b strings.Builder
	for line := range strings.Lines(c.body.String()) {
		var d struct {
			Type    string
			Choices []struct{ Delta struct{ Content string } }
			Delta   struct{ Text string }
		}
		if raw, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(raw), &d) == nil {
			if len(d.Choices) > 0 {
				b.WriteString(d.Choices[0].Delta.Content)
			}
			b.WriteString(d.Delta.Text)
		}
	}
	return b.String()
}

var paths = map[wire.Dialect]string{
	wire.OpenAIChat: "/v1/chat/completions", wire.AnthropicMessages: "/v1/messages", wire.OpenAIResponses: "/v1/responses",
	wire.GeminiGenerate: "/v1beta/models:generateContent",
}

var bodies = map[wire.Dialect]string{
	wire.OpenAIChat:        `{"model":"x","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
	wire.AnthropicMessages: `{"model":"x","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
	wire.OpenAIResponses:   `{"model":"x","stream":true,"input":"hi"}`,
	wire.GeminiGenerate:    `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
}

// watch sends a streaming request of a dialect along a route.
func (l *lab) watch(ctx context.Context, d wire.Dialect, rt *catalog.Route, text string) (*viewer, *dispatch.Trail) {
	l.t.Helper()
	v := &viewer{began: time.Now()}
	return v, l.watchAs(ctx, v, d, rt, text)
}

func (l *lab) watchAs(ctx context.Context, out dispatch.Sink, d wire.Dialect, rt *catalog.Route, text string) *dispatch.Trail {
	l.t.Helper()
	if text == "" {
		text = bodies[d]
	}
	buf, err := body.Read(strings.NewReader(text), int64(len(text)), 1<<24)
	if err != nil {
		l.t.Fatal(err)
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		l.t.Fatal(err)
	}
	return l.d.Do(ctx, &dispatch.Call{
		RequestID: "req-1", Endpoint: paths[d], Dialect: d, Catalog: l.snap, Route: rt, Model: "acme/m", Stream: true, Body: buf, Scan: scan,
		Header: http.Header{},
	}, out)
}

// some is a pointer to a value of an option.
func ptr[T any](v T) *T { return &v }

var _ = testing.Short
