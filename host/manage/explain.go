package manage

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
)

type explainBody struct {
	Model    string `json:"model"`
	APIKeyID string `json:"apiKeyId"`
}

type explanation struct {
	Model      string      `json:"model"`
	Resolved   resolved    `json:"resolved"`
	Candidates []candidate `json:"candidates"`
}

type resolved struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

type candidate struct {
	Order        int                 `json:"order"`
	Provider     string              `json:"provider"`
	ConnectionID string              `json:"connectionId"`
	Model        string              `json:"model"`
	Verdict      string              `json:"verdict"`
	Gate         *string             `json:"gate"`
	Reason       *string             `json:"reason"`
	Since        *string             `json:"since"`
	Until        *string             `json:"until"`
	NextProbeAt  *string             `json:"nextProbeAt"`
	Cause        *account.CauseShown `json:"cause"`
}

// The two verdicts of a candidate, and the gate that filters connections before any state is asked (SEL-1).
const (
	wouldTry      = "would_try"
	excluded      = "excluded"
	selectionGate = "connection_selection"
)

// explain is a dry run (OBJ-25): the targets and connections of a request in order, and for each one that is left out the
// gate that did it and until when. It touches no state.
func explain(s *Server, c *call) (any, error) {
	var b explainBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if b.Model == "" {
		return nil, invalid(Detail{"model", "is required"})
	}
	var key *catalog.Key
	if b.APIKeyID != "" {
		if key = keyByID(c.catalog, b.APIKeyID); key == nil {
			return nil, notFound("API key", b.APIKeyID)
		}
		if !key.AllowsModel(b.Model) {
			return nil, problem(http.StatusForbidden, "The key %s may not ask for the model %q.", key.ID, b.Model)
		}
	}
	r, err := c.catalog.Resolve(b.Model)
	if err != nil {
		return nil, unresolved(err)
	}
	e := explanation{Model: b.Model, Resolved: resolved{r.Kind, r.Name}, Candidates: []candidate{}}
	type place struct{ connection, model string }
	seen := map[place]bool{}
	at := resilience.Moment{Now: c.now, Catalog: c.catalog, Combo: r.Kind == catalog.KindCombo}
	for _, t := range s.ports.Order(r, key, c.now) {
		seen[place{t.Connection.ID, t.Model}] = true
		at.Pinned = at.Combo && pins(r, &t)
		t.Requested = b.Model
		e.add(candidateOf(t, s.ports.States.Peek(at, t)))
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		for _, conn := range t.Provider.All {
			if at := (place{conn.ID, t.Model}); !seen[at] {
				seen[at] = true
				gate, why := selectionGate, leftOut(t, key, conn)
				e.add(candidate{
					Provider: t.Provider.ID, ConnectionID: conn.ID, Model: t.Model, Verdict: excluded, Gate: &gate, Reason: &why,
				})
			}
		}
	}
	return e, nil
}

// pins says whether a target of the route names this one connection (PCD-8).
func pins(r *catalog.Route, t *catalog.Target) bool {
	return slices.ContainsFunc(r.Targets, func(x catalog.RouteTarget) bool {
		return x.Connection != nil && x.Connection.ID == t.Connection.ID && x.Model == t.Model
	})
}

func (e *explanation) add(c candidate) {
	c.Order = len(e.Candidates) + 1
	e.Candidates = append(e.Candidates, c)
}

// candidateOf is a target with what the ladder says about it.
func candidateOf(t catalog.Target, refusal *resilience.Refusal) candidate {
	c := candidate{Provider: t.Provider.ID, ConnectionID: t.Connection.ID, Model: t.Model, Verdict: wouldTry}
	if refusal == nil {
		return c
	}
	reason := string(refusal.Reason)
	if refusal.State != "" {
		reason = string(refusal.State)
	}
	c.Verdict, c.Gate, c.Reason = excluded, &refusal.Gate, orNull(reason)
	c.Since, c.Until, c.NextProbeAt = stamp(refusal.Since), stamp(refusal.RetryAt), stamp(refusal.NextProbeAt)
	c.Cause = shownCause(refusal.Cause)
	return c
}

func shownCause(c *resilience.Cause) *account.CauseShown {
	if c == nil {
		return nil
	}
	shown := &account.CauseShown{
		RequestID: c.RequestID, Status: c.Status, OriginalStatus: c.OriginalStatus, Plugin: c.Plugin, Rule: c.Rule,
		Source: c.Source, Message: c.Message,
	}
	if c.At != 0 {
		shown.At = stamp(time.UnixMilli(c.At))
	}
	return shown
}

// leftOut says which filter of SEL-1 a connection does not pass.
func leftOut(t *catalog.RouteTarget, key *catalog.Key, c *catalog.Connection) string {
	switch {
	case !c.Active:
		return "inactive"
	case !t.Permits(c):
		return "not_allowed_by_target"
	case key != nil && !key.AllowsConnection(c.ID):
		return "not_allowed_by_key"
	}
	return "model_not_served"
}

// unresolved turns the catalog's errors into their answers (CFG-4).
func unresolved(err error) error {
	if _, ok := errors.AsType[*catalog.AmbiguousModel](err); ok {
		return problem(http.StatusNotFound, "%s", err).coded("model_ambiguous")
	}
	if _, ok := errors.AsType[*catalog.UnknownModel](err); ok {
		return problem(http.StatusNotFound, "%s", err).coded("model_not_found")
	}
	return err
}
