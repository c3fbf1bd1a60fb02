package route

import (
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// Then is what a failed attempt leaves to try.
type Then uint8

// What is left to try.
const (
	Stop           Then = iota // nothing: the answer goes to the client (CMB-18)
	NextTarget                 // another target; the other connections of this one would hear the same
	NextConnection             // another connection of the target, then another target (CMB-19)
)

// Exhausted holds what is out for the rest of one request (CMB-20 to CMB-22, CMB-25, last column of CLS-15). The zero
// value is ready and costs nothing until something fails. It belongs to one request and is not safe for concurrent use.
type Exhausted struct {
	connections []string
	providers   []string
	models      []modelOf
}

// modelOf is one model of one connection.
type modelOf struct{ connection, model string }

// Note takes out what a verdict says about the target of a failed attempt, and says what is left to try. When the
// connection is not known, its provider is out in its place (CMB-20).
func (e *Exhausted) Note(t catalog.Target, v wire.Verdict) Then {
	switch v.Scope {
	case wire.ScopeModel:
		if t.Connection != nil {
			e.models = append(e.models, modelOf{t.Connection.ID, t.Model})
		}
	case wire.ScopeConnection:
		e.connection(t)
	case wire.ScopeProvider:
		e.connection(t)
		if !mayDifferByAccount(v.Reason) {
			e.provider(t.Provider.ID)
		}
	case wire.ScopeRequest, wire.ScopeNone:
	}
	switch {
	case !v.Fallback:
		return Stop
	case v.Scope == wire.ScopeRequest && v.Reason != wire.CreditsGone:
		return NextTarget
	}
	return NextConnection
}

// mayDifferByAccount says whether another account of the provider may fare better although the failure was laid on the
// provider: outages do not hit all alike, everything else would be told to each account (RUL-8).
func mayDifferByAccount(r wire.Reason) bool {
	switch r {
	case wire.ServerError, wire.Timeout, wire.NetworkError, wire.Overloaded:
		return true
	default:
		return false
	}
}

func (e *Exhausted) connection(t catalog.Target) {
	if t.Connection == nil {
		e.provider(t.Provider.ID)
		return
	}
	if !e.Connection(t.Connection.ID) {
		e.connections = append(e.connections, t.Connection.ID)
	}
}

func (e *Exhausted) provider(id string) {
	if !e.Provider(id) {
		e.providers = append(e.providers, id)
	}
}

// Connection says whether a connection is out.
func (e *Exhausted) Connection(id string) bool { return slices.Contains(e.connections, id) }

// Provider says whether a whole provider is out.
func (e *Exhausted) Provider(id string) bool { return slices.Contains(e.providers, id) }

// Model says whether a model of a connection is out.
func (e *Exhausted) Model(connection, model string) bool {
	return slices.Contains(e.models, modelOf{connection, model})
}

// Target says whether nothing may go to t: its provider, its connection or its model there is out (CMB-11).
func (e *Exhausted) Target(t catalog.Target) bool {
	return e.Provider(t.Provider.ID) || t.Connection != nil && (e.Connection(t.Connection.ID) || e.Model(t.Connection.ID, t.Model))
}
