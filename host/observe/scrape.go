package observe

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// scrape reads, when a scraper asks, what others count.
type scrape struct {
	o                                                Options
	connections, memory, state, degraded, storeBytes *prometheus.Desc
	breakers, lockouts                               *prometheus.Desc
}

func newScrape(o Options) *scrape {
	return &scrape{
		o:           o,
		connections: prometheus.NewDesc("weir_connections", "Connections by status.", []string{"provider", "status"}, nil),
		breakers: prometheus.NewDesc("weir_breaker_state", "Breaker of a provider: 0 closed, 1 degraded, 2 half-open, 3 open.",
			[]string{"provider"}, nil),
		lockouts: prometheus.NewDesc("weir_lockouts", "Models that are locked out on a connection.", []string{"provider"}, nil),
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
	for _, d := range []*prometheus.Desc{s.connections, s.breakers, s.lockouts, s.memory, s.state, s.degraded, s.storeBytes} {
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
	if s.o.Breakers != nil { // the worst of those beyond the bound
		for provider, state := range bounded(s.o.Breakers, func(a, b int) int { return max(a, b) }) {
			gauge(s.breakers, float64(state), provider)
		}
	}
	if s.o.Lockouts != nil {
		for provider, n := range bounded(s.o.Lockouts, func(a, b int) int { return a + b }) {
			gauge(s.lockouts, float64(n), provider)
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

// bounded reads one number for each provider; those beyond the bound are put together under other.
func bounded(read func(yield func(provider string, n int)), join func(a, b int) int) map[string]int {
	out := map[string]int{}
	read(func(provider string, n int) {
		if _, known := out[provider]; !known && len(out) >= maxProviders {
			provider = Other
		}
		if before, known := out[provider]; known {
			n = join(before, n)
		}
		out[provider] = n
	})
	return out
}

// stateNumber orders the states of ABI-7.
func stateNumber(state string) float64 {
	states := []string{"disabled", "loading", "active", "degraded", "draining", "quarantined", "rejected"}
	return float64(max(slices.Index(states, state), 0))
}
