package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// holdBytes is how much of a plain answer is read before the client is promised anything: most answers are whole by then,
// so that a cut one can still go to the next target.
const holdBytes = 64 << 10

var holdPool = sync.Pool{New: func() any { return new([holdBytes]byte) }}

// plain answers with one document. What fits into the hold is complete before the commit.
func (a *attempt) plain(ctx, actx context.Context) step {
	hold := holdPool.Get().(*[holdBytes]byte)
	defer holdPool.Put(hold)
	n, err := a.beginning(hold[:])
	whole := err == io.EOF
	if err != nil && !whole {
		return a.noAnswer(ctx, actx, err)
	}
	if a.prep.Calls.Buffer {
		return a.buffered(ctx, actx, hold[:], n, whole)
	}
	if failed, status := a.looksFailed(hold[:n]); failed {
		return a.judge(ctx, &rules.Reply{
			Source: wire.SourceHTTP, Status: status, Original: a.resp.StatusCode, Header: a.resp.Header,
			Body: bytes.Clone(hold[:n]), BodyBytes: n,
		}, faultOfAnswer(hold[:n]))
	}
	if a.resumed != nil { // a document cannot go on with a stream
		return stepNext
	}
	if whole && a.emptyDocument(hold[:n]) {
		reply, v := a.emptyReply()
		return a.decided(ctx, reply, v, a.factsOf(reply, v), resilience.FaultEmptyContent)
	}
	if a.wantsWhole() {
		text := hold[:n]
		if !whole {
			if text, err = a.whole(text); err != nil {
				return a.noAnswer(ctx, actx, err)
			}
		}
		a.readUsage(text, true)
		return a.translatedPlain(ctx, text)
	}
	a.readUsage(hold[:n], whole)
	return a.deliver(ctx, actx, hold[:n], whole, hold[:])
}

// deliver commits to an answer that begins with text, sends it, and moves the rest on through room.
func (a *attempt) deliver(ctx, actx context.Context, text []byte, whole bool, room []byte) step {
	if !a.r.quiet() { // the client was promised a stream, which this document cannot be made into
		return a.unreadable(ctx, text)
	}
	h := a.answerHeader()
	if whole {
		h["Content-Length"] = []string{strconv.Itoa(len(text))}
	} else if a.resp.ContentLength >= 0 {
		h["Content-Length"] = []string{strconv.FormatInt(a.resp.ContentLength, 10)}
	}
	if whole {
		a.settleSuccess() // the answer is complete, whether or not the client still wants it
	}
	a.commit(h)
	if err := a.r.out.Write(text); err != nil {
		return a.clientLeft()
	}
	a.sent += int64(len(text))
	if !whole {
		a.issuedLater(text)
		return a.copyRest(ctx, actx, room)
	}
	return stepDone
}

// beginning fills b: the first byte comes within the route's limit for an answer to begin, since a head alone is no answer, and
// the rest within the body's (CMB-15, CMB-26).
func (a *attempt) beginning(b []byte) (n int, err error) {
	if limit := smallest(a.firstContent(), a.targetTimeout()); limit > 0 {
		a.clock.limit(phaseEvent, max(limit-a.firstAt.Sub(a.began), 1))
		for n == 0 && err == nil {
			n, err = a.resp.Body.Read(b)
		}
	}
	a.clock.limit(phaseBody, a.r.c.Catalog.Settings.BodyTimeout)
	if err != nil {
		return n, err
	}
	more, err := fill(a.resp.Body, b[n:])
	return n + more, err
}

// fill reads until b is full or the reader ends. Unlike io.ReadFull it leaves the reader's word as it is: io.EOF is a whole
// body, io.ErrUnexpectedEOF one that was cut.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var got int
		got, err = r.Read(b[n:])
		n += got
	}
	return n, err
}

// copyRest moves a long answer on. A cut in it cannot be hidden any more; the connection is ended so that the client sees it.
func (a *attempt) copyRest(ctx, actx context.Context, buf []byte) step {
	for {
		n, err := a.resp.Body.Read(buf)
		if n > 0 {
			a.issuedLater(buf[:n])
			if werr := a.r.out.Write(buf[:n]); werr != nil {
				return a.clientLeft()
			}
			a.sent += int64(n)
		}
		if err == io.EOF {
			a.settleSuccess()
			return stepDone
		}
		if err != nil {
			return a.brokenLate(ctx, actx, err)
		}
	}
}

