package manage

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/lockout"
)

// maxListed is how many connections one view shows (API-40).
const maxListed = 1000

type resetBody struct {
	Provider *string  `json:"provider"`
	Include  []string `json:"include"`
}

type resetDone struct {
	OK         bool   `json:"ok"`
	ResetCount int    `json:"resetCount"`
	Message    string `json:"message"`
}

// resetBreakers closes all breakers, or that of one provider, and on request also what stands beside them; terminal states
// are not its business (API-20, API-21).
func resetBreakers(s *Server, c *call) (any, error) {
	var b resetBody
	if err := c.optional(&b); err != nil {
		return nil, err
	}
	for i, word := range b.Include {
		if !slices.Contains([]string{"providerCooldown", "lockouts", "cooldowns"}, word) {
			return nil, invalid(Detail{document.At("include", i), "must be one of providerCooldown, lockouts, cooldowns"})
		}
	}
	provider := ""
	if b.Provider != nil {
		p, known := c.provider(*b.Provider)
		if p == "" {
			return resetDone{true, 0, "Reset 0 circuit breaker(s)"}, nil
		}
		if !known { // it may have been deleted, and its breaker be open still
			n := s.ports.States.ResetBreakers(p)
			return resetDone{true, n, fmt.Sprintf("Reset %d circuit breaker(s)", n)}, nil
		}
		provider = p
	}
	n := s.ports.States.ResetBreakers(provider)
	if slices.Contains(b.Include, "providerCooldown") {
		s.ports.States.ClearWindows(provider)
	}
	if slices.Contains(b.Include, "lockouts") {
		s.ports.States.ClearLockouts(provider, "", "")
	}
	if slices.Contains(b.Include, "cooldowns") {
		for _, one := range connectionsOf(c.catalog, provider) {
			s.ports.States.ClearCooldown(one.ID)
		}
	}
	return resetDone{true, n, fmt.Sprintf("Reset %d circuit breaker(s)", n)}, nil
}

// provider is the canonical id of a provider that somebody names by id or alias.
func (c *call) provider(name string) (id string, known bool) {
	if p := c.catalog.Provider(name); p != nil {
		return p.ID, true
	}
	return name, false
}

// optional reads a body that may be absent.
func (c *call) optional(dst any) error {
	if c.r.ContentLength == 0 {
		return nil
	}
	return c.read(dst)
}

// connectionsOf lists the connections of one provider, or all, in the order of the catalogue.
func connectionsOf(s *catalog.Snapshot, provider string) (all []*catalog.Connection) {
	for _, p := range s.Providers {
		if provider == "" || p.ID == provider {
			all = append(all, p.All...)
		}
	}
	return all
}

type modelCooldowns struct {
	Items []modelCooldown `json:"items"`
}

// listModelCooldowns lists the lockouts, longest first (API-30).
func listModelCooldowns(s *Server, c *call) (any, error) {
	items := []modelCooldown{}
	for _, l := range s.ports.States.Lockouts(c.now) {
		items = append(items, showLockout(c.catalog, &l))
	}
	slices.SortStableFunc(items, func(a, b modelCooldown) int {
		return cmp.Or(cmp.Compare(b.RemainingMs, a.RemainingMs), cmp.Compare(a.ConnectionID, b.ConnectionID), cmp.Compare(a.Model, b.Model))
	})
	return modelCooldowns{items}, nil
}

type enableBody struct {
	Provider     string `json:"provider"`
	Connection   string `json:"connection"`
	ConnectionID string `json:"connectionId"` // an alias of connection
	Model        string `json:"model"`
	All          bool   `json:"all"`
}

type enabled struct {
	OK         bool  `json:"ok"`
	Removed    *bool `json:"removed,omitempty"`
	ClearedAll bool  `json:"clearedAll,omitempty"`
}

// enableModel ends the lockouts of one model, or all (API-31, API-32).
func enableModel(s *Server, c *call) (any, error) {
	var b enableBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if b.All {
		s.ports.States.ClearLockouts("", "", "")
		return enabled{OK: true, ClearedAll: true}, nil
	}
	if b.Provider == "" || b.Model == "" {
		return nil, problem(http.StatusBadRequest, "provider and model are required")
	}
	provider, _ := c.provider(b.Provider)
	removed := s.ports.States.ClearLockouts(provider, cmp.Or(b.Connection, b.ConnectionID), b.Model) > 0
	return enabled{OK: true, Removed: &removed}, nil
}

