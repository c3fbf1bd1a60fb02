package manage

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/settings"
)

func getResilience(_ *Server, c *call) (any, error) { return showSettings(c, settings.Resilience), nil }

func getSettings(_ *Server, c *call) (any, error) { return showSettings(c, settings.General), nil }

// showSettings answers one document of settings; with explain=true each value says where it came from (OV-25).
func showSettings(c *call, which settings.Doc) json.RawMessage {
	if c.r.URL.Query().Get("explain") == "true" {
		return settings.Explain(c.catalog.Settings, c.catalog.SettingSources, which)
	}
	return settings.Document(c.catalog.Settings, which)
}

// patchResilience merges, stores and applies at once, and answers the sections with ok (API-11).
func patchResilience(s *Server, c *call) (any, error) {
	if err := s.patchSettings(c, settings.Resilience); err != nil {
		return nil, err
	}
	var sections map[string]json.RawMessage
	if err := json.Unmarshal(settings.Document(s.ports.Catalog().Settings, settings.Resilience), &sections); err != nil {
		return nil, err
	}
	sections["ok"] = json.RawMessage("true")
	return sections, nil
}

func patchGeneral(s *Server, c *call) (any, error) {
	if err := s.patchSettings(c, settings.General); err != nil {
		return nil, err
	}
	return json.RawMessage(settings.Document(s.ports.Catalog().Settings, settings.General)), nil
}

func (s *Server) patchSettings(c *call, which settings.Doc) error {
	n, err := c.body()
	if err != nil {
		return err
	}
	if which == settings.General {
		if n, err = guardSignals(n); err != nil {
			return err
		}
	}
	stored, err := s.stored(c)
	if err != nil {
		return err
	}
	next, faults, err := settings.Patch(c.catalog.Settings, stored.Settings, n, which, c.catalog.FileSettings)
	if errors.Is(err, settings.ErrManagedByFile) {
		p := faulty(faults)
		p.Status, p.Code = http.StatusConflict, "managed_by_file"
		p.Message = "A field belongs to the configuration file; change it there. Nothing of the patch was applied."
		return p
	}
	if err != nil {
		return err
	}
	if len(faults) == 1 && faults[0].Path == "body" { // nothing to update (API-11)
		return problem(http.StatusBadRequest, "%s", faults[0].Message)
	}
	if len(faults) > 0 {
		return faulty(faults)
	}
	return s.apply(c, change{settings: next})
}

// explainConnection shows the values that a connection may override, with their source (OV-25).
func explainConnection(c *call, one *catalog.Connection, shown Connection) (any, error) {
	n, faults := document.ParseJSON("", settings.Explain(c.catalog.Settings, c.catalog.SettingSources, settings.Resilience))
	if len(faults) > 0 {
		return nil, faults[0]
	}
	type value struct {
		Value  any    `json:"value"`
		Source string `json:"source"`
	}
	own := map[string]value{}
	limits, err := json.Marshal(shown.RateLimitOverrides)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(limits, &fields); err != nil {
		return nil, err
	}
	fields["maxConcurrent"] = nil
	if one.MaxConcurrent != nil {
		fields["maxConcurrent"] = *one.MaxConcurrent
	}
	for name, v := range fields {
		source := "default"
		if v != nil {
			source = "connection"
		}
		own[name] = value{v, source}
	}
	delay, source := rateLimitDelay(c.catalog, one)
	own["rateLimitCooldownSeconds"] = value{delay, string(source)}
	return explainedConnection{shown, json.RawMessage(n.JSON()), own}, nil
}

// rateLimitDelay is how long a connection rests after a rate limit that names no time, in seconds, and who said so; null: the
// ladder decides (COOL-20, OV-24).
func rateLimitDelay(s *catalog.Snapshot, c *catalog.Connection) (seconds any, from settings.Source) {
	v := s.Settings
	switch override := v.ProviderQuotaOverrides[c.Provider].RateLimitCooldown; {
	case c.RateLimitReset > 0:
		return int64(c.RateLimitReset / time.Second), "connection"
	case override > 0:
		return int64(override / time.Second), s.SettingSources["providerQuotaOverrides"]
	case v.RotationRateLimitReset > 0:
		return int64(v.RotationRateLimitReset / time.Second), settings.FromEnv
	}
	return nil, settings.FromDefault
}

type explainedConnection struct {
	Connection Connection      `json:"connection"`
	Settings   json.RawMessage `json:"settings"`
	Explain    any             `json:"explain"`
}
