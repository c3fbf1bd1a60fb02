package breaker

import (
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/store"
)

// Status is the status object of a breaker (BRK-43). Durations are in milliseconds, times RFC 3339 in UTC.
type Status struct {
	Name                  string            `json:"name"`
	State                 Phase             `json:"state"`
	FailureCount          int               `json:"failureCount"`
	LastFailureTime       *string           `json:"lastFailureTime"`
	RetryAfterMs          int64             `json:"retryAfterMs"`
	LastFailureKind       *string           `json:"lastFailureKind"`
	OpenCycleCount        int               `json:"openCycleCount"`
	KindFailureCounts     map[string]int    `json:"kindFailureCounts"`
	DegradationThreshold  int               `json:"degradationThreshold"`
	EffectiveResetTimeout int64             `json:"effectiveResetTimeout"`
	TransitionHistory     []TransitionShown `json:"transitionHistory"`
}

// TransitionShown is one entry of the history for people (BRK-33).
type TransitionShown struct {
	From   Phase  `json:"from"`
	To     Phase  `json:"to"`
	At     string `json:"at"`
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

// Status shows the breaker of a provider, by id or alias, as it reads now (BRK-26). One that never counted is closed.
func (g *Gate) Status(at resilience.Moment, provider string) Status {
	id := canonical(at, provider)
	c := g.cells.Get(id)
	if c == nil {
		return c.show(at, id, State{})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state.Load()
	if s == nil {
		s = &State{}
	}
	return c.show(at, id, *s)
}

// All shows every breaker there is, by provider id.
func (g *Gate) All(at resilience.Moment) []Status {
	out := []Status{}
	for _, id := range g.ids(at) {
		out = append(out, g.Status(at, id))
	}
	return out
}

// ids are the providers with a breaker at this moment, sorted; an idle closed one is gone (BRK-42).
func (g *Gate) ids(at resilience.Moment) []string {
	var out []string
	for id, c := range g.cells.All() {
		if s := c.state.Load(); s != nil && !s.idle(at, id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// show is called with mu held, or for no cell.
func (c *cell) show(at resilience.Moment, id string, stored State) Status {
	now := at.Now.UnixMilli()
	pr := profileOf(at, stored.provider(at, id))
	s := stored.at(&pr, now)
	out := Status{
		Name: id, State: s.Phase, FailureCount: s.Count, LastFailureTime: shownTime(s.FailedAt), OpenCycleCount: s.Cycles,
		KindFailureCounts: map[string]int{}, DegradationThreshold: pr.degrades, EffectiveResetTimeout: pr.hold(&s).Milliseconds(),
		TransitionHistory: []TransitionShown{},
	}
	for k := RateLimit; k <= Transient; k++ {
		if n := *s.Kinds.of(k); n > 0 {
			out.KindFailureCounts[k.String()] = n
		}
	}
	if s.FailedKind != NoKind {
		kind := s.FailedKind.String()
		out.LastFailureKind = &kind
	}
	switch {
	case s.Phase == Open:
		out.RetryAfterMs = max(s.end(&pr)-now, 0)
	case s.Phase == HalfOpen && c.probing(now):
		out.RetryAfterMs = c.until - now
	}
	for _, h := range s.History {
		out.TransitionHistory = append(out.TransitionHistory, TransitionShown{
			From: h.From, To: h.To, At: *shownTime(max(h.At, 1)), Count: h.Count, Reason: h.Reason,
		})
	}
	return out
}

func shownTime(ms int64) *string {
	if ms == 0 {
		return nil
	}
	text := moment(ms).Format("2006-01-02T15:04:05.000Z")
	return &text
}

// canonical is the id of a provider, which may be named by an alias (BRK-1).
func canonical(at resilience.Moment, name string) string {
	if p := at.Catalog.Provider(name); p != nil {
		return p.ID
	}
	return name
}

// provider is the catalogue's entry, or what is known of one that is gone.
func (s *State) provider(at resilience.Moment, id string) *catalog.Provider {
	if p := at.Catalog.Provider(id); p != nil {
		return p
	}
	return &catalog.Provider{ID: id, Category: s.Category, Compatible: s.Indirect}
}

// IsOpen says whether the breaker of p is open at this moment; half-open is not (PCD-4, LOCK-17).
func (g *Gate) IsOpen(at resilience.Moment, p *catalog.Provider) bool {
	c := g.cells.Get(p.ID)
	if c == nil {
		return false
	}
	s := c.state.Load()
	if s == nil || s.Phase != Open {
		return false
	}
	pr := profileOf(at, p)
	return s.at(&pr, at.Now.UnixMilli()).Phase == Open
}

// Reset closes the breakers of the providers named, by id or alias, or of all when none is named, and returns how many
// there were. What is under way changes none of them any more.
func (g *Gate) Reset(at resilience.Moment, providers ...string) (n int, changed []store.Event) {
	now := at.Now.UnixMilli()
	ids := g.ids(at)
	if len(providers) > 0 {
		known := ids
		ids = nil
		for _, name := range providers {
			if id := canonical(at, name); slices.Contains(known, id) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	for _, id := range ids {
		n++
		changed = append(changed, g.change(at, id, func(s State) State {
			pr := profileOf(at, s.provider(at, id))
			if s = s.at(&pr, now); s.resting() {
				return s
			}
			return s.reset(now)
		})...)
	}
	return n, changed
}

// ResetAll is Reset of every breaker.
func (g *Gate) ResetAll(at resilience.Moment) (n int, changed []store.Event) { return g.Reset(at) }

// Passed records that a connection of the provider passed its test (BRK-29).
func (g *Gate) Passed(at resilience.Moment, name string) []store.Event {
	id := canonical(at, name)
	c := g.cells.Get(id)
	if c == nil {
		return nil
	}
	if s := c.state.Load(); s == nil || s.resting() || s.Phase == Open {
		return nil
	}
	return g.change(at, id, func(s State) State {
		pr := profileOf(at, s.provider(at, id))
		if s.resting() || s.Phase == Open {
			return s
		}
		return s.passed(&pr, at.Now.UnixMilli())
	})
}

// HintsChanged says whether the settings of BRK-23 differ, so that all breakers are to be reset.
func HintsChanged(before, after *settings.Values) bool {
	x, y := before.ConnectionCooldown, after.ConnectionCooldown
	return differ(x.OAuth.Use429BreakerHints, y.OAuth.Use429BreakerHints) ||
		differ(x.APIKey.Use429BreakerHints, y.APIKey.Use429BreakerHints) ||
		differ(x.Local.Use429BreakerHints, y.Local.Use429BreakerHints)
}

func differ(x, y *bool) bool {
	if x == nil || y == nil {
		return x != y
	}
	return *x != *y
}
