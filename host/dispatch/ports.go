package dispatch

import (
	"context"
	"net/http"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Plugins hands out the set of plugins in force.
type Plugins interface {
	// Acquire pins the present set until Release; a set that was replaced stays usable until then (PLG-3).
	Acquire() PluginSet
}

// PluginSet is one immutable set of plugin versions.
type PluginSet interface {
	// Executor returns the plugin that executes p. An error wraps ErrPluginUnavailable.
	Executor(p *catalog.Provider) (Executor, error)
	// Judge returns the chain of rules and hooks for p, in the order of ABI-9. Never nil.
	Judge(p *catalog.Provider) Judge
	Release()
}

// Executor is one plugin version that knows how to call a provider. Safe for concurrent use.
type Executor interface {
	// Digest is the sha256 of the plugin's bytes, in hex: part of plan cache keys and decision records.
	Digest() string
	Name() string
	// Hosts are the granted hosts that plans may name beside the connection's own.
	Hosts() []string
	// RequestFields are the paths of the request body that the plugin declared (needs.request_fields).
	RequestFields() []string
	// Plan returns the first static plan that matches, or asks the guest. The result is shared: read only.
	Plan(ctx context.Context, q wire.PlanQuery, auth wire.Auth) (*wire.Plan, error)
	// Respond answers in place of an upstream (plan with upstream none).
	Respond(ctx context.Context, f wire.RequestFacts) (*wire.Answer, error)
	// Fallback is the executor that takes over when this one says ErrPluginUnavailable before a request was sent (ABI-8), nil when
	// the target is to be skipped. Plans of this one that are cached stay in use.
	Fallback() Executor
	// Ready is nil while a plan that was asked for before may still be used. A plugin that fails closed says
	// ErrPluginUnavailable while it is in quarantine (ABI-8).
	Ready() error
	// Request asks on_request what to add to this request; nil is nothing. What check refuses is a fault of the guest. After an
	// error the request goes on without the hook, unless it wraps ErrPluginUnavailable, which a plugin that fails closed says.
	Request(ctx context.Context, f wire.RequestFacts, check func(*wire.Edits) error) (*wire.Edits, error)
	// Response is the same for on_response. The implementation fills f.Headers with what of h the plugin declared.
	Response(ctx context.Context, f wire.ResponseFacts, h http.Header, check func(*wire.Edits) error) (*wire.Edits, error)
	// Events begins the hooks of one stream: on_event, bound to one instance if the plan says so, and on_end.
	Events(c upstream.Calls) EventHook
}

// EventHook are the hooks of one stream (ABI-5). Not for concurrent use.
type EventHook interface {
	// Event says what becomes of an event; the answer is valid until the next call. With an error the event passes: it wraps
	// ErrUnhooked when there is no use in asking for the next ones, and ErrPluginUnavailable when the plugin fails closed.
	Event(ctx context.Context, name, data []byte) (wire.EventAnswer, error)
	// End tells the guest, if the plan asks for it, and gives up what the stream held. It is called once, whatever became of the
	// stream.
	End(ctx context.Context, complete bool)
}

// Judge says what a reply means. It never fails: a hook that misbehaves has no opinion (RUL-13).
type Judge interface {
	// Restate returns the true status, or false to keep (RST-2).
	Restate(ctx context.Context, r *rules.Reply) (wire.Restatement, bool)
	// Classify returns the verdict of the first rule or hook that has one, over the phases guard, normal and late
	// (CLS-7). False: the host decides by status (CLS-13).
	Classify(ctx context.Context, r *rules.Reply) (wire.Verdict, bool)
}
