package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/origin"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/host/translate/repair"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// stateGate leaves out accounts that did not issue the encrypted state in a request (SCN-16).
const stateGate = "encrypted_state"

// carried is the state in a request that only the account that issued it can read, as far as that is known (TR-18, SCN-16).
type carried struct {
	home  string // the connection that issued the latest of it, or the response that the request goes on with; empty: not known
	items []item
}

// item is one item of the input, or one thought of another dialect, that holds encrypted state.
type item struct {
	at     int // in the input of responses; -1: not in one
	issuer string
	bound  bool // it is more than reasoning: the conversation does not go on without it
}

// issued notes the encrypted state in an answer, or in a run of its events.
func (a *attempt) issued(b []byte) {
	if a.spoken() == wire.OpenAIResponses && origin.Holds(b) {
		a.keep(origin.Values(b))
	}
}

// issuedLater is issued for an answer that comes in pieces, of which this is the next one.
func (a *attempt) issuedLater(piece []byte) {
	if a.spoken() == wire.OpenAIResponses {
		a.keep(a.pieces.Values(piece))
	}
}

func (a *attempt) keep(values iter.Seq[[]byte]) {
	for v := range values {
		a.r.d.origins.Keep(v, origin.Place{Provider: a.target.Provider.ID, Connection: a.target.Connection.ID}, a.r.d.Now())
	}
}

// answered notes the id of an answer of responses, which the next request may name: it stands at path.
func (a *attempt) answered(b []byte, path string) {
	if a.spoken() != wire.OpenAIResponses {
		return
	}
	if id := gjson.GetBytes(b, path).Str; id != "" {
		a.r.d.origins.Keep(answerName(a.r.c, id), origin.Place{Provider: a.target.Provider.ID, Connection: a.target.Connection.ID}, a.r.d.Now())
	}
}

// answerName is an id of an answer among those of one client, since not every upstream makes its ids unique.
func answerName(c *Call, id string) []byte {
	if c.Key != nil {
		id = c.Key.ID + "/" + id
	}
	return []byte("response " + id)
}

// carries finds the state in a request, and who issued it. A request without any costs one search.
func (d *Dispatcher) carries(c *Call, now time.Time) (s carried) {
	if c.Form != nil || c.Scan == nil || d.origins.Empty() {
		return s
	}
	switch c.Dialect {
	case wire.OpenAIResponses:
		if raw, ok := c.Scan.Get("previous_response_id"); ok {
			if at, known := d.origins.Find(answerName(c, gjson.ParseBytes(raw).Str), now); known {
				s.home = at.Connection
			}
		}
		if raw, ok := c.Scan.Get("input"); ok && origin.Holds(raw) {
			d.carriedItems(&s, raw, now)
		}
	case wire.AnthropicMessages, wire.GeminiGenerate: // it went to the client under a seal
		for signature := range repair.Signatures(c.Body.Bytes()) {
			if at, known := d.origins.Find([]byte(signature), now); known {
				s.add(item{at: -1, issuer: at.Connection})
			}
		}
	default: // chat cannot carry it
	}
	return s
}

func (d *Dispatcher) carriedItems(s *carried, input []byte, now time.Time) {
	n := -1
	gjson.ParseBytes(input).ForEach(func(_, v gjson.Result) bool {
		n++
		if !v.IsObject() {
			return true
		}
		for value := range origin.Values([]byte(v.Raw)) {
			if at, known := d.origins.Find(value, now); known {
				s.add(item{at: n, issuer: at.Connection, bound: v.Get("type").Str != "reasoning"})
			}
		}
		return true
	})
}

func (s *carried) add(i item) { s.home, s.items = i.issuer, append(s.items, i) }

// foreign says whether a connection may not read some of the state, and whether the request means nothing without that.
func (s *carried) foreign(connection string) (some, bound bool) {
	for _, i := range s.items {
		if i.issuer != connection {
			some, bound = true, bound || i.bound
		}
	}
	return some, bound
}

// homeOf is the candidate of a target that issued the latest state in the request; nil: it is not among them.
func (r *run) homeOf(rt *catalog.RouteTarget) *catalog.Connection {
	if r.carried.home == "" {
		return nil
	}
	for conn := range route.Candidates(rt, r.c.Key) {
		if conn.ID == r.carried.home {
			return conn
		}
	}
	return nil
}

