package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/egress"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// replyFacts is what of a failed reply may reach the client.
type replyFacts struct {
	status      int // restated
	original    int
	message     string
	code, kind  string
	param       string // the path of a field that is wrong (TR-31)
	body        []byte
	contentType string
	dialect     wire.Dialect
	clientWait  time.Duration // RST-6
}

// judge finds out what a failed reply means, settles the attempt, and says how the call goes on. It is the one path for every
// failure: error statuses, transport failures, errors inside a 200 and inside a stream (OV-2, RST-2).
func (a *attempt) judge(ctx context.Context, reply *rules.Reply, fault resilience.Fault) step {
	v, facts := a.meaning(ctx, reply)
	return a.decided(ctx, reply, v, facts, fault)
}

// decided settles an attempt whose failure has a verdict.
func (a *attempt) decided(ctx context.Context, reply *rules.Reply, v wire.Verdict, facts replyFacts, fault resilience.Fault) step {
	v = lockout.Narrow(a.r.at(), a.target, v, lockout.Reply{Status: rules.HostStatus(reply), Text: reply.Facts.Text, Own: isOwn(fault)})
	v = a.settleFailure(reply, v, fault)
	if ctx.Err() != nil {
		a.r.gone(ctx)
		return stepDone
	}
	if a.r.learnTools(a, reply, v, facts) {
		return stepNext
	}
	return a.r.decide(a, v, facts)
}

// meaning says what a failed reply means, and what of it may reach the client.
func (a *attempt) meaning(ctx context.Context, reply *rules.Reply) (wire.Verdict, replyFacts) {
	a.describe(reply)
	said := Rule(ctx, a.r.plugins.Judge(a.target.Provider), a.r.c.Catalog.Settings.CustomBannedSignals, reply)
	v := said.Verdict
	facts := a.factsOf(reply, v)
	if re := said.Restated; re != nil {
		a.restated(reply)
		a.restater = ruleOf(re)
		if re.Code != "" {
			facts.code = re.Code
		}
		facts.clientWait = re.RetryAfter
	}
	return v, facts
}

// factsOf is what of a failed reply may reach the client.
func (a *attempt) factsOf(reply *rules.Reply, v wire.Verdict) replyFacts {
	facts := replyFacts{code: a.code, kind: a.kind}
	facts.status, facts.original, facts.message = rules.HostStatus(reply), reply.Original, reply.Facts.Message
	facts.body, facts.dialect = reply.Body, a.prep.Dialect
	if a.resp != nil {
		facts.contentType = a.resp.Header.Get("Content-Type")
	}
	if v.Message != "" {
		facts.message = v.Message
	}
	return facts
}

// customBan looks for the operator's own ban signals beside the built-in ones (COOL-60 to COOL-62): a substring of the error
// body, whatever the letter case.
func customBan(r *rules.Reply, signals []string) (wire.Verdict, bool) {
	if len(signals) == 0 || !r.Facts.HasBody {
		return wire.Verdict{}, false
	}
	text := strings.ToLower(r.Facts.Text + "\n" + r.Facts.Decoded)
	for _, s := range signals {
		if strings.Contains(text, strings.ToLower(s)) {
			return wire.Verdict{
				Reason: wire.ReasonBanned, Scope: wire.ScopeConnection, Fallback: true, Terminal: true, SetStatus: wire.Banned,
				Plugin: "settings", Rule: "customBannedSignals",
			}, true
		}
	}
	return wire.Verdict{}, false
}

// describe fills what the rules may ask about the reply.
func (a *attempt) describe(reply *rules.Reply) {
	now := a.r.d.Now()
	reply.Provider, reply.Connection = strings.ToLower(a.target.Provider.ID), a.target.Connection.ID
	reply.Auth, reply.Model, reply.Endpoint = a.target.Connection.AuthType, a.target.Model, a.r.c.Endpoint
	reply.Stream, reply.Attempt = a.r.c.Stream, len(a.r.t.Attempts)+1
	reply.Now, reply.Elapsed, reply.BytesSent = now, now.Sub(a.began), a.sent
	reply.Operator = a.r.d.operator.Set(a.r.c.Catalog.Settings.ProviderErrorRules, a.r.c.Catalog.Settings.ProviderErrorDefaults)
	if reply.Source != wire.SourceTransport {
		reply.Body = a.cleaned(reply.Body)
		rules.Read(reply)
	}
}

// cleaned is an error body without known secrets: some providers repeat the key that they refuse, and what is read here goes to
// plugins, records and clients (DATA-1).
func (a *attempt) cleaned(body []byte) []byte {
	text := string(body)
	if clean := a.r.d.Redact(text); clean != text {
		return []byte(clean)
	}
	return body
}

