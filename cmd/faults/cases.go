package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

var faults = []*fault{
	{id: "FLT-1", play: once429, routes: []route{{primary: func(a *ask) {
		if a.n == 1 {
			a.fails(http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Slow down.", "Retry-After", "2")
			return
		}
		a.good()
	}}}},
	{id: "FLT-2", play: always429, routes: []route{{primary: func(a *ask) {
		a.fails(http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Slow down.")
	}}}},
	{id: "FLT-3", play: once500, routes: []route{{primary: func(a *ask) {
		if a.n == 1 {
			a.fails(http.StatusInternalServerError, "api_error", "internal_error", "Something broke.")
			return
		}
		a.good()
	}}}},
	{id: "FLT-4", play: always503, routes: []route{{primary: down}}},
	{id: "FLT-5", play: reset, routes: []route{{primary: (*ask).reset}}},
	{id: "FLT-6", play: hang, routes: []route{{config: "target_timeout: 30s", primary: func(a *ask) { a.pause(120 * time.Second) }}}},
	{id: "FLT-7", play: slowStart, routes: []route{
		{name: "bounded", config: "first_content_timeout: 5s", primary: late}, {name: "patient", primary: late},
		{name: "opened", config: "first_content_timeout: 5s", primary: lateBehindHead},
	}},
	{id: "FLT-8", play: cutOff, routes: []route{
		{name: "default", primary: cutAt40}, {name: "hold", config: "stream_recovery: hold", primary: cutAt40},
		{name: "continue", config: "stream_recovery: continue", primary: cutAt40, fallback: goesOn},
		{name: "refused", config: "stream_recovery: continue", primary: cutAt40, fallback: refusesPrefill, prefill: "false"},
	}},
	{id: "FLT-9", play: stall, routes: []route{
		{name: "default", config: "stall_timeout: 5s", primary: stallAt20}, {name: "hold", config: "stall_timeout: 5s, stream_recovery: hold", primary: stallAt20},
		{name: "continue", config: "stall_timeout: 5s, stream_recovery: continue", primary: stallAt20, fallback: goesOn}, {name: "patient", primary: stallAt20},
	}},
	{id: "FLT-10", play: malformed, routes: []route{{primary: malformedTenth}}},
	{id: "FLT-11", play: noMark, routes: []route{{primary: func(a *ask) {
		a.begin()
		for i := range tokens {
			a.tell(a.dialect.delta(a.model, token(i)))
		}
		a.tell(a.dialect.finish(a.model))
	}}}},
	{id: "FLT-12", play: overflow, routes: []route{
		{name: "larger", primary: tooLong, windows: [2]int{1000, 100_000}}, {name: "smaller", primary: tooLong, windows: [2]int{1000, 500}},
	}},
	{id: "FLT-13", play: filtered, routes: []route{{name: "default", primary: policy}, {name: "allowed", config: "fallback_on_content_filter: true", primary: policy}}},
	{id: "FLT-14", play: refusesBeginning, routes: []route{{config: "stream_recovery: continue", primary: cutAt40Once, fallback: refusesPrefill, prefill: "false"}}},
	{id: "FLT-15", play: outage, routes: []route{{primary: downForAMinute()}}},
	{id: "FLT-16", play: billing, routes: []route{{primary: down}}},
}

func down(a *ask) {
	a.fails(http.StatusServiceUnavailable, "overloaded_error", "server_is_overloaded", "No room at all.")
}

func late(a *ask) {
	if a.pause(20 * time.Second) {
		a.good()
	}
}

func lateBehindHead(a *ask) {
	a.begin()
	if a.pause(20 * time.Second) {
		a.cut()
	}
}

func cutAt40(a *ask) {
	a.begin()
	for i := range 40 {
		a.tell(a.dialect.delta(a.model, token(i)))
	}
	a.cut()
}

func cutAt40Once(a *ask) {
	if a.prefix != "" {
		a.fails(http.StatusBadRequest, "invalid_request_error", "invalid_prefill", "No beginnings here.")
		return
	}
	cutAt40(a)
}

func stallAt20(a *ask) {
	a.begin()
	for i := range 20 {
		a.tell(a.dialect.delta(a.model, token(i)))
	}
	if !a.pause(30 * time.Second) {
		return
	}
	for i := 20; i < tokens; i++ {
		a.tell(a.dialect.delta(a.model, token(i)))
	}
	a.end()
}

func goesOn(a *ask) {
	if a.prefix == "" {
		a.good()
		return
	}
	a.goesOn()
}

func refusesPrefill(a *ask) {
	if a.prefix != "" {
		a.fails(http.StatusBadRequest, "invalid_request_error", "invalid_prefill", "This model does not support assistant message prefill.")
		return
	}
	a.good()
}

func malformedTenth(a *ask) {
	a.begin()
	for i := range tokens {
		if i == 9 {
			a.tell("data: {\"choices\":[{\"delta\":{\"cont\n\n")
		}
		a.tell(a.dialect.delta(a.model, token(i)))
	}
	a.end()
}

func tooLong(a *ask) {
	a.fails(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded",
		map[*spoken]string{chat: "This model's maximum context length is 1000 tokens. However, your messages resulted in 1234 tokens.",
			messages: "prompt is too long: 1234 tokens > 1000 maximum"}[a.dialect])
}

func policy(a *ask) {
	a.fails(http.StatusBadRequest, "invalid_request_error", "content_policy_violation", "Your request was rejected as a result of our safety system: content_policy_violation.")
}

func downForAMinute() func(*ask) {
	began := time.Now()
	return func(a *ask) {
		if time.Since(began) < 60*time.Second+outageDelay {
			down(a)
			return
		}
		a.good()
	}
}

func once429(ctx context.Context, w *wall) {
	a := w.ask(ctx, "", false)
	w.want("answer", a.whole())
	hits := w.hits("", "primary")
	for _, h := range hits[1:] {
		if h.at.Sub(hits[0].at) < 2*time.Second {
			w.fail("the primary was asked again after %s", h.at.Sub(hits[0].at))
		}
	}
	w.see("answered in %s by the %s, %d primary hits", seconds(a.took), role(w.served(&a)), len(hits))
}

func role(provider string) string { return provider[strings.LastIndexByte(provider, '-')+1:] }

func always429(ctx context.Context, w *wall) {
	for range 6 {
		a := w.ask(ctx, "", false)
		w.want("answer", a.whole())
		w.from("", "fallback", &a)
		sleep(ctx, 300*time.Millisecond)
	}
	hits := w.hits("", "primary")
	for i, h := range hits[1:] {
		if h.at.Sub(hits[i].at) < 2*time.Second { // the shortest cooldown of a local provider
			w.fail("hits %s apart, within one cooldown", h.at.Sub(hits[i].at))
		}
	}
	w.see("6 of 6 answered by the fallback, %d primary hits in 2 s", len(hits))
}

func once500(ctx context.Context, w *wall) {
	a := w.ask(ctx, "", false)
	w.want("answer", a.whole())
	if n := len(w.hits("", "primary")); n > 2 {
		w.fail("%d primary hits", n)
	}
	w.see("answered by the %s, %d primary hits", role(w.served(&a)), len(w.hits("", "primary")))
}

func always503(ctx context.Context, w *wall) {
	for range 12 {
		a := w.ask(ctx, "", false)
		w.want("answer", a.whole())
		w.from("", "fallback", &a)
	}
	if n := len(w.hits("", "primary")); n > 2 { // the threshold of a local provider
		w.fail("%d primary hits", n)
	}
	w.see("12 of 12 answered by the fallback, %d primary hits", len(w.hits("", "primary")))
}

func reset(ctx context.Context, w *wall) {
	a := w.ask(ctx, "", false)
	w.want("answer", a.whole())
	w.from("", "fallback", &a)
	n := len(w.hits("", "primary"))
	if n > 2 {
		w.fail("%d primary hits", n)
	}
	w.see("answered by the fallback in %s, %d primary hits", seconds(a.took), n)
}

func hang(ctx context.Context, w *wall) {
	a := w.ask(ctx, "", false)
	w.want("answer", a.whole())
	w.from("", "fallback", &a)
	if a.took > 32*time.Second || a.took < 29*time.Second || len(w.hits("", "primary")) != 1 {
		w.fail("answered in %s with %d primary hits", seconds(a.took), len(w.hits("", "primary")))
	}
	w.see("answered by the fallback in %s, 1 primary hit", seconds(a.took))
}

func slowStart(ctx context.Context, w *wall) {
	for _, bounded := range []string{"bounded", "opened"} {
		a := w.ask(ctx, bounded, true)
		w.want(bounded, a.stream())
		w.from(bounded, "fallback", &a)
		if a.took > 6*time.Second {
			w.fail("%s: answered in %s", bounded, seconds(a.took))
		}
		w.see("%s: the fallback in %s", bounded, seconds(a.took))
	}
	a := w.ask(ctx, "patient", true)
	w.want("patient", a.stream())
	if n := len(w.hits("patient", "fallback")); n > 0 {
		w.fail("patient: the fallback was asked")
	}
	w.see("without a bound: whole in %s", seconds(a.took))
}

func cutOff(ctx context.Context, w *wall) {
	a := w.ask(ctx, "default", true)
	w.want("default", a.honest(40))
	a = w.ask(ctx, "hold", true)
	w.want("hold", a.stream())
	a = w.ask(ctx, "continue", true)
	w.want("continue", a.stream())
	asked := w.hits("continue", "fallback")
	if len(asked) != 1 || !asked[0].prefill {
		w.fail("continue: the fallback heard %d requests", len(asked))
	}
	t, err := w.trail(ctx, &a)
	w.want("trail", err)
	if !strings.Contains(strings.Join(t.Notes, " "), "continued by") {
		w.fail("continue: the trail has no mark of it: %q", t.Notes)
	}
	a = w.ask(ctx, "refused", true)
	for _, h := range w.hits("refused", "fallback") {
		if h.prefill {
			w.fail("refused: a beginning was sent")
		}
	}
	w.see("an error event behind 40 tokens; hold: one whole answer; continue: 20 tokens appended; continue without a prefill: %s", outcome(&a))
}

// outcome says how a stream ended.
func outcome(a *answer) string {
	switch {
	case a.stream() == nil:
		return "whole"
	case a.failed:
		return "an error event"
	}
	return "neither whole nor an error"
}

func stall(ctx context.Context, w *wall) {
	a := w.ask(ctx, "default", true)
	w.want("default", a.honest(20))
	if a.took > 7*time.Second || !strings.Contains(a.raw, "stream_content_stall") && w.dialect == chat {
		w.fail("default: ended in %s: %q", seconds(a.took), a.raw[max(0, len(a.raw)-200):])
	}
	w.see("an error event in %s", seconds(a.took))
	for _, mode := range []string{"hold", "continue"} {
		a = w.ask(ctx, mode, true)
		w.want(mode, a.stream())
		if a.took > 7*time.Second {
			w.fail("%s: answered in %s", mode, seconds(a.took))
		}
		w.see("%s: whole in %s", mode, seconds(a.took))
	}
	a = w.ask(ctx, "patient", true)
	w.want("patient", a.stream())
	w.see("without a bound: whole in %s", seconds(a.took))
}

func malformed(ctx context.Context, w *wall) {
	a := w.ask(ctx, "", true)
	clean := strings.ReplaceAll(a.text, "<unexpected end of JSON input>", "")
	switch {
	case a.failed && !a.ended:
		w.see("the stream ended with an error event")
	case clean == text(0, tokens) && a.ended && clean == a.text:
		w.see("the chunk was dropped, the rest is whole")
	default:
		w.fail("text %q, ended %t, failed %t", a.text, a.ended, a.failed)
	}
}

func noMark(ctx context.Context, w *wall) {
	a := w.ask(ctx, "", true)
	w.want("stream", a.stream())
	if a.input != prompt || a.output != completion {
		w.fail("usage %d/%d", a.input, a.output)
	}
	t, err := w.trail(ctx, &a)
	w.want("trail", err)
	if t.Outcome != "ok" || t.Tokens.Input != prompt || t.Tokens.Output != completion {
		w.fail("the ledger says %s with %d/%d tokens", t.Outcome, t.Tokens.Input, t.Tokens.Output)
	}
	w.see("a proper end was sent, usage %d/%d is recorded", t.Tokens.Input, t.Tokens.Output)
}

func overflow(ctx context.Context, w *wall) {
	a := w.ask(ctx, "larger", false)
	w.want("larger", a.whole())
	w.from("larger", "fallback", &a)
	for range 2 {
		a = w.ask(ctx, "smaller", false)
		if a.status != http.StatusBadRequest || !strings.Contains(a.raw, "1234 tokens") {
			w.fail("smaller: %d %.200s", a.status, a.raw)
		}
	}
	if n := len(w.hits("smaller", "fallback")); n > 0 {
		w.fail("smaller: a smaller window was tried")
	}
	if n := len(w.hits("smaller", "primary")); n != 2 {
		w.fail("smaller: %d primary hits for 2 requests, so something cooled", n)
	}
	w.see("the larger window answers; without one the 400 reaches the caller, nothing cools")
}

func filtered(ctx context.Context, w *wall) {
	a := w.ask(ctx, "default", false)
	if a.status != http.StatusBadRequest || !strings.Contains(a.raw, "content_policy_violation") {
		w.fail("default: %d %.200s", a.status, a.raw)
	}
	if p, f := len(w.hits("default", "primary")), len(w.hits("default", "fallback")); p != 1 || f != 0 {
		w.fail("default: %d primary and %d fallback hits", p, f)
	}
	a = w.ask(ctx, "allowed", false)
	w.want("allowed", a.whole())
	w.from("allowed", "fallback", &a)
	w.see("the refusal reaches the caller after 1 hit; with fallbackOnContentFilter the fallback answers")
}

func refusesBeginning(ctx context.Context, w *wall) {
	a := w.ask(ctx, "", true)
	w.want("stream", a.honest(40))
	for _, h := range w.hits("", "fallback") {
		if h.prefill {
			w.fail("a beginning was sent to the target that refuses it")
		}
	}
	w.see("no prefill was sent to the fallback; an error event behind 40 tokens")
}

// The outage of FLT-15. It begins when the wall is set up, so the time until the gateway runs is added.
const (
	outageRequests = 20
	outageEvery    = 3 * time.Second
	outageDelay    = 5 * time.Second
)

func outage(ctx context.Context, w *wall) {
	began, answered := time.Now(), 0
	for i := range outageRequests {
		sleepUntil(ctx, began.Add(time.Duration(i)*outageEvery))
		a := w.ask(ctx, "", false)
		if err := a.whole(); err != nil {
			w.fail("request %d: %v", i+1, err)
			continue
		}
		answered++
	}
	sleepUntil(ctx, began.Add(60*time.Second))
	hits := w.hits("", "primary")
	const threshold, period = 2, 15 // of a local provider
	if most := threshold + int(time.Since(began).Seconds())/period; len(hits) > most {
		w.fail("%d primary hits, at most %d", len(hits), most)
	}
	back, err := w.recovery(ctx)
	w.want("recovery", err)
	w.see("%d of %d answered, %d primary hits, the primary serves again after %s", answered, outageRequests, len(hits), seconds(back))
}

// recovery asks until the primary answers again.
func (w *wall) recovery(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	for time.Since(began) < 25*time.Second {
		a := w.ask(ctx, "", false)
		if err := a.whole(); err != nil {
			return 0, err
		}
		if w.served(&a) == w.name("", "primary") {
			return time.Since(began), nil
		}
		sleep(ctx, time.Second)
	}
	return 0, errors.New("the primary does not serve again")
}

func billing(ctx context.Context, w *wall) {
	for _, stream := range []bool{false, true} {
		a := w.ask(ctx, "", stream)
		w.want(fmt.Sprintf("stream %t", stream), a.whole())
		w.from("", "fallback", &a)
		if a.model != w.name("", "fallback") || a.input != prompt || a.output != completion {
			w.fail("model %q, usage %d/%d", a.model, a.input, a.output)
		}
		t, err := w.trail(ctx, &a)
		w.want("trail", err)
		w.want("trail", t.billed())
		w.see("stream %t: the fallback's model and usage, %d attempts in the trail, the failed one not billed", stream, len(t.Attempts))
		sleep(ctx, 4500*time.Millisecond) // until the primary is asked again
	}
}

func sleepUntil(ctx context.Context, at time.Time) { sleep(ctx, time.Until(at)) }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
