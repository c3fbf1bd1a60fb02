package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirgate/weir/sdk/wire"
)

// provider holds the resolved handles of one provider.
type provider struct {
	name     string
	models   handles[string, *Model]
	attempts handles[wire.Reason, prometheus.Counter]
}

func (m *Metrics) provider(id string) *provider {
	if p, ok := m.providers.load(id); ok {
		return p
	}
	if id == "" || !m.known(id, "") {
		id = Other
	}
	return m.providers.get(id, maxProviders, Other, func(name string) *provider { return &provider{name: name} })
}

// Model counts the requests to one model of one provider. Safe for concurrent use; its methods take no lock of the
// metrics' registry.
type Model struct {
	m                                            *Metrics
	ok, partial, clientError, failed, cancelled  prometheus.Counter
	input, cachedRead, cacheWrite, output, thunk prometheus.Counter
}

func (m *Metrics) newModel(providerName, model string) *Model {
	count := func(o Outcome) prometheus.Counter {
		return m.requests.WithLabelValues(providerName, model, string(o))
	}
	tokens := func(kind string) prometheus.Counter { return m.tokens.WithLabelValues(providerName, model, kind) }
	return &Model{
		m: m, ok: count(OK), partial: count(Partial), clientError: count(ClientError), failed: count(Failed),
		cancelled: count(Cancelled), input: tokens("input"), cachedRead: tokens("cached_read"),
		cacheWrite: tokens("cache_write"), output: tokens("output"), thunk: tokens("reasoning"),
	}
}

// Done counts a request that ended at now. A first byte of zero means that none came.
func (h *Model) Done(now time.Time, o Outcome, took, firstByte time.Duration) {
	switch o {
	case OK:
		h.ok.Inc()
	case Partial:
		h.partial.Inc()
	case ClientError:
		h.clientError.Inc()
	case Cancelled:
		h.cancelled.Inc()
	default:
		h.failed.Inc()
	}
	h.m.requestTime.Observe(took.Seconds())
	if firstByte > 0 {
		h.m.ttft.Observe(firstByte.Seconds())
	}
	h.m.recent.add(now, o == Failed || o == Partial, took)
}

// Tokens adds what an upstream stated.
func (h *Model) Tokens(t Tokens) {
	add := func(c prometheus.Counter, n int) {
		if n > 0 {
			c.Add(float64(n))
		}
	}
	add(h.input, t.Input)
	add(h.cachedRead, t.CachedRead)
	add(h.cacheWrite, t.CacheWrite)
	add(h.output, t.Output)
	add(h.thunk, t.Reasoning)
}
