package main

import (
	"fmt"
	"strings"
)

// breaker is the sentence of a breaker's event: what it is now, after how many failures, for which answer, until when.
func (e *event) breaker() string {
	who, count := "the breaker of "+e.Provider, e.number("failureCount")
	if e.Kind == "breaker.counted" {
		return fmt.Sprintf("%s counts %s%s", who, failures(count), e.lastFailure())
	}
	from, to, reason := e.transition()
	switch to {
	case "OPEN":
		if reason == "probe-failed" {
			return who + " opened again, for its probe failed" + e.lastFailure() + e.ends()
		}
		return fmt.Sprintf("%s opened after %s%s%s", who, failures(count), e.lastFailure(), e.ends())
	case "DEGRADED":
		return fmt.Sprintf("%s is degraded after %s%s", who, failures(count), e.lastFailure())
	case "HALF_OPEN":
		return who + " lets one probe through"
	}
	if from == "" {
		return strings.TrimSpace(who + " is " + strings.ToLower(e.word("state")))
	}
	why := map[string]string{
		"probe-success": "its probe was answered", "recovery": "answers came again", "quiet-window": "no failure came for a long while",
		"connection-test": "the test of a connection passed", "manual-reset": "a person reset it",
	}[reason]
	if why == "" {
		why = reason
	}
	return who + " closed, for " + why
}

func failures(n int) string {
	if n == 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d failures", n)
}

// transition is the last entry of the history that the event carries.
func (e *event) transition() (from, to, reason string) {
	history, _ := e.Data["transitionHistory"].([]any)
	if len(history) == 0 {
		return "", "", ""
	}
	last, _ := history[len(history)-1].(map[string]any)
	one := event{Data: last}
	return one.word("from"), one.word("to"), one.word("reason")
}

// lastFailure tells the answer that was counted last.
func (e *event) lastFailure() string {
	c, ok := e.Data["cause"].(map[string]any)
	if !ok {
		return ""
	}
	cause := event{Data: c}
	last := ", the last"
	if status := cause.number("status"); status > 0 {
		last += fmt.Sprintf(" a %d", status)
		if original := cause.number("originalStatus"); original > 0 && original != status {
			last += fmt.Sprintf(" (sent as %d)", original)
		}
	} else {
		last += " without an answer"
	}
	if rule := cause.word("rule"); rule != "" {
		last += " by the rule " + cause.word("plugin") + "/" + rule
	}
	if id := cause.word("requestId"); id != "" {
		last += ", in request " + id
	}
	return last
}

func (e *event) ends() string {
	if e.word("until") == "" {
		return ""
	}
	return "; it lets a probe through at " + e.when("until")
}

// lockout is the sentence of a lockout's event.
func (e *event) lockout() string {
	model := e.Model
	if model == "" {
		model = e.word("model")
	}
	what, where := "the model "+model, "on "+e.ConnectionID
	if e.word("shape") == "family" {
		what = "the quota of " + model
	}
	switch e.Kind {
	case "lockout.cleared":
		return fmt.Sprintf("%s %s is enabled again", what, where)
	case "lockout.decayed":
		return fmt.Sprintf("%s %s answered; its count of failures is %d now", what, where, e.number("failureCount"))
	}
	text := fmt.Sprintf("%s %s is locked out until %s", what, where, e.when("until"))
	if reason := e.word("reason"); reason != "" {
		text += ", for " + reason
	}
	return text + e.cause()
}

// probe says when a cooldown is tested before its end (COOL-24).
func (e *event) probe() string {
	if e.word("nextProbeAt") == "" {
		return ""
	}
	return " (probed from " + e.when("nextProbeAt") + ")"
}

// number reads a whole number; 0 when there is none.
func (e *event) number(name string) int {
	n, _ := e.Data[name].(float64)
	return int(n)
}
