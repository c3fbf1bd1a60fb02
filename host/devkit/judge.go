package devkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/rules/hint"
	"github.com/weirgate/weir/sdk/wire"
)

// Judged is what an answer means, in the words of the corpus (ABI-4). Of a line of hints it has the wait alone; of any other
// every field.
type Judged struct {
	ID         string      `json:"id"`
	Status     *int        `json:"status,omitzero"` // that the client would see
	Reason     wire.Reason `json:"reason,omitzero"`
	Scope      wire.Scope  `json:"scope,omitzero"`
	Fallback   *bool       `json:"retryable_elsewhere,omitzero"`
	WaitMS     *int64      `json:"cooldown_ms"` // what the answer said; null: nothing
	Breaker    *bool       `json:"trips_breaker,omitzero"`
	Terminal   *bool       `json:"terminal,omitzero"`
	RestatedBy string      `json:"restated_by"` // plugin/rule; empty: the status stayed
	DecidedBy  string      `json:"decided_by"`  // plugin/rule; of a line of hints where the wait was read

	Restating []Cause `json:"restated_because,omitempty"` // with Explain: what in the answer the rules rest on
	Deciding  []Cause `json:"decided_because,omitempty"`
	WaitFrom  string  `json:"wait_from,omitempty"` // header:NAME, json:PATH, text, rule, hook
}

// Court judges recorded answers with the plugins of a runtime, as a gateway does. Close frees it.
type Court struct {
	runtime *plugin.Runtime
	rules   map[string]json.RawMessage // by plugin/rule, once Explain is asked for
}

// Open loads the built-in plugins and, when dir is not empty, those of that folder. A plugin there that does not load is an
// error, one sentence for each: a verdict without it would be another one.
func (k Kit) Open(ctx context.Context, dir string) (*Court, error) {
	if dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("there is no plugin folder %s; name another one", dir)
		}
	}
	o := k.options()
	o.Dir = dir
	c := &Court{runtime: plugin.New(o)}
	if err := c.runtime.Start(ctx); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	var faults []error
	for _, s := range c.runtime.List() {
		if s.Fault != nil {
			faults = append(faults, s.Fault)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(append(faults, c.Close(ctx))...)
	}
	return c, nil
}

// Close frees the plugins.
func (c *Court) Close(ctx context.Context) error { return c.runtime.Close(context.WithoutCancel(ctx)) }

// Judge says what an answer means that came at its own now, else at the given one.
func (c *Court) Judge(ctx context.Context, a *Answer, now time.Time) Judged {
	if !a.Now.IsZero() {
		now = a.Now
	}
	j := Judged{ID: a.ID}
	if a.Hint {
		if h, ok := hint.Read(a.header(), []byte(a.Body), now); ok {
			ms := h.Wait.Milliseconds()
			j.WaitMS, j.DecidedBy = &ms, h.Source
		}
		return j
	}
	r := a.reply(now)
	v := c.verdict(ctx, r)
	status := rules.HostStatus(r)
	j.Status, j.Reason, j.Scope, j.Fallback, j.Breaker, j.Terminal = &status, v.Reason, v.Scope, &v.Fallback, &v.Breaker, &v.Terminal
	if v.Hinted {
		ms := v.RetryAfter.Milliseconds()
		j.WaitMS = &ms
	}
	j.RestatedBy, j.DecidedBy = r.Restated, v.Evidence()
	if c.rules != nil {
		c.explain(&j, r, v)
	}
	return j
}

// verdict is the way of every failed answer: restated, read by the host, classified, and judged by status when nobody has an
// opinion (RST-2, RST-10, CLS-13). A good status is first looked through (SCN-8); one that holds no failure, and of which no
// rule speaks, is a good answer and stays one.
func (c *Court) verdict(ctx context.Context, r *rules.Reply) wire.Verdict {
	r.Provider = strings.ToLower(r.Provider)
	if good(r.Status) && r.Source == wire.SourceHTTP {
		if failed, status := dispatch.LooksFailed(wire.OpenAIChat, r.Body); failed {
			r.Status = status
		}
	}
	rules.Read(r)
	set := c.runtime.Acquire()
	defer set.Release()
	said := dispatch.Rule(ctx, set.Judge(&catalog.Provider{ID: r.Provider}), nil, r)
	if re := said.Restated; re != nil {
		r.Restated = strings.TrimSuffix(re.Plugin+"/"+re.Rule, "/")
	}
	v := said.Verdict
	switch {
	case !said.ByHost || !good(r.Status):
	case r.Source == wire.SourceHTTP:
		return wire.Verdict{Reason: wire.NoReason, Scope: wire.ScopeNone}
	default: // a stream that broke without a word
		r.Source = wire.SourceTransport
		v = rules.ByStatus(r)
	}
	if v.Terminal && said.ByTheHint { // of no use to who waits for a person
		v.RetryAfter, v.Hinted, v.HintSource = 0, false, ""
	}
	return v
}

func good(status int) bool { return status >= 200 && status < 300 }
