package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// planCache keeps prepared plans for the snapshot of the newest request: a change of a connection, a provider, a plugin or its
// grants brings a new snapshot, and with it no plan and no secret of the one before stays (ABI-3). Names of models come from
// clients, so it is bounded; when it is full it starts again, which costs each route one plan.
type planCache struct {
	mu      sync.RWMutex
	number  uint64 // of the snapshot; guarded by mu
	entries map[planKey]planEntry
}

const maxPlans = 4096

type planKey struct {
	digest, model, requested, endpoint string
	client                             wire.Dialect
	provider                           *catalog.Provider
	connection                         *catalog.Connection
	stream                             bool
}

type planEntry struct {
	prepared *upstream.Prepared
	until    time.Time // zero: no end
}

func (c *planCache) get(k planKey, now time.Time) *upstream.Prepared {
	c.mu.RLock()
	e, ok := c.entries[k]
	c.mu.RUnlock()
	if !ok || (!e.until.IsZero() && now.After(e.until)) {
		return nil
	}
	return e.prepared
}

// put keeps p for the snapshot of that number. A request that still runs with an older one keeps nothing.
func (c *planCache) put(number uint64, k planKey, p *upstream.Prepared, now time.Time) {
	e := planEntry{prepared: p}
	if p.TTL > 0 {
		e.until = now.Add(p.TTL)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if number < c.number {
		return
	}
	if c.entries == nil || number > c.number || len(c.entries) >= maxPlans {
		c.entries, c.number = make(map[planKey]planEntry), number
	}
	c.entries[k] = e
}

// prepare returns the plan for t made ready, from the cache when it can.
func (r *run) prepare(ctx context.Context, exec Executor, t catalog.Target, endpoint string) (*upstream.Prepared, error) {
	now := r.d.Now()
	k := planKey{
		digest: exec.Digest(), model: t.Model, requested: t.Requested, endpoint: endpoint, client: r.c.Dialect,
		provider: t.Provider, connection: t.Connection, stream: r.c.Stream,
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
	r.d.plans.put(r.c.Catalog.Number, k, p, now)
	return p, nil
}

// planConnection is what a guest may know about a connection: names of secrets, never values.
func planConnection(t catalog.Target) wire.PlanConnection {
	c := t.Connection
	pc := wire.PlanConnection{
		ID: c.ID, Revision: c.CredentialRevision, BaseURL: upstream.BaseURL(t.Provider, c), Auth: c.AuthType, Data: c.Data,
	}
	for _, name := range sortedKeys(c.Secrets) {
		if c.Secrets[name].Set() {
			pc.Secrets = append(pc.Secrets, name)
		}
	}
	return pc
}
