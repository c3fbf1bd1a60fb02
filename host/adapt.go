package host

import (
	"errors"
	"fmt"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/plugin"
)

// pluginSets lets the dispatcher see the plugin runtime through the interfaces that it declares.
type pluginSets struct{ runtime *plugin.Runtime }

func (p pluginSets) Acquire() dispatch.PluginSet { return pluginSet{p.runtime.Acquire()} }

type pluginSet struct{ set *plugin.Set }

func (s pluginSet) Executor(p *catalog.Provider) (dispatch.Executor, error) {
	e, err := s.set.Executor(p)
	if errors.Is(err, plugin.ErrUnavailable) {
		return nil, fmt.Errorf("%w: %w", dispatch.ErrPluginUnavailable, err)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (s pluginSet) Judge(p *catalog.Provider) dispatch.Judge { return s.set.Judge(p) }

func (s pluginSet) Release() { s.set.Release() }