func (a *attempt) restated(reply *rules.Reply) {
	a.r.t.Restated = fmt.Sprintf("%s;from=%d", reply.Restated, reply.Original)
	a.r.d.Meter.Restated(reply.Restated)
}

// ruleOf names who restated a status: plugin/rule.
func ruleOf(re *wire.Restatement) string {
	if re.Rule == "" || re.Plugin == "" {
		return firstOf(re.Rule, re.Plugin)
	}
	return re.Plugin + "/" + re.Rule
}

// settleFailure applies a verdict in the one place where it becomes state (gate 21), and returns it as it was applied.
func (a *attempt) settleFailure(reply *rules.Reply, v wire.Verdict, fault resilience.Fault) wire.Verdict {
	now, own := a.r.d.Now(), isOwn(fault)
	v = a.rotation(egress.Verdict(a.target, v, rules.HostStatus(reply)), rules.HostStatus(reply))
	rec := Attempt{
		Provider: a.target.Provider.ID, Connection: a.target.Connection.ID, Model: a.target.Model, At: a.began,
		Took: now.Sub(a.began), Status: rules.HostStatus(reply), Original: reply.Original, Verdict: v, RestatedBy: a.restater,
	}
	if !a.firstAt.IsZero() {
		rec.FirstByte = a.firstAt.Sub(a.began)
	}
	rec.Told = a.sent > 0
	a.r.t.Attempts = append(a.r.t.Attempts, rec)
	a.r.d.Meter.Attempt(rec.Provider, v.Reason)
	a.logFailure(rec)
	if a.r.d.Failed != nil {
		a.r.d.Failed(reply, v, rec.Connection, a.r.c.RequestID)
	}
	if own {
		a.r.d.slow.hung(rec.Connection, a.began, now)
	}
	a.r.noteTry(a, v, rec.Status, fault)
	a.sample(now, rec.FirstByte, false)
	if !a.stays && route.AccountStrategy(a.r.c.Route, a.target.Provider, a.r.c.Catalog) != route.FillFirst {
		a.r.d.Router.Failing(a.target.Connection)
	}
	if v.Rejected { // nobody could say what it means, so it counts against nobody (ABI-8)
		a.r.t.exclude(a.target, resilience.Refusal{Gate: "executor", Reason: "plugin_unavailable", Wait: resilience.WaitNever})
		a.settle(resilience.Outcome{Ignore: true, Began: a.began})
		return v
	}
	a.settle(resilience.Outcome{
		Began: a.began, Verdict: v, OwnDeadline: own, Fault: fault, Stays: a.stays, SiblingNext: a.r.siblingNext(a.target),
		AccountNext: v.Fallback && a.r.accountNext(a.target), ErrorCode: a.r.d.Redact(firstOf(reply.Facts.Code, reply.Facts.Type)),
		FirstByte: rec.FirstByte, Took: rec.Took,
		Cause: resilience.Cause{
			RequestID: a.r.c.RequestID, At: now.UnixMilli(), Status: rec.Status, OriginalStatus: reply.Original,
			Plugin: v.Plugin, Rule: v.Rule, Source: v.HintSource, Message: shorten(a.r.d.Redact(reply.Facts.Message), 100),
		},
	})
	return v
}

func (a *attempt) logFailure(rec Attempt) {
	fault := ""
	if a.fault != nil {
		fault = shorten(a.fault.Error(), 200)
	}
	a.r.d.Log.Warn("attempt failed", "request_id", a.r.c.RequestID, "provider", rec.Provider, "connection", rec.Connection,
		"model", rec.Model, "status", rec.Status, "original_status", rec.Original, "restated_by", rec.RestatedBy,
		"reason", string(rec.Verdict.Reason), "scope", string(rec.Verdict.Scope), "decided_by", rec.Verdict.Evidence(),
		"took_ms", rec.Took.Milliseconds(), "fault", fault)
	gate := gateJudge
	if rec.Told { // an error behind the first word is found by the gate that sends it
		gate = gateAnswer
	}
	if rec.RestatedBy != "" {
		a.r.t.trace.add(gate, "restate", fmt.Sprint(rec.Status), a.target, fmt.Sprintf("%s, from %d", rec.RestatedBy, rec.Original))
	}
	a.r.t.trace.add(gate, "classify", string(rec.Verdict.Reason), a.target, rec.Verdict.Evidence())
}

// settleSuccess notes a validated answer.
func (a *attempt) settleSuccess() {
	now := a.r.d.Now()
	rec := Attempt{
		Provider: a.target.Provider.ID, Connection: a.target.Connection.ID, Model: a.target.Model, At: a.began,
		Took: now.Sub(a.began), FirstByte: a.firstAt.Sub(a.began), Status: a.resp.StatusCode, Original: a.resp.StatusCode, OK: true,
	}
	a.r.t.Attempts = append(a.r.t.Attempts, rec)
	a.r.d.Meter.Attempt(rec.Provider, "")
	a.r.d.slow.answered(rec.Connection)
	a.sample(now, rec.FirstByte, true)
	if a.r.target != nil {
		a.r.d.Router.Succeeded(a.r.c.Route, a.r.target, rec.Connection)
	}
	a.settle(resilience.Outcome{OK: true, Began: a.began, FirstByte: rec.FirstByte, Took: rec.Took})
}

