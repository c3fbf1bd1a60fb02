package route

import (
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// Exhausted holds what is out for the rest of one request (CMB-20 to CMB-22, CMB-25, last column of CLS-15). The zero
// value is ready and costs nothing until something fails. It belongs to one request and is not safe for concurrent use.
type Exhausted struct {
	connections []string
	providers   []string
	models      []modelOf
}

// modelOf is one model on one connection, or on all connections of a provider.
type modelOf struct{ provider, connection, model string }

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
	switch v.Scope {
	case wire.ScopeRequest:
		if v.Reason == wire.CreditsGone && t.Connection != nil {
			e.excludeModel(modelOf{t.Provider.ID, t.Connection.ID, t.Model})
			return
		}
		e.excludeModel(modelOf{provider: t.Provider.ID, model: t.Model})
	case wire.ScopeModel:
		m := modelOf{provider: t.Provider.ID, model: t.Model}
		if t.Connection != nil {
			m.connection = t.Connection.ID
		}
		e.excludeModel(m)
	case wire.ScopeConnection:
		e.excludeConnection(t)
	case wire.ScopeProvider:
		e.excludeConnection(t)
		if !mayDifferByAccount(v.Reason) {
			e.ExcludeProvider(t.Provider.ID)
		}
	case wire.ScopeNone:
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

func (e *Exhausted) excludeConnection(t catalog.Target) {
	if t.Connection == nil {
		e.ExcludeProvider(t.Provider.ID)
		return
	}
	if !e.Connection(t.Connection.ID) {
		e.connections = append(e.connections, t.Connection.ID)
	}
}

func (e *Exhausted) excludeModel(m modelOf) {
	if !slices.Contains(e.models, m) {
		e.models = append(e.models, m)
	}
}

// ExcludeProvider takes a whole provider out.
func (e *Exhausted) ExcludeProvider(id string) {
	if !e.Provider(id) {
		e.providers = append(e.providers, id)
	}
}

// Connection says whether a connection is out.
func (e *Exhausted) Connection(id string) bool { return slices.Contains(e.connections, id) }

// Provider says whether a whole provider is out.
func (e *Exhausted) Provider(id string) bool { return slices.Contains(e.providers, id) }

// Model says whether a model is out on a connection of a provider. An empty connection asks for all of them.
func (e *Exhausted) Model(provider, connection, model string) bool {
	return slices.Contains(e.models, modelOf{provider, "", model}) ||
		slices.Contains(e.models, modelOf{provider, connection, model})
}

// Target says whether nothing may go to t: its provider, its connection or its model there is out (CMB-11).
func (e *Exhausted) Target(t catalog.Target) bool {
	connection := ""
	if t.Connection != nil {
		connection = t.Connection.ID
	}
	return e.Provider(t.Provider.ID) || e.Connection(connection) || e.Model(t.Provider.ID, connection, t.Model)
}
