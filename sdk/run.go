//go:build !wasip1

package sdk

import (
	"encoding/json"

	"github.com/weirgate/weir/sdk/internal/examples"
	"github.com/weirgate/weir/sdk/wire"
)

// TB is what RunExamples needs of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// RunExamples runs the examples of the registered plugin as the gateway does when it loads the plugin, but without building
// a guest: rule tables and static plans by the gateway's own matcher, then the plugin's functions, with the time of the
// example, random 0 and an empty kv. Rules that the gateway would refuse fail the test.
func RunExamples(t TB) {
	t.Helper()
	if registered == nil {
		t.Errorf("no plugin is registered; call sdk.Register in init")
		return
	}
	registered.run(t)
}

func (p *Plugin) run(t TB) {
	t.Helper()
	w := &Writer{}
	p.describe(w)
	var m wire.Manifest
	if err := json.Unmarshal(w.Bytes(), &m); err != nil {
		t.Errorf("the manifest cannot be read: %v", err)
		return
	}
	set, err := examples.New(&m, p.ask)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	for i := range p.Examples {
		if op, _ := p.Examples[i].input(); op == 0 {
			t.Errorf("example %s has no input", set.Name(i))
			continue
		}
		if err := set.Run(i); err != nil {
			t.Errorf("example %s: %v", set.Name(i), err)
		}
	}
}

// ask answers as a fresh instance of the guest would: configured, with an empty kv.
func (p *Plugin) ask(op wire.Op, input []byte, nowMS int64) ([]byte, error) {
	ResetHost(nowMS)
	m := &machine{plugin: p}
	if out := m.call(wire.OpConfigure, []byte(`{"config":{},"granted":{}}`)); out != nil {
		e := Parse(out).Member("error")
		return nil, &Error{text(e, "code"), text(e, "message")}
	}
	return m.call(op, input), nil
}
