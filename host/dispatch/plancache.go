package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// planCache keeps prepared plans until the plugin, the connection's credentials or the configuration change (ABI-3). It is
// bounded; when it is full it starts again, which costs each route one plan.
type planCache struct {
	mu      sync.RWMutex
	entries map[planKey]planEntry
}

const maxPlans = 4096

type planKey struct {
	digest, connection, model, requested, endpoint string
	client                                         wire.Dialect
	connRevision, credRevision                     uint64
	provider                                       *catalog.Provider
	stream                                         bool
}

type planEntry struct {
	prepared *upstream.Prepared
	until    time.Time // zero: no end
}

func (c *planCache) get(k planKey, now time.Time) *upstream.Prepared {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[k]
	if !ok || (!e.until.IsZero() && now.After(e.until)) {
		return nil
	}
	return e.prepared
}

func (c *planCache) put(k planKey, p *upstream.Prepared, now time.Time) {
	e := planEntry{prepared: p}
	if p.TTL > 0 {
		e.until = now.Add(p.TTL)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxPlans {
		c.entries = make(map[planKey]planEntry)
	}
	c.entries[k] = e
}

// prepare returns the plan for t made ready, from the cache when it can.
func (r *run) prepare(ctx context.Context, exec Executor, t catalog.Target, endpoint string) (*upstream.Prepared, error) {
	now := r.d.Now()
	k := planKey{
		digest: exec.Digest(), connection: t.Connection.ID, model: t.Model, requested: t.Requested, endpoint: endpoint,
		client: r.c.Dialect, connRevision: t.Connection.Revision, credRevision: t.Connection.CredentialRevision,
		provider: t.Provider, stream: r.c.Stream,
	}
	if p := r.d.plans.get(k, now); p != nil {
		return p, nil
	}
	plan, err := exec.Plan(ctx, wire.PlanQuery{
		Provider: t.Provider.ID, Connection: planConnection(t), Model: t.Requested, UpstreamModel: t.Model,
		Endpoint: endpoint, Stream: r.c.Stream, ClientDialect: r.c.Dialect,
	}, t.Connection.AuthType)
	if err != nil {
		return nil, err
	}
	p, err := upstream.Prepare(plan, upstream.Query{
		Provider: t.Provider, Connection: t.Connection, Model: t.Requested, Upstream: t.Model,
		Hosts: exec.Hosts(), Client: r.c.Dialect, Stream: r.c.Stream,
	})
	if err != nil {
		return nil, err
	}
	r.d.plans.put(k, p, now)
	return p, nil
}

// planConnection is what a guest may know about a connection: names of secrets, never values.
func planConnection(t catalog.Target) wire.PlanConnection {
	c := t.Connection
	pc := wire.PlanConnection{
		ID: c.ID, Revision: c.CredentialRevision, BaseURL: upstream.BaseURL(t.Provider, c), Auth: c.AuthType,
	}
	for name, s := range c.Secrets {
		if s.Set() {
			pc.Secrets = append(pc.Secrets, name)
		}
	}
	return pc
}
