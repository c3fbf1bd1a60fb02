package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Executor is one plugin version that knows how to call a provider, valid until its Set is released. Safe for concurrent
// use.
type Executor struct {
	v   *version
	now func() time.Time
}

// Digest is the sha256 of the plugin's module, in hex.
func (e *Executor) Digest() string { return e.v.digest }

// Name is the plugin's name.
func (e *Executor) Name() string { return e.v.name }

// Hosts are the granted hosts that plans may name beside the connection's own. The list must not be changed.
func (e *Executor) Hosts() []string { return e.v.hosts() }

// RequestFields are the paths of the request that on_request and respond see (needs.request_fields). The list must not be
// changed.
func (e *Executor) RequestFields() []string { return e.v.manifest.Needs.RequestFields }

// Plan returns the first static plan that matches, or asks the guest (ABI-3). The plan is shared: it must not be changed.
// The error wraps ErrUnavailable when the plugin has no plan or broke the rules.
func (e *Executor) Plan(ctx context.Context, q wire.PlanQuery, auth wire.Auth) (*wire.Plan, error) {
	rows := e.v.manifest.Plans
	for i := range rows {
		if planMatches(&rows[i].Match, &q, auth) {
			return &rows[i].Plan, nil
		}
	}
	if e.v.guest == nil {
		return nil, fmt.Errorf("%w: no plan of the plugin %s matches %s %s", ErrUnavailable, e.v.name, q.Provider, q.Endpoint)
	}
	q.Config = e.v.config
	var p wire.Plan
	some, err := e.ask(ctx, wire.OpPlan, q, &p)
	switch {
	case err != nil:
		return nil, err
	case !some:
		return nil, fmt.Errorf("%w: the plugin %s has no plan for %s %s", ErrUnavailable, e.v.name, q.Provider, q.Endpoint)
	}
	if problems := e.v.manifest.CheckPlan(&p); len(problems) > 0 {
		e.v.counters.violated(garbage("plan"))
		return nil, fmt.Errorf("%w: the plugin %s answered a plan that cannot be used: %s", ErrUnavailable, e.v.name, problems[0])
	}
	return &p, nil
}

// planMatches says whether all given fields of m hold for the query.
func planMatches(m *wire.Match, q *wire.PlanQuery, auth wire.Auth) bool {
	return closeness(m.Providers, q.Provider) > 0 && closeness(m.Models, q.UpstreamModel) > 0 && closeness(m.Endpoints, q.Endpoint) > 0 &&
		(len(m.Auth) == 0 || slices.Contains(m.Auth, string(auth))) && (m.Stream == nil || *m.Stream == q.Stream)
}

// Respond answers in place of an upstream, for a plan with upstream none. The error wraps ErrUnavailable.
func (e *Executor) Respond(ctx context.Context, f wire.RequestFacts) (*wire.Answer, error) {
	if e.v.guest == nil {
		return nil, fmt.Errorf("%w: the plugin %s has no code that could answer", ErrUnavailable, e.v.name)
	}
	var a wire.Answer
	some, err := e.ask(ctx, wire.OpRespond, f, &a)
	if err != nil {
		return nil, err
	}
	if !some || a.Status < 100 || a.Status > 599 {
		e.v.counters.violated(garbage("respond"))
		return nil, fmt.Errorf("%w: the plugin %s answered without a status of HTTP", ErrUnavailable, e.v.name)
	}
	return &a, nil
}

// ask calls the guest and decodes its answer into dst; false means that it had no opinion.
func (e *Executor) ask(ctx context.Context, op wire.Op, input, dst any) (bool, error) {
	b, err := json.Marshal(input)
	if err != nil {
		return false, fmt.Errorf("%w: the input of %s: %w", ErrUnavailable, op, err)
	}
	out, err := e.v.guest.call(ctx, op, b, e.now(), longCall)
	if err == nil {
		return e.v.read(op, out, dst)
	}
	return false, fmt.Errorf("%w: %s of the plugin %s: %w", ErrUnavailable, op, e.v.name, err)
}

// read decodes what a guest answered.
func (v *version) read(op wire.Op, out []byte, dst any) (bool, error) {
	if out == nil {
		v.counters.noOpinion.Add(1)
		return false, nil
	}
	var no struct {
		Error    *rules.Declined `json:"error"`
		URL      string          `json:"url"`
		Upstream string          `json:"upstream"`
	}
	// A plan has a member error of its own; only a refusal's has a code.
	if json.Unmarshal(out, &no) == nil && no.Error != nil && no.Error.Code != "" && no.URL == "" && no.Upstream == "" {
		v.counters.declined.Add(1)
		return false, fmt.Errorf("%w: %s of the plugin %s: %w", ErrUnavailable, op, v.name, no.Error)
	}
	if err := json.Unmarshal(out, dst); err != nil {
		v.counters.violated(garbage("json"))
		return false, fmt.Errorf("%w: %s of the plugin %s answered what cannot be read: %w", ErrUnavailable, op, v.name, err)
	}
	return true, nil
}
