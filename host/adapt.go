package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// pluginSets lets the dispatcher see the plugin runtime through the interfaces that it declares.
type pluginSets struct{ runtime *plugin.Runtime }

func (p pluginSets) Acquire() dispatch.PluginSet {
	set := p.runtime.Acquire()
	if set.Shadowed() {
		return watchedSet{pluginSet{set}, p.runtime.Watch(set)}
	}
	return pluginSet{set}
}

// watchedSet is a set for one call whose failures shadows are compared with when it is over (PLG-4).
type watchedSet struct {
	pluginSet
	watch *plugin.Watch
}

func (s watchedSet) Judge(p *catalog.Provider) dispatch.Judge { return s.watch.Judge(p) }

func (s watchedSet) Release() { s.watch.Release() }

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

func (e executor) Fallback() dispatch.Executor {
	if f := e.Executor.Fallback(); f != nil {
		return executor{f}
	}
	return nil
}

func (e executor) Request(ctx context.Context, f wire.RequestFacts, check func(*wire.Edits) error) (*wire.Edits, error) {
	said, err := e.Executor.Request(ctx, f, check)
	return said, unavailable(err)
}

func (e executor) Response(ctx context.Context, f wire.ResponseFacts, h http.Header, check func(*wire.Edits) error) (*wire.Edits, error) {
	said, err := e.Executor.Response(ctx, f, h, check)
	return said, unavailable(err)
}

func (e executor) Ready() error { return unavailable(e.Executor.Ready()) }

func (e executor) Events(c upstream.Calls) dispatch.EventHook {
	return eventHook{e.Executor.Events(plugin.Calls{Events: c.Events, Stateful: c.Stateful, End: c.End})}
}

// eventHook says in the dispatcher's words that a guest hears no more.
type eventHook struct{ *plugin.EventHook }

func (h eventHook) Event(ctx context.Context, name, data []byte) (wire.EventAnswer, error) {
	said, err := h.EventHook.Event(ctx, name, data)
	if errors.Is(err, plugin.ErrUnhooked) {
		err = fmt.Errorf("%w: %w", dispatch.ErrUnhooked, err)
	}
	return said, unavailable(err)
}

func unavailable(err error) error {
	if errors.Is(err, plugin.ErrUnavailable) {
		return fmt.Errorf("%w: %w", dispatch.ErrPluginUnavailable, err)
	}
	return err
}

func (s pluginSet) Judge(p *catalog.Provider) dispatch.Judge { return s.set.Judge(p) }

func (s pluginSet) Release() { s.set.Release() }
