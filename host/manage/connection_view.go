package manage

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/quota"
	"github.com/weirgate/weir/host/resilience/account"
)

// Connection is an account as the API shows it (OBJ-8). Nothing in it is a secret (OBJ-6, API-3).
type Connection struct {
	ID                    string           `json:"id"`
	Provider              string           `json:"provider"`
	Name                  string           `json:"name"`
	AuthType              string           `json:"authType"`
	Priority              int              `json:"priority"`
	IsActive              bool             `json:"isActive"`
	BaseURL               *string          `json:"baseUrl"`
	AllowPrivate          bool             `json:"allowPrivate"`
	Models                []string         `json:"models"`
	ExcludedModels        []string         `json:"excludedModels"`
	DiscoveredModels      discoveredModels `json:"discoveredModels"`
	MaxConcurrent         *int             `json:"maxConcurrent"`
	ConcurrencyGroup      *string          `json:"concurrencyGroup"`
	RateLimitProtection   bool             `json:"rateLimitProtection"`
	RateLimitOverrides    rateLimits       `json:"rateLimitOverrides"`
	QuotaWindowThresholds json.RawMessage  `json:"quotaWindowThresholds"`
	ProviderDataKeys      []string         `json:"providerDataKeys"`
	Credentials           credentials      `json:"credentials"`
	Health                account.Health   `json:"health"`
	Quota                 *quota.Snapshot  `json:"quota"` // null: nothing was learned yet (OBJ-20)
	LastTested            *string          `json:"lastTested"`
	meta
}

// meta is what every object shows of its storage (OBJ-4).
type meta struct {
	ManagedBy string  `json:"managedBy"`
	Revision  uint64  `json:"revision"`
	CreatedAt *string `json:"createdAt"`
	UpdatedAt *string `json:"updatedAt"`
}

func shownMeta(m catalog.Meta) meta {
	return meta{string(m.ManagedBy), m.Revision, stamp(m.Created), stamp(m.Updated)}
}

type discoveredModels struct {
	At    *string `json:"at"`
	Count int     `json:"count"`
}

// rateLimits shows every field, null where nothing is overridden.
type rateLimits struct {
	RPM                *int64           `json:"rpm"`
	MinTime            *int64           `json:"minTime"`
	MaxConcurrent      *int64           `json:"maxConcurrent"`
	MaxWaitMs          *int64           `json:"maxWaitMs"`
	ExecutionMaxWaitMs *int64           `json:"executionMaxWaitMs"`
	TPM                *int64           `json:"tpm"`
	TPD                *int64           `json:"tpd"`
	ModelConcurrency   map[string]int64 `json:"modelConcurrency"`
}

type credentials struct {
	Set  []string `json:"set"`
	Hint *string  `json:"hint"`
}

type connectionAnswer struct {
	Connection Connection `json:"connection"`
}

type connectionList struct {
	Connections []Connection `json:"connections"`
	Total       int          `json:"total"`
}

func (s *Server) showConnection(c *catalog.Connection, now time.Time) Connection {
	v := Connection{
		ID: c.ID, Provider: c.Provider, Name: c.Name, AuthType: string(c.AuthType), Priority: c.Priority, IsActive: c.Active,
		BaseURL: orNull(c.BaseURL), AllowPrivate: c.AllowPrivate, Models: listOf(c.Models), ExcludedModels: listOf(c.ExcludedModels),
		MaxConcurrent: c.MaxConcurrent, ConcurrencyGroup: c.ConcurrencyGroup, RateLimitProtection: c.RateProtection,
		QuotaWindowThresholds: json.RawMessage("null"), ProviderDataKeys: sortedKeys(c.Data),
		Credentials: credentials{Set: []string{}}, Health: s.ports.States.Health(c.ID, now), meta: shownMeta(c.Meta),
	}
	if len(c.RateLimitOverrides) > 0 {
		_ = json.Unmarshal(c.RateLimitOverrides, &v.RateLimitOverrides) // validated when it was built
	}
	if len(c.QuotaThresholds) > 0 {
		v.QuotaWindowThresholds = c.QuotaThresholds
	}
	for name, secret := range c.Secrets {
		if secret.Set() {
			v.Credentials.Set = append(v.Credentials.Set, name)
		}
	}
	slices.Sort(v.Credentials.Set)
	if key := c.Secrets["api_key"]; key.Set() {
		v.Credentials.Hint = orNull(catalog.Hint(key.Reveal()))
	}
	if q, known := s.ports.Quota(c.ID); known {
		v.Quota = &q
	}
	if f := s.ports.Tested; f != nil {
		at, models := f(c.ID)
		v.LastTested = stamp(at)
		v.DiscoveredModels = discoveredModels{v.LastTested, models}
		if models == 0 {
			v.DiscoveredModels.At = nil
		}
	}
	return v
}

func listOf(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func sortedKeys[V any](m map[string]V) []string {
	return listOf(slices.Sorted(maps.Keys(m)))
}
