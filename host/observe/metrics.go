package observe

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirgate/weir/sdk/wire"
)

// Other is the label of everything outside the catalogue, or beyond a bound (OBS-6).
const Other = "other"

// The bounds of label values. Models is per provider.
const (
	maxProviders = 500
	maxModels    = 200
	maxRules     = 500
	maxPlugins   = 200
	maxGates     = 32
	maxReasons   = 32
)

// Outcome is how a request ended (OBJ-17).
type Outcome string

// The outcomes.
const (
	OK          Outcome = "ok"
	Partial     Outcome = "partial" // a stream that ended with an error
	ClientError Outcome = "client_error"
	Failed      Outcome = "failed"
	Cancelled   Outcome = "cancelled"
)

// Tokens is what an upstream said about a request's size.
type Tokens struct{ Input, CachedRead, CacheWrite, Output, Reasoning int }

// Options says where the metrics read what they do not count themselves. Every field may be nil.
type Options struct {
	// Known says whether the catalogue has provider and, when model is not empty, the model.
	Known func(provider, model string) bool
	// Connections calls yield for every provider and status.
	Connections func(yield func(provider, status string, n int))
	// Breakers calls yield for every provider that has a breaker: 0 closed, 1 degraded, 2 half-open, 3 open.
	Breakers func(yield func(provider string, state int))
	// Lockouts calls yield for every provider with its running lockouts.
	Lockouts func(yield func(provider string, n int))
	// Plugins calls yield for every plugin.
	Plugins func(yield func(PluginGauge))
	// Store says whether the store is degraded and how large it is.
	Store func() (degraded bool, bytes int64)
}

// PluginGauge is what a plugin is at the moment of a scrape.
type PluginGauge struct {
	Name        string
	State       string // ABI-7
	MemoryBytes int64
}

// Metrics are the metrics of one host (OBS-6). Safe for concurrent use.
type Metrics struct {
	known    func(provider, model string) bool
	registry *prometheus.Registry
	recent   recent

	requests      *prometheus.CounterVec
	requestTime   prometheus.Histogram
	ttft          prometheus.Histogram
	attempts      *prometheus.CounterVec
	fallbacks     *prometheus.CounterVec
	refusals      *prometheus.CounterVec
	tokens        *prometheus.CounterVec
	restated      *prometheus.CounterVec
	pluginCalls   *prometheus.CounterVec
	pluginSeconds *prometheus.HistogramVec
	pluginBusy    *prometheus.CounterVec
	pluginCustom  *prometheus.CounterVec

	providers  handles[string, *provider]
	byFallback handles[string, prometheus.Counter]
	byGate     handles[string, prometheus.Counter]
	byRule     handles[string, prometheus.Counter]
	plugins    handles[string, *plugin]
}

// New returns metrics with a registry of their own.
func New(o Options) *Metrics {
	m := &Metrics{known: o.Known, registry: prometheus.NewRegistry()}
	if m.known == nil {
		m.known = func(string, string) bool { return true }
	}
	m.define()
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newScrape(o))
	return m
}

func (m *Metrics) define() {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	seconds := []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 180, 600}
	m.requests = counter("weir_requests_total", "Requests of clients.", "provider", "model", "outcome")
	m.requestTime = histogram("weir_request_seconds", "Time from the request to the end of its answer.", seconds).
		WithLabelValues().(prometheus.Histogram)
	m.ttft = histogram("weir_ttft_seconds", "Time from the request to the first byte of its answer.", seconds).
		WithLabelValues().(prometheus.Histogram)
	m.attempts = counter("weir_attempts_total", "Attempts by the reason of their failure; none is a good answer.",
		"provider", "reason")
	m.fallbacks = counter("weir_fallbacks_total", "Moves to another connection or target, by the reason.", "reason")
	m.refusals = counter("weir_gate_refusals_total", "Targets that a gate refused.", "gate")
	m.tokens = counter("weir_tokens_total", "Tokens that upstreams stated.", "provider", "model", "kind")
	m.restated = counter("weir_restated_total", "Statuses that a rule corrected.", "rule")
	m.pluginCalls = counter("weir_plugin_calls_total", "Calls of guests.", "plugin", "op", "result")
	m.pluginSeconds = histogram("weir_plugin_call_seconds", "Time of guest calls.",
		[]float64{.000001, .00001, .0001, .001, .005, .01, .05, .1, 1}, "plugin", "op")
	m.pluginBusy = counter("weir_plugin_busy_total", "Calls that found no free instance.", "plugin")
	m.pluginCustom = counter("weir_plugin_custom_total", "What plugins count themselves.", "plugin", "name")
}

// Handler answers a scrape. It checks no access: the caller does (OBS-2).
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Model returns the handle for requests to one model of one provider; keep it for the request. Names outside the
// catalogue share the handle of "other".
func (m *Metrics) Model(providerID, model string) *Model {
	p := m.provider(providerID)
	if h, ok := p.models.load(model); ok {
		return h
	}
	if p.name == Other || model == "" || !m.known(p.name, model) {
		model = Other
	}
	return p.models.get(model, maxModels, Other, func(name string) *Model { return m.newModel(p.name, name) })
}

// Attempt counts one attempt at a provider; no reason is a good answer.
func (m *Metrics) Attempt(providerID string, reason wire.Reason) {
	if reason == "" {
		reason = wire.NoReason
	}
	p := m.provider(providerID)
	p.attempts.get(reason, maxReasons, Other, func(r wire.Reason) prometheus.Counter {
		return m.attempts.WithLabelValues(p.name, string(r))
	}).Inc()
}

// Fallback counts a move to another connection or target.
func (m *Metrics) Fallback(reason wire.Reason) {
	m.byFallback.get(string(reason), maxReasons, Other, func(s string) prometheus.Counter {
		return m.fallbacks.WithLabelValues(s)
	}).Inc()
}

// Refused counts a target that a gate refused.
func (m *Metrics) Refused(gate string) {
	m.byGate.get(gate, maxGates, Other, func(s string) prometheus.Counter { return m.refusals.WithLabelValues(s) }).Inc()
}

// Restated counts a status that rule, as plugin/rule, corrected.
func (m *Metrics) Restated(rule string) {
	m.byRule.get(rule, maxRules, Other, func(s string) prometheus.Counter { return m.restated.WithLabelValues(s) }).Inc()
}

// Recent returns the requests of the last minute before now: how many, how many of them failed, and the median time.
func (m *Metrics) Recent(now time.Time) (total, failed int, p50 time.Duration) {
	return m.recent.sum(now)
}
