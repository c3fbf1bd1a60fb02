package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// MaxAttempts bounds the dispatches of one request over all targets (CMB-14).
const MaxAttempts = 30

// Options of a Dispatcher; all but Log and Failed are required.
type Options struct {
	Plugins Plugins
	Client  *upstream.Client
	Ladder  *resilience.Ladder
	Journal func(...store.Event) // must not block
	Meter   Meter
	Redact  func(string) string // removes known secrets from what clients see
	Now     func() time.Time
	Log     *slog.Logger
	// Failed hears every verdict with the reply that it is about, secrets removed, and must not block or keep the reply's body.
	Failed func(reply *rules.Reply, v wire.Verdict, connection, requestID string)
}

// Dispatcher answers calls. Safe for concurrent use.
type Dispatcher struct {
	Options
	plans planCache
	slow  slowpokes
}

// New makes a dispatcher.
func New(o Options) *Dispatcher {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Dispatcher{Options: o}
}

// Call is one request of a client, read and resolved.
type Call struct {
	RequestID string
	Endpoint  string // canonical
	Dialect   wire.Dialect
	Catalog   *catalog.Snapshot
	Route     *catalog.Route
	Key       *catalog.Key // nil while inference is open
	Model     string       // as the client named it
	Stream    bool
	Body      *body.Buffer
	Scan      *body.Scan
	Header    http.Header // the client's
}

// Sink takes the answer. Not for concurrent use.
type Sink interface {
	// Commit sends the head; t says how the answer was come by. After it the status cannot change.
	Commit(status int, h http.Header, t *Trail)
	Write(p []byte) error
	Flush() error
}

// Do answers c into out. What it could not answer before the commit is described by the trail's Failure, which the caller
// writes; after the commit the stream has ended honestly and Failure is only for the record. Every admitted attempt is settled
// exactly once, also when the client leaves or something below panics (OV-3).
func (d *Dispatcher) Do(ctx context.Context, c *Call, out Sink) *Trail {
	t := &Trail{Began: d.Now(), Usage: Usage{-1, -1}, trace: d.newTrace(ctx, c)}
	t.Attempts = t.room[:0]
	d.answer(ctx, c, out, t)
	t.Took = d.Now().Sub(t.Began)
	t.trace.end(t)
	return t
}

// answer fills the trail. A panic costs this one call, which is told and recorded like any other failure.
func (d *Dispatcher) answer(ctx context.Context, c *Call, out Sink, t *Trail) {
	defer func() {
		if v := recover(); v != nil {
			d.Log.Error("a request panicked", "request_id", c.RequestID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			t.Partial, t.Cut = t.Committed, t.Committed
			t.Failure = &dialect.Failure{Status: http.StatusInternalServerError, Code: "internal_server_error", RequestID: c.RequestID,
				Message: "The gateway failed to handle this request; its log tells more under the request's id."}
		}
	}()
	set := d.Plugins.Acquire()
	defer set.Release()
	r := run{d: d, c: c, out: out, t: t, plugins: set}
	if limit := orZero(c.Route.Config.ComboTimeout); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errComboTimeout)
		defer cancel()
	}
	r.targets(ctx)
}

var errComboTimeout = errors.New("combo timeout")

// run is the state of one call while it is being answered.
type run struct {
	d          *Dispatcher
	c          *Call
	out        Sink
	t          *Trail
	plugins    PluginSet
	exhausted  route.Exhausted
	last       lastWord
	needWindow int                  // after a context overflow: only larger windows (CMB-26)
	target     *catalog.RouteTarget // that is being tried
	after      *catalog.RouteTarget // the one behind it, or nil
}

// lastWord is the latest verdict that may become the answer.
type lastWord struct {
	set     bool
	verdict wire.Verdict
	reply   replyFacts
	target  catalog.Target
}

// step says how the loop goes on after an attempt.
type step int

const (
	stepNext   step = iota // another connection or target
	stepDone               // answered, or ended for good
	stepAnswer             // nothing else may be tried: surface the last word
)

