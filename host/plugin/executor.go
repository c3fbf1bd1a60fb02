package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/host/allow"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Executor is one plugin version that knows how to call a provider, valid until its Set is released. Safe for concurrent
// use. What it answers from data (static plans, Hosts, RequestFields) it answers also while its guest is quarantined.
type Executor struct {
	v        *version
	now      func() time.Time
	fallback *Executor
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

// Fallback is the built-in executor that takes over when a method of this one says ErrUnavailable (ABI-8), nil when the target
// is to be skipped. Plans that were cached for this executor stay in use.
func (e *Executor) Fallback() *Executor {
	if e.v.failClosed {
		return nil
	}
	return e.fallback
}

// Plan returns the first static plan that matches, or asks the guest (ABI-3). The plan is shared: it must not be changed.
// The error wraps ErrUnavailable when the plugin has no plan, broke the rules or is quarantined: then the target is skipped
// with reason plugin_unavailable and without a count for its breaker.
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
	some := false
	err := e.ask(ctx, wire.OpPlan, q, func(out []byte) error {
		if some = out != nil; !some {
			return nil
		}
		if err := readPlan(out, &p); err != nil {
			return err
		}
		if problems := e.v.manifest.CheckPlan(&p); len(problems) > 0 {
			return garbage("a plan that cannot be used: %s", problems[0])
		}
		return e.mayCall(&p, q.Connection.BaseURL)
	})
	switch {
	case err != nil:
		return nil, err
	case !some:
		return nil, fmt.Errorf("%w: the plugin %s has no plan for %s %s", ErrUnavailable, e.v.name, q.Provider, q.Endpoint)
	}
	return &p, nil
}

// readPlan decodes a plan, or the refusal to give one.
func readPlan(out []byte, p *wire.Plan) error {
	var no struct {
		Error    *rules.Declined `json:"error"`
		URL      string          `json:"url"`
		Upstream string          `json:"upstream"`
	}
	// A plan has a member error of its own; only a refusal's has a code.
	if json.Unmarshal(out, &no) == nil && no.Error != nil && no.Error.Code != "" && no.URL == "" && no.Upstream == "" {
		return no.Error
	}
	return json.Unmarshal(out, p)
}

// mayCall refuses a plan for a host that is neither the connection's own nor granted (ABI-3, ABI-8).
func (e *Executor) mayCall(p *wire.Plan, base string) error {
	if p.Upstream == "none" || strings.HasPrefix(p.URL, "{{connection.base_url}}") {
		return nil
	}
	head, _, _ := strings.Cut(p.URL, "{{") // the host stands before every template (manifest.CheckPlan)
	u, err := url.Parse(head)
	if err != nil {
		return err
	}
	if own, err := url.Parse(base); err == nil && own.Host != "" && strings.EqualFold(own.Host, u.Host) {
		return nil
	}
	if allow.URL(e.v.hosts(), u) {
		return nil
	}
	return garbage("a plan for %s, which is neither the connection's host nor granted", u.Host)
}

// planMatches says whether all given fields of m hold for the query.
func planMatches(m *wire.Match, q *wire.PlanQuery, auth wire.Auth) bool {
	return closeness(m.Providers, q.Provider) > 0 && closeness(m.Models, q.UpstreamModel) > 0 && closeness(m.Endpoints, q.Endpoint) > 0 &&
		(len(m.Auth) == 0 || slices.Contains(m.Auth, string(auth))) && (m.Stream == nil || *m.Stream == q.Stream)
}

