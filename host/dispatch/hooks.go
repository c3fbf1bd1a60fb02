package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// edits are what a hook wants changed in one message, checked. The zero value changes nothing.
type edits struct {
	header http.Header
	editor *body.Editor
}

// take returns a check that keeps what it was given, when that can be used.
func (e *edits) take(headers func(map[string]string) (http.Header, error)) func(*wire.Edits) error {
	return func(w *wire.Edits) error {
		header, err := headers(w.Headers)
		if err != nil {
			return err
		}
		var editor *body.Editor
		if len(w.Body) > 0 {
			if editor, err = body.Compile(w.Body); err != nil {
				return fmt.Errorf("%w: %w", upstream.ErrEdits, err)
			}
		}
		*e = edits{header, editor}
		return nil
	}
}

// onRequest asks the guest what to add to this request (ABI-3). A hook that fails adds nothing; the error is that of a plugin
// that fails closed.
func (a *attempt) onRequest(ctx context.Context) (edits, error) {
	var e edits
	said, err := a.exec.Request(ctx, a.requestFacts(), e.take(upstream.RequestHeader))
	if err != nil || said == nil {
		return edits{}, a.hookFailed(wire.OpRequest, err)
	}
	return e, nil
}

// onResponse asks the guest what to change in an answer, of which whole is the body when it was buffered. Headers are kept for the
// commit.
func (a *attempt) onResponse(ctx context.Context, whole *body.Scan) (*body.Editor, error) {
	f := wire.ResponseFacts{Status: a.resp.StatusCode, NowMS: a.r.d.Now().UnixMilli()}
	if whole != nil {
		f.Fields = a.fields(whole)
	}
	var e edits
	said, err := a.exec.Response(ctx, f, a.resp.Header, e.take(upstream.ResponseHeader))
	if err != nil || said == nil {
		return nil, a.hookFailed(wire.OpResponse, err)
	}
	a.extra = e.header
	return e.editor, nil
}

// hookFailed is generic behaviour: the request goes on as if the hook had said nothing (ABI-8). The runtime has counted and logged
// it.
func (a *attempt) hookFailed(op wire.Op, err error) error {
	if err == nil || errors.Is(err, ErrPluginUnavailable) {
		return err
	}
	a.r.d.Log.Debug("a hook failed; the request goes on without it", "request_id", a.r.c.RequestID, "plugin", a.exec.Name(),
		"op", op.String(), "error", err.Error())
	return nil
}

// bufferBytes bounds an answer that on_response may change (ABI-3).
const bufferBytes = 4 << 20

// buffered answers with a document that on_response may change: all of it is there before the client is promised anything. The
// answer is judged as it came. One above the bound passes as it is, and the hook sees its head only.
func (a *attempt) buffered(ctx, actx context.Context, hold []byte, n int, whole bool) step {
	text := hold[:n]
	if !whole {
		var b bytes.Buffer
		b.Write(text)
		if _, err := io.Copy(&b, io.LimitReader(a.resp.Body, bufferBytes+1-int64(n))); err != nil {
			return a.noAnswer(ctx, actx, err)
		}
		text, whole = b.Bytes(), b.Len() <= bufferBytes
	}
	if failed, status := a.looksFailed(text); failed {
		return a.judge(ctx, &rules.Reply{
			Source: wire.SourceHTTP, Status: status, Original: a.resp.StatusCode, Header: a.resp.Header,
			Body: bytes.Clone(text[:min(len(text), rules.MaxText)]), BodyBytes: len(text),
		}, faultOfAnswer(text))
	}
	a.readUsage(text, whole)
	text, err := a.rewritten(actx, text, whole)
	if err != nil {
		return a.impossible(err)
	}
	if whole && a.wantsWhole() {
		return a.translatedPlain(ctx, text)
	}
	return a.deliver(ctx, actx, text, whole, hold)
}

// rewritten is the answer after on_response. A text that is no JSON object has no fields, and nothing in it can be edited.
func (a *attempt) rewritten(actx context.Context, text []byte, whole bool) ([]byte, error) {
	if !a.prep.Calls.Response {
		return text, nil
	}
	if !whole {
		a.r.d.Log.Warn("an answer is too large for response.mode buffer and passes as it is", "request_id", a.r.c.RequestID,
			"provider", a.target.Provider.ID, "limit", bufferBytes)
		_, err := a.onResponse(actx, nil)
		return text, err
	}
	buf, err := body.Read(bytes.NewReader(text), int64(len(text)), bufferBytes)
	if err != nil {
		return text, a.headOnly(actx)
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		return text, a.headOnly(actx)
	}
	editor, err := a.onResponse(actx, scan)
	if err != nil || editor == nil {
		return text, err
	}
	payload, err := editor.Apply(buf)
	if err != nil {
		return text, nil //nolint:nilerr // it was scanned, so this cannot be
	}
	out := bytes.Clone(payload.Bytes())
	payload.Discard()
	return out, nil
}

func (a *attempt) headOnly(actx context.Context) error {
	_, err := a.onResponse(actx, nil)
	return err
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }
