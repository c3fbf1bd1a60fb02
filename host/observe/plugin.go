package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// plugin holds the resolved handles of one plugin.
type plugin struct {
	name   string
	busy   prometheus.Counter
	calls  handles[call, *pluginCall]
	custom handles[string, prometheus.Counter]
}

type call struct{ op, result string }

type pluginCall struct {
	count   prometheus.Counter
	seconds prometheus.Observer
}

// maxCalls bounds operations times results of one plugin; both come from our own code.
const maxCalls = 256

// PluginCall counts one call of a guest: the operation by name and its result (ok, no_opinion, trap, ...).
func (m *Metrics) PluginCall(name, op, result string, took time.Duration) {
	p := m.plugin(name)
	c := p.calls.get(call{op, result}, maxCalls, call{Other, Other}, func(k call) *pluginCall {
		return &pluginCall{m.pluginCalls.WithLabelValues(p.name, k.op, k.result), m.pluginSeconds.WithLabelValues(p.name, k.op)}
	})
	c.count.Inc()
	c.seconds.Observe(took.Seconds())
}

// PluginBusy counts a call that found no free instance.
func (m *Metrics) PluginBusy(name string) { m.plugin(name).busy.Inc() }

// maxCustom bounds the counters of one plugin. The plugin runtime lets no more through (ABI-6); this is the second lock.
const maxCustom = 32

// PluginCustom adds n to a counter of a plugin's own (ABI-6).
func (m *Metrics) PluginCustom(name, counter string, n float64) {
	p := m.plugin(name)
	p.custom.get(counter, maxCustom, Other, func(c string) prometheus.Counter {
		return m.pluginCustom.WithLabelValues(p.name, c)
	}).Add(n)
}

func (m *Metrics) plugin(name string) *plugin {
	return m.plugins.get(name, maxPlugins, Other, func(s string) *plugin {
		return &plugin{name: s, busy: m.pluginBusy.WithLabelValues(s)}
	})
}