// Respond answers in place of an upstream, for a plan with upstream none. The error wraps ErrUnavailable, as with Plan.
func (e *Executor) Respond(ctx context.Context, f wire.RequestFacts) (*wire.Answer, error) {
	var a wire.Answer
	err := e.ask(ctx, wire.OpRespond, f, func(out []byte) error {
		if out == nil {
			return garbage("respond answered nothing")
		}
		if err := declined(out); err != nil {
			return err
		}
		if err := json.Unmarshal(out, &a); err != nil {
			return err
		}
		if a.Status < 200 || a.Status > 599 { // below, HTTP goes on after it
			return garbage("respond answered without a status of HTTP")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// Ready is nil while a plan that was asked for before may still be used: always, but for a plugin that fails closed and is
// quarantined, which says ErrUnavailable (ABI-8).
func (e *Executor) Ready() error {
	if !e.v.failClosed || e.v.ward == nil {
		return nil
	}
	if q, _, _ := e.v.ward.see(e.now()); q != nil && !q.Trial {
		return fmt.Errorf("%w: the plugin %s is quarantined until %s and fails closed", ErrUnavailable, e.v.name, q.Until.Format(time.TimeOnly))
	}
	return nil
}

// Request asks for the changes of this one request (ABI-3), for a plan whose hooks list on_request; nil: none. check says
// whether they can be used, and may be nil: changes that cannot are garbage. After an error the request goes on without
// them, unless the error wraps ErrUnavailable, which only a plugin says that fails closed: then the target is rejected.
func (e *Executor) Request(ctx context.Context, f wire.RequestFacts, check func(*wire.Edits) error) (*wire.Edits, error) {
	return e.edits(ctx, wire.OpRequest, f, check)
}

// Response is Request for an answer, for a plan whose hooks list on_response. The guest sees those of the headers h that the
// manifest declares, and f.Fields, which there are when the plan's response.mode is buffer.
func (e *Executor) Response(ctx context.Context, f wire.ResponseFacts, h http.Header, check func(*wire.Edits) error) (*wire.Edits, error) {
	f.Headers = map[string]string{}
	for name, values := range h {
		if name = strings.ToLower(name); rules.Visible(e.v.manifest.Needs, name) {
			f.Headers[name] = strings.Join(values, ", ")
		}
	}
	return e.edits(ctx, wire.OpResponse, f, check)
}

func (e *Executor) edits(ctx context.Context, op wire.Op, input any, check func(*wire.Edits) error) (*wire.Edits, error) {
	var edits *wire.Edits
	err := e.v.asks(ctx, op, input, func(out []byte) error {
		if out == nil {
			return nil
		}
		if err := declined(out); err != nil {
			return err
		}
		said := &wire.Edits{}
		if err := json.Unmarshal(out, said); err != nil {
			return err
		}
		if problems := e.v.manifest.CheckEdits(said); len(problems) > 0 {
			return garbage("edits that cannot be used: %s", problems[0])
		}
		if check != nil {
			if err := check(said); err != nil {
				return err
			}
		}
		edits = said
		return nil
	})
	return edits, e.v.hookFault(op, err)
}

// hookFault is the error of a hook: it rejects the target only when the plugin is not to be gone without. One that declines
// says so on purpose, and rejects nothing (ABI-1).
func (v *version) hookFault(op wire.Op, err error) error {
	switch {
	case err == nil:
		return nil
	case v.closes(err):
		return fmt.Errorf("%w: %s of the plugin %s: %w", ErrUnavailable, op, v.name, err)
	}
	return fmt.Errorf("%s of the plugin %s: %w", op, v.name, err)
}

// closes says whether the fault of a hook rejects the target. One that declines said so on purpose (ABI-1).
func (v *version) closes(err error) bool {
	_, no := errors.AsType[*rules.Declined](err)
	return v.failClosed && !no
}

// declined is the refusal that an answer may be, nil for any other.
func declined(out []byte) error {
	var no struct {
		Error *rules.Declined `json:"error"`
	}
	if json.Unmarshal(out, &no) == nil && no.Error != nil {
		return no.Error
	}
	return nil
}

// ask calls the guest for what there is no doing without. The error wraps ErrUnavailable.
func (e *Executor) ask(ctx context.Context, op wire.Op, input any, read func(out []byte) error) error {
	if err := e.v.asks(ctx, op, input, read); err != nil {
		return fmt.Errorf("%w: %s of the plugin %s: %w", ErrUnavailable, op, e.v.name, err)
	}
	return nil
}

func (v *version) asks(ctx context.Context, op wire.Op, input any, read func(out []byte) error) error {
	if v.guest == nil {
		return errNoCode
	}
	b, err := json.Marshal(input)
	if err != nil {
		return err
	}
	return v.guest.call(ctx, op, b, read)
}
