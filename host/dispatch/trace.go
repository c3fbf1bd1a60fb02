package dispatch

import (
	"context"
	"log/slog"

	"github.com/weirgate/weir/host/catalog"
)

// trace writes the gates of one request, in their order, to the debug log (OV-1). It is nil, and costs nothing, unless that
// level is on.
type trace struct {
	ctx context.Context //nolint:containedctx // only for the logger
	log *slog.Logger
	n   int
}

func (d *Dispatcher) newTrace(ctx context.Context, c *Call) *trace {
	if !d.Log.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	t := &trace{ctx: ctx, log: d.Log.With("request_id", c.RequestID)}
	t.log.DebugContext(ctx, "gate", "n", t.next(), "name", "resolve", "result", c.Route.Kind+" "+c.Route.Name, "targets", len(c.Route.Targets))
	return t
}

func (t *trace) next() int {
	t.n++
	return t.n
}

// note adds a step that is about no target.
func (t *trace) note(name, result string) {
	if t == nil {
		return
	}
	t.log.DebugContext(t.ctx, "gate", "n", t.next(), "name", name, "result", result)
}

func (t *trace) add(name, result string, target catalog.Target) {
	if t == nil {
		return
	}
	t.log.DebugContext(t.ctx, "gate", "n", t.next(), "name", name, "result", result,
		"provider", target.Provider.ID, "connection", target.Connection.ID, "model", target.Model)
}

func (t *trace) end(trail *Trail) {
	if t == nil {
		return
	}
	t.log.DebugContext(t.ctx, "gate", "n", t.next(), "name", "finish", "result", trail.Status,
		"attempts", len(trail.Attempts), "excluded", len(trail.Excluded), "took_ms", trail.Took.Milliseconds())
}
