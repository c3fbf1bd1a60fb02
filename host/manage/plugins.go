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
	Granted    grants           `json:"granted"`
	Manifest   json.RawMessage  `json:"manifest,omitempty"`

	// of one plugin

	Differences []shownDifference `json:"differences,omitempty"` // of its shadow, newest first
	Candidate   *shownPlugin      `json:"candidate,omitempty"`   // the version that runs in shadow beside the active one
	Hidden      []shownPlugin     `json:"hidden,omitempty"`      // of the same name, from places that lose (PLG-16)
}

type shownDifference struct {
	plugin.Difference
	At *string `json:"at"`
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
	v := shownPlugin{Status: one, LoadedAt: stamp(one.LoadedAt), Granted: grantsOf(one.Granted)}
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

// getPlugin shows the plugin that counts under the name, with its manifest, candidate and differences (PLG-4, PLG-16).
func getPlugin(s *Server, c *call) (any, error) {
	if d, ok := s.ports.Shelf.Detail(c.id); ok {
		return showDetail(d), nil
	}
	for _, one := range s.ports.Plugins() { // one that was removed while requests still hold it
		if one.Name == c.id {
			return showDetail(plugin.Detail{Status: one, Manifest: one.Manifest}), nil
		}
	}
	return nil, notFound("plugin", c.id)
}

func showDetail(d plugin.Detail) shownPlugin {
	shown := showPlugin(d.Status)
	if json.Valid(d.Manifest) {
		shown.Manifest = json.RawMessage(d.Manifest)
	}
	for _, x := range d.Differences {
		shown.Differences = append(shown.Differences, shownDifference{x, stamp(x.At)})
	}
	if d.Candidate != nil {
		candidate := showPlugin(*d.Candidate)
		shown.Candidate = &candidate
	}
	for _, h := range d.Hidden {
		shown.Hidden = append(shown.Hidden, showPlugin(h))
	}
	return shown
}

// unquarantine lifts a quarantine by hand and shows the plugin as it is then (PLG-5). One that is not in quarantine is 409.
func unquarantine(s *Server, c *call) (any, error) {
	if _, err := getPlugin(s, c); err != nil {
		return nil, err
	}
	if !s.ports.Unquarantine(c.id) {
		return nil, &Problem{Status: 409, Type: "invalid_request_error", Code: "not_quarantined",
			Message: fmt.Sprintf("The plugin %s is not in quarantine, so there is nothing to lift.", c.id)}
	}
	shown, err := getPlugin(s, c)
	if err != nil {
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
