package manage

import (
	"net/http"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
)

type statusAnswer struct {
	Version   string           `json:"version"`
	UptimeMs  int64            `json:"uptimeMs"`
	Address   string           `json:"address"`
	Demo      bool             `json:"demo"`
	Config    configStatus     `json:"config"`
	Store     storeStatus      `json:"store"`
	Providers []providerStatus `json:"providers"`
	Queues    []struct{}       `json:"queues"`
	Plugins   pluginStatus     `json:"plugins"`
	Requests  requestStatus    `json:"requests"`
}

type configStatus struct {
	File     *string `json:"file"`
	LoadedAt *string `json:"loadedAt"`
	Fault    *string `json:"fault"`
}

type storeStatus struct {
	Kind  string  `json:"kind"`
	State string  `json:"state"`
	Fault *string `json:"fault"`
	Bytes int64   `json:"bytes"`
}

type providerStatus struct {
	ID          string           `json:"id"`
	Breaker     *string          `json:"breaker"`
	Connections connectionCounts `json:"connections"`
	Lockouts    int              `json:"lockouts"`
	EarliestEnd *string          `json:"earliestEnd"`
}

type connectionCounts struct {
	Total    int `json:"total"`
	Usable   int `json:"usable"`
	Cooling  int `json:"cooling"`
	Terminal int `json:"terminal"`
}

type pluginStatus struct {
	Active      int              `json:"active"`
	Shadow      int              `json:"shadow"`
	Quarantined int              `json:"quarantined"`
	Rejected    []rejectedPlugin `json:"rejected"`
}

type rejectedPlugin struct {
	Name   string `json:"name"`
	Step   string `json:"step"`
	Reason string `json:"reason"`
}

type requestStatus struct {
	LastMinute       int    `json:"lastMinute"`
	FailedLastMinute int    `json:"failedLastMinute"`
	P50Ms            *int64 `json:"p50Ms"`
}

// getStatus answers what weir status prints (OBJ-24). A breaker that never counted a failure is null; there are no queues yet.
func getStatus(s *Server, c *call) (any, error) {
	f := s.ports.Facts()
	h := s.ports.StoreHealth()
	a := statusAnswer{
		Version: f.Version, UptimeMs: c.now.Sub(f.Started).Milliseconds(), Address: f.Address, Demo: f.Demo,
		Config:    configStatus{orNull(f.ConfigFile), stamp(f.ConfigLoaded), orNull(f.ConfigFault)},
		Store:     storeStatus{h.Kind, h.State, orNull(h.Fault), h.Bytes},
		Providers: make([]providerStatus, 0, len(c.catalog.Providers)),
		Queues:    []struct{}{}, Plugins: s.pluginStatus(),
	}
	now := s.look(c)
	for _, p := range c.catalog.Providers {
		a.Providers = append(a.Providers, s.providerStatus(p, now, c.now))
	}
	total, failed, p50 := s.ports.Recent(c.now)
	a.Requests = requestStatus{LastMinute: total, FailedLastMinute: failed}
	if total > 0 {
		ms := p50.Milliseconds()
		a.Requests.P50Ms = &ms
	}
	return a, nil
}

// providerStatus is one line of the status: the earliest end is that of a cooldown, a lockout or an open breaker.
func (s *Server) providerStatus(p *catalog.Provider, at *picture, now time.Time) providerStatus {
	counts, end := s.counts(p, now)
	v := providerStatus{ID: p.ID, Connections: counts}
	sooner := func(t time.Time) {
		if end.IsZero() || t.Before(end) {
			end = t
		}
	}
	for _, c := range p.All {
		for _, l := range at.lockouts[c.ID] {
			v.Lockouts++
			sooner(l.Until)
		}
	}
	if b, ok := at.breakers[p.ID]; ok {
		v.Breaker = orNull(b.State.String())
		if b.State == breaker.Open {
			sooner(now.Add(time.Duration(b.RetryAfterMs) * time.Millisecond))
		}
	}
	v.EarliestEnd = stamp(end)
	return v
}

// counts sorts a provider's connections by health, and returns the first end of a cooldown. Usable are active ones that
// neither cool nor have ended.
func (s *Server) counts(p *catalog.Provider, now time.Time) (n connectionCounts, earliest time.Time) {
	for _, c := range p.All {
		n.Total++
		h := s.ports.States.Health(c.ID, now)
		switch h.Status {
		case account.IsTerminal:
			n.Terminal++
			continue
		case account.IsCoolingDown:
			n.Cooling++
			if h.RateLimitedUntil == nil {
				continue
			}
			end, err := time.Parse(time.RFC3339, *h.RateLimitedUntil)
			if err == nil && (earliest.IsZero() || end.Before(earliest)) {
				earliest = end
			}
			continue
		case account.IsHealthy, account.IsUnavailable:
		}
		if c.Active {
			n.Usable++
		}
	}
	return n, earliest
}

