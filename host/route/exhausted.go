package route

import (
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// Exhausted holds what is out for the rest of one request (CMB-20 to CMB-22, CMB-25, last column of CLS-15). The zero
// value is ready and costs nothing until something fails. It belongs to one request and is not safe for concurrent use.
type Exhausted struct {
	out []exhaustion
}

// exhaustion is one entry: a provider, a connection of it, or a model on one or on all of its connections.
type exhaustion struct {
	place
	lasts  Lasting
	reason wire.Reason
}

type place struct{ provider, connection, model string }

// Lasting is how long something stays out within a request.
type Lasting uint8

// How long: a rate limit until the request has waited, a failing server until the whole set is tried again (CMB-16), everything
// else to the end.
const (
	UntilWait Lasting = iota
	UntilSet
	ForGood
)

// Note takes out what a verdict says about the target of a failed attempt:
//
//   - scope request: this model of this provider, since each account would answer the same; credits that do not suffice
//     for one request are the account's own, so only that account is out
//   - scope model: this model on this connection
//   - scope connection: the connection
//   - scope provider: the connection and, unless another account may fare better, the provider
//
// When the connection is not known, the provider stands in for it (CMB-20).
func (e *Exhausted) Note(t catalog.Target, v wire.Verdict) {
	at := place{provider: t.Provider.ID, model: t.Model}
	if t.Connection != nil {
		at.connection = t.Connection.ID
	}
	lasts := lasting(v.Reason)
	switch v.Scope {
	case wire.ScopeRequest:
		if v.Reason != wire.CreditsGone {
			at.connection = ""
		}
		e.exclude(at, ForGood, v.Reason)
	case wire.ScopeModel:
		e.exclude(at, lasts, v.Reason)
	case wire.ScopeConnection:
		at.model = ""
		e.exclude(at, lasts, v.Reason)
	case wire.ScopeProvider:
		at.model = ""
		e.exclude(at, lasts, v.Reason)
		if !mayDifferByAccount(v.Reason) {
			at.connection = ""
			e.exclude(at, lasts, v.Reason)
		}
	case wire.ScopeNone:
	}
}

// lasting sorts reasons by how long they stay.
func lasting(r wire.Reason) Lasting {
	switch r {
	case wire.RateLimitExceeded, wire.ConcurrencyLimited:
		return UntilWait
	case wire.ServerError, wire.Timeout, wire.NetworkError, wire.Overloaded:
		return UntilSet
	default:
		return ForGood
	}
}

// mayDifferByAccount says whether another account of the provider may fare better although the failure was laid on the
// provider: an outage does not hit all alike, everything else would be told to each account (RUL-8).
func mayDifferByAccount(r wire.Reason) bool {
	switch r {
	case wire.ServerError, wire.Timeout, wire.NetworkError, wire.Overloaded:
		return true
	default:
		return false
	}
}

// exclude adds an entry, or lets it last longer.
func (e *Exhausted) exclude(at place, lasts Lasting, reason wire.Reason) {
	i := slices.IndexFunc(e.out, func(x exhaustion) bool { return x.place == at })
	switch {
	case i < 0:
		e.out = append(e.out, exhaustion{at, lasts, reason})
	case e.out[i].lasts <= lasts:
		e.out[i].lasts, e.out[i].reason = lasts, reason
	}
}

// ExcludeProvider takes a whole provider out to the end of the request.
func (e *Exhausted) ExcludeProvider(id string) {
	e.exclude(place{provider: id}, ForGood, wire.InvalidRequest)
}

// Clone returns a copy for a leg of the request that runs beside the others.
func (e *Exhausted) Clone() Exhausted { return Exhausted{slices.Clone(e.out)} }

// Merge adds what is out in o.
func (e *Exhausted) Merge(o Exhausted) {
	for _, x := range o.out {
		e.exclude(x.place, x.lasts, x.reason)
	}
}

// Lift lets in again what was out no longer than up to.
func (e *Exhausted) Lift(up Lasting) {
	e.out = slices.DeleteFunc(e.out, func(x exhaustion) bool { return x.lasts <= up })
}

// Pardon lets one target in again for a further try, whatever had put it out but its provider (CMB-19).
func (e *Exhausted) Pardon(t catalog.Target) {
	e.out = slices.DeleteFunc(e.out, func(x exhaustion) bool {
		return x.connection != "" && x.connection == t.Connection.ID && (x.model == "" || x.model == t.Model)
	})
}

// Out says whether nothing may go to t, why, and how long that lasts: its provider, its connection or its model there is out
// (CMB-11). When several hold, the longest is told.
func (e *Exhausted) Out(t catalog.Target) (reason wire.Reason, lasts Lasting, out bool) {
	connection := ""
	if t.Connection != nil {
		connection = t.Connection.ID
	}
	for i := range e.out {
		x := &e.out[i]
		if x.provider != t.Provider.ID || x.connection != "" && x.connection != connection || x.model != "" && x.model != t.Model {
			continue
		}
		if !out || x.lasts > lasts {
			reason, lasts, out = x.reason, x.lasts, true
		}
	}
	return reason, lasts, out
}

// Target says whether nothing may go to t.
func (e *Exhausted) Target(t catalog.Target) bool {
	_, _, out := e.Out(t)
	return out
}

// Provider says whether a whole provider is out.
func (e *Exhausted) Provider(id string) bool {
	return slices.ContainsFunc(e.out, func(x exhaustion) bool { return x.place == place{provider: id} })
}