type cooldownView struct {
	ID                  string              `json:"id"`
	Provider            string              `json:"provider"`
	Name                string              `json:"name"`
	AuthType            string              `json:"authType"`
	Priority            int                 `json:"priority"`
	IsActive            bool                `json:"isActive"`
	Status              string              `json:"status"`
	TestStatus          string              `json:"testStatus"`
	RateLimitedUntil    *string             `json:"rateLimitedUntil"`
	CooldownRemainingMs int64               `json:"cooldownRemainingMs"`
	BackoffLevel        int                 `json:"backoffLevel"`
	ErrorCode           *string             `json:"errorCode"`
	LastErrorType       *string             `json:"lastErrorType"`
	LastErrorAt         *string             `json:"lastErrorAt"`
	NextProbeAt         *string             `json:"nextProbeAt"`
	RecheckAt           *string             `json:"recheckAt"`
	Cause               *account.CauseShown `json:"cause"`
	Lockouts            []shownLockout      `json:"lockouts"`
}

type shownLockout struct {
	Model       string `json:"model"`
	Reason      string `json:"reason"`
	RemainingMs int64  `json:"remainingMs"`
}

func (s *Server) showCooldown(c *call, one *catalog.Connection, locks []lockout.Lock) cooldownView {
	h := s.ports.States.Health(one.ID, c.now)
	v := cooldownView{
		ID: one.ID, Provider: one.Provider, Name: one.Name, AuthType: string(one.AuthType), Priority: one.Priority, IsActive: one.Active,
		Status: statusWord(&h, len(locks)), TestStatus: h.TestStatus.String(), RateLimitedUntil: h.RateLimitedUntil, BackoffLevel: h.BackoffLevel,
		ErrorCode: h.ErrorCode, LastErrorType: h.LastErrorType, LastErrorAt: h.LastErrorAt, NextProbeAt: h.NextProbeAt,
		RecheckAt: h.RecheckAt, Cause: h.Cause, Lockouts: []shownLockout{},
	}
	if h.RateLimitedUntil != nil {
		if until, err := time.Parse(time.RFC3339, *h.RateLimitedUntil); err == nil {
			v.CooldownRemainingMs = max(until.Sub(c.now).Milliseconds(), 0)
		}
	}
	for _, l := range locks {
		v.Lockouts = append(v.Lockouts, shownLockout{l.Model, string(l.Reason), l.Remaining.Milliseconds()})
	}
	return v
}

type cooldownList struct {
	Connections []cooldownView `json:"connections"`
	GeneratedAt *string        `json:"generatedAt"`
}

// wantedProvider reads the query's provider, which is optional but not empty (API-40).
func (c *call) wantedProvider() (string, error) {
	q := c.r.URL.Query()
	if !q.Has("provider") {
		return "", nil
	}
	name := q.Get("provider")
	if n := utf8.RuneCountInString(name); n < 1 || n > 128 {
		return "", invalid(Detail{"provider", "must have 1 to 128 characters"})
	}
	id, _ := c.provider(name)
	return id, nil
}

// listCooldowns shows what each connection is out for (API-40, API-44).
func listCooldowns(s *Server, c *call) (any, error) {
	provider, err := c.wantedProvider()
	if err != nil {
		return nil, err
	}
	return cooldownList{s.showCooldowns(c, provider, s.look(c)), stamp(c.now)}, nil
}

func (s *Server) showCooldowns(c *call, provider string, p *picture) []cooldownView {
	all := connectionsOf(c.catalog, provider)
	views := make([]cooldownView, 0, min(len(all), maxListed))
	for _, one := range all[:min(len(all), maxListed)] {
		views = append(views, s.showCooldown(c, one, p.lockouts[one.ID]))
	}
	return views
}

type clearBody struct {
	ConnectionIDs []string `json:"connectionIds"`
	All           bool     `json:"all"`
	Provider      *string  `json:"provider"`
}

type clearDone struct {
	OK              bool     `json:"ok"`
	Cleared         int      `json:"cleared"`
	Unchanged       int      `json:"unchanged"`
	SkippedTerminal int      `json:"skippedTerminal"`
	LockoutsCleared int      `json:"lockoutsCleared"`
	ClearedIDs      []string `json:"clearedIds"`
}