// settle ends the ticket exactly once and journals what changed.
func (a *attempt) settle(o resilience.Outcome) {
	if a.settled {
		return
	}
	a.settled = true
	if o.OK || a.r.t.Committed { // an attempt that failed unseen is not billed (FLT-16)
		a.bill()
	}
	if o.OK {
		a.r.t.Estimated = a.estimated()
		if !a.r.t.Committed { // a whole answer is settled before it is sent
			a.r.t.trace.add(gateAnswer, "answer", "whole", a.target, "")
		}
	}
	events := a.r.d.Ladder.Settle(a.r.at(), a.ticket, o)
	if a.r.t.trace != nil {
		a.r.t.trace.add(gateSettle, "settle", settled(o), a.target, fmt.Sprintf("%d events", len(events)))
	}
	a.journal(events)
}

// begun tells the gates that a stream has begun well, so that a probe does not keep the provider's other requests out until its end
// (BRK-32).
func (a *attempt) begun() {
	if !a.settled {
		a.journal(a.r.d.Ladder.Begun(a.r.at(), a.ticket))
	}
}

// journal writes down what changed.
func (a *attempt) journal(events []store.Event) {
	if len(events) == 0 {
		return
	}
	for i := range events {
		if events[i].RequestID == "" {
			events[i].RequestID = a.r.c.RequestID
		}
	}
	a.r.d.Journal(events...)
}

// settled is what an attempt came to, for the trace.
func settled(o resilience.Outcome) string {
	switch {
	case o.OK:
		return "ok"
	case o.Ignore:
		return "nothing counted"
	}
	return "failed"
}

// decide is gate 22: what a verdict means for the rest of this call.
func (r *run) decide(a *attempt, v wire.Verdict, facts replyFacts) step {
	keep := r.last.set && r.last.verdict.Reason == wire.InvalidRequest // the first target's 400 stays the answer (CMB-18)
	if !keep {
		r.last = lastWord{set: true, verdict: v, reply: facts, target: a.target}
	}
	if !exhaustsNothing(r.lastTry.fault, facts) {
		r.exhausted.Note(a.target, a.exhausts(v))
	}
	if v.Reason == wire.InvalidRequest && !v.Fallback && (a.prep.Changes || a.changed) {
		r.exhausted.ExcludeProvider(a.target.Provider.ID)
		return stepNext
	}
	if !v.Fallback || facts.status == 499 || !r.mayFallBack(a.target, v) { // CMB-17
		r.t.trace.add(gateDecide, "decide", "answer", a.target, "")
		return stepAnswer
	}
	r.t.trace.add(gateDecide, "decide", "next", a.target, "")
	r.d.Meter.Fallback(v.Reason)
	return stepNext
}

// mayFallBack holds the route's options for failures of the request itself (CMB-26).
func (r *run) mayFallBack(t catalog.Target, v wire.Verdict) bool {
	d := r.c.Catalog.Settings.RouteDefaults
	switch v.Reason {
	case wire.ContentFiltered:
		return choose(r.c.Route.Config.FallbackOnFilter, d.FallbackOnFilter)
	case wire.ContextOverflow:
		if !choose(r.c.Route.Config.FallbackOnOverflow, d.FallbackOnOverflow) {
			return false
		}
		r.needWindow = max(r.needWindow, route.Window(&catalog.RouteTarget{Provider: t.Provider, Model: t.Model}), 1)
	}
	return true
}

func choose[T any](own *T, otherwise T) T {
	if own != nil {
		return *own
	}
	return otherwise
}

// exhaustsNothing holds the exceptions of CMB-20 and CMB-22: a refusal of a client's fingerprint by a CDN, which says nothing about
// the account, and an empty answer that only our own validation found.
func exhaustsNothing(fault resilience.Fault, facts replyFacts) bool {
	return fault == resilience.FaultEmptyContent ||
		facts.original == http.StatusForbidden && bytes.Contains(facts.body, []byte("error code: 1010"))
}

// sample notes how long the attempt took to its first byte, once. Of a stream it is the first useful one (SEL-10, SEL-14).
func (a *attempt) sample(now time.Time, firstByte time.Duration, ok bool) {
	if a.sampled {
		return
	}
	a.sampled = true
	a.r.d.Router.Samples.Add(a.target.Connection.ID, a.target.Model, now, firstByte, ok)
}

func firstOf(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}

// shorten cuts s at n bytes, at the border of a character.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
