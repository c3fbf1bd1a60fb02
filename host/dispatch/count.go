package dispatch

import (
	"context"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/sdk/wire"
)

// countTime is how long a provider may take to count (INF-52).
const countTime = 2 * time.Second

// counters are the endpoints that count for a dialect, and where their answers say how many.
var counters = map[wire.Dialect]struct{ endpoint, path string }{
	wire.AnthropicMessages: {"/v1/messages/count_tokens", "input_tokens"},
	wire.OpenAIResponses:   {"/v1/responses/input_tokens", "input_tokens"},
}

// Count asks the provider of a call how many tokens its prompt has: once, of the first connection that no gate leaves out, if the
// provider counts in the client's own dialect. Nothing is learnt from what comes of it (INF-52). False: nobody counted.
func (d *Dispatcher) Count(ctx context.Context, c *Call) (n int64, ok bool) {
	counter, has := counters[c.Dialect]
	if !has || len(c.Route.Targets) == 0 {
		return 0, false
	}
	set := d.Plugins.Acquire()
	defer set.Release()
	r := &run{d: d, c: c, t: &Trail{Began: d.Now()}, plugins: set}
	rt := &c.Route.Targets[0]
	if _, counts := rt.Provider.Dialects[counter.endpoint]; !counts {
		return 0, false
	}
	for conn := range route.Candidates(rt, c.Key) {
		t := catalog.Target{Provider: rt.Provider, Connection: conn, Model: rt.Model, Requested: c.Model}
		if d.Ladder.Peek(r.at(), t) != nil {
			continue
		}
		a := &attempt{r: r, began: r.t.Began, settled: true, target: t}
		return a.count(ctx, counter.endpoint, counter.path)
	}
	return 0, false
}

func (a *attempt) count(ctx context.Context, endpoint, path string) (int64, bool) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	exec, err := a.r.plugins.Executor(a.target.Provider)
	if err != nil || exec.Ready() != nil {
		return 0, false
	}
	a.exec = exec
	if a.prep, err = a.r.prepare(ctx, exec, a.target, endpoint); err != nil || a.prep.Respond {
		return 0, false
	}
	resp, err := a.send(ctx, ctx)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	text, _ := readBounded(resp.Body, 64<<10)
	v := gjson.GetBytes(text, path)
	return v.Int(), resp.StatusCode == http.StatusOK && v.Type == gjson.Number && v.Num >= 0
}