// clearCooldowns ends cooldowns and lockouts of the chosen connections; those in a terminal state stay as they are
// (API-42..API-45). Unknown ids are ignored.
func clearCooldowns(s *Server, c *call) (any, error) {
	n, err := c.body()
	if err != nil {
		return nil, err
	}
	chosen, err := c.chosen(n)
	if err != nil {
		return nil, err
	}
	done := clearDone{OK: true, ClearedIDs: []string{}}
	for _, one := range chosen {
		switch s.ports.States.ClearCooldown(one.ID) {
		case account.SkippedTerminal:
			done.SkippedTerminal++
			continue
		case account.Done:
			done.Cleared++
			done.ClearedIDs = append(done.ClearedIDs, one.ID)
		case account.Unchanged:
			done.Unchanged++
		}
		done.LockoutsCleared += s.ports.States.ClearLockouts(one.Provider, one.ID, "")
	}
	return done, nil
}

// chosen finds the connections that a body names; each of them once.
func (c *call) chosen(n *document.Node) (all []*catalog.Connection, err error) {
	var b clearBody
	if faults := n.Decode(&b); len(faults) > 0 {
		if field := faults[0].Path; n.Member(field) != nil && !slices.Contains([]string{"connectionIds", "all", "provider"}, field) {
			return nil, faulty(faults[:1]) // an unknown field (API-2)
		}
		return nil, neitherForm()
	}
	if b.All {
		provider := ""
		if b.Provider != nil {
			if provider, _ = c.provider(*b.Provider); provider == "" {
				return nil, neitherForm()
			}
		}
		return connectionsOf(c.catalog, provider), nil
	}
	if len(b.ConnectionIDs) < 1 || len(b.ConnectionIDs) > maxListed {
		return nil, neitherForm()
	}
	seen := map[string]bool{}
	for _, id := range b.ConnectionIDs {
		if k := utf8.RuneCountInString(id); k < 1 || k > 128 {
			return nil, neitherForm()
		}
		if one := c.catalog.Connection(id); one != nil && !seen[id] {
			seen[id] = true
			all = append(all, one)
		}
	}
	return all, nil
}

func neitherForm() error {
	return problem(http.StatusBadRequest, "Provide connectionIds or set all to true")
}

type connectionsView struct {
	Connections []cooldownView   `json:"connections"`
	Breakers    []breaker.Status `json:"breakers"`
	Window      viewWindow       `json:"window"`
	Meta        viewMeta         `json:"meta"`
}

type viewWindow struct {
	SinceMs int64 `json:"sinceMs"` // Unix milliseconds, as the others
	UntilMs int64 `json:"untilMs"`
	Now     int64 `json:"now"`
}

type viewMeta struct {
	TotalConnections      int      `json:"totalConnections"`
	CoolingDownCount      int      `json:"coolingDownCount"`
	UnhealthyBreakerCount int      `json:"unhealthyBreakerCount"`
	CountsCapped          bool     `json:"countsCapped"`
	Degraded              []string `json:"degraded"`
}

// viewConnections is the view of all layers beside each other (API-50). The window cuts the history of breakers.
func viewConnections(s *Server, c *call) (any, error) {
	provider, err := c.wantedProvider()
	if err != nil {
		return nil, err
	}
	ms, err := c.number("windowMs", 3_600_000, 0, 86_400_000)
	if err != nil {
		return nil, err
	}
	since := c.now.Add(-time.Duration(ms) * time.Millisecond)
	p := s.look(c)
	v := connectionsView{
		Connections: s.showCooldowns(c, provider, p), Breakers: []breaker.Status{},
		Window: viewWindow{since.UnixMilli(), c.now.UnixMilli(), c.now.UnixMilli()},
		Meta:   viewMeta{TotalConnections: len(connectionsOf(c.catalog, provider)), Degraded: p.degraded},
	}
	v.Meta.CountsCapped = v.Meta.TotalConnections > len(v.Connections)
	for i := range v.Connections {
		if v.Connections[i].Status == string(account.IsCoolingDown) {
			v.Meta.CoolingDownCount++
		}
	}
	for _, name := range p.providers() {
		if provider != "" && name != provider {
			continue
		}
		b := p.breakers[name]
		v.Breakers = append(v.Breakers, within(b, since))
		if b.State != breaker.Closed {
			v.Meta.UnhealthyBreakerCount++
		}
	}
	return v, nil
}
