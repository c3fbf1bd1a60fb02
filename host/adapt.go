package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/sdk/wire"
)

// pluginSets lets the dispatcher see the plugin runtime through the interfaces that it declares.
type pluginSets struct{ runtime *plugin.Runtime }

func (p pluginSets) Acquire() dispatch.PluginSet { return pluginSet{p.runtime.Acquire()} }

type pluginSet struct{ set *plugin.Set }

func (s pluginSet) Executor(p *catalog.Provider) (dispatch.Executor, error) {
	e, err := s.set.Executor(p)
	if err != nil {
		return nil, unavailable(err)
	}
	return executor{e}, nil
}

// executor says in the dispatcher's words that a plugin is not there.
type executor struct{ *plugin.Executor }

func (e executor) Plan(ctx context.Context, q wire.PlanQuery, auth wire.Auth) (*wire.Plan, error) {
	p, err := e.Executor.Plan(ctx, q, auth)
	return p, unavailable(err)
}

func (e executor) Respond(ctx context.Context, f wire.RequestFacts) (*wire.Answer, error) {
	a, err := e.Executor.Respond(ctx, f)
	return a, unavailable(err)
}

func unavailable(err error) error {
	if errors.Is(err, plugin.ErrUnavailable) {
		return fmt.Errorf("%w: %w", dispatch.ErrPluginUnavailable, err)
	}
	return err
}

func (s pluginSet) Judge(p *catalog.Provider) dispatch.Judge { return s.set.Judge(p) }

func (s pluginSet) Release() { s.set.Release() }