// targets is the attempt loop of CMB-10 and CMB-19: every eligible connection of a target, at once, then the next target. Targets
// of which every connection is to be tried last come after the others.
func (r *run) targets(ctx context.Context) {
	c := r.c
	ordered := route.Order(c.Route, route.Question{Now: r.t.Began})
	var late []*catalog.RouteTarget
	tried := 0
	try := func(rt *catalog.RouteTarget) step {
		if tried++; tried > 1 {
			r.pause(ctx)
		}
		r.target = rt
		return r.connections(ctx, rt)
	}
	next := stepNext
	for i := range ordered {
		if r.d.slow.allLast(&ordered[i], c.Key, r.t.Began) {
			late = append(late, &ordered[i])
			continue
		}
		if r.after = nil; i+1 < len(ordered) {
			r.after = &ordered[i+1]
		}
		if next = try(&ordered[i]); next != stepNext {
			break
		}
	}
	for i := 0; i < len(late) && next == stepNext; i++ {
		if r.after = nil; i+1 < len(late) {
			r.after = late[i+1]
		}
		next = try(late[i])
	}
	if next != stepDone {
		r.surface(ctx)
	}
}

// connections tries the connections of one target: first those that answer, then those that lately did not.
func (r *run) connections(ctx context.Context, rt *catalog.RouteTarget) step {
	if r.exhausted.Provider(rt.Provider.ID) || (r.needWindow > 0 && window(rt.Provider, rt.Model) <= r.needWindow) {
		return stepNext
	}
	var late []*catalog.Connection
	for conn := range route.Candidates(rt, r.c.Key) {
		if r.d.slow.last(conn.ID, rt.Model, r.t.Began) {
			late = append(late, conn)
			continue
		}
		if s := r.connection(ctx, rt, conn); s != stepNext {
			return s
		}
	}
	for _, conn := range late {
		if s := r.connection(ctx, rt, conn); s != stepNext {
			return s
		}
	}
	return stepNext
}

// at is the present moment for the target that is being tried.
func (r *run) at() resilience.Moment {
	combo := r.c.Route.Kind == catalog.KindCombo
	return resilience.Moment{
		Now: r.d.Now(), Catalog: r.c.Catalog, Combo: combo, Pinned: combo && r.target != nil && r.target.Connection != nil,
	}
}

// siblingNext says whether the next target of the combo is on the same provider, so that it will tell (BRK-14).
func (r *run) siblingNext(t catalog.Target) bool {
	return r.after != nil && r.after.Provider.ID == t.Provider.ID
}

// connection asks the ladder and, when it agrees, makes one attempt.
func (r *run) connection(ctx context.Context, rt *catalog.RouteTarget, conn *catalog.Connection) step {
	target := catalog.Target{Provider: rt.Provider, Connection: conn, Model: rt.Model, Requested: r.c.Model}
	if r.exhausted.Target(target) {
		return stepNext
	}
	if ctx.Err() != nil {
		r.gone(ctx)
		return stepDone
	}
	if len(r.t.Attempts) >= MaxAttempts {
		r.t.Failure = &dialect.Failure{Status: 503, Code: "max_attempts_exceeded", Type: "server_error", NoRetry: true,
			Message: "The request was tried 30 times without an answer; the last error stands in the gateway's log."}
		return stepDone
	}
	at := r.at()
	ticket, refusal := r.d.Ladder.Admit(at, target)
	if refusal != nil {
		r.t.exclude(target, *refusal)
		r.d.Meter.Refused(refusal.Gate)
		r.t.trace.add(refusal.Gate, "refused", target)
		return stepNext
	}
	return r.attempt(ctx, rt, target, ticket, at.Now)
}

// gone notes that the client left, or that the time of the whole combo is over (OV-4, CMB-16, CMB-17).
func (r *run) gone(ctx context.Context) {
	if errors.Is(context.Cause(ctx), errComboTimeout) {
		r.t.Failure = &dialect.Failure{Status: 504, Code: "COMBO_TIMEOUT", Type: "server_error",
			Message: "The time for this combo (comboTimeoutMs) is over. Raise it, or ask for a faster model."}
		r.t.Partial = r.t.Committed
		return
	}
	r.t.Cancelled = true
}

// pause is config.fallbackDelayMs between targets: only after a short cooldown, and never longer than it (CMB-13).
func (r *run) pause(ctx context.Context) {
	delay := orZero(r.c.Route.Config.FallbackDelay)
	if delay <= 0 || !r.last.set {
		return
	}
	cooled := max(r.last.verdict.RetryAfter, r.last.verdict.Cooldown)
	if cooled <= 0 || cooled > 5*time.Second {
		return
	}
	timer := time.NewTimer(min(delay, cooled))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
