package dispatch

import (
	"bytes"
	"context"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

// faultOf names what broke an attempt that brought no whole answer: our own clock, or the transport (BRK-11 to BRK-14).
func (a *attempt) faultOf(actx context.Context, code string) resilience.Fault {
	if ph, own := endedPhase(actx); own {
		return a.timer(ph)
	}
	switch code {
	case wire.TransportConnect, wire.TransportDNS:
		if a.resp == nil {
			return resilience.FaultUnreachable
		}
	}
	return resilience.FaultTransport
}

// timer names which of our clocks ended the attempt in a phase.
func (a *attempt) timer(ph phase) resilience.Fault {
	target := a.targetTimeout()
	combo := target > 0 && a.r.c.Route.Kind == catalog.KindCombo
	events := a.resp != nil && isEventStream(a.resp.Header)
	first := smallest(a.firstContent(), target)
	if events {
		first = a.eventLimit()
	}
	switch {
	case combo && (ph == phaseHead && a.headLimit() == target || ph == phaseEvent && first == target):
		return resilience.FaultTargetTimer
	case ph == phaseEvent && events:
		return resilience.FaultReadiness
	case ph == phaseIdle, ph == phaseStall, ph == phaseSlow:
		return resilience.FaultStall
	}
	return resilience.FaultOwnDeadline
}

// isOwn says whether our own clock ended an attempt (COOL-33).
func isOwn(f resilience.Fault) bool {
	switch f {
	case resilience.FaultOwnDeadline, resilience.FaultTargetTimer, resilience.FaultReadiness, resilience.FaultStall:
		return true
	case resilience.FaultAnswer, resilience.FaultUnreachable, resilience.FaultTransport, resilience.FaultEarlyEOF, resilience.FaultEmptyContent:
	}
	return false
}

// faultOfAnswer tells a good answer without content from one that states a failure (BRK-11).
func faultOfAnswer(body []byte) resilience.Fault {
	if len(bytes.TrimSpace(body)) == 0 {
		return resilience.FaultEmptyContent
	}
	return resilience.FaultAnswer
}