// homeFirst lists the targets with those first that the issuer of the request's state serves. listed is the order so far, nil for the
// strategy's own.
func (r *run) homeFirst(listed []*catalog.RouteTarget) []*catalog.RouteTarget {
	if r.carried.home == "" {
		return listed
	}
	var first, others []*catalog.RouteTarget
	for i := range r.order.Len() {
		if rt := r.nth(listed, i); r.homeOf(rt) != nil {
			first = append(first, rt)
		} else {
			others = append(others, rt)
		}
	}
	return append(first, others...)
}

// withheld says whether a connection is not asked because the request carries another one's state: its route refuses that, or the
// state cannot be left out.
func (r *run) withheld(conn *catalog.Connection) bool {
	if len(r.carried.items) == 0 {
		return false
	}
	some, bound := r.carried.foreign(conn.ID)
	return bound || some && r.refusesState()
}

// refusesState says whether a request may only go to the issuer of its state (encryptedState).
func (r *run) refusesState() bool {
	how := r.c.Route.Config.EncryptedState
	if how == "" {
		how = r.c.Catalog.Settings.RouteDefaults.EncryptedState
	}
	return how == "refuse"
}

// strips says whether this attempt's connection must not see some of the state in the request.
func (a *attempt) strips() bool {
	some, _ := a.r.carried.foreign(a.target.Connection.ID)
	return some
}

// foreignSignature says whether another connection issued a signature.
func (a *attempt) foreignSignature(value string) bool {
	at, known := a.r.d.origins.Find([]byte(value), a.r.t.Began)
	return known && at.Connection != a.target.Connection.ID
}

// stripped is the request without the reasoning that another connection issued.
func (a *attempt) stripped() (*body.Buffer, error) {
	c := a.r.c
	raw, _ := c.Scan.Get("input")
	out, n, dropped := []byte{'['}, -1, 0
	gjson.ParseBytes(raw).ForEach(func(_, v gjson.Result) bool {
		n++
		if slices.ContainsFunc(a.r.carried.items, func(i item) bool { return i.at == n && i.issuer != a.target.Connection.ID }) {
			dropped++
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, v.Raw...)
		return true
	})
	edit, err := body.Compile([]wire.Edit{{Op: "set", Path: "input", Value: append(out, ']')}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", upstream.ErrPlanInvalid, err)
	}
	payload, err := edit.Apply(c.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", upstream.ErrPlanInvalid, err)
	}
	defer payload.Discard()
	a.r.t.note("encrypted state: " + strconv.Itoa(dropped) + " reasoning items dropped: another account issued them")
	return body.Read(bytes.NewReader(payload.Bytes()), payload.Len(), payload.Len())
}

// stateElsewhere: nothing was asked, since only an account that cannot be asked now can read the state in the request.
func (r *run) stateElsewhere() (dialect.Failure, bool) {
	withheld, wait := false, time.Duration(0)
	for i := range r.t.Excluded {
		x := &r.t.Excluded[i]
		switch {
		case x.Refusal.Gate == stateGate:
			withheld = true
		case x.Target.Connection != nil && x.Target.Connection.ID == r.carried.home && x.Refusal.Wait != resilience.WaitNever && !x.Refusal.RetryAt.IsZero():
			wait = max(r.backAt(x).Sub(r.d.Now()), time.Second)
		}
	}
	if !withheld {
		return dialect.Failure{}, false
	}
	f := dialect.Failure{Status: http.StatusConflict, Type: "invalid_request_error", Code: "encrypted_state_elsewhere", RequestID: r.c.RequestID,
		RetryAfter: wait, NoRetry: wait == 0,
		Message: "The encrypted state in this request can only be read by the account that issued it, and that one cannot be asked now"}
	if wait > 0 {
		f.Message += "; try again in " + inWords(wait)
	}
	f.Message += ". Leave the encrypted items out of the input to have another account answer"
	if r.refusesState() {
		f.Message += ", or let the gateway do so (encryptedState: strip)"
	}
	f.Message += "."
	return f, true
}

// atHome tries the issuer of the request's state before the other connections of a target.
func (r *run) atHome(ctx context.Context, rt *catalog.RouteTarget, home *catalog.Connection) (next step, whole bool) {
	if home == nil {
		return stepNext, false
	}
	return r.connection(ctx, rt, home)
}

// named notes the id that the last event of a stream gives its answer.
func (p *pump) named(run []byte) {
	if p.a.spoken() != wire.OpenAIResponses {
		return
	}
	upstream.Events(run, func(e upstream.Event) bool {
		p.a.answered(e.Data, "response.id")
		return true
	})
}
