package host

import (
	"context"
	"log/slog"
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/observe"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/sdk/wire"
)

// observed counts one finished call (OBS-6) and writes its access line when asked to.
func (h *Host) observed(c *dispatch.Call, t *dispatch.Trail) {
	provider, model := "", ""
	switch target, last := t.Serving(), t.Last(); {
	case target.Provider != nil:
		provider, model = target.Provider.ID, target.Model
	case last != nil:
		provider, model = last.Provider, last.Model
	case len(c.Route.Targets) > 0:
		provider, model = c.Route.Targets[0].Provider.ID, c.Route.Targets[0].Model
	}
	m := h.metrics.Model(provider, model)
	outcome := outcomeOf(t)
	m.Done(h.o.Now(), outcome, t.Took, t.FirstByte)
	if u := t.Usage; u.Stated() {
		m.Tokens(observe.Tokens{
			Input: int(u.Input), CachedRead: int(u.CachedRead), CacheWrite: int(u.CacheWrite), Output: int(u.Output), Reasoning: int(u.Reasoning),
		})
	}
	h.ledger.Add(c, t, string(outcome))
	h.logCall(c, t, outcome)
}

func outcomeOf(t *dispatch.Trail) observe.Outcome {
	switch {
	case t.Cancelled:
		return observe.Cancelled
	case t.Partial:
		return observe.Partial
	case t.Committed:
		return observe.OK
	case t.Failure != nil && t.Failure.Status < 500 && t.Failure.Status != 429:
		return observe.ClientError
	}
	return observe.Failed
}

// logCall writes one line for a call that was not answered, and for every call when the access log is on. No body and no
// header is in it (OBS-4).
func (h *Host) logCall(c *dispatch.Call, t *dispatch.Trail, outcome observe.Outcome) {
	level := slog.LevelDebug
	switch {
	case outcome == observe.Failed || outcome == observe.Partial:
		level = slog.LevelWarn
	case h.o.AccessLog:
		level = slog.LevelInfo
	}
	ctx := context.Background()
	if !h.o.Log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", c.RequestID), slog.String("endpoint", c.Endpoint), slog.String("model", c.Model),
		slog.Bool("stream", c.Stream), slog.Int("status", t.Status), slog.String("outcome", string(outcome)),
		slog.Int("attempts", len(t.Attempts)), slog.Int("excluded", len(t.Excluded)), slog.Int64("took_ms", t.Took.Milliseconds()),
	}
	if c.Key != nil {
		attrs = append(attrs, slog.String("key", c.Key.ID))
	}
	if tag := c.ConversationTag(); tag != "" {
		attrs = append(attrs, slog.String("conversation", tag))
	}
	if target := t.Serving(); target.Provider != nil {
		attrs = append(attrs, slog.String("provider", target.Provider.ID), slog.String("connection", target.Connection.ID))
	}
	if t.Failure != nil {
		attrs = append(attrs, slog.String("code", t.Failure.Code), slog.String("message", t.Failure.Message))
	}
	h.o.Log.LogAttrs(ctx, level, "request", attrs...)
}

// meter gives the dispatcher the counters.
func (h *Host) newMetrics() *observe.Metrics {
	return observe.New(observe.Options{
		Known: func(provider, model string) bool {
			p := h.catalog.Current().Provider(provider)
			return p != nil && (model == "" || listed(p, model))
		},
		Connections: h.countConnections,
		Breakers: func(yield func(provider string, state int)) {
			for _, b := range h.breakers.All(resilience.Moment{Now: h.o.Now(), Catalog: h.catalog.Current()}) {
				yield(b.Name, breakerNumber(b.State))
			}
		},
		Lockouts: func(yield func(provider string, n int)) {
			for _, l := range h.lockouts.List(h.o.Now()) {
				yield(l.Provider, 1)
			}
		},
		Plugins: func(yield func(observe.PluginGauge)) {
			for _, s := range h.plugins.List() {
				if s.State != plugin.StateDisabled {
					yield(observe.PluginGauge{Name: s.Name, State: s.State, MemoryBytes: s.MemoryBytes})
				}
			}
		},
		Store: func() (bool, int64) {
			health := h.store.Health()
			return health.State == "degraded", health.Bytes
		},
	})
}

// breakerNumber is the value of weir_breaker_state (OBS-6).
func breakerNumber(p breaker.Phase) int {
	switch p {
	case breaker.Degraded:
		return 1
	case breaker.HalfOpen:
		return 2
	case breaker.Open:
		return 3
	case breaker.Closed:
	}
	return 0
}

// listed says whether somebody wrote the model down: the name of one that is only passed through comes from a client, and must
// not become a label.
func listed(p *catalog.Provider, model string) bool {
	return slices.ContainsFunc(p.Models, func(m wire.Model) bool { return m.ID == model }) ||
		slices.ContainsFunc(p.All, func(c *catalog.Connection) bool { return slices.Contains(c.Models, model) })
}

func (h *Host) countConnections(yield func(provider, status string, n int)) {
	now := h.o.Now()
	for _, p := range h.catalog.Current().Providers {
		counts := map[string]int{}
		for _, c := range p.All {
			counts[string(h.condition(c, now))]++
		}
		for status, n := range counts {
			yield(p.ID, status, n)
		}
	}
}
