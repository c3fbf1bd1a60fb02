package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/origin"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// ErrPluginUnavailable: the plugin that executes a provider is not there; the target is skipped and nothing is counted
// (ABI-8).
var ErrPluginUnavailable = errors.New("plugin_unavailable")

// ErrUnhooked: the guest hears no more of a stream, which goes on without its hook (ABI-5).
var ErrUnhooked = errors.New("the stream goes on unhooked")

// attempt is one dispatch of one target on one connection.
type attempt struct {
	r        *run
	target   catalog.Target
	ticket   resilience.Ticket
	began    time.Time
	prep     *upstream.Prepared
	way      *translate.Way // between the dialects of client and upstream; nil: they speak the same
	own      *body.Buffer   // the translated body
	exec     Executor
	clock    attemptClock
	resp     *http.Response
	firstAt  time.Time // of the head
	settled  bool
	sampled  bool          // its latency was noted
	stays    bool          // its error leads to no other account, or the account stays in use all the same (CLS-20)
	tools    int           // that were sent (OTH-21); 0: not counted
	added    bool          // its 400 leads to another account by CLS-20 alone
	changed  bool          // the guest changed the body of this request (CMB-18)
	extra    http.Header   // what on_response adds to the answer
	sent     int64         // bytes sent to the client
	usage    Usage         // that the upstream stated
	spent    Usage         // by earlier calls of this attempt, whose openings were cut
	cancel   func(error)   // ends the call
	tries    int           // calls that were repeated
	repeat   bool          // the call is to be made once more
	pieces   origin.Reader // finds the state in a long answer
	resumed  *resumption   // the answer goes on with what another one began; nil: it is a whole one
	code     string        // of a failure that only the stream reader can name (STM-11), with its type
	kind     string
	restater string // plugin/rule that restated its status
	fault    error  // of the transport, for the log only: it may name addresses
}

// attempt runs gates 15 to 22 for one admitted target.
func (r *run) attempt(ctx context.Context, rt *catalog.RouteTarget, t catalog.Target, ticket resilience.Ticket, began time.Time) step {
	r.t.FewerTools, r.t.Degraded = "", ""
	a := &attempt{r: r, target: t, ticket: ticket, began: began, usage: neutral.NoUsage(), spent: neutral.NoUsage()}
	return a.run(ctx)
}

// run makes the attempt, and settles it.
func (a *attempt) run(ctx context.Context) step {
	r := a.r
	defer func() {
		if !a.settled { // a panic below: the permits must not leak (OV-3)
			r.d.Ladder.Cancel(r.at(), a.ticket)
		}
	}()
	defer a.release()
	if s, ok := a.plan(ctx); !ok {
		return s
	}
	r.t.trace.add(gatePlan, "plan", string(a.spoken()), a.target, a.exec.Name())
	if total := r.c.Catalog.Settings.AttemptDeadline; total > 0 {
		a.clock.ends = time.Now().Add(total)
	}
	s := a.exchange(ctx)
	for a.repeat {
		a.repeat = false
		a.spent.Add(a.usage)
		a.usage, a.resp, a.code, a.kind, a.fault = neutral.NoUsage(), nil, "", "", nil
		s = a.exchange(ctx)
	}
	return s
}

// exchange sends the request and answers with what comes back.
func (a *attempt) exchange(ctx context.Context) step {
	r := a.r
	actx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.cancel = cancel
	a.clock.start(cancel, a.headLimit())
	defer a.clock.stop()
	r.t.trace.add(gateSend, "upstream", "sent", a.target, "")
	resp, err := a.send(actx, ctx)
	if err != nil {
		return a.noAnswer(ctx, actx, err)
	}
	a.resp, a.firstAt = resp, r.d.Now()
	a.learn()
	defer resp.Body.Close()
	if packed := resp.Header["Content-Encoding"]; len(packed) > 0 {
		plain, err := unpack(resp, packed[0])
		if err != nil {
			return a.noAnswer(ctx, actx, err)
		}
		defer plain.Close()
	}
	if a.prep.Calls.Response && (!a.prep.Calls.Buffer || isEventStream(resp.Header) || !isSuccess(resp.StatusCode)) {
		if _, err := a.onResponse(actx, nil); err != nil {
			return a.impossible(err)
		}
	}
	if !isSuccess(resp.StatusCode) {
		return a.errorAnswer(ctx)
	}
	if a.raw() && isEventStream(resp.Header) {
		return a.passEvents(ctx, actx)
	}
	if isEventStream(resp.Header) { // also unasked for: its errors are found, and its cuts
		return a.stream(ctx, actx)
	}
	return a.plain(ctx, actx)
}

