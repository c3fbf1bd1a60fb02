package manage

import (
	"cmp"
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/store"
)

type protectBody struct {
	ConnectionID string `json:"connectionId"`
	Enabled      *bool  `json:"enabled"`
}

type protectDone struct {
	Success      bool   `json:"success"`
	ConnectionID string `json:"connectionId"`
	Enabled      bool   `json:"enabled"`
}

// protect sets the stored flag of one connection (API-70). Nothing enforces it before there is a queue.
func protect(s *Server, c *call) (any, error) {
	var b protectBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	var missing []Detail
	if b.ConnectionID == "" {
		missing = append(missing, Detail{"connectionId", "is required"})
	}
	if b.Enabled == nil {
		missing = append(missing, Detail{"enabled", "is required"})
	}
	if len(missing) > 0 {
		return nil, invalid(missing...)
	}
	c.id = b.ConnectionID
	done := protectDone{true, c.id, *b.Enabled}
	if one := c.catalog.Connection(c.id); one != nil && one.Meta.ManagedBy != catalog.ByAPI {
		return done, s.protectForeign(c, one, *b.Enabled)
	}
	entry, err := s.storedConnection(c)
	if err != nil {
		return nil, err
	}
	if now := entry.Object.RateLimitProtection; now != nil && *now == *b.Enabled {
		return done, nil
	}
	expect, err := c.fresh("connection", c.id, entry.Meta.Revision)
	if err != nil {
		return nil, err
	}
	entry.Object.RateLimitProtection = b.Enabled
	if _, err := s.saveConnection(c, *entry, expect); err != nil {
		return nil, err
	}
	return done, nil
}

// protectForeign sets the flag of a connection that the file or the environment manages. It is state, so it is kept beside it (OBJ-5).
func (s *Server) protectForeign(c *call, one *catalog.Connection, on bool) error {
	if one.RateProtection == on {
		return nil
	}
	data, err := catalog.EncodeProtection(on)
	if err != nil {
		return err
	}
	_, err = s.ports.Change(c.ctx(), store.Write{Kind: catalog.DocProtection, ID: one.ID, Data: data, At: c.now.UnixMilli()})
	return err
}

type rateLimitList struct {
	Connections []protectedConnection `json:"connections"`
	Overview    protectionOverview    `json:"overview"`
	Lockouts    []modelCooldown       `json:"lockouts"`
}

type protectedConnection struct {
	ConnectionID        string `json:"connectionId"`
	Provider            string `json:"provider"`
	Name                string `json:"name"`
	RateLimitProtection bool   `json:"rateLimitProtection"`
	Enabled             bool   `json:"enabled"`
	Active              bool   `json:"active"` // a limiter works on it; none does before there is a queue
	Queued              int    `json:"queued"`
	Running             int    `json:"running"`
}

type protectionOverview struct {
	Connections int `json:"connections"`
	Protected   int `json:"protected"`
	Active      int `json:"active"`
	Lockouts    int `json:"lockouts"`
}

// listRateLimits shows the flag of each connection (API-71). Without a queue nothing is queued or running in one.
func listRateLimits(s *Server, c *call) (any, error) {
	a := rateLimitList{Connections: []protectedConnection{}, Lockouts: []modelCooldown{}}
	at := s.look(c)
	all := slices.SortedFunc(slices.Values(connectionsOf(c.catalog, "")), func(a, b *catalog.Connection) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID, b.ID))
	})
	for _, one := range all {
		a.Connections = append(a.Connections, protectedConnection{
			ConnectionID: one.ID, Provider: one.Provider, Name: one.Name, RateLimitProtection: one.RateProtection, Enabled: one.RateProtection,
		})
		if one.RateProtection {
			a.Overview.Protected++
		}
		for _, l := range at.lockouts[one.ID] {
			a.Lockouts = append(a.Lockouts, showLockout(c.catalog, &l))
		}
	}
	a.Overview.Connections, a.Overview.Lockouts = len(a.Connections), len(a.Lockouts)
	return a, nil
}
