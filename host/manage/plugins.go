package manage

import (
	"encoding/json"
	"fmt"

	"github.com/weirgate/weir/host/plugin"
)

// shownPlugin is a plugin as the API shows it (PLG-15): the runtime's status, times as OBJ-1 wants them.
type shownPlugin struct {
	plugin.Status
	Fault      *shownFault      `json:"fault"`
	Quarantine *shownQuarantine `json:"quarantine"`
	Violation  *shownViolation  `json:"violation"`
	LoadedAt   *string          `json:"loadedAt"`
	Shadow     *struct{}        `json:"shadow"` // null until there are comparisons
	Manifest   json.RawMessage  `json:"manifest,omitempty"`
}

type shownFault struct {
	*plugin.Fault
	At *string `json:"at"`
}

type shownQuarantine struct {
	*plugin.Quarantine
	Until *string `json:"until"`
}

type shownViolation struct {
	*plugin.Violation
	At *string `json:"at"`
}

func showPlugin(one plugin.Status) shownPlugin {
	v := shownPlugin{Status: one, LoadedAt: stamp(one.LoadedAt)}
	if f := one.Fault; f != nil {
		v.Fault = &shownFault{f, stamp(f.At)}
	}
	if q := one.Quarantine; q != nil {
		v.Quarantine = &shownQuarantine{q, stamp(q.Until)}
	}
	if x := one.Violation; x != nil {
		v.Violation = &shownViolation{x, stamp(x.At)}
	}
	return v
}

type pluginList struct {
	Plugins []shownPlugin `json:"plugins"`
	Total   int           `json:"total"`
}

func listPlugins(s *Server, c *call) (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	all := s.ports.Plugins()
	a := pluginList{Plugins: []shownPlugin{}, Total: len(all)}
	for _, one := range cut(all, p) {
		a.Plugins = append(a.Plugins, showPlugin(one))
	}
	return a, nil
}

// getPlugin shows the plugin of that name with its manifest: of several the one that is active (PLG-16).
func getPlugin(s *Server, c *call) (any, error) {
	var found *plugin.Status
	for _, one := range s.ports.Plugins() {
		if one.Name == c.id && (found == nil || one.State == plugin.StateActive) {
			found = &one
		}
	}
	if found == nil {
		return nil, notFound("plugin", c.id)
	}
	shown := showPlugin(*found)
	if json.Valid(found.Manifest) {
		shown.Manifest = json.RawMessage(found.Manifest)
	}
	return shown, nil
}

// unquarantine lifts a quarantine by hand and shows the plugin as it is then (PLG-5). One that is not in quarantine is 409.
func unquarantine(s *Server, c *call) (any, error) {
	shown, err := getPlugin(s, c)
	if err != nil {
		return nil, err
	}
	if !s.ports.Unquarantine(c.id) {
		return nil, &Problem{Status: 409, Type: "invalid_request_error", Code: "not_quarantined",
			Message: fmt.Sprintf("The plugin %s is not in quarantine, so there is nothing to lift.", c.id)}
	}
	if shown, err = getPlugin(s, c); err != nil {
		return nil, err
	}
	return shown, nil
}

func (s *Server) pluginStatus() pluginStatus {
	a := pluginStatus{Rejected: []rejectedPlugin{}}
	for _, one := range s.ports.Plugins() {
		switch {
		case one.State == "quarantined":
			a.Quarantined++
		case one.State == plugin.StateActive && one.Mode == "shadow":
			a.Shadow++
		case one.State == plugin.StateActive:
			a.Active++
		}
		if one.Fault != nil { // also while an older version is active
			a.Rejected = append(a.Rejected, rejected(one))
		}
	}
	return a
}

// rejected says where in the file the fault is, as far as that is known. A file that cannot be read as a plugin has no name.
func rejected(one plugin.Status) rejectedPlugin {
	f := one.Fault
	r := rejectedPlugin{one.Name, f.Step, f.Message}
	if r.Name == "" {
		r.Name = f.File
	}
	switch {
	case f.Line > 0:
		r.Reason = fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
	case f.File != "":
		r.Reason = f.File + ": " + f.Message
	}
	return r
}
