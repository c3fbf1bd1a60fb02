package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirgate/weir/host/catalog"
)

// Gate is one step of a request: number and name of the gate, what came of it, and when after the beginning (OV-1, OBJ-18).
type Gate struct {
	N      int    `json:"n"` // of the order of the gates; the ones that belong to a target repeat with each
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	AtMS   int64  `json:"atMs"`
}

// The numbers of the gates that leave a trace (OV-1).
const (
	gateParse   = 1
	gateKey     = 2
	gateResolve = 5
	gateCombo   = 7
	gateOrder   = 8
	gateTarget  = 9
	gateChoose  = 10
	gatePlan    = 15
	gateSend    = 16
	gateLearn   = 18
	gateJudge   = 19
	gateAnswer  = 20
	gateSettle  = 21
	gateDecide  = 22
	gateFinish  = 23
)

// maxGates bounds the trace of one request.
const maxGates = 1000

// trace notes the gates of one request, in their order: for the trail while requestLog.trace is on, and in the debug log (OV-1). It is
// nil, and costs nothing, when neither is.
type trace struct {
	began time.Time
	now   func() time.Time
	ctx   context.Context //nolint:containedctx // only for the logger
	log   *slog.Logger    // nil: the debug log is off
	keep  bool
	gates []Gate
}

func (d *Dispatcher) newTrace(ctx context.Context, c *Call, began time.Time) *trace {
	debug, keep := d.Log.Enabled(ctx, slog.LevelDebug), c.Catalog.Settings.RequestLog.Trace
	if !debug && !keep {
		return nil
	}
	t := &trace{began: began, now: d.Now, ctx: ctx, keep: keep}
	if debug {
		t.log = d.Log.With("request_id", c.RequestID)
	}
	who := "open"
	if c.Key != nil {
		who = c.Key.ID
	}
	t.note(gateParse, "parse", "ok", fmt.Sprintf("%s, %d bytes", c.Endpoint, c.Body.Len()))
	t.note(gateKey, "key", "ok", who)
	t.note(gateResolve, "resolve", c.Route.Kind+" "+c.Route.Name, c.Model)
	if c.Route.Kind == catalog.KindCombo {
		t.note(gateCombo, "combo", c.Route.Strategy, fmt.Sprintf("%d targets", len(c.Route.Targets)))
	}
	return t
}

// note adds a step that is about no target.
func (t *trace) note(n int, name, result, detail string) {
	if t == nil {
		return
	}
	at := t.now().Sub(t.began)
	if t.keep && len(t.gates) < maxGates {
		t.gates = append(t.gates, Gate{N: n, Name: name, Result: result, Detail: shorten(detail, 500), AtMS: at.Milliseconds()})
	}
	if t.log != nil {
		t.log.DebugContext(t.ctx, "gate", "n", n, "name", name, "result", result, "detail", detail, "at_ms", at.Milliseconds())
	}
}

// add adds a step of a target.
func (t *trace) add(n int, name, result string, target catalog.Target, more string) {
	if t == nil {
		return
	}
	detail := target.Provider.ID + "/" + target.Model
	if target.Connection != nil {
		detail += " on " + target.Connection.ID
	}
	if more != "" {
		detail += ": " + more
	}
	t.note(n, name, result, detail)
}

func (t *trace) end(trail *Trail) {
	if t == nil {
		return
	}
	result := "answered"
	switch {
	case trail.Cancelled:
		result = "the client left"
	case trail.Partial:
		result = "broken off"
	case !trail.Committed:
		result = "failed"
	}
	t.note(gateFinish, "finish", result, fmt.Sprintf("%d attempts, %d left out, %d ms", len(trail.Attempts), len(trail.Excluded), trail.Took.Milliseconds()))
	trail.Gates = t.gates
}
