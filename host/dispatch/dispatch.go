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
	"github.com/weirgate/weir/host/origin"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/toollimit"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/rules/operator"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// MaxAttempts bounds the dispatches of one request over all targets (CMB-14).
const MaxAttempts = 30

// Options of a Dispatcher; all but Log, Failed, Learn, Router, Circuit and Condition are required.
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
	// Learn hears the head of every answer of a connection (gate 18); it must not block or keep the header. Nil: nobody does.
	Learn      func(t catalog.Target, h http.Header, now time.Time)
	Signatures translate.Memory // of calls whose clients cannot carry them; nil: they are lost (TR-19)
	Router     *route.Router    // nil: one of its own
	// Circuit and Condition are what strategies ask about a provider's breaker and an account's health; nil: all are well.
	Circuit   func(p *catalog.Provider, at resilience.Moment) route.Circuit
	Condition func(connection string, now time.Time) route.Condition
}

// Dispatcher answers calls. Safe for concurrent use.
type Dispatcher struct {
	Options
	plans planCache
	slow  slowpokes

	operator operator.Book // the operator's own rules and defaults, read
	turns    turns
	origins  origin.Record // of state that only its issuer can read

	rotations rotations
	tools     toollimit.Limits
}

// New makes a dispatcher.
func New(o Options) *Dispatcher {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Router == nil {
		o.Router = route.NewRouter(nil)
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
	Form      *Form       // of a raw endpoint: the body in place of Body, which then only names the model (INF-7)
	Beta      bool        // the client asked for ?beta=true, which an upstream of the same dialect hears (INF-1)
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
	t := &Trail{Began: d.Now(), Usage: neutral.NoUsage()}
	t.trace = d.newTrace(ctx, c, t.Began)
	t.Attempts = t.room[:0]
	v, sink := d.voice(c, out), out
	if v != nil {
		sink = v
	}
	if c.Catalog.Settings.RequestLog.Bodies {
		t.Kept, sink = copies(c, sink)
	}
	d.answer(ctx, c, sink, t)
	v.end(t)
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
	defer func() { r.turn.end() }()
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
	order      route.Sequence
	last       lastWord
	neutral    *neutral.Request     // the client's request, read once when a target speaks another dialect
	neutralErr error                // why it could not be read
	needWindow int                  // after a context overflow: only larger windows (CMB-26)
	target     *catalog.RouteTarget // that is being tried
	after      *catalog.RouteTarget // the one behind it, or nil
	lastTry    try                  // the last failed attempt, for a further one on the same connection (CMB-19)
	hints      []hint               // what upstreams asked to wait, by connection (CMB-43)
	limited    []*catalog.Provider  // rate limited for now (CMB-23)
	waits      int                  // for cooldowns, so far
	waited     time.Duration        // in them
	turn       *turn                // of the connection that was waited for, until an attempt has ended
	forced     bool                 // a cooling connection is asked all the same (CMB-23)
	insisted   bool                 // an account whose server failed was waited for, which happens once
	resumed    bool                 // an answer that was cut has been continued, which happens once (STM-43)
	rescue     *settings.Emergency  // the request is with the emergency's model (OTH-23)
	fit        toolFit
	carried    carried
	unsure     bool // targets that are predicted to be slow are tried after all (CMB-11)
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
	_ = pauseFor(ctx, min(delay, cooled)) // who left is noticed by the next attempt
}

func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
