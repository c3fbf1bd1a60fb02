package dispatch

import (
	"context"

	"github.com/weirgate/weir/host/catalog"
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
}

// Judge says what a reply means. It never fails: a hook that misbehaves has no opinion (RUL-13).
type Judge interface {
	// Restate returns the true status, or false to keep (RST-2).
	Restate(ctx context.Context, r *rules.Reply) (wire.Restatement, bool)
	// Classify returns the verdict of the first rule or hook that has one, over the phases guard, normal and late
	// (CLS-7). False: the host decides by status (CLS-13).
	Classify(ctx context.Context, r *rules.Reply) (wire.Verdict, bool)
}