// healthz answers as soon as the process does (OBS-1).
func healthz(*Server, *call) (any, error) { return okAnswer{true}, nil }

type okAnswer struct {
	OK bool `json:"ok"`
}

type readiness struct {
	Ready       bool   `json:"ready"`
	Store       string `json:"store"`
	Plugins     string `json:"plugins"`
	Connections string `json:"connections"`
}

// readyz says whether requests can be served, and what is missing (OBS-1). A degraded store is no hindrance: inference
// goes on (DATA-5).
func readyz(s *Server, c *call) (any, error) {
	a := readiness{Store: s.ports.StoreHealth().State, Plugins: "loaded", Connections: "none is usable"}
	if !s.ports.Facts().PluginsLoaded {
		a.Plugins = "loading"
	}
	for _, p := range c.catalog.Providers {
		if n, _ := s.counts(p, c.now); n.Usable > 0 {
			a.Connections = "usable"
			break
		}
	}
	open := a.Store == "ok" || a.Store == "degraded"
	a.Ready = open && a.Plugins == "loaded" && a.Connections == "usable"
	if !a.Ready {
		writeJSON(c.w, http.StatusServiceUnavailable, a)
		return answered{}, nil
	}
	return a, nil
}

type shortHealth struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	Uptime  int64  `json:"uptime"` // seconds
}

type breakerCounts struct {
	Open     int `json:"open"`
	HalfOpen int `json:"halfOpen"`
	Degraded int `json:"degraded"`
	Closed   int `json:"closed"`
	Total    int `json:"total"`
}

type fullHealth struct {
	shortHealth
	Timestamp         *string                     `json:"timestamp"`
	ActiveConnections int                         `json:"activeConnections"`
	CircuitBreakers   breakerCounts               `json:"circuitBreakers"`
	ProviderBreakers  []healthBreaker             `json:"providerBreakers"`
	ProviderHealth    map[string]connectionCounts `json:"providerHealth"`
	ConnectionHealth  map[string]account.Health   `json:"connectionHealth"`
	RateLimitStatus   map[string]struct{}         `json:"rateLimitStatus"`
	LearnedLimits     map[string]struct{}         `json:"learnedLimits"`
	Lockouts          []modelCooldown             `json:"lockouts"`
	Store             storeStatus                 `json:"store"`
}

type healthBreaker struct {
	Provider     string  `json:"provider"`
	State        string  `json:"state"`
	FailureCount int     `json:"failureCount"`
	LastFailure  *string `json:"lastFailure"`
	RetryAfterMs int64   `json:"retryAfterMs"`
}

// monitoringHealth is the full picture for those who may see it, and three words for everybody else (API-60).
func monitoringHealth(s *Server, c *call) (any, error) {
	f := s.ports.Facts()
	h := s.ports.StoreHealth()
	short := shortHealth{"healthy", f.Version, int64(c.now.Sub(f.Started) / time.Second)}
	if h.State != "ok" {
		short.Status = "degraded"
	}
	if s.gate.admit(c.r, read) != nil {
		return short, nil
	}
	a := fullHealth{
		shortHealth: short, Timestamp: stamp(c.now), ProviderBreakers: []healthBreaker{},
		ProviderHealth: map[string]connectionCounts{}, ConnectionHealth: map[string]account.Health{},
		RateLimitStatus: map[string]struct{}{}, LearnedLimits: map[string]struct{}{}, Lockouts: []modelCooldown{},
		Store: storeStatus{h.Kind, h.State, orNull(h.Fault), h.Bytes},
	}
	at := s.look(c)
	a.CircuitBreakers = at.countBreakers()
	for _, name := range at.providers() {
		b := at.breakers[name]
		a.ProviderBreakers = append(a.ProviderBreakers, healthBreaker{b.Name, b.State.String(), b.FailureCount, b.LastFailureTime, b.RetryAfterMs})
	}
	for _, p := range c.catalog.Providers {
		if len(p.All) == 0 {
			continue
		}
		for _, one := range p.All {
			for _, l := range at.lockouts[one.ID] {
				a.Lockouts = append(a.Lockouts, showLockout(c.catalog, &l))
			}
		}
		n, _ := s.counts(p, c.now)
		a.ProviderHealth[p.ID] = n
		a.ActiveConnections += n.Usable
		for _, x := range p.All {
			a.ConnectionHealth[x.ID] = s.ports.States.Health(x.ID, c.now)
		}
	}
	return a, nil
}

// scrapeMetrics answers a scrape.
func scrapeMetrics(s *Server, c *call) (any, error) {
	s.ports.Metrics.ServeHTTP(c.w, c.r)
	return answered{}, nil
}