// brokenLate judges a failure after the commit of a plain answer.
func (a *attempt) brokenLate(ctx, actx context.Context, err error) step {
	if ctx.Err() != nil {
		a.r.t.Cut = true
		return a.abandoned(ctx)
	}
	a.fault = err
	code := upstream.TransportCode(err)
	reply := &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{Code: code, Message: transportMessage(code)}}
	v, _ := a.meaning(ctx, reply)
	a.settleFailure(reply, v, a.faultOf(actx, code))
	a.r.t.Partial, a.r.t.Cut = true, true
	return stepDone
}

// clientLeft ends an attempt whose answer nobody reads any more.
func (a *attempt) clientLeft() step {
	a.left()
	a.r.t.Cancelled = true
	return stepDone
}

// answerHeader is what of the upstream's head goes to the client.
func (a *attempt) answerHeader() http.Header {
	h := upstream.AnswerHeader(a.resp.Header)
	for _, name := range a.prep.StripHeaders {
		delete(h, name)
	}
	maps.Copy(h, a.extra)
	return h
}

// commit promises the client this answer.
func (a *attempt) commit(h http.Header) {
	t := a.r.t
	t.Committed, t.Status = true, a.resp.StatusCode
	t.FirstByte = a.r.d.Now().Sub(t.Began)
	t.serving = a.target
	if !a.settled {
		t.trace.add(gateAnswer, "answer", "begun", a.target, "")
	}
	a.r.turn.end()
	a.r.out.Commit(a.resp.StatusCode, h, t)
}

// looksFailed finds an error that came under a good status: an error object, another envelope of failure, or a page where a
// document should be (SCN-8, STM-50). The second result is the status that the body states, 502 when it states none.
func (a *attempt) looksFailed(b []byte) (bool, int) {
	if a.prep.Dialect == wire.RawDialect {
		return false, 0
	}
	b = bytes.TrimLeft(b, " \t\r\n\xef\xbb\xbf")
	if len(b) == 0 {
		return true, http.StatusBadGateway
	}
	if b[0] == '<' {
		return true, http.StatusBadGateway
	}
	if b[0] != '{' {
		return false, 0
	}
	if bytes.Contains(b, []byte(`"error"`)) || bytes.Contains(b, []byte(`"base_resp"`)) {
		if failed, status := failedDocument(b); failed {
			return true, status
		}
	}
	return otherFailure(b)
}

// failedDocument reads a document that mentions an error.
func failedDocument(b []byte) (bool, int) {
	var d struct {
		Error    json.RawMessage `json:"error"`
		Choices  json.RawMessage `json:"choices"`
		Content  json.RawMessage `json:"content"`
		BaseResp struct {
			Code int `json:"status_code"`
		} `json:"base_resp"`
	}
	if json.Unmarshal(b, &d) != nil {
		return false, 0
	}
	answered := present(d.Choices) && !brokeOff(d.Choices) || present(d.Content)
	if (present(d.Error) || d.BaseResp.Code != 0) && !answered {
		return true, payloadStatus(d.Error)
	}
	return false, 0
}

// brokeOff says whether a choice ended in an error: hubs send what was generated so far beside the error object.
func brokeOff(choices json.RawMessage) bool {
	if !bytes.Contains(choices, []byte(`"error"`)) {
		return false
	}
	var cs []struct {
		FinishReason string `json:"finish_reason"`
	}
	return json.Unmarshal(choices, &cs) == nil && len(cs) > 0 && cs[0].FinishReason == "error"
}

func present(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "[]", "{}", `""`, "false":
		return false
	}
	return true
}

// payloadStatus is the status that an error object states, or that its type means; else 502 (STM-50).
func payloadStatus(raw json.RawMessage) int {
	var e struct {
		Status json.RawMessage `json:"status"`
		Code   json.RawMessage `json:"code"`
		Type   string          `json:"type"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return http.StatusBadGateway
	}
	for _, f := range []json.RawMessage{e.Status, e.Code} {
		if n, err := strconv.Atoi(string(bytes.Trim(f, `" `))); err == nil && n >= 400 && n <= 599 {
			return n
		}
	}
	switch e.Type {
	case "overloaded_error":
		return 529
	case "rate_limit_error":
		return 429
	case "authentication_error":
		return 401
	case "permission_error":
		return 403
	case "not_found_error":
		return 404
	case "invalid_request_error":
		return 400
	}
	return http.StatusBadGateway
}

func isEventStream(h http.Header) bool {
	ct := h["Content-Type"]
	if len(ct) == 0 {
		return false
	}
	media, _, _ := strings.Cut(ct[0], ";") // what follows does not matter, and is not always well formed
	return strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
}
