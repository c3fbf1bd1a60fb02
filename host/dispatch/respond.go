package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/sdk/wire"
)

var errRespond = errors.New("executor gave no answer")

// maxField is the longest request field that a guest sees whole (ABI-3).
const maxField = 4 << 10

// respond asks the guest for its own answer and gives it the form of an upstream's, so that restatement, classification and
// the commit gate treat it alike (ABI-3).
func (a *attempt) respond(ctx context.Context) (*http.Response, error) {
	answer, err := a.exec.Respond(ctx, a.requestFacts())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRespond, err)
	}
	resp := &http.Response{StatusCode: answer.Status, Header: http.Header{}, ContentLength: -1}
	for name, v := range answer.Headers {
		resp.Header.Set(name, v)
	}
	if len(answer.Events) > 0 {
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.Body = &eventBody{ctx: ctx, events: answer.Events}
		return resp, nil
	}
	b := []byte(answer.Body)
	var text string
	if len(b) > 0 && b[0] == '"' && json.Unmarshal(b, &text) == nil {
		b = []byte(text)
	}
	if resp.Header.Get("Content-Type") == "" {
		resp.Header.Set("Content-Type", "application/json")
	}
	resp.ContentLength, resp.Body = int64(len(b)), io.NopCloser(bytes.NewReader(b))
	return resp, nil
}

// requestFacts is what a guest hears of this request.
func (a *attempt) requestFacts() wire.RequestFacts {
	t, c := a.target, a.r.c
	scan, size := c.Scan, c.Body.Len()
	if a.own != nil {
		if own, err := a.own.Scan(); err == nil { // what the translation wrote always scans
			scan, size = own, a.own.Len()
		}
	}
	return wire.RequestFacts{
		Provider: t.Provider.ID, Connection: planConnection(t), Model: t.Requested, UpstreamModel: t.Model,
		Endpoint: endpointOf(t.Provider, c), Stream: c.Stream, MessageCount: scan.Messages(), BodyBytes: size,
		Fields: a.fields(scan), NowMS: a.r.d.Now().UnixMilli(),
	}
}

// fields are what of a document stands at the paths that the plugin declared; longer ones are replaced by their length.
func (a *attempt) fields(scan *body.Scan) map[string]wire.Raw {
	out := map[string]wire.Raw{}
	for _, path := range a.exec.RequestFields() {
		raw, ok := scan.Get(path)
		switch {
		case !ok:
		case len(raw) > maxField:
			out[path] = fmt.Appendf(nil, `{"truncated":%d}`, len(raw))
		default:
			out[path] = bytes.Clone(raw)
		}
	}
	return out
}

// eventBody plays a guest's events, each after its pause.
type eventBody struct {
	ctx    context.Context //nolint:containedctx // the body's life is the attempt's, as in http.Request
	events []wire.AnswerEvent
	rest   []byte
}

// Read gives one event at most.
func (b *eventBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if len(b.events) == 0 {
			return 0, io.EOF
		}
		e := b.events[0]
		b.events = b.events[1:]
		if err := pauseFor(b.ctx, time.Duration(e.DelayMS)*time.Millisecond); err != nil {
			return 0, err
		}
		if e.Event != "" {
			b.rest = append(b.rest, "event: "+e.Event+"\n"...)
		}
		for line := range bytes.SplitSeq([]byte(e.Data), []byte("\n")) {
			b.rest = append(append(append(b.rest, "data: "...), line...), '\n')
		}
		b.rest = append(b.rest, '\n')
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close has nothing to give back.
func (b *eventBody) Close() error { return nil }

func pauseFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