// unpack makes a packed answer readable, for the rules, the commit gate and the client: we asked for none, so the client did not
// either. An encoding that we do not know goes on as it is.
func unpack(resp *http.Response, encoding string) (io.Closer, error) {
	plain, err := body.Decode(encoding, resp.Body)
	if errors.Is(err, body.ErrEncoding) {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, fmt.Errorf("unpack the answer: %w", err)
	}
	resp.Body, resp.ContentLength = plain, -1
	delete(resp.Header, "Content-Encoding")
	return plain, nil
}

// plan finds out how to call the provider. A plugin that is not there, or a plan that does not fit, ends the target without a
// call and without a count.
func (a *attempt) plan(ctx context.Context) (step, bool) {
	if err := a.ready(ctx); err != nil {
		return a.impossible(err), false
	}
	if err := a.findWay(); err != nil {
		return a.untranslatable(err), false
	}
	return stepNext, true
}

// release gives up the translated body. One that the transport still reads stays valid.
func (a *attempt) release() {
	if a.own != nil {
		a.own.Release()
	}
}

// ready asks the executor, and when that one is not to be had the built-in one that takes over for it (ABI-8).
func (a *attempt) ready(ctx context.Context) error {
	exec, err := a.r.plugins.Executor(a.target.Provider)
	if err != nil {
		return err
	}
	err = a.readyWith(ctx, exec)
	if second := exec.Fallback(); second != nil && errors.Is(err, ErrPluginUnavailable) {
		a.r.d.Log.Debug("the built-in executor takes over", "request_id", a.r.c.RequestID, "plugin", exec.Name(), "error", err.Error())
		err = a.readyWith(ctx, second)
	}
	return err
}

func (a *attempt) readyWith(ctx context.Context, exec Executor) (err error) {
	if err = exec.Ready(); err != nil {
		return err
	}
	a.exec = exec
	a.prep, err = a.r.prepare(ctx, exec, a.target, endpointOf(a.target.Provider, a.r.c))
	return err
}

// impossible leaves the target out, with nothing counted: it is not the provider that failed.
func (a *attempt) impossible(err error) step {
	r, reason := a.r, wire.Reason("executor_error")
	switch {
	case errors.Is(err, ErrPluginUnavailable):
		reason = "plugin_unavailable"
	case errors.Is(err, upstream.ErrPlanInvalid), errors.Is(err, errRespond):
		reason = "plan_invalid"
	}
	r.d.Log.Warn("attempt not possible", "request_id", r.c.RequestID, "provider", a.target.Provider.ID,
		"connection", a.target.Connection.ID, "reason", string(reason), "error", err.Error())
	r.t.exclude(a.target, resilience.Refusal{Gate: "executor", Reason: reason, Wait: resilience.WaitNever})
	r.d.Meter.Refused("executor")
	a.settle(resilience.Outcome{Ignore: true, Began: a.began})
	return stepNext
}

// headLimit is the time to the answer's head: the smallest of the plan's, the
// route's and the setting's (ABI-3, CMB-15, CMB-26, STM-1).
func (a *attempt) headLimit() time.Duration {
	return smallest(a.r.c.Catalog.Settings.FetchTimeout, a.prep.FirstByte, a.targetTimeout(), a.firstContent())
}

// eventLimit is the time to the first useful event of a stream, from the beginning of the attempt; 0 is no limit.
func (a *attempt) eventLimit() time.Duration {
	limit := a.firstContent()
	if limit == 0 {
		limit = a.readiness()
	}
	return smallest(limit, a.targetTimeout())
}

// firstContent is the route's limit to the first useful event, or to a plain answer's first byte; 0 is none (CMB-26).
func (a *attempt) firstContent() time.Duration {
	if own := a.r.c.Route.Config.FirstContentTimeout; own != nil {
		return *own
	}
	return a.r.c.Catalog.Settings.RouteDefaults.FirstContentTimeout
}

// comboTargetTimeout is targetTimeoutMs of a combo that does not say; one that may wait for cooldowns has more (CMB-15).
const comboTargetTimeout = 120 * time.Second

// targetTimeout is the route's own limit for one attempt to begin; 0 is none (CMB-15, CMB-26).
func (a *attempt) targetTimeout() time.Duration {
	general := a.r.c.Catalog.Settings.RouteDefaults.TargetTimeout
	switch own := a.r.c.Route.Config.TargetTimeout; {
	case own != nil:
		return *own
	case general == 0 && a.r.c.Route.Kind == catalog.KindCombo:
		if p := a.r.patience(); p.on {
			return max(comboTargetTimeout, p.budget+10*time.Second)
		}
		return comboTargetTimeout
	}
	return general
}

func smallest(ds ...time.Duration) time.Duration {
	var out time.Duration
	for _, d := range ds {
		if d > 0 && (out == 0 || d < out) {
			out = d
		}
	}
	return out
}

