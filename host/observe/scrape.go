package observe

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// scrape reads, when a scraper asks, what others count.
type scrape struct {
	o                                                Options
	connections, memory, state, degraded, storeBytes *prometheus.Desc
}

func newScrape(o Options) *scrape {
	return &scrape{
		o:           o,
		connections: prometheus.NewDesc("weir_connections", "Connections by status.", []string{"provider", "status"}, nil),
		memory: prometheus.NewDesc("weir_plugin_memory_bytes", "Linear memory of a plugin's instances.",
			[]string{"plugin"}, nil),
		state: prometheus.NewDesc("weir_plugin_state",
			"State of a plugin: 0 disabled, 1 loading, 2 active, 3 degraded, 4 draining, 5 quarantined, 6 rejected.", []string{"plugin"}, nil),
		degraded:   prometheus.NewDesc("weir_store_degraded", "1 while the store does not write.", nil, nil),
		storeBytes: prometheus.NewDesc("weir_store_bytes", "Size of the store on the disk.", nil, nil),
	}
}

// Describe sends what Collect may send.
func (s *scrape) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.connections, s.memory, s.state, s.degraded, s.storeBytes} {
		out <- d
	}
}

// Collect sends the present values, each pair of labels once and bounded in number.
func (s *scrape) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if s.o.Connections != nil {
		type pair struct{ provider, status string }
		counts := map[pair]int{}
		names := map[string]bool{}
		s.o.Connections(func(provider, status string, n int) {
			if !names[provider] && len(names) >= maxProviders {
				provider = Other
			}
			names[provider] = true
			counts[pair{provider, status}] += n
		})
		for k, n := range counts {
			gauge(s.connections, float64(n), k.provider, k.status)
		}
	}
	if s.o.Plugins != nil {
		seen := map[string]bool{}
		s.o.Plugins(func(p PluginGauge) {
			if seen[p.Name] || len(seen) >= maxPlugins {
				return
			}
			seen[p.Name] = true
			gauge(s.memory, float64(p.MemoryBytes), p.Name)
			gauge(s.state, stateNumber(p.State), p.Name)
		})
	}
	if s.o.Store != nil {
		degraded, bytes := s.o.Store()
		one := 0.0
		if degraded {
			one = 1
		}
		gauge(s.degraded, one)
		gauge(s.storeBytes, float64(bytes))
	}
}

// stateNumber orders the states of ABI-7.
func stateNumber(state string) float64 {
	states := []string{"disabled", "loading", "active", "degraded", "draining", "quarantined", "rejected"}
	return float64(max(slices.Index(states, state), 0))
}
