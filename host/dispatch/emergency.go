package dispatch

import (
	"context"
	"net/http"
	"strings"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
)

// outOfMoney are the words by which providers say that an account has no budget left; underscores are read as blanks (OTH-23).
var outOfMoney = [...]string{
	"insufficient funds", "budget exceeded", "quota exceeded", "billing", "payment required", "out of credits", "no credits", "credit limit",
	"spending limit",
}

// emergency sends a request that failed for lack of money once to the free model of the settings, and says whether it was answered. It
// leaves the failure as it was when that model has no account, or does not answer either (OTH-23).
func (r *run) emergency(ctx context.Context) {
	s := r.c.Catalog.Settings.Emergency
	if !s.Enabled || ctx.Err() != nil || r.rescue != nil || !r.brokeDown() || r.hasTools() {
		return
	}
	if _, generates := translate.Codec(r.c.Dialect); !generates {
		return
	}
	name := s.Provider + "/" + s.Model
	if r.c.Key != nil && (!r.c.Key.AllowsModel(name) || r.c.Key.HasScope(catalog.ScopeLease)) {
		return
	}
	rt, err := r.c.Catalog.Resolve(name)
	if err != nil || len(rt.Targets) == 0 || r.tried1(rt) || !r.eligible(rt) {
		return
	}
	call, failure, unchanged, last := *r.c, r.t.Failure, r.t.Unchanged, r.last
	call.Route = rt
	r.c, r.rescue, r.t.Failure, r.t.Unchanged = &call, &s, nil, nil
	r.t.Rescue = name
	r.order = r.d.Router.Order(rt, r, r.d.Now())
	r.target, r.after = &rt.Targets[0], nil
	r.connections(ctx, &rt.Targets[0])
	if !r.t.Committed && !r.t.Cancelled {
		r.t.Rescue, r.t.Failure, r.t.Unchanged, r.last = "", failure, unchanged, last
	}
}

// brokeDown says whether the request failed for lack of money.
func (r *run) brokeDown() bool {
	f := r.t.Failure
	if f == nil || r.t.Committed || r.t.Cancelled {
		return false
	}
	if f.Status == http.StatusPaymentRequired || r.last.set && r.last.reply.status == http.StatusPaymentRequired {
		return true
	}
	if !r.last.set {
		return false
	}
	said := strings.ToLower(strings.ReplaceAll(r.last.reply.message+" "+r.last.reply.code+" "+r.last.reply.kind, "_", " "))
	for _, words := range outOfMoney {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

func (r *run) hasTools() bool {
	raw, ok := r.c.Scan.Get("tools")
	return ok && len(strings.Trim(string(raw), " \t\r\n[]")) > 0 && string(raw) != "null"
}

// tried1 says whether the request went to that model already.
func (r *run) tried1(rt *catalog.Route) bool {
	for i := range r.t.Attempts {
		if a := &r.t.Attempts[i]; a.Provider == rt.Targets[0].Provider.ID && a.Model == rt.Targets[0].Model {
			return true
		}
	}
	return false
}

// eligible says whether a gate lets any account of a route's first target through.
func (r *run) eligible(rt *catalog.Route) bool {
	at := r.moment(nil)
	for _, conn := range r.chosen(&rt.Targets[0]) {
		if r.d.Ladder.Peek(at, r.to(&rt.Targets[0], conn)) == nil {
			return true
		}
	}
	return false
}

// rescued is the client's request with an answer no longer than the emergency allows.
func (r *run) rescued(q *neutral.Request) *neutral.Request {
	if r.rescue == nil {
		return q
	}
	out, most := *q, int64(r.rescue.MaxOutput)
	if out.MaxOutput == nil || *out.MaxOutput > most {
		out.MaxOutput = &most
	}
	return &out
}