// send edits the body and sends it, or asks the guest for its own answer.
func (a *attempt) send(actx, ctx context.Context) (*http.Response, error) {
	text, err := a.translated() // what hooks and guests hear of the request is what goes to the upstream (ABI-2)
	if err != nil {
		return nil, err
	}
	if a.prep.Respond {
		resp, err := a.respond(actx)
		if second := a.exec.Fallback(); second != nil && errors.Is(err, ErrPluginUnavailable) && a.readyWith(actx, second) == nil {
			return a.send(actx, ctx)
		}
		return resp, err
	}
	if a.prep.MaxBody > 0 && int64(a.r.c.Body.Len()) > a.prep.MaxBody {
		return nil, errBodyTooLarge
	}
	if a.r.c.Form != nil {
		return a.sendForm(actx)
	}
	editor := a.prep.Editor
	m := a.moment()
	if a.prep.Calls.Request {
		more, err := a.onRequest(actx)
		if err != nil {
			return nil, err
		}
		editor, m.Extra, a.changed = editor.Then(more.editor), more.header, more.editor != nil
	}
	if editor, err = a.inForeground(editor); err != nil {
		return nil, err
	}
	a.changed = a.changed || a.own != nil
	if editor, err = a.fewerTools(text, editor); err != nil {
		return nil, fmt.Errorf("%w: %w", upstream.ErrPlanInvalid, err)
	}
	payload, err := editor.Apply(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", upstream.ErrPlanInvalid, err)
	}
	return a.r.d.Client.Send(actx, a.prep, m, payload.Body(), payload.Len())
}

// moment is what of this request fills the plan's places.
func (a *attempt) moment() upstream.Moment {
	c := a.r.c
	m := upstream.Moment{RequestID: c.RequestID, Header: c.Header, Now: a.began}
	if c.Beta && (a.prep.Dialect == wire.AnthropicMessages || a.prep.Dialect == wire.RawDialect) {
		m.Query = "beta=true"
	}
	return m
}

var errBodyTooLarge = errors.New("request body larger than the provider takes")

// noAnswer judges a call that brought no HTTP answer.
func (a *attempt) noAnswer(ctx, actx context.Context, err error) step {
	switch {
	case ctx.Err() != nil:
		return a.abandoned(ctx)
	case isFault(err):
		return a.untranslatable(err)
	case errors.Is(err, errBodyTooLarge):
		return a.judge(ctx, &rules.Reply{Source: wire.SourceHTTP, Status: 413, Original: 413}, resilience.FaultAnswer)
	case errors.Is(err, upstream.ErrPlanInvalid), errors.Is(err, errRespond), errors.Is(err, ErrPluginUnavailable), errors.Is(err, errFormSpent):
		return a.impossible(err)
	}
	if !ownDeadline(actx) && a.mayRepeat(err) {
		return stepNext
	}
	a.fault = err
	code := upstream.TransportCode(err)
	fault := a.faultOf(actx, code)
	if isOwn(fault) {
		code = wire.TransportTimeout
	}
	r := &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{Code: code, Message: transportMessage(code)}}
	return a.judge(ctx, r, fault)
}

// transportMessage says what went wrong without an address in it (INF-33).
func transportMessage(code string) string {
	switch code {
	case wire.TransportTimeout:
		return "The provider did not answer in time."
	case wire.TransportReset:
		return "The provider dropped the connection."
	case wire.TransportEOF:
		return "The provider closed the connection before its answer was complete."
	case wire.TransportTLS:
		return "The provider's TLS certificate or handshake was not acceptable."
	case wire.TransportDNS:
		return "The provider's host name could not be resolved."
	}
	return "The provider could not be reached."
}

// errorAnswer judges an answer with an error status: what can be read of its body within a few seconds.
func (a *attempt) errorAnswer(ctx context.Context) step {
	a.clock.limit(phaseBody, errorBodyTime)
	text, total := readBounded(a.resp.Body, rules.MaxText)
	if ctx.Err() != nil {
		return a.abandoned(ctx)
	}
	return a.judge(ctx, &rules.Reply{
		Source: wire.SourceHTTP, Status: a.resp.StatusCode, Original: a.resp.StatusCode,
		Header: a.resp.Header, Body: text, BodyBytes: total,
	}, resilience.FaultAnswer)
}

const (
	errorBodyTime = 5 * time.Second
	drainBytes    = 256 << 10
)

// readBounded reads what is examined of a body, and a little more so that the connection can be used again.
func readBounded(r io.Reader, limit int64) (text []byte, total int) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, limit))
	total = int(n)
	if err == nil && n == limit {
		more, _ := io.Copy(io.Discard, io.LimitReader(r, drainBytes))
		total += int(more)
	}
	return b.Bytes(), total
}

// abandoned ends an attempt whose client has left: it says nothing about the target (OV-4).
func (a *attempt) abandoned(ctx context.Context) step {
	a.left()
	a.r.gone(ctx)
	return stepDone
}
